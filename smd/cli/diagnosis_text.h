#pragma once

// Diagnoses in plain words for a terminal. Pure functions.

#include <span>

#include "smd/cli/diagnosed_run.h"
#include "smd/cli/terminal.h"
#include "smd/rules/diagnosis.h"

namespace smd::cli {

void print_diagnosis(const Terminal& terminal, const rules::Diagnosis& diagnosis);

// Of several runs: a line for each.
void print_summary(const Terminal& terminal, std::span<const DiagnosedRun> runs);

// One line for a hit of a growing run, flushed.
void print_hit(const Terminal& terminal, rules::Severity severity, const rules::Hit& hit);

}  // namespace smd::cli

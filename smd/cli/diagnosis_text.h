#pragma once

// A diagnosis in plain words for a terminal. Pure function.

#include "smd/cli/terminal.h"
#include "smd/rules/diagnosis.h"

namespace smd::cli {

void print_diagnosis(const Terminal& terminal, const rules::Diagnosis& diagnosis);

}  // namespace smd::cli

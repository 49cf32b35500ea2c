#pragma once

// Precision, recall and F1 of a confusion matrix. Pure function.

#include <span>

#include "smd/base/json.h"
#include "smd/rules/confusion_counts.h"

namespace smd::rules {

// An object with "accuracy", "micro", "macro", "weighted" (each with precision, recall and f1) and
// "classes", a list of the same for each class with its label and support. Where something would be
// divided by zero it is 0. Macro and weighted means are over classes that have labels or
// predictions; weights are numbers of labels. `labels`: what people call the classes.
Json class_scores(const ConfusionCounts& counts, std::span<const double> labels);

}  // namespace smd::rules

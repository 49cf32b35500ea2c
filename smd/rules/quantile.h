#pragma once

// Order statistics of numbers. Pure functions.

#include <span>

namespace smd::rules {

// Between the two nearest in order, linearly: position (n − 1) · q counts from the smallest. Puts
// the numbers, of which there is at least one and none is NaN, into another order.
double quantile(std::span<double> numbers, double q);

}  // namespace smd::rules

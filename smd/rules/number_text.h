#pragma once

// Numbers in the sentences of rules. Pure function.

#include <string>

namespace smd::rules {

// "3", "0.25", "1.23457e-05", "NaN", "inf", "-inf": a NaN has no sign.
std::string number_text(double number, int digits = 6);

}  // namespace smd::rules

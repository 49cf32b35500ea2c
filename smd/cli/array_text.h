#pragma once

// The elements of a tensor as text or JSON, as people know them from NumPy. Pure functions.

#include <cstdint>
#include <string>

#include "smd/base/json.h"
#include "smd/trial/tensor_value.h"

namespace smd::cli {

struct ArrayTextOptions {
  // A tensor of more elements is abbreviated: only the first and last three along each axis.
  int64_t limit = 1000;
  int width = 80;  // columns of a line, unless one element needs more
};

// Nested brackets, without a newline at the end. Texts are quoted and safe to print.
std::string array_text(const TensorValue& value, const ArrayTextOptions& options);

// Nested lists; complex numbers are lists of two. Not for more elements than fit into memory
// thrice.
Json array_json(const TensorValue& value);

// "float32[2, 3]", "str[4]", "int64[]".
std::string type_text(DType dtype, const Shape& shape);
std::string shape_text(const Shape& shape);

}  // namespace smd::cli

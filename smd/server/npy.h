#pragma once

// A tensor as a file of NumPy's format 1.0. Pure function.

#include <string>

#include "smd/base/result.h"
#include "smd/tensor/tensor_view.h"

namespace smd::server {

// C order, little endian; types that NumPy does not know become float32. unsupported: strings.
Result<std::string> npy_file(const TensorView& tensor);

}  // namespace smd::server

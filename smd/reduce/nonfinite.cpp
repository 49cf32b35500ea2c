#include "smd/reduce/nonfinite.h"

#include <cmath>

#include "smd/reduce/internal/element_reader.h"

namespace smd {

Result<NonFinite> count_nonfinite(const TensorView& tensor) {
  SMD_RETURN_IF_ERROR(check(tensor));
  NonFinite found;
  if (tensor.size() == 0) return found;
  internal::for_computing_type(tensor.dtype, [&]<typename T>(std::type_identity<T>) {
    if constexpr (std::is_floating_point_v<T>) {
      internal::ElementReader<T> elements(internal::best_kernels(), tensor);
      for (auto block = elements.next(); !block.empty(); block = elements.next()) {
        for (const T value : block) {
          if (std::isfinite(value)) continue;
          if (std::isnan(value)) {
            ++found.nan;
          } else {
            ++(value > 0 ? found.positive_inf : found.negative_inf);
          }
        }
      }
    }
  });
  return found;
}

}  // namespace smd

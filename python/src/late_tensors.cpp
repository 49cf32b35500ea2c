#include "python/src/late_tensors.h"

#include "smd/reduce/nonfinite.h"

namespace smdebug {

smd::Status CopiedStatistics::find(smd::LateResults& out) {
  SMD_RETURN_IF_ERROR(copy_->wait());
  const smd::TensorView view{.data = copy_->bytes(index_).data(), .dtype = dtype_, .shape = shape_};
  SMD_RETURN_IF_ERROR(
      smd::reduce(view, {.reductions = reductions_, .count_special = true, .histogram = histogram_},
                  out.reductions));
  SMD_TRY(out.nonfinite, smd::count_nonfinite(view));
  return {};
}

}  // namespace smdebug

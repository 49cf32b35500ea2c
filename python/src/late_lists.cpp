#include "python/src/late_lists.h"

#include "smd/reduce/nonfinite.h"
#include "smd/reduce/reduce.h"

namespace smdebug {

namespace gpu = smd::gpu;

smd::Status reduce_late(const smd::TensorView& tensor, const smd::ReductionRequest& request,
                        smd::LateResults& out) {
  smd::ReductionRequest all = request;
  all.count_special = true;
  all.histogram = request.histogram && tensor.dtype != smd::DType::boolean;
  SMD_RETURN_IF_ERROR(smd::reduce(tensor, all, out.reductions));
  SMD_TRY(out.nonfinite, smd::count_nonfinite(tensor));
  out.count = tensor.size();
  return {};
}

smd::Result<bool> Permission::wait() const {
  if (is_certain()) return true;
  SMD_RETURN_IF_ERROR(veto_->wait());
  static constexpr int64_t kOne[] = {1};
  const smd::TensorView number{.data = veto_->bytes(0).data(), .dtype = dtype_, .shape = kOne};
  smd::ReductionResult found;
  SMD_RETURN_IF_ERROR(smd::reduce(number, {.reductions = {}, .count_special = true}, found));
  return found.zero_count == 1;
}

smd::Result<bool> SurveyedList::wait() {
  SMD_RETURN_IF_ERROR(survey_->wait());
  return permission_.wait();
}

smd::Status SurveyedList::find(size_t index, const smd::ReductionRequest& request,
                               smd::LateResults& out) {
  const auto partials = survey_->partials(index);
  gpu::finish_survey(dtypes_[index], partials, request, out.reductions);
  out.nonfinite = gpu::nonfinite_in(partials);
  for (const gpu::Partial& partial : partials) out.count += partial.count;
  return {};
}

smd::Result<bool> CopiedList::wait() {
  SMD_RETURN_IF_ERROR(copy_->wait());
  return permission_.wait();
}

smd::Status CopiedList::find(size_t index, const smd::ReductionRequest& request,
                             smd::LateResults& out) {
  const auto& [dtype, shape] = tensors_[index];
  return reduce_late({.data = copy_->bytes(index).data(), .dtype = dtype, .shape = shape}, request,
                     out);
}

size_t CopiedList::size_bytes() const {
  size_t bytes = sizeof *this;
  for (size_t i = 0; i < tensors_.size(); ++i) bytes += copy_->bytes(i).size();
  return bytes;
}

smd::Result<bool> CopiedMemory::wait() {
  SMD_RETURN_IF_ERROR(copy_->wait());
  return permission_.wait();
}

}  // namespace smdebug

#pragma once

// What a device is still working on, as the hook knows it. Thread-safe; no Python.

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "smd/gpu/copier.h"
#include "smd/gpu/device.h"
#include "smd/gpu/survey.h"
#include "smd/hook/late_tensor.h"
#include "smd/reduce/reduce.h"
#include "smd/tensor/tensor_view.h"
#include "smd/writer/late.h"

namespace smdebug {

// Results that are found once, by whoever asks first.
class LateOnce : public smd::LateTensor {
 public:
  bool has_results() const final { return done_.load(std::memory_order_acquire); }
  bool is_ready() const final { return has_results() || has_come(); }
  smd::Result<const smd::LateResults*> results() final {
    const std::lock_guard lock(mutex_);
    if (!has_results()) {
      SMD_RETURN_IF_ERROR(find(results_));
      done_.store(true, std::memory_order_release);
    }
    return &results_;
  }

 private:
  virtual bool has_come() const = 0;
  virtual smd::Status find(smd::LateResults& out) = 0;

  std::mutex mutex_;
  smd::LateResults results_;
  std::atomic<bool> done_{false};
};

// One tensor of a survey.
class SurveyedTensor final : public LateOnce {
 public:
  SurveyedTensor(std::shared_ptr<smd::gpu::LateSurvey> survey, size_t index, smd::DType dtype,
                 const smd::ReductionSet& reductions)
      : survey_(std::move(survey)), index_(index), dtype_(dtype), reductions_(reductions) {}

  size_t size_bytes() const override {
    return sizeof *this + survey_->partials(index_).size_bytes();
  }

 private:
  bool has_come() const override { return survey_->is_ready(); }
  smd::Status find(smd::LateResults& out) override {
    SMD_RETURN_IF_ERROR(survey_->wait());
    const auto partials = survey_->partials(index_);
    smd::gpu::finish_survey(dtype_, partials, {.reductions = reductions_}, out.reductions);
    out.nonfinite = smd::gpu::nonfinite_in(partials);
    return {};
  }

  const std::shared_ptr<smd::gpu::LateSurvey> survey_;
  const size_t index_;
  const smd::DType dtype_;
  const smd::ReductionSet reductions_;
};

// A tensor whose statistics need all its elements at once: the host finds them in a copy.
class CopiedStatistics final : public LateOnce {
 public:
  CopiedStatistics(std::shared_ptr<smd::gpu::LateCopy> copy, size_t index, smd::DType dtype,
                   smd::Shape shape, const smd::ReductionSet& reductions, bool histogram)
      : copy_(std::move(copy)),
        index_(index),
        dtype_(dtype),
        shape_(std::move(shape)),
        reductions_(reductions),
        histogram_(histogram) {}

  size_t size_bytes() const override { return sizeof *this + copy_->bytes(index_).size(); }

 private:
  bool has_come() const override { return copy_->is_ready(); }
  smd::Status find(smd::LateResults& out) override;

  const std::shared_ptr<smd::gpu::LateCopy> copy_;
  const size_t index_;
  const smd::DType dtype_;
  const smd::Shape shape_;
  const smd::ReductionSet reductions_;
  const bool histogram_;
};

// The elements of a tensor.
class CopiedTensor final : public smd::LateMemory {
 public:
  explicit CopiedTensor(std::shared_ptr<smd::gpu::LateCopy> copy) : copy_(std::move(copy)) {}
  smd::Status wait() override { return copy_->wait(); }

 private:
  const std::shared_ptr<smd::gpu::LateCopy> copy_;
};

}  // namespace smdebug

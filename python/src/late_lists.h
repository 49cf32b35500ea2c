#pragma once

// What a device is still working on, as the hook knows it. Thread-safe; no Python.

#include <memory>
#include <utility>
#include <vector>

#include "smd/gpu/copier.h"
#include "smd/gpu/device.h"
#include "smd/gpu/survey.h"
#include "smd/hook/late_list.h"
#include "smd/tensor/tensor_view.h"
#include "smd/writer/late.h"

namespace smdebug {

// What is requested of a tensor that has come.
smd::Status reduce_late(const smd::TensorView& tensor, const smd::ReductionRequest& request,
                        smd::LateResults& out);

// Whether tensors are to be saved at all: a number of the device says so when it has come.
class Permission final {
 public:
  // They are.
  Permission() = default;
  // They are if this number is zero.
  Permission(std::shared_ptr<smd::gpu::LateCopy> veto, smd::DType dtype)
      : veto_(std::move(veto)), dtype_(dtype) {}

  bool is_certain() const { return !veto_; }
  bool is_ready() const { return is_certain() || veto_->is_ready(); }
  // Error: the device has failed.
  smd::Result<bool> wait() const;

 private:
  std::shared_ptr<smd::gpu::LateCopy> veto_;
  smd::DType dtype_ = smd::DType::float32;
};

// Tensors of a survey.
class SurveyedList final : public smd::LateList {
 public:
  // `dtypes`: of all tensors of the survey.
  SurveyedList(std::shared_ptr<smd::gpu::LateSurvey> survey, std::vector<smd::DType> dtypes,
               Permission permission)
      : survey_(std::move(survey)),
        dtypes_(std::move(dtypes)),
        permission_(std::move(permission)) {}

  bool is_ready() const override { return survey_->is_ready() && permission_.is_ready(); }
  smd::Result<bool> wait() override;
  smd::Status find(size_t index, const smd::ReductionRequest& request,
                   smd::LateResults& out) override;
  size_t size_bytes() const override { return sizeof *this + survey_->size_bytes(); }

 private:
  const std::shared_ptr<smd::gpu::LateSurvey> survey_;
  const std::vector<smd::DType> dtypes_;
  const Permission permission_;
};

// Tensors whose statistics need all their elements at once: the host finds them in a copy.
class CopiedList final : public smd::LateList {
 public:
  struct Tensor {
    smd::DType dtype = smd::DType::float32;
    smd::Shape shape;
  };
  // `tensors`: all of the copy.
  CopiedList(std::shared_ptr<smd::gpu::LateCopy> copy, std::vector<Tensor> tensors,
             Permission permission)
      : copy_(std::move(copy)), tensors_(std::move(tensors)), permission_(std::move(permission)) {}

  bool is_ready() const override { return copy_->is_ready() && permission_.is_ready(); }
  smd::Result<bool> wait() override;
  smd::Status find(size_t index, const smd::ReductionRequest& request,
                   smd::LateResults& out) override;
  size_t size_bytes() const override;

 private:
  const std::shared_ptr<smd::gpu::LateCopy> copy_;
  const std::vector<Tensor> tensors_;
  const Permission permission_;
};

// The elements of tensors.
class CopiedMemory final : public smd::LateMemory {
 public:
  CopiedMemory(std::shared_ptr<smd::gpu::LateCopy> copy, Permission permission)
      : copy_(std::move(copy)), permission_(std::move(permission)) {}

  bool is_ready() const override { return copy_->is_ready() && permission_.is_ready(); }
  smd::Result<bool> wait() override;

 private:
  const std::shared_ptr<smd::gpu::LateCopy> copy_;
  const Permission permission_;
};

}  // namespace smdebug

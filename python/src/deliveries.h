#pragma once

// What a thread of Python brings from a device, as the hook knows it: values of a tensor, or
// numbers of several. Thread-safe; no Python.

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/base/result.h"
#include "smd/hook/late_list.h"
#include "smd/reduce/number.h"
#include "smd/reduce/reduction.h"
#include "smd/tensor/tensor_view.h"
#include "smd/writer/late.h"

namespace smdebug {

// Comes once, or fails.
class Delivery {
 public:
  bool is_done() const;
  // Error: it has failed.
  smd::Status wait_until_done() const;
  void fail(std::string message);

 protected:
  ~Delivery() = default;
  // Has what was written before seen by those who wait.
  void set_done();

 private:
  mutable std::mutex mutex_;  // guards the two below
  mutable std::condition_variable changed_;
  std::optional<smd::Status> outcome_;
};

// The values of one tensor, which are reduced on the host.
class DeliveredTensor final : public Delivery, public smd::LateList, public smd::LateMemory {
 public:
  DeliveredTensor(smd::DType dtype, smd::Shape shape);

  // C order; as many bytes as the tensor has.
  void deliver(smd::ByteSpan values);

  smd::ByteSpan bytes() const { return memory_; }
  smd::DType dtype() const { return dtype_; }
  const smd::Shape& shape() const { return shape_; }

  bool is_ready() const override { return is_done(); }
  smd::Result<bool> wait() override;
  smd::Status find(size_t index, const smd::ReductionRequest& request,
                   smd::LateResults& out) override;
  size_t size_bytes() const override { return sizeof *this; }

 private:
  const smd::DType dtype_;
  const smd::Shape shape_;
  smd::Bytes memory_;
};

// Numbers that PyTorch has found of some tensors.
class DeliveredNumbers final : public Delivery, public smd::LateList {
 public:
  struct Tensor {
    smd::DType dtype = smd::DType::float32;  // of its reductions
    std::vector<smd::Reduction> reductions;
  };
  explicit DeliveredNumbers(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}

  // Those of the first tensor, then those of the next.
  void deliver(std::vector<double> numbers);
  size_t size() const;

  bool is_ready() const override { return is_done(); }
  smd::Result<bool> wait() override;
  smd::Status find(size_t index, const smd::ReductionRequest& request,
                   smd::LateResults& out) override;
  size_t size_bytes() const override { return sizeof *this; }

 private:
  const std::vector<Tensor> tensors_;
  std::vector<double> numbers_;
};

}  // namespace smdebug

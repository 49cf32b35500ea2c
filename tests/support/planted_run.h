#pragma once

// A run in memory, written step by step without a hook, for C++ tests of reading.
// One thread at a time.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "smd/collection/collection_set.h"
#include "smd/format/file_name.h"
#include "smd/storage/storage.h"
#include "smd/trial/trial.h"
#include "smd/types/worker.h"
#include "smd/writer/sinks/original.h"

namespace smd {

// One step of one worker; the end of its life publishes it.
class PlantedStep final {
 public:
  PlantedStep(std::shared_ptr<storage::Storage> storage, const StepInfo& step, std::string worker)
      : sink_(original_sink({.storage = std::move(storage), .worker = std::move(worker)})) {
    EXPECT_TRUE(sink_->begin_step(step).ok());
  }
  PlantedStep(const PlantedStep&) = delete;
  PlantedStep& operator=(const PlantedStep&) = delete;
  ~PlantedStep() {
    EXPECT_TRUE(sink_->end_step().ok());
    EXPECT_TRUE(sink_->close().ok());
  }

  template <typename T>
  PlantedStep& tensor(const std::string& name, DType dtype, const Shape& shape,
                      const std::vector<T>& values) {
    EXPECT_TRUE(sink_
                    ->tensor({.name = name, .dtype = dtype, .shape = shape},
                             std::as_bytes(std::span(values)))
                    .ok());
    return *this;
  }
  PlantedStep& floats(const std::string& name, const std::vector<float>& values) {
    return tensor(name, DType::float32, {static_cast<int64_t>(values.size())}, values);
  }
  PlantedStep& scalar(const std::string& name, double value) {
    return tensor(name, DType::float64, {}, std::vector<double>{value});
  }
  PlantedStep& reduction(const std::string& name, std::string_view reduction, double value) {
    StoredReduction stored{.name = reduction};
    store_le(stored.bits.data(), value);
    EXPECT_TRUE(sink_->reductions(name, 0, {&stored, 1}).ok());
    return *this;
  }
  PlantedStep& strings(const std::string& name, const std::vector<std::string_view>& texts) {
    const Shape shape = {static_cast<int64_t>(texts.size())};
    EXPECT_TRUE(sink_->strings({.name = name, .shape = shape}, texts).ok());
    return *this;
  }
  PlantedStep& shape(const std::string& name, const Shape& shape) {
    EXPECT_TRUE(sink_->shape(name, name, shape).ok());
    return *this;
  }

 private:
  std::unique_ptr<Sink> sink_;
};

class PlantedRun final {
 public:
  PlantedStep step(const StepInfo& step, std::string worker = "worker_0") {
    return {storage, step, std::move(worker)};
  }
  PlantedStep step(Step number, std::string worker = "worker_0") {
    return {storage, {.step = number, .mode = Mode::train, .mode_step = number}, std::move(worker)};
  }
  std::shared_ptr<Trial> trial() const {
    auto opened = Trial::open(storage, {});
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return std::shared_ptr<Trial>(std::move(*opened));
  }

  // Announces the workers, with one collection "biases" of all names that hold "bias".
  void collections(int num_workers = 1) const {
    for (int i = 0; i < num_workers; ++i) {
      CollectionSet set;
      EXPECT_TRUE(set.set_num_workers(num_workers).ok());
      EXPECT_TRUE((*set.create("biases"))->include("bias").ok());
      const std::string path = format::collections_file_name(worker_name(i));
      EXPECT_TRUE(storage->put(path, as_bytes(set.to_json()), storage::Put::always, {}).ok());
    }
  }
  void end() const {
    EXPECT_TRUE(storage->put(format::kEndMarker, {}, storage::Put::always, {}).ok());
  }

  std::shared_ptr<storage::Storage> storage = storage::memory_storage();
};

}  // namespace smd

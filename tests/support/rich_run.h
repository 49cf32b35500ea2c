#pragma once

// Records a run that has something of everything, with a sink of either layout: two workers, two
// modes, element types of every width, texts, reductions, shapes, numbers, special values, and a
// last step that one worker lacks. One thread at a time.

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "smd/format/file_name.h"
#include "smd/storage/storage.h"
#include "smd/writer/sinks/original.h"
#include "smd/writer/sinks/packed.h"

namespace smd {

class RichRun final {
 public:
  static constexpr Step kSteps = 4;
  static constexpr const char* kWorkers[] = {"worker_0", "_job-worker_task-1_device-GPU-0"};

  RichRun(std::shared_ptr<storage::Storage> storage, bool packed)
      : storage_(std::move(storage)), packed_(packed) {}

  std::unique_ptr<Sink> sink(std::string worker, PackedSinkOptions options = {}) const {
    if (!packed_) return original_sink({.storage = storage_, .worker = std::move(worker)});
    options.storage = storage_;
    options.worker = std::move(worker);
    return packed_sink(std::move(options));
  }

  void collections() const {
    for (const char* worker : kWorkers) {
      put(format::collections_file_name(worker),
          std::string(std::strlen(worker), ' ') +
              "{\"collections\":  {}, \"_meta\": {\"num_workers\": 2}}\n");
    }
  }
  // `scale` tells apart what was recorded twice.
  static void step(Sink& to, Step step, float scale = 1) {
    const Mode mode = step % 2 == 0 ? Mode::train : Mode::eval;
    ok(to.begin_step({.step = step * 100, .mode = mode, .mode_step = step / 2}));
    const double time = 1000 + static_cast<double>(step);
    for (const DType dtype :
         {DType::boolean, DType::int8, DType::uint16, DType::float16, DType::bfloat16,
          DType::float8_e4m3fn, DType::float32, DType::int64, DType::complex128}) {
      const std::string name(name_of(dtype));
      std::vector<std::byte> bytes(6 * size_of(dtype));
      for (size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = std::byte(dtype == DType::boolean ? i % 2 : (i * 7 + 3 + size_t(step)) % 60);
      }
      ok(to.tensor({.name = name, .dtype = dtype, .shape = Shape{2, 3}, .wall_secs = time}, bytes));
      const ByteSpan one = ByteSpan(bytes).first(size_of(dtype));
      ok(to.tensor({.name = "scalar/" + name, .dtype = dtype, .shape = Shape{}, .wall_secs = time},
                   one));
      ok(to.tensor({.name = "one/" + name, .dtype = dtype, .shape = Shape{1}, .wall_secs = time},
                   one));
    }
    constexpr uint32_t kQuietNan = 0x7fc12345;  // with a payload
    float special[] = {-0.0f, 0, std::numeric_limits<float>::infinity(), scale};
    std::memcpy(&special[1], &kQuietNan, sizeof kQuietNan);
    ok(to.tensor({.name = "special", .shape = Shape{4}, .wall_secs = time},
                 std::as_bytes(std::span(special))));
    ok(to.tensor({.name = "empty", .shape = Shape{0, 3}, .wall_secs = time}, {}));
    const std::vector<float> big(50'000, scale);
    ok(to.tensor({.name = "big", .shape = Shape{500, 100}, .wall_secs = time},
                 std::as_bytes(std::span(big))));
    const std::string_view texts[] = {"ünï", "", "a\nb"};
    ok(to.strings({.name = "texts", .shape = Shape{3}, .wall_secs = time}, texts));
    StoredReduction min{.name = "min", .dtype = DType::float32};
    std::memcpy(min.bits.data(), &special[1], sizeof(float));
    StoredReduction l2{.name = "abs_l2", .dtype = DType::float64};
    const double wide = 1.0 / 3 * double{scale};
    std::memcpy(l2.bits.data(), &wide, sizeof wide);
    ok(to.reductions("special", time, {{min, l2}}));
    ok(to.reductions("only/reduced", time, {{l2}}));
    ok(to.shape("only_shape", "the original's name", Shape{7, 0}));
    ok(to.end_step());
  }
  // All steps of both workers but the last of the second.
  void record() const {
    collections();
    for (const char* worker : kWorkers) {
      const auto to = sink(worker);
      const Step count = worker == kWorkers[0] ? kSteps : kSteps - 1;
      for (Step i = 0; i < count; ++i) step(*to, i);
      ok(to->close());
    }
  }
  void end() const { put(format::kEndMarker, ""); }

  void put(std::string_view path, std::string_view content) const {
    ASSERT_TRUE(storage_->put(path, as_bytes(content), storage::Put::always, {}).ok());
  }
  std::string text(std::string_view path) const {
    const auto bytes = storage::read_all(*storage_, path);
    return bytes.ok() ? std::string(as_text(*bytes)) : "";
  }
  std::vector<std::string> files(std::string_view folder) const {
    std::vector<std::string> out;
    for (const auto& file : *storage_->list(folder, "")) out.push_back(file.path);
    return out;
  }

 private:
  static void ok(const Status& status) { ASSERT_TRUE(status.ok()) << status.error().message; }

  const std::shared_ptr<storage::Storage> storage_;
  const bool packed_;
};

}  // namespace smd

#pragma once

// Writes small runs with the format's own functions, for C++ tests of what reads runs.
// One thread at a time.

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "smd/base/crc32c.h"
#include "smd/base/json.h"
#include "smd/format/file_name.h"
#include "smd/format/index.h"
#include "smd/format/tensor_record.h"
#include "smd/format/tfrecord.h"
#include "smd/storage/storage.h"

namespace smd {

class SmallRun final {
 public:
  explicit SmallRun(std::shared_ptr<storage::Storage> storage) : storage_(std::move(storage)) {}

  void put(std::string_view path, std::string_view content) {
    const auto written = storage_->put(path, as_bytes(content), storage::Put::always, {});
    ASSERT_TRUE(written.ok()) << written.error().message;
  }
  std::string text(std::string_view path) {
    const auto bytes = storage::read_all(*storage_, path);
    return bytes.ok() ? std::string(as_text(*bytes)) : "";
  }

  void collections(std::string_view worker = "worker_0", int num_workers = 1) {
    put(format::collections_file_name(worker),
        R"({"collections": {}, "_meta": {"num_workers": )" + std::to_string(num_workers) + "}}");
  }
  void end() { put(format::kEndMarker, ""); }

  // Two tensors of 6 and 100 floats, `w` and `bias`, in TRAIN step `step + 10`; one saved shape.
  void step(Step step, std::string_view worker = "worker_0", bool checksums = false) {
    const StepInfo info{.step = step, .mode = Mode::train, .mode_step = step + 10};
    std::string events;
    format::IndexBuilder builder;
    std::vector<uint32_t> sums;
    for (const auto& [name, count] : {std::pair{"w", int64_t{6}}, {"bias", int64_t{100}}}) {
      const std::vector<float> values(static_cast<size_t>(count), static_cast<float>(step));
      const int64_t shape[] = {count};
      const size_t start = events.size();
      format::append_record(events, info, {.name = name, .shape = shape, .wall_secs = 1},
                            std::as_bytes(std::span(values)));
      builder.add_tensor(name, start, events.size() - start);
      const auto record = format::parse_record(as_bytes(events).subspan(start), start);
      sums.push_back(crc32c(record->payload));
    }
    builder.add_shape("w", "w", std::vector<int64_t>{6});
    const std::string event_file = format::event_file_name(step, worker);
    std::string index = builder.finish(info, event_file);
    if (checksums) {
      Json document = *parse_json(index, "");
      for (size_t i = 0; i < sums.size(); ++i) document["tensor_payload"][i]["crc32c"] = sums[i];
      index = dump_json(document);
    }
    put(event_file, events);
    put(format::index_file_name(step, worker), index);
  }

  // A finished run of three steps of one worker.
  void finished() {
    collections();
    for (Step s : {0, 1, 2}) step(s);
    end();
  }

 private:
  std::shared_ptr<storage::Storage> storage_;
};

}  // namespace smd

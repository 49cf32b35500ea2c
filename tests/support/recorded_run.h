#pragma once

// Reads a recorded run back, for C++ tests. One thread at a time.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "smd/format/event.h"
#include "smd/format/file_name.h"
#include "smd/format/index.h"
#include "smd/format/tfrecord.h"
#include "smd/storage/storage.h"

namespace smd {

class RecordedRun final {
 public:
  explicit RecordedRun(std::shared_ptr<storage::Storage> storage) : storage_(std::move(storage)) {}

  bool ended() const { return storage_->stat(format::kEndMarker).ok(); }
  std::vector<Step> steps() const {
    std::vector<Step> out;
    for (const auto& file : *storage_->list("index", "")) {
      out.push_back(format::parse_step_file_name(file.path)->step);
    }
    return out;
  }
  format::Index index(Step step, const std::string& worker = "worker_0") const {
    const auto text = storage::read_all(*storage_, format::index_file_name(step, worker));
    if (!text.ok()) {
      ADD_FAILURE() << text.error().message;
      return {};
    }
    return *format::parse_index(as_text(*text), "");
  }
  std::vector<std::string> names(Step step) const {
    std::vector<std::string> out;
    for (const auto& at : index(step).tensors) out.push_back(at.name);
    return out;
  }
  format::Event event(Step step, const std::string& name) const {
    const auto found = index(step);
    const Bytes file = *storage::read_all(*storage_, found.event_file);
    for (const auto& at : found.tensors) {
      if (at.name != name) continue;
      return *format::parse_event(
          format::parse_record(ByteSpan(file).subspan(at.offset, at.length), 0)->payload);
    }
    ADD_FAILURE() << name << " is not in step " << step;
    return {};
  }
  template <typename T>
  std::vector<T> values(Step step, const std::string& name) const {
    const auto found = event(step, name);
    if (!found.tensor) return {};
    const Bytes& bytes = found.tensor->elements;
    std::vector<T> out(bytes.size() / sizeof(T));
    for (size_t i = 0; i < out.size(); ++i) out[i] = load_le<T>(bytes.data() + i * sizeof(T));
    return out;
  }

 private:
  std::shared_ptr<storage::Storage> storage_;
};

}  // namespace smd

#include "smd/hook/flight_recorder.h"

#include <utility>

namespace smd {

uint32_t FlightRecorder::number_of(std::string_view name) {
  if (const auto known = numbers_.find(name); known != numbers_.end()) return known->second;
  const auto number = static_cast<uint32_t>(names_.size());
  names_.emplace_back(name);
  numbers_.emplace(names_.back(), number);
  return number;
}

void FlightRecorder::begin_step(const StepInfo& step) {
  Kept next;
  if (static_cast<int64_t>(steps_.size()) >= options_.steps) {
    next = take_front();
    next.tensors.clear();  // its memory is used again
    next.values.clear();
  }
  next.step = step;
  next.saved = false;
  steps_.push_back(std::move(next));
}

void FlightRecorder::add(std::string_view name, double wall_secs,
                         std::span<const StoredReduction> values) {
  if (!values.empty() && !steps_.empty()) add(number_of(name), wall_secs, values);
}

void FlightRecorder::add(uint32_t number, double wall_secs,
                         std::span<const StoredReduction> values) {
  if (!steps_.empty()) add_to(steps_.back(), number, wall_secs, values);
}

void FlightRecorder::add_late(Step step, uint32_t number, double wall_secs,
                              std::span<const StoredReduction> values) {
  if (Kept* const kept = find(step)) add_to(*kept, number, wall_secs, values);
}

void FlightRecorder::add_to(Kept& kept, uint32_t number, double wall_secs,
                            std::span<const StoredReduction> values) {
  if (values.empty()) return;
  kept.tensors.push_back({.name = number,
                          .first = static_cast<uint32_t>(kept.values.size()),
                          .count = static_cast<uint32_t>(values.size()),
                          .wall_secs = wall_secs});
  kept.values.insert(kept.values.end(), values.begin(), values.end());
  bytes_ += sizeof(Tensor) + values.size_bytes();
  make_room();
}

void FlightRecorder::add_raw(std::string_view name, const TensorView& tensor, double wall_secs) {
  if (!steps_.empty()) add_raw_to(steps_.back(), name, tensor, wall_secs);
}

void FlightRecorder::add_late_raw(Step step, std::string_view name, const TensorView& tensor,
                                  double wall_secs) {
  if (Kept* const kept = find(step)) add_raw_to(*kept, name, tensor, wall_secs);
}

void FlightRecorder::add_raw_to(Kept& kept, std::string_view name, const TensorView& tensor,
                                double wall_secs) {
  if (tensor.size() == 0) return;
  const auto size = static_cast<size_t>(tensor.size()) * size_of(tensor.dtype);
  if (size > options_.max_bytes) {
    was_full_ = true;
    return;
  }
  Raw raw{.name = number_of(name),
          .dtype = tensor.dtype,
          .shape = Shape(tensor.shape.begin(), tensor.shape.end()),
          .elements = std::vector<std::byte>(size),
          .wall_secs = wall_secs};
  gather(tensor, 0, raw.elements);
  kept.raw.push_back(std::move(raw));
  bytes_ += size;
  make_room();
}

void FlightRecorder::mark_saved() {
  if (!steps_.empty()) steps_.back().saved = true;
}

void FlightRecorder::mark_saved_before(Step step) {
  for (Kept& kept : steps_) kept.saved = kept.saved || kept.step.step < step;
}

void FlightRecorder::drop_raw(Kept& kept) {
  for (const Raw& raw : kept.raw) bytes_ -= raw.elements.size();
  kept.raw.clear();
}

FlightRecorder::Kept FlightRecorder::take_front() {
  Kept front = std::move(steps_.front());
  steps_.pop_front();
  drop_raw(front);
  bytes_ -= front.tensors.size() * sizeof(Tensor) + front.values.size() * sizeof(StoredReduction);
  return front;
}

void FlightRecorder::make_room() {
  for (size_t i = 0; i < steps_.size() && bytes_ > options_.max_bytes; ++i) {
    was_full_ = was_full_ || !steps_[i].raw.empty();
    drop_raw(steps_[i]);
  }
  while (bytes_ > options_.max_bytes && steps_.size() > 1) {
    was_full_ = true;
    take_front();
  }
}

std::vector<StepInfo> FlightRecorder::unsaved() const {
  std::vector<StepInfo> out;
  for (const Kept& kept : steps_) {
    if (!kept.saved && !(kept.tensors.empty() && kept.raw.empty())) out.push_back(kept.step);
  }
  return out;
}

const FlightRecorder::Kept* FlightRecorder::find(Step step) const {
  // Those that are asked for are among the last.
  for (auto kept = steps_.rbegin(); kept != steps_.rend(); ++kept) {
    if (kept->step.step == step) return &*kept;
  }
  return nullptr;
}

FlightRecorder::Kept* FlightRecorder::find(Step step) {
  return const_cast<Kept*>(std::as_const(*this).find(step));
}

void FlightRecorder::write_step(Step step, Writer& writer) const {
  const Kept* kept = find(step);
  if (kept == nullptr) return;
  for (const Tensor& tensor : kept->tensors) {
    writer.reductions(names_[tensor.name], tensor.wall_secs,
                      std::span(kept->values).subspan(tensor.first, tensor.count));
  }
  for (const Raw& raw : kept->raw) {
    const TensorView view{.data = raw.elements.data(), .dtype = raw.dtype, .shape = raw.shape};
    writer.tensor(names_[raw.name], view, raw.wall_secs);
  }
}

void FlightRecorder::clear() {
  steps_.clear();
  bytes_ = 0;
}

std::vector<FlightRecorder::Past> FlightRecorder::history(std::string_view name) const {
  std::vector<Past> out;
  const auto known = numbers_.find(name);
  if (known == numbers_.end()) return out;
  for (const Kept& kept : steps_) {
    for (const Tensor& tensor : kept.tensors) {
      if (tensor.name != known->second) continue;
      out.push_back({kept.step, std::span(kept.values).subspan(tensor.first, tensor.count)});
      break;
    }
  }
  return out;
}

}  // namespace smd

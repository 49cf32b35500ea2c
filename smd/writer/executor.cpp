#include "smd/writer/executor.h"

#include <utility>

namespace smd {

Executor::Executor(std::unique_ptr<Sink> sink, std::vector<std::unique_ptr<Output>> outputs,
                   WriterProgress& progress)
    : sink_(std::move(sink)), outputs_(std::move(outputs)), progress_(progress) {}

void Executor::run(const Command& command) {
  if (auto* late = std::get_if<LateData>(&command)) return run_late(*late);
  if (auto* late = std::get_if<AwaitMemory>(&command)) return await(*late);
  if (std::exchange(is_unfilled_, false)) return;  // the tensor that nobody is to see
  if (const auto apart = apply_apart(command)) {
    if (!apart->ok()) progress_.report(apart->error());
    return;
  }
  if (apply_to_outputs(command)) return;
  if (std::holds_alternative<BeginStep>(command)) {
    if (open_) fail(std::nullopt);  // its end was dropped
    open_ = true;
    broken_ = false;
  }
  run_on_sink(command);
  if (!std::holds_alternative<EndStep>(command)) return;
  open_ = false;
  for (const auto& output : outputs_) progress_.report_output(output->end_step());
}

std::optional<std::chrono::steady_clock::time_point> Executor::due() const {
  auto first = sink_->due();
  for (const auto& output : outputs_) {
    const auto own = output->due();
    if (own && (!first || *own < *first)) first = own;
  }
  return first;
}

void Executor::tick() {
  const auto now = std::chrono::steady_clock::now();
  if (const auto own = sink_->due(); own && *own <= now) {
    if (Status status = sink_->tick(); !status.ok()) progress_.report(std::move(status.error()));
  }
  for (const auto& output : outputs_) {
    if (const auto own = output->due(); own && *own <= now) {
      progress_.report_output(output->tick());
    }
  }
}

void Executor::finish() {
  if (open_ && !broken_) fail(std::nullopt);
  if (Status status = sink_->close(); !status.ok()) progress_.report(std::move(status.error()));
  for (const auto& output : outputs_) progress_.report_output(output->close());
}

void Executor::run_late(const LateData& late) {
  auto found = late.numbers->wait();
  if (!found.ok()) {
    if (open_ && !broken_) fail(std::move(found.error()));
    return;
  }
  for (const LateFound& next : *found) {
    if (next.scalar) run(ScalarData{*next.scalar});
    if (next.histogram) run(HistogramData{*next.histogram});
    if (!next.values.empty()) run(ReductionData{next.tensor, late.wall_secs, next.values});
  }
}

void Executor::await(const AwaitMemory& late) {
  auto filled = late.memory->wait();
  is_unfilled_ = !filled.ok() || !*filled;
  if (!filled.ok() && open_ && !broken_) fail(std::move(filled.error()));
}

void Executor::run_on_sink(const Command& command) {
  if (!open_ || broken_) return;
  if (Status status = apply(command); !status.ok()) {
    fail(std::move(status.error()));
    return;
  }
  if (std::holds_alternative<EndStep>(command)) progress_.step_committed();
}

// True: nobody else wants it.
bool Executor::apply_to_outputs(const Command& command) {
  if (auto* c = std::get_if<BeginStep>(&command)) step_ = c->step;
  const auto tell = [&](auto&& f) {
    for (const auto& output : outputs_) progress_.report_output(f(*output));
    return true;
  };
  if (auto* c = std::get_if<ScalarData>(&command)) {
    return tell([&](Output& output) { return output.scalar(step_, c->scalar); });
  }
  if (auto* c = std::get_if<HistogramData>(&command)) {
    return tell([&](Output& output) { return output.histogram(step_, c->histogram); });
  }
  if (auto* c = std::get_if<TextData>(&command)) {
    return tell([&](Output& output) { return output.text(step_, c->text); });
  }
  if (auto* c = std::get_if<MembershipData>(&command)) {
    return tell([&](Output& output) { return output.membership(step_, c->membership); });
  }
  if (auto* c = std::get_if<ReductionData>(&command)) {
    const SavedReductions saved{c->tensor, c->wall_secs, c->values};
    tell([&](Output& output) { return output.reductions(step_, saved); });
  }
  if (auto* c = std::get_if<ShapeData>(&command)) {
    const SavedShape saved{c->tensor, c->shape};
    tell([&](Output& output) { return output.shape(step_, saved); });
  }
  if (auto* c = std::get_if<StringData>(&command)) {
    const SavedStrings saved{c->head.name, c->head.shape, c->head.wall_secs, c->strings};
    tell([&](Output& output) { return output.strings(step_, saved); });
  }
  if (auto* c = std::get_if<TensorData>(&command)) begin_tensor(*c);
  if (auto* c = std::get_if<MoreData>(&command)) more_tensor(c->elements);
  return false;
}

// A tensor comes whole, or in parts, which are put together for those who want it.
void Executor::begin_tensor(const TensorData& data) {
  partial_.clear();
  wanting_.clear();
  ask(data.head.name);
  for (std::string_view name : data.head.other_names) ask(name);
  if (wanting_.empty()) return;
  const auto count = element_count(data.head.shape);
  whole_bytes_ = count.ok() ? static_cast<size_t>(*count) * size_of(data.head.dtype) : 0;
  if (data.elements.size() >= whole_bytes_) return tell_tensor(data.head, data.elements);
  // What the head points to lives in the batch of the first part.
  names_.clear();
  for (const Wanting& wanting : wanting_) names_.emplace_back(wanting.name);
  for (size_t i = 0; i < names_.size(); ++i) wanting_[i].name = names_[i];
  shape_.assign(data.head.shape.begin(), data.head.shape.end());
  head_ = {.dtype = data.head.dtype, .shape = shape_, .wall_secs = data.head.wall_secs};
  partial_.reserve(whole_bytes_);
  partial_.insert(partial_.end(), data.elements.begin(), data.elements.end());
}

void Executor::ask(std::string_view name) {
  for (const auto& output : outputs_) {
    if (output->wants_tensor(name)) wanting_.push_back({output.get(), name});
  }
}

void Executor::more_tensor(ByteSpan elements) {
  if (wanting_.empty()) return;
  partial_.insert(partial_.end(), elements.begin(), elements.end());
  if (partial_.size() < whole_bytes_) return;
  tell_tensor(head_, partial_);
  partial_ = {};
}

void Executor::tell_tensor(const format::TensorHead& head, ByteSpan elements) {
  for (const Wanting& wanting : wanting_) {
    const SavedTensor saved{wanting.name, head.dtype, head.shape, head.wall_secs, elements};
    progress_.report_output(wanting.output->tensor(step_, saved));
  }
  wanting_.clear();
}

// What is no part of a step; nullopt: it is.
std::optional<Status> Executor::apply_apart(const Command& command) {
  if (auto* c = std::get_if<PutFile>(&command)) return sink_->put(c->path, c->content);
  if (auto* c = std::get_if<EndJob>(&command)) return sink_->end_job(c->end);
  return std::nullopt;
}

Status Executor::apply(const Command& command) {
  if (auto* c = std::get_if<TensorData>(&command)) return sink_->tensor(c->head, c->elements);
  if (auto* c = std::get_if<MoreData>(&command)) return sink_->more(c->elements);
  if (auto* c = std::get_if<ReductionData>(&command)) {
    return sink_->reductions(c->tensor, c->wall_secs, c->values);
  }
  if (auto* c = std::get_if<StringData>(&command)) return sink_->strings(c->head, c->strings);
  if (auto* c = std::get_if<ShapeData>(&command)) {
    return sink_->shape(c->tensor, c->original_name, c->shape);
  }
  if (auto* c = std::get_if<BeginStep>(&command)) return sink_->begin_step(c->step);
  return sink_->end_step();
}

void Executor::fail(std::optional<Error> error) {
  sink_->abandon_step();
  if (!broken_) progress_.step_lost();
  broken_ = true;
  if (error) progress_.report(std::move(*error));
}

}  // namespace smd

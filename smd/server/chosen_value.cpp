#include "smd/server/chosen_value.h"

#include <fmt/format.h>

namespace smd::server {
namespace {

constexpr uint64_t kMostBytes = uint64_t{2} << 30;
constexpr size_t kMostSliceBytes = 1000;

struct Found {
  const StepRow* row = nullptr;
  Location at;
};

// Of the newest step of the mode that has it.
std::optional<Found> latest(const Snapshot& snapshot, uint32_t tensor, Mode mode,
                            std::optional<uint32_t> worker) {
  for (size_t i = snapshot.row_count(); i-- > 0;) {
    const StepRow& row = snapshot.row(i);
    if (mode != Mode::global && row.info.mode != mode) continue;
    if (const auto at = snapshot.find(row, tensor, Slot::value(), worker)) return Found{&row, *at};
  }
  return std::nullopt;
}

}  // namespace

Result<ChosenValue> choose_value(const Question& question) {
  const Query& query = question.query;
  ChosenValue out;
  SMD_TRY(out.mode, query.mode());
  SMD_TRY(const auto step, query.integer("step", {}));
  const auto slices = query.texts("slice");
  if (!slices.empty()) out.slice = slices.front();
  if (out.slice.size() > kMostSliceBytes) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("The slice has {} bytes, but at most {} are allowed.",
                             out.slice.size(), kMostSliceBytes)};
  }
  SMD_TRY(out.chosen, choose_readable_run(question.site, question.run));
  const RunFacts& facts = *out.chosen.facts;
  const Snapshot& snapshot = *facts.snapshot;
  SMD_TRY(out.tensor, choose_tensor(query, facts));
  SMD_TRY(const std::string worker, choose_worker(query, facts));
  const auto number = worker.empty() ? std::nullopt : snapshot.names().workers.find(worker);
  const std::string by = worker.empty() ? "" : fmt::format(" by '{}'", worker);
  std::optional<Found> found;
  if (step) {
    const StepRow* const row = snapshot.find_row(out.mode, *step);
    if (row == nullptr) {
      return Error{ErrorCode::not_found,
                   fmt::format("Step {} of mode {} was not saved.", *step, name_of(out.mode))};
    }
    const auto at = snapshot.find(*row, out.tensor, Slot::value(), number);
    if (at) found = Found{row, *at};
  } else {
    found = latest(snapshot, out.tensor, out.mode, number);
  }
  if (!found) {
    return Error{ErrorCode::not_found,
                 fmt::format("The value of the tensor was not saved {}{}.",
                             step ? fmt::format("at step {} of mode {}", *step, name_of(out.mode))
                                  : fmt::format("at any step of mode {}", name_of(out.mode)),
                             by)};
  }
  out.step = found->row->info;
  out.at = found->at;
  out.worker = snapshot.names().workers[snapshot.part(found->at.part).worker];
  return out;
}

Result<TensorValue> read_value(const ChosenValue& value) {
  const Snapshot& snapshot = *value.chosen.facts->snapshot;
  const uint64_t bytes = snapshot.entry(value.at).length;
  if (bytes > kMostBytes) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("The value takes {} bytes, but at most {} are read for one answer.",
                             bytes, kMostBytes)};
  }
  return value.chosen.run->trial()->read(snapshot, value.at);
}

}  // namespace smd::server

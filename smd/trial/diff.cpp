#include "smd/trial/diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "smd/base/json.h"
#include "smd/collection/pattern.h"

namespace smd {
namespace {

std::string describe(const TensorValue& value) {
  return fmt::format("{}[{}]", name_of(value.dtype), fmt::join(value.shape, ", "));
}

std::string describe(const Layout::ShapeOf& shape) {
  return fmt::format("[{}]", fmt::join(shape.shape, ", "));
}

ElementDiff compare_strings(const TensorValue& a, const TensorValue& b) {
  ElementDiff out;
  out.elements = static_cast<int64_t>(a.strings.size());
  for (size_t i = 0; i < a.strings.size(); ++i) {
    if (a.strings[i] == b.strings[i]) continue;
    ++out.differing;
    if (out.first < 0) out.first = out.worst = static_cast<int64_t>(i);
  }
  return out;
}

// One of the two runs.
struct Side {
  using StepKey = std::pair<Mode, Step>;

  Trial* trial = nullptr;
  std::shared_ptr<const Snapshot> snapshot;
  std::map<StepKey, uint32_t> rows;     // by mode and mode step
  std::vector<bool> wanted;             // tensors, by number
  std::vector<uint32_t> other_tensors;  // their numbers in the other run, kNone without
  std::vector<uint32_t> other_ops;
  std::vector<uint32_t> other_workers;
  std::map<uint32_t, OnlyThere::Records> lonely;  // by tensor

  const Names& names() const { return snapshot->names(); }
  const Layout& layout(uint32_t part) const { return snapshot->layout_of(snapshot->part(part)); }
  // Both runs have the tensor, and it is to be compared.
  bool shares(uint32_t tensor) const { return wanted[tensor] && other_tensors[tensor] != kNone; }
  // The same thing in the layout of the other run.
  std::optional<uint32_t> find_in(const Layout& other, const Layout::Entry& entry) const {
    Slot slot = Slot::from_id(entry.slot);
    if (!slot.is_value()) {
      if (other_ops[slot.op()] == kNone) return std::nullopt;
      slot = Slot::reduction(other_ops[slot.op()], slot.abs());
    }
    return other.find(other_tensors[entry.tensor], slot);
  }
  void add_lonely(uint32_t tensor, const StepInfo& step) {
    auto [at, is_new] = lonely.try_emplace(tensor);
    if (is_new) at->second = {.tensor = names().tensors[tensor], .first = step};
    ++at->second.count;
  }
};

std::vector<uint32_t> numbers_in(const NameList& from, const NameList& to) {
  std::vector<uint32_t> out(from.size());
  for (uint32_t i = 0; i < from.size(); ++i) out[i] = to.find(from[i]).value_or(kNone);
  return out;
}

// Whether `candidate` says more about its tensor than `known`.
bool is_worse(const Difference& candidate, const Difference& known) {
  const bool reduction = candidate.kind == DifferenceKind::reduction;
  const bool known_reduction = known.kind == DifferenceKind::reduction;
  if (reduction != known_reduction) return known_reduction;
  return std::pair(candidate.elements.max_relative, candidate.elements.max_absolute) >
         std::pair(known.elements.max_relative, known.elements.max_absolute);
}

class Differ final {
 public:
  Differ(Trial& a, Trial& b, const DiffOptions& options) : options_(options) {
    a_.trial = &a;
    b_.trial = &b;
    out_.name_a = a.name();
    out_.name_b = b.name();
  }

  Result<Diff> run() {
    SMD_RETURN_IF_ERROR(prepare());
    SMD_RETURN_IF_ERROR(compare_steps());
    finish();
    return std::move(out_);
  }

 private:
  // One step of one worker in both runs.
  struct Pair {
    StepInfo step;
    Step step_in_b = 0;
    uint32_t part_a = 0;
    uint32_t part_b = 0;
  };
  // A record that both have, by positions in the layouts.
  struct Match {
    uint32_t a = 0;
    uint32_t b = 0;
  };

  Status prepare() {
    for (const double tolerance : {options_.tolerance.absolute, options_.tolerance.relative}) {
      if (tolerance >= 0) continue;
      return Error{ErrorCode::invalid_argument,
                   fmt::format("A tolerance must be 0 or more, not {}.", tolerance)};
    }
    std::vector<Pattern> patterns;
    for (const std::string& text : options_.patterns) {
      SMD_TRY(auto pattern, Pattern::compile(text));
      patterns.push_back(std::move(pattern));
    }
    for (Side* side : {&a_, &b_}) {
      side->snapshot = side->trial->snapshot();
      for (uint32_t i = 0; i < side->snapshot->row_count(); ++i) {
        const StepInfo& info = side->snapshot->row(i).info;
        if (options_.mode != Mode::global && info.mode != options_.mode) continue;
        side->rows.emplace(std::pair(info.mode, info.mode_step), i);
      }
      side->wanted.resize(side->names().tensors.size());
      for (uint32_t tensor : side->snapshot->tensors(options_.mode)) {
        const std::string& name = side->names().tensors[tensor];
        side->wanted[tensor] =
            patterns.empty() ||
            std::ranges::any_of(patterns, [&](const Pattern& p) { return p.found_in(name); });
      }
    }
    for (auto [from, to] : {std::pair(&a_, &b_), std::pair(&b_, &a_)}) {
      from->other_tensors = numbers_in(from->names().tensors, to->names().tensors);
      for (uint32_t& tensor : from->other_tensors) {
        if (tensor != kNone && !to->wanted[tensor]) tensor = kNone;
      }
      from->other_ops = numbers_in(from->names().ops, to->names().ops);
      from->other_workers = numbers_in(from->names().workers, to->names().workers);
    }
    if (a_.names().workers.size() == 1 && b_.names().workers.size() == 1) {
      a_.other_workers = b_.other_workers = {0};
    }
    compared_.resize(a_.names().tensors.size());
    reported_in_.resize(a_.names().tensors.size());
    return {};
  }

  Status compare_steps() {
    std::vector<std::pair<uint32_t, uint32_t>> pairs;
    for (const auto& [key, row] : a_.rows) {
      if (const auto match = b_.rows.find(key); match != b_.rows.end()) {
        pairs.emplace_back(row, match->second);
      }
    }
    std::ranges::sort(pairs);  // rows are sorted by global step
    const auto total = static_cast<int64_t>(pairs.size());
    for (const auto& [row_a, row_b] : pairs) {
      SMD_RETURN_IF_ERROR(compare_rows(a_.snapshot->row(row_a), b_.snapshot->row(row_b)));
      ++out_.compared.steps;
      if (options_.progress && !options_.progress(out_.compared.steps, total)) {
        out_.stopped = out_.compared.steps < total;
        break;
      }
    }
    return {};
  }

  Status compare_rows(const StepRow& a, const StepRow& b) {
    std::map<uint32_t, uint32_t> parts_of_b;  // by worker
    b_.snapshot->for_each_part(
        b, [&](uint32_t id, const Part& part) { parts_of_b.emplace(part.worker, id); });
    std::vector<Pair> pairs;
    a_.snapshot->for_each_part(a, [&](uint32_t id, const Part& part) {
      const uint32_t worker = a_.other_workers[part.worker];
      if (worker == kNone) return;
      if (const auto match = parts_of_b.find(worker); match != parts_of_b.end()) {
        pairs.push_back({a.info, b.info.step, id, match->second});
        parts_of_b.erase(match);
      } else {
        add_lonely_part(a_, id, a.info);
      }
    });
    for (const auto& [worker, id] : parts_of_b) {
      if (b_.other_workers[worker] != kNone) add_lonely_part(b_, id, b.info);
    }
    for (const Pair& pair : pairs) SMD_RETURN_IF_ERROR(compare_parts(pair, b.info));
    return {};
  }

  static void add_lonely_part(Side& side, uint32_t part, const StepInfo& step) {
    for (const Layout::Entry& entry : side.layout(part).entries()) {
      if (side.shares(entry.tensor)) side.add_lonely(entry.tensor, step);
    }
    for (const Layout::ShapeOf& shape : side.layout(part).shapes()) {
      if (side.shares(shape.tensor)) side.add_lonely(shape.tensor, step);
    }
  }

  Status compare_parts(const Pair& pair, const StepInfo& step_of_b) {
    const Layout& a = a_.layout(pair.part_a);
    const Layout& b = b_.layout(pair.part_b);
    std::vector<Match> matches;
    const auto entries = a.entries();
    for (uint32_t i = 0; i < entries.size(); ++i) {
      if (!a_.shares(entries[i].tensor)) continue;
      if (const auto match = a_.find_in(b, entries[i])) {
        matches.push_back({i, *match});
        compared_[entries[i].tensor] = true;
      } else {
        a_.add_lonely(entries[i].tensor, pair.step);
      }
    }
    for (const Layout::Entry& entry : b.entries()) {
      if (b_.shares(entry.tensor) && !b_.find_in(a, entry)) b_.add_lonely(entry.tensor, step_of_b);
    }
    std::ranges::sort(matches, {}, [&](const Match& m) { return entries[m.a].offset; });
    ++pair_number_;
    SMD_RETURN_IF_ERROR(compare_records(pair, matches));
    compare_shapes(pair, step_of_b);
    return {};
  }

  Status compare_records(const Pair& pair, const std::vector<Match>& matches) {
    // Reductions are small and many: all at once.
    std::vector<Location> at_a;
    std::vector<Location> at_b;
    const auto is_value = [&](const Match& m) {
      return Slot::from_id(a_.layout(pair.part_a).entries()[m.a].slot).is_value();
    };
    for (const Match& match : matches) {
      if (is_value(match)) continue;
      at_a.push_back({pair.part_a, match.a});
      at_b.push_back({pair.part_b, match.b});
    }
    std::vector<double> numbers_a(at_a.size());
    std::vector<double> numbers_b(at_b.size());
    SMD_RETURN_IF_ERROR(a_.trial->read_numbers(*a_.snapshot, at_a, numbers_a));
    SMD_RETURN_IF_ERROR(b_.trial->read_numbers(*b_.snapshot, at_b, numbers_b));
    size_t next = 0;
    for (const Match& match : matches) {
      if (is_value(match)) {
        SMD_RETURN_IF_ERROR(compare_values(pair, match));
        continue;
      }
      const Layout::Entry& entry = a_.layout(pair.part_a).entries()[match.a];
      Difference found = difference(pair, entry.tensor, DifferenceKind::reduction);
      found.elements = compare_numbers(numbers_a[next], numbers_b[next], options_.tolerance);
      ++next;
      ++out_.compared.reductions;
      if (found.elements.equal()) continue;
      found.reduction = a_.snapshot->slot_name(Slot::from_id(entry.slot));
      report(entry.tensor, std::move(found));
    }
    return {};
  }

  Status compare_values(const Pair& pair, const Match& match) {
    const uint32_t tensor = a_.layout(pair.part_a).entries()[match.a].tensor;
    SMD_TRY(const TensorValue a, a_.trial->read(*a_.snapshot, {pair.part_a, match.a}));
    SMD_TRY(const TensorValue b, b_.trial->read(*b_.snapshot, {pair.part_b, match.b}));
    ++out_.compared.values;
    if (a.dtype != b.dtype || a.shape != b.shape) {
      Difference found = difference(
          pair, tensor, a.dtype != b.dtype ? DifferenceKind::dtype : DifferenceKind::shape);
      found.elements.set_far_apart();
      found.a = describe(a);
      found.b = describe(b);
      report(tensor, std::move(found));
      return {};
    }
    const bool text = a.dtype == DType::string;
    Difference found =
        difference(pair, tensor, text ? DifferenceKind::strings : DifferenceKind::value);
    found.elements =
        text ? compare_strings(a, b) : compare_elements(a.view(), b.view(), options_.tolerance);
    out_.compared.elements += found.elements.elements;
    if (found.elements.equal()) return {};
    if (text) {
      found.elements.set_far_apart();
      found.a = a.strings[static_cast<size_t>(found.elements.first)];
      found.b = b.strings[static_cast<size_t>(found.elements.first)];
    }
    report(tensor, std::move(found));
    return {};
  }

  // Those that stand in the index: they have no place in the order of writing.
  void compare_shapes(const Pair& pair, const StepInfo& step_of_b) {
    const Layout& layout_a = a_.layout(pair.part_a);
    const Layout& layout_b = b_.layout(pair.part_b);
    for (const Layout::ShapeOf& a : layout_a.shapes()) {
      if (!a_.shares(a.tensor)) continue;
      const uint32_t tensor_in_b = a_.other_tensors[a.tensor];
      const Layout::ShapeOf* b = layout_b.shape_of(tensor_in_b);
      if (b == nullptr) {
        if (!layout_b.holds(tensor_in_b)) a_.add_lonely(a.tensor, pair.step);
        continue;
      }
      ++out_.compared.shapes;
      compared_[a.tensor] = true;
      if (a.shape == b->shape) continue;
      Difference found = difference(pair, a.tensor, DifferenceKind::shape);
      found.elements.set_far_apart();
      found.a = describe(a);
      found.b = describe(*b);
      report(a.tensor, std::move(found));
    }
    for (const Layout::ShapeOf& b : layout_b.shapes()) {
      if (b_.shares(b.tensor) && !layout_a.holds(b_.other_tensors[b.tensor])) {
        b_.add_lonely(b.tensor, step_of_b);
      }
    }
  }

  Difference difference(const Pair& pair, uint32_t tensor, DifferenceKind kind) const {
    return {.tensor = a_.names().tensors[tensor],
            .worker = a_.names().workers[a_.snapshot->part(pair.part_a).worker],
            .step = pair.step,
            .step_in_b = pair.step_in_b,
            .kind = kind};
  }

  void report(uint32_t tensor, Difference found) {
    if (!out_.first) out_.first = found;
    const bool is_first_here = std::exchange(reported_in_[tensor], pair_number_) != pair_number_;
    const auto [known, is_new] = worst_.try_emplace(tensor, found);
    if (is_new) return;
    const int64_t occurrences = known->second.occurrences + (is_first_here ? 1 : 0);
    if (is_worse(found, known->second)) known->second = std::move(found);
    known->second.occurrences = occurrences;
  }

  void finish() {
    out_.compared.tensors = std::ranges::count(compared_, true);
    out_.differing_tensors = static_cast<int64_t>(worst_.size());
    for (auto& [tensor, found] : worst_) out_.table.push_back(std::move(found));
    std::ranges::sort(out_.table, [](const Difference& x, const Difference& y) {
      const auto key = [](const Difference& d) {
        return std::tuple(-d.elements.max_relative, -d.elements.max_absolute, d.step.step,
                          std::string_view(d.tensor));
      };
      return key(x) < key(y);
    });
    if (out_.table.size() > options_.top) out_.table.resize(options_.top);
    collect_only(a_, b_, out_.only_in_a);
    collect_only(b_, a_, out_.only_in_b);
  }

  static void collect_only(const Side& side, const Side& other, OnlyThere& out) {
    for (uint32_t i = 0; i < side.wanted.size(); ++i) {
      if (side.wanted[i] && side.other_tensors[i] == kNone) {
        out.tensors.push_back(side.names().tensors[i]);
      }
    }
    std::ranges::sort(out.tensors);
    for (const auto& [key, row] : side.rows) {
      if (!other.rows.contains(key)) out.steps.push_back(side.snapshot->row(row).info);
    }
    std::ranges::sort(out.steps, {}, &StepInfo::step);
    for (uint32_t i = 0; i < side.other_workers.size(); ++i) {
      if (side.other_workers[i] == kNone) out.workers.push_back(side.names().workers[i]);
    }
    std::ranges::sort(out.workers);
    for (const auto& [tensor, records] : side.lonely) out.records.push_back(records);
    std::ranges::sort(out.records, {}, &OnlyThere::Records::tensor);
  }

  const DiffOptions& options_;
  Side a_;
  Side b_;
  std::vector<bool> compared_;            // tensors of A
  int64_t pair_number_ = 0;               // of the parts at hand
  std::vector<int64_t> reported_in_;      // by tensor of A: the last pair in which it differed
  std::map<uint32_t, Difference> worst_;  // by tensor of A
  Diff out_;
};

}  // namespace

std::string_view name_of(DifferenceKind kind) {
  switch (kind) {
    case DifferenceKind::value: return "value";
    case DifferenceKind::reduction: return "reduction";
    case DifferenceKind::dtype: return "dtype";
    case DifferenceKind::shape: return "shape";
    case DifferenceKind::strings: return "strings";
  }
  return "value";
}

Json Diff::Compared::to_json() const {
  return {{"steps", steps},       {"tensors", tensors},       {"values", values},
          {"elements", elements}, {"reductions", reductions}, {"shapes", shapes}};
}

Result<Diff> diff_trials(Trial& a, Trial& b, const DiffOptions& options) {
  return Differ(a, b, options).run();
}

}  // namespace smd

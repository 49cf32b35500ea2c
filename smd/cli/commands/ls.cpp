#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ostream>

#include "smd/cli/array_text.h"
#include "smd/cli/command.h"
#include "smd/cli/json_output.h"
#include "smd/cli/run_argument.h"
#include "smd/cli/selection.h"
#include "smd/cli/table.h"
#include "smd/cli/units.h"

namespace smd::cli::command_list {
namespace {

constexpr std::string_view kSorts[] = {"name", "steps", "size"};

// What a run holds of one tensor.
struct Listed {
  uint32_t tensor = 0;
  std::vector<bool> slots;  // by number
  uint64_t steps = 0;
  Step first = 0;
  Step last = 0;
  uint64_t bytes = 0;
  std::optional<Location> newest;  // of the value
  std::optional<Shape> saved_shape;
  // Of the newest value; nothing if it cannot be read or was not saved.
  std::optional<TensorDescription> about;

  void add_slot(uint32_t slot) {
    if (slot >= slots.size()) slots.resize(slot + 1);
    slots[slot] = true;
  }
  std::vector<std::string> stored(const Snapshot& snapshot) const {
    std::vector<std::string> out;
    for (uint32_t i = 0; i < slots.size(); ++i) {
      if (!slots[i]) continue;
      const Slot slot = Slot::from_id(i);
      out.push_back(slot.is_value() ? "value" : snapshot.slot_name(slot));
    }
    if (out.empty()) out.emplace_back("shape");
    return out;
  }
  const Shape* shape() const {
    return about ? &about->shape : saved_shape ? &*saved_shape : nullptr;
  }
};

struct Scope {
  Mode mode = Mode::global;
  std::optional<uint32_t> worker;
  const StepRow* row = nullptr;  // nullptr: all steps
};

// Goes through a snapshot once. Steps mostly come in the same few layouts, so that each kind of
// step is looked at once, however many there are.
class Listing final {
 public:
  Listing(const Snapshot& snapshot, const TensorFilter& filter) : snapshot_(snapshot) {
    const NameList& names = snapshot.names().tensors;
    for (uint32_t i = 0; i < names.size(); ++i) wanted_.push_back(filter.selects(names[i]));
    places_.assign(names.size(), kNone);
  }

  std::vector<Listed> run(const Scope& scope) {
    struct Kind {
      uint64_t count = 0;
      size_t first = 0;
      size_t last = 0;
    };
    std::map<std::vector<uint32_t>, Kind> kinds;  // by the layouts of the workers
    for (size_t i = 0; i < snapshot_.row_count(); ++i) {
      const StepRow& row = snapshot_.row(i);
      if (!includes(scope, row)) continue;
      std::vector<uint32_t> layouts;
      snapshot_.for_each_part(row, [&](uint32_t, const Part& part) {
        if (!scope.worker || part.worker == *scope.worker) layouts.push_back(part.layout);
      });
      if (layouts.empty()) continue;
      Kind& kind = kinds.try_emplace(std::move(layouts), Kind{.first = i}).first->second;
      ++kind.count;
      kind.last = i;
    }
    for (const auto& [layouts, kind] : kinds) add(scope, kind.count, kind.first, kind.last);
    return std::move(listed_);
  }

 private:
  static Step step_of(const Scope& scope, const StepRow& row) {
    return scope.mode == Mode::global ? row.info.step : row.info.mode_step;
  }

  bool includes(const Scope& scope, const StepRow& row) const {
    if (scope.row != nullptr) return &row == scope.row;
    if (scope.mode == Mode::global) return true;
    // Of a mode step that a resumed job repeated, the first counts.
    return row.info.mode == scope.mode &&
           snapshot_.find_row(scope.mode, row.info.mode_step) == &row;
  }

  Listed& listed(uint32_t tensor) {
    if (places_[tensor] == kNone) {
      places_[tensor] = static_cast<uint32_t>(listed_.size());
      listed_.push_back({.tensor = tensor});
    }
    return listed_[places_[tensor]];
  }

  void add(const Scope& scope, uint64_t count, size_t first_row, size_t last_row) {
    const StepRow& last = snapshot_.row(last_row);
    const Step first_step = step_of(scope, snapshot_.row(first_row));
    const Step last_step = step_of(scope, last);
    std::vector<uint32_t> seen;
    snapshot_.for_each_part(last, [&](uint32_t id, const Part& part) {
      if (scope.worker && part.worker != *scope.worker) return;
      const Layout& layout = snapshot_.layout_of(part);
      const auto entries = layout.entries();
      for (uint32_t i = 0; i < entries.size(); ++i) {
        if (!wanted_[entries[i].tensor]) continue;
        Listed& one = listed(entries[i].tensor);
        one.add_slot(entries[i].slot);
        one.bytes += entries[i].length * count;
        if (Slot::from_id(entries[i].slot).is_value() &&
            (!one.newest || snapshot_.part(one.newest->part).step < part.step)) {
          one.newest = Location{id, i};
        }
      }
      for (const Layout::ShapeOf& shape : layout.shapes()) {
        if (wanted_[shape.tensor]) listed(shape.tensor).saved_shape = shape.shape;
      }
      const auto tensors = layout.tensors();
      seen.insert(seen.end(), tensors.begin(), tensors.end());
    });
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    for (uint32_t tensor : seen) {
      if (!wanted_[tensor]) continue;
      Listed& one = listed(tensor);
      one.first = one.steps == 0 ? first_step : std::min(one.first, first_step);
      one.last = one.steps == 0 ? last_step : std::max(one.last, last_step);
      one.steps += count;
    }
  }

  const Snapshot& snapshot_;
  std::vector<bool> wanted_;      // by tensor
  std::vector<uint32_t> places_;  // in listed_, by tensor
  std::vector<Listed> listed_;
};

class Ls final : public Invocation {
 public:
  explicit Ls(CLI::App& options) {
    add_run(options, run_);
    add_list(options, "--regex", choice_.patterns, "PATTERN",
             "only tensors in whose names this is found; may be repeated");
    options.add_option("--collection", choice_.collection, "only tensors of this collection")
        ->type_name("NAME");
    add_mode(options, mode_);
    options.add_option("--step", step_, "only what was saved at this step")->type_name("STEP");
    add_worker(options, worker_);
    add_choice(options, "--sort", sort_, kSorts, "the order of the list");
    options.add_option("--limit", limit_, "list no more than so many tensors")
        ->type_name("N")
        ->check(CLI::NonNegativeNumber);
  }

  Result<ExitCode> run(const Context& context) override {
    SMD_TRY(const auto trial, open_trial(run_));
    const auto snapshot = trial->snapshot();
    SMD_TRY(const TensorFilter filter, TensorFilter::create(*snapshot, choice_));
    Scope scope;
    SMD_TRY(scope.mode, mode_argument(*snapshot, mode_));
    SMD_TRY(scope.worker, worker_argument(*snapshot, worker_));
    if (step_) {
      SMD_TRY(scope.row, step_argument(*snapshot, scope.mode, *step_));
    }

    std::vector<Listed> listed = Listing(*snapshot, filter).run(scope);
    sort(*snapshot, listed);
    const size_t total = listed.size();
    if (limit_ && *limit_ < listed.size()) listed.resize(*limit_);
    for (Listed& one : listed) {
      if (!one.newest) continue;
      auto about = trial->describe(*snapshot, *one.newest);
      if (about.ok()) one.about = std::move(*about);
    }
    if (context.json) {
      write_json(context.terminal.out, json_of(*trial, *snapshot, listed, total));
    } else {
      print(context.terminal, *snapshot, listed, total);
    }
    return ExitCode::well;
  }

 private:
  void sort(const Snapshot& snapshot, std::vector<Listed>& listed) const {
    const NameList& names = snapshot.names().tensors;
    const auto key = [&](const Listed& one) {
      const uint64_t number = sort_ == "steps" ? one.steps : sort_ == "size" ? one.bytes : 0;
      return std::pair(UINT64_MAX - number, std::string_view(names[one.tensor]));
    };
    std::sort(listed.begin(), listed.end(),
              [&](const Listed& a, const Listed& b) { return key(a) < key(b); });
  }

  static Json json_of(const Trial& trial, const Snapshot& snapshot,
                      const std::vector<Listed>& listed, size_t total) {
    Json tensors = Json::array();
    for (const Listed& one : listed) {
      tensors.push_back({{"name", snapshot.names().tensors[one.tensor]},
                         {"stored", one.stored(snapshot)},
                         {"dtype", one.about ? Json(name_of(one.about->dtype)) : Json(nullptr)},
                         {"shape", one.shape() != nullptr ? Json(*one.shape()) : Json(nullptr)},
                         {"steps", one.steps},
                         {"first_step", one.first},
                         {"last_step", one.last},
                         {"bytes", one.bytes}});
    }
    return {{"run", trial.name()},
            {"tensors", std::move(tensors)},
            {"not_listed", total - listed.size()}};
  }

  static void print(const Terminal& terminal, const Snapshot& snapshot,
                    const std::vector<Listed>& listed, size_t total) {
    if (total == 0) {
      terminal.out << (snapshot.row_count() == 0 ? "Nothing was saved yet.\n"
                                                 : "No saved tensor fits.\n");
      return;
    }
    Table table({{"tensor"},
                 {"dtype"},
                 {"shape"},
                 {"steps", Align::right},
                 {"range", Align::right},
                 {"size", Align::right},
                 {"stored"}});
    for (const Listed& one : listed) {
      table.add_row(
          {snapshot.names().tensors[one.tensor],
           one.about ? std::string(name_of(one.about->dtype)) : "-",
           one.shape() != nullptr ? shape_text(*one.shape()) : "-", fmt::format("{}", one.steps),
           one.first == one.last ? fmt::format("{}", one.first)
                                 : fmt::format("{}-{}", one.first, one.last),
           human_bytes(one.bytes), fmt::format("{}", fmt::join(one.stored(snapshot), " "))});
    }
    terminal.out << table.text(terminal);
    if (total > listed.size()) {
      terminal.out << fmt::format("… and {}\n", counted(total - listed.size(), "more tensor"));
    }
  }

  std::string run_;
  TensorChoice choice_;
  std::string mode_;
  std::optional<Step> step_;
  std::string worker_;
  std::string sort_ = "name";
  std::optional<size_t> limit_;
};

constexpr Example kExamples[] = {
    {"ls runs/first", "all tensors"},
    {"ls runs/first --regex 'weight$' --sort size --limit 10", "the ten largest weights"},
    {"ls runs/first --mode train --step 100", "what was saved at one step"},
    {"ls --json runs/first", "the same for a program"},
};

}  // namespace

extern const Command ls;
const Command ls = {
    .name = "ls",
    .summary = "Lists the tensors of a run",
    .details =
        "Element type and shape are those of the newest value, steps are counted with the first "
        "and the last of them, and the size is what all records of the tensor take. What is stored "
        "is the value, reductions of it, or its shape alone. A dash stands for what was not saved. "
        "With --mode, steps are counted within the mode.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Ls>(options);
    },
};

}  // namespace smd::cli::command_list

#pragma once

// Which tensors, steps and workers of a run a command is about: what people typed becomes numbers
// of a snapshot, or one sentence that names the nearest choice. Pure functions.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/result.h"
#include "smd/cli/options.h"
#include "smd/trial/snapshot.h"

namespace smd::cli {

// --- options that several commands have
CLI::Option* add_run(CLI::App& app, std::string& run);
CLI::Option* add_mode(CLI::App& app, std::string& mode);
CLI::Option* add_worker(CLI::App& app, std::string& worker);
// Repeated: one value each time.
CLI::Option* add_list(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                      const std::string& value_name, const std::string& about);

// --- what was typed. An empty text is no choice: all modes, or the first worker that has it.
// A mode must be one in which something was saved, unless nothing was saved at all.
Result<Mode> mode_argument(const Snapshot& snapshot, std::string_view text);
Result<std::optional<uint32_t>> worker_argument(const Snapshot& snapshot, std::string_view text);
Result<uint32_t> tensor_argument(const Snapshot& snapshot, std::string_view name);
// A step that some worker saved.
Result<const StepRow*> step_argument(const Snapshot& snapshot, Mode mode, Step step);

struct TensorChoice {
  std::vector<std::string> patterns;  // one of them is found in the name; empty: all
  std::string collection;             // holds it; empty: all
};

// Decides about names, each by its text alone.
class TensorFilter final {
 public:
  // The snapshot knows the collections, which are shared.
  static Result<TensorFilter> create(const Snapshot& snapshot, const TensorChoice& choice);

  bool selects(std::string_view name) const;

 private:
  std::vector<Pattern> patterns_;
  std::shared_ptr<const Collection> collection_;
};

// "loss", or "weight (mean)".
std::string number_label(std::string_view tensor, std::string_view reduction);

// Of the newest step of the mode that has it; nullopt: the value was never saved.
std::optional<Location> latest_value(const Snapshot& snapshot, uint32_t tensor, Mode mode,
                                     std::optional<uint32_t> worker);

}  // namespace smd::cli

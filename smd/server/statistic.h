#pragma once

// The statistics that the page can show of a run: reductions that were saved, those that follow
// from saved values, and a few that are made of others. Functions, which any thread may call.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/result.h"
#include "smd/server/number_table.h"
#include "smd/server/served_run.h"

namespace smd::server {

struct StatisticInfo {
  std::string name;
  std::string label;  // for people
  bool is_stored = false;
  bool suits_log = false;  // never negative
};

// Those that at least one tensor has, the best for an overview first.
std::vector<StatisticInfo> statistics_of(const RunFacts& facts);

// A statistic, resolved by its name.
class Statistic final {
 public:
  // invalid_argument names the nearest.
  static Result<Statistic> find(const RunFacts& facts, std::string_view name);

  const std::string& name() const { return name_; }
  // Tensors that may have it at some step, in the order of the model.
  bool is_of(const Model::Tensor& tensor) const;
  // Whether reading it means to compute it from values.
  bool is_computed(const Model::Tensor& tensor) const;

  // Adds the steps of `range` to the table, whose tensors are those of `is_of`. Steps are those of
  // the mode. `worker` empty: at each step the first that has the number.
  // invalid_argument: more than a gibibyte of values would have to be read for it.
  struct Query {
    Mode mode = Mode::global;
    std::string worker{};
    StepRange range{};
  };
  Status read(const ServedRun& run, const RunFacts& facts, const Query& query,
              NumberTable& table) const;
  // That error alone.
  Status check_cost(const RunFacts& facts, const Query& query,
                    const std::vector<uint32_t>& tensors) const;

 private:
  enum class Kind : uint8_t { reduction, value, nonfinite, element, update_ratio, gradient_ratio };

  Status read_nonfinite(const ServedRun& run, const Query& query, NumberTable& table) const;
  Status read_elements(const ServedRun& run, const RunFacts& facts, const Query& query,
                       NumberTable& table) const;
  Status read_updates(const ServedRun& run, const RunFacts& facts, const Query& query,
                      NumberTable& table) const;
  Status read_gradient_ratio(const ServedRun& run, const RunFacts& facts, const Query& query,
                             NumberTable& table) const;

  std::string name_;
  Kind kind_ = Kind::reduction;
  std::string reduction_;        // that is read; of nonfinite, the one that tells
  uint32_t slot_ = kNone;        // as it is stored; kNone: it is not
  std::vector<bool> gradients_;  // of gradient_ratio: by id, whether the tensor has one
};

}  // namespace smd::server

#pragma once

// What rules see of one step: its tensors by worker, their statistics, and their values on demand.
// A feed fills one StepView again and again; rules get it as const and keep nothing that it holds
// beyond the call. Knows no files, so that it can be filled from a run on disk or in memory.
// One thread at a time.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/result.h"
#include "smd/collection/collection_set.h"
#include "smd/rules/statistic.h"
#include "smd/trial/names.h"
#include "smd/trial/tensor_value.h"
#include "smd/types/step.h"

namespace smd::rules {

// The run around the step. Borrows everything; numbers of tensors and workers keep their meaning as
// long as the run is evaluated.
struct RunView {
  std::string_view name;
  const Names* names = nullptr;
  const CollectionSet* collections = nullptr;
  uint64_t collections_revision = 0;  // grows when the collections change

  const std::string& tensor(uint32_t number) const { return names->tensors[number]; }
  const std::string& worker(uint32_t number) const { return names->workers[number]; }
};

// One tensor of one worker.
struct TensorRow {
  uint32_t tensor = 0;
  uint32_t worker = 0;
  uint32_t index = 0;            // in StepView::rows()
  uint32_t order = 0;            // when it was saved in this step: forward, then backward
  bool is_first_worker = true;   // of those that saved the tensor at this step, by name
  bool has_value = false;        // its elements were saved
  const Shape* shape = nullptr;  // nullptr: not known without reading the value
  StatisticSet present{};

  bool has(Statistic statistic) const { return present.contains(statistic); }
};

class StepView final {
 public:
  // --- for rules
  const RunView& run() const { return run_; }
  const StepInfo& info() const { return info_; }
  double wall_secs() const { return wall_secs_; }  // Unix time; 0: not known
  // Sorted by tensor name, then by worker name.
  std::span<const TensorRow> rows() const { return rows_; }
  // Steps with the same id above 0 have the same tensors and workers in the same rows.
  uint64_t rows_id() const { return rows_id_; }
  const std::string& tensor(const TensorRow& row) const { return run_.tensor(row.tensor); }
  const std::string& worker(const TensorRow& row) const { return run_.worker(row.worker); }

  // NaN where it is not present.
  double number(const TensorRow& row, Statistic statistic) const {
    const int column = columns_[static_cast<size_t>(statistic)];
    if (column < 0) return std::numeric_limits<double>::quiet_NaN();
    return numbers_[row.index * width_ + static_cast<size_t>(column)];
  }
  // The elements, read once for all rules; good as long as the step. `not_found`: not saved. Other
  // errors tell of damaged files.
  Result<const TensorValue*> value(const TensorRow& row) const;

  // --- for feeds
  using ReadValue = std::function<Result<TensorValue>(const TensorRow& row)>;
  // Which statistics rows can hold from the next step on.
  void set_columns(StatisticSet columns);
  StatisticSet columns() const { return column_set_; }
  // Forgets the step before. `read` is called for rows with has_value, unless set_value() was.
  void begin(const RunView& run, const StepInfo& info, double wall_secs, uint64_t rows_id,
             ReadValue read);
  // In the order of rows(). `index` and `present` are set here. The reference is good until the
  // next call.
  TensorRow& add(const TensorRow& row);
  // Statistics without a column are left out.
  void set(TensorRow& row, const Statistics& statistics);
  void set_value(const TensorRow& row, TensorValue value);

 private:
  RunView run_;
  StepInfo info_;
  double wall_secs_ = 0;
  uint64_t rows_id_ = 0;
  ReadValue read_;
  std::vector<TensorRow> rows_;
  StatisticSet column_set_;
  std::array<int8_t, kStatisticCount> columns_ = [] {
    std::array<int8_t, kStatisticCount> none{};
    none.fill(-1);
    return none;
  }();
  size_t width_ = 0;
  std::vector<double> numbers_;                     // row by row
  mutable std::deque<Result<TensorValue>> values_;  // those that were read
  mutable std::vector<uint32_t> value_of_row_;      // 1 + their places in it; 0: not read
};

}  // namespace smd::rules

#include "smd/rules/step_view.h"

#include <fmt/format.h>

#include <algorithm>

namespace smd::rules {

Result<const TensorValue*> StepView::value(const TensorRow& row) const {
  const auto at = std::ranges::find_if(
      values_, [&](const std::unique_ptr<Held>& held) { return held->row == row.index; });
  const Held* held = at == values_.end() ? nullptr : at->get();
  if (held == nullptr) {
    if (!row.has_value || !read_) {
      return Error{ErrorCode::not_found, fmt::format("The value of '{}' was not saved at step {}.",
                                                     tensor(row), info_.step)};
    }
    held = values_.emplace_back(std::make_unique<Held>(Held{row.index, read_(row)})).get();
  }
  if (!held->value.ok()) return held->value.error();
  return &*held->value;
}

void StepView::set_columns(StatisticSet columns) {
  column_set_ = columns;
  columns_.fill(-1);
  width_ = 0;
  columns.for_each([&](Statistic statistic) {
    columns_[static_cast<size_t>(statistic)] = static_cast<int8_t>(width_++);
  });
}

void StepView::begin(const RunView& run, const StepInfo& info, double wall_secs, uint64_t rows_id,
                     ReadValue read) {
  run_ = run;
  info_ = info;
  wall_secs_ = wall_secs;
  rows_id_ = rows_id;
  read_ = std::move(read);
  rows_.clear();
  numbers_.clear();
  values_.clear();
}

TensorRow& StepView::add(const TensorRow& row) {
  rows_.push_back(row);
  rows_.back().index = static_cast<uint32_t>(rows_.size() - 1);
  rows_.back().present = {};
  numbers_.resize(numbers_.size() + width_, std::numeric_limits<double>::quiet_NaN());
  return rows_.back();
}

void StepView::set(TensorRow& row, const Statistics& statistics) {
  double* const out = numbers_.data() + row.index * width_;
  column_set_.for_each([&](Statistic statistic) {
    if (!statistics.has(statistic)) return;
    row.present.add(statistic);
    out[columns_[static_cast<size_t>(statistic)]] = statistics[statistic];
  });
}

void StepView::set_value(const TensorRow& row, TensorValue value) {
  values_.push_back(std::make_unique<Held>(Held{row.index, std::move(value)}));
}

}  // namespace smd::rules

#include "smd/hook/late_batch.h"

#include <cmath>

#include "smd/hook/stored_name.h"
#include "smd/summary/summary_files.h"

namespace smd {
namespace {

Reduction mean() {
  static const Reduction kind = *parse_reduction("mean");
  return kind;
}

ReductionRequest request_of(const LateItem& item) {
  ReductionRequest out{.reductions = item.saved, .histogram = !item.shown_as.empty()};
  out.reductions.merge(item.recorded);
  if (item.metric || item.scalar) out.reductions.add(mean());
  return out;
}

}  // namespace

void add_stored(const LateResults& results, const ReductionSet& wanted,
                std::vector<StoredReduction>& out) {
  for (const auto& [reduction, number] : results.reductions.values) {
    if (!wanted.contains(reduction)) continue;
    out.push_back({.name = stored_name(reduction), .dtype = number.dtype, .bits = number.bits});
  }
}

Result<std::span<const LateResults>> LateBatch::results() {
  const std::lock_guard lock(mutex_);
  if (has_results()) return std::span<const LateResults>(results_);
  SMD_TRY(const bool wanted, list_->wait());
  std::vector<LateResults> found(wanted ? items_.size() : 0);
  for (size_t i = 0; i < found.size(); ++i) {
    SMD_RETURN_IF_ERROR(list_->find(items_[i].index, request_of(items_[i]), found[i]));
  }
  results_ = std::move(found);
  done_.store(true, std::memory_order_release);
  return std::span<const LateResults>(results_);
}

// A single number, or the mean of a metric with several.
std::optional<SavedScalar> LateBatch::scalar_of(const LateItem& item,
                                                const LateResults& results) const {
  if (!item.metric && (!item.scalar || results.count > 1)) return std::nullopt;
  const Number* const value = results.reductions.find(mean());
  if (value == nullptr) return std::nullopt;  // complex numbers have no such mean
  return SavedScalar{.name = item.name,
                     .value = value->to_double(),
                     .wall_secs = wall_secs_,
                     .is_metric = item.metric && std::isfinite(value->to_double()),
                     .is_mean = results.count > 1};
}

Result<std::span<const LateFound>> LateBatch::wait() {
  SMD_TRY(const std::span<const LateResults> all, results());
  std::vector<size_t> ends;
  for (size_t i = 0; i < all.size(); ++i) {
    add_stored(all[i], items_[i].saved, stored_);
    ends.push_back(stored_.size());
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const LateItem& item = items_[i];
    if (!item.is_written()) continue;
    const size_t begin = i == 0 ? 0 : ends[i - 1];
    LateFound& next = found_.emplace_back();
    next.tensor = item.name;
    next.values = std::span<const StoredReduction>(stored_).subspan(begin, ends[i] - begin);
    next.scalar = scalar_of(item, all[i]);
    if (const auto& histogram = all[i].reductions.histogram;
        !item.shown_as.empty() && !histogram.counts.empty()) {
      next.histogram = SavedHistogram{
          .name = item.shown_as, .wall_secs = wall_secs_, .histogram = view_of(histogram)};
    }
  }
  return std::span<const LateFound>(found_);
}

}  // namespace smd

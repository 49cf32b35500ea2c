#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "smd/collection/builtin.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

struct Series {
  int64_t points = 0;
  double largest_at_first = 0;
  std::deque<bool> is_above;  // of the last window
  int64_t above = 0;
  bool is_told = false;
};

class PersistentHighLoss final : public Rule {
 public:
  PersistentHighLoss(Selection losses, int64_t window, double share)
      : losses_(std::move(losses)), window_(window), share_(share) {}

  std::vector<Selection*> selections() override { return {&losses_}; }

  Status observe(const StepView& step, Hits& hits) override {
    losses_.for_each(step, [&](const TensorRow& row) { judge(step, row, hits); });
    return {};
  }

 private:
  void judge(const StepView& step, const TensorRow& row, Hits& hits) {
    const double loss = step.number(row, Statistic::mean);
    Series& series = series_.of(row, step.info().mode);
    if (std::isnan(loss)) return;
    if (series.points++ < window_) {
      series.largest_at_first = series.points == 1 ? loss : std::max(series.largest_at_first, loss);
      return;
    }
    series.is_above.push_back(loss > series.largest_at_first);
    series.above += series.is_above.back() ? 1 : 0;
    if (static_cast<int64_t>(series.is_above.size()) > window_) {
      series.above -= series.is_above.front() ? 1 : 0;
      series.is_above.pop_front();
    }
    if (static_cast<int64_t>(series.is_above.size()) < window_) return;
    const double share = static_cast<double>(series.above) / static_cast<double>(window_);
    const bool is_high = share >= share_;
    if (is_high && !series.is_told) {
      Violation* hit = hits.add(step, row, "share_above", share, Op::above, share_);
      if (hit != nullptr) {
        hit->with("largest_at_first", series.largest_at_first).with("loss", loss);
      }
      hits.say(
          fmt::format("{:.0f} % of the last {} values of '{}' are above {:.6g}, the largest "
                      "of its first {}.",
                      100 * share, window_, step.tensor(row), series.largest_at_first, window_));
    }
    series.is_told = is_high;
  }

  Selection losses_;
  int64_t window_;
  double share_;
  RowTable<Series> series_;
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "window",
     .type = ParameterType::integer,
     .default_text = "50",
     .help = "How many values are the first ones and the last ones.",
     .range = "[5,]"},
    {.name = "share",
     .type = ParameterType::real,
     .default_text = "0.5",
     .help = "Fires when at least this share of the last values is above all of the first ones.",
     .range = "(0,1]"},
};

constexpr CollectionRequest::Setting kSettings[] = {{"save_interval", "1"}};
constexpr CollectionRequest kCollections[] = {{collection_keys::kLosses, kSettings}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto losses, select_series(parameters, "losses", collection_keys::kLosses));
  return make_rule<PersistentHighLoss>(std::move(losses), parameters.integer("window"),
                                       parameters.real("share"));
}

}  // namespace

extern const RuleKind persistent_high_loss;
const RuleKind persistent_high_loss = {
    .name = "PersistentHighLoss",
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "The loss stays above everything it was at the beginning.",
    .sees =
        "The last values of each loss against the largest of its first ones; fires when at "
        "least the share of them is above it.",
    .why =
        "The model is worse than before the training began and does not come back by itself; "
        "further steps are wasted.",
    .fix =
        "Go back to a checkpoint with a lower loss and lower the learning rate. If the loss "
        "rose from the first step on, check the sign of the loss and of the update, and the "
        "labels.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin

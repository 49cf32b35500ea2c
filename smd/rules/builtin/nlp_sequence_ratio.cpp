#include <fmt/format.h>

#include <algorithm>

#include "smd/rules/elements.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

struct Token {
  double value = 0;
  double threshold_percent = 0;
};

class NlpSequenceRatio final : public Rule {
 public:
  NlpSequenceRatio(Selection inputs, std::vector<Token> tokens)
      : inputs_(std::move(inputs)), tokens_(std::move(tokens)), counts_(tokens_.size()) {}

  std::vector<Selection*> selections() override { return {&inputs_}; }

  Status observe(const StepView& step, Hits& hits) override {
    return inputs_.for_each(step, [&](const TensorRow& row) { return judge(step, row, hits); });
  }

 private:
  Status judge(const StepView& step, const TensorRow& row, Hits& hits) {
    SMD_TRY(const TensorValue* ids, step.value(row));
    const int64_t size = ids->view().size();
    if (size == 0 || ids->dtype == DType::string) return {};
    std::ranges::fill(counts_, 0);
    SMD_RETURN_IF_ERROR(for_each_block(ids->view(), [&](int64_t, std::span<const double> block) {
      for (size_t t = 0; t < tokens_.size(); ++t) {
        counts_[t] += std::count(block.begin(), block.end(), tokens_[t].value);
      }
    }));
    for (size_t t = 0; t < tokens_.size(); ++t) {
      const Token& token = tokens_[t];
      const double percent = 100 * static_cast<double>(counts_[t]) / static_cast<double>(size);
      if (!(percent > token.threshold_percent)) continue;
      if (hits.empty()) {
        hits.say(fmt::format("{:.4g} % of '{}' are the token {:g}, and {:g} % are accepted.",
                             percent, step.tensor(row), token.value, token.threshold_percent));
      }
      Violation* hit =
          hits.add(step, row, "token_percent", percent, Op::above, token.threshold_percent);
      if (hit == nullptr) continue;
      hit->with("token", token.value)
          .with("token_count", Json(counts_[t]))
          .with("size", Json(size))
          .with("shape", Json(ids->shape));
    }
    return {};
  }

  Selection inputs_;
  std::vector<Token> tokens_;
  std::vector<int64_t> counts_;  // by token
};

constexpr ParameterSpec kParameters[] = {
    {.name = "tensor_regex",
     .type = ParameterType::list,
     .default_text = ".*embedding0_input_0",
     .help = "Tensors in whose names one of these patterns is found hold token ids."},
    {.name = "token_values",
     .type = ParameterType::number_list,
     .default_text = "0",
     .help = "The tokens to count, such as those for padding and for unknown words."},
    {.name = "token_thresholds_percent",
     .type = ParameterType::number_list,
     .default_text = "50",
     .help = "For each token, fires when it makes up more than this many percent.",
     .range = "[0,100]"},
};

constexpr CollectionRequest::Setting kSettings[] = {{"include_regex", ".*embedding0_input_0"},
                                                    {"save_interval", "500"}};
constexpr CollectionRequest kCollections[] = {{"input_sequence", kSettings}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  const auto& values = parameters.numbers("token_values");
  const auto& thresholds = parameters.numbers("token_thresholds_percent");
  if (values.size() != thresholds.size()) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("NLPSequenceRatio has {} token_values and {} "
                             "token_thresholds_percent; give one threshold for each token.",
                             values.size(), thresholds.size())};
  }
  std::vector<Token> tokens;
  for (size_t i = 0; i < values.size(); ++i) tokens.push_back({values[i], thresholds[i]});
  SMD_TRY(auto inputs,
          Selection::create(
              {.what = "token ids", .patterns = parameters.list("tensor_regex"), .values = true},
              parameters));
  return make_rule<NlpSequenceRatio>(std::move(inputs), std::move(tokens));
}

}  // namespace

extern const RuleKind nlp_sequence_ratio;
const RuleKind nlp_sequence_ratio = {
    .name = "NLPSequenceRatio",
    .group = RuleGroup::application,
    .severity = Severity::warning,
    .summary = "Batches consist mostly of padding or of unknown tokens.",
    .sees =
        "How often each of token_values occurs in every saved batch of token ids; fires when "
        "one makes up more than its percentage.",
    .why =
        "Padding is computed like any other token, so most of the work is wasted; unknown "
        "tokens tell the model nothing.",
    .fix =
        "Against padding, put sequences of similar length into one batch, pack several into "
        "one, or lower the maximum length. Against unknown tokens, check that tokenizer and "
        "vocabulary belong to the data.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin

#include "smd/rules/class_scores.h"

namespace smd::rules {
namespace {

struct Rates {
  double precision = 0;
  double recall = 0;
  double f1 = 0;
};

double share(int64_t part, int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

Rates scores_of(int64_t right, int64_t predicted, int64_t labelled) {
  return {share(right, predicted), share(right, labelled), share(2 * right, predicted + labelled)};
}

Json json_of(const Rates& scores) {
  return {{"precision", scores.precision}, {"recall", scores.recall}, {"f1", scores.f1}};
}

}  // namespace

Json class_scores(const ConfusionCounts& counts, std::span<const double> labels) {
  Json classes = Json::array();
  Rates macro;
  Rates weighted;
  int64_t used = 0;
  int64_t predicted_total = 0;
  for (int64_t i = 0; i < counts.class_count(); ++i) {
    const int64_t labelled = counts.label_total(i);
    const int64_t predicted = counts.prediction_total(i);
    predicted_total += predicted;
    const Rates scores = scores_of(counts.at(i, i), predicted, labelled);
    Json one = json_of(scores);
    one["label"] = labels[static_cast<size_t>(i)];
    one["support"] = labelled;
    classes.push_back(std::move(one));
    if (labelled + predicted == 0) continue;
    ++used;
    const double weight = share(labelled, counts.total());
    for (double Rates::*score : {&Rates::precision, &Rates::recall, &Rates::f1}) {
      macro.*score += scores.*score;
      weighted.*score += weight * scores.*score;
    }
  }
  for (double Rates::*score : {&Rates::precision, &Rates::recall, &Rates::f1}) {
    if (used > 0) macro.*score /= static_cast<double>(used);
  }
  const int64_t right = counts.right_count();
  return {{"accuracy", share(right, counts.total())},
          {"micro", json_of(scores_of(right, predicted_total, counts.total()))},
          {"macro", json_of(macro)},
          {"weighted", json_of(weighted)},
          {"classes", std::move(classes)}};
}

}  // namespace smd::rules

#pragma once

// Records the rounds of a training that calls XGBoost's C API, under the names that the Python
// package uses. Call after_iteration() after each update. It never fails: what XGBoost does not
// tell is said once in the log of the hook. Borrows the hook, the library and the data, which must
// outlive it. One thread at a time, that of the training.

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "smd/smd.h"
#include "smdebug/xgboost/library.h"
#include "smdebug/xgboost/tree_table.h"

namespace smdebug::xgb {

// Data that a round is evaluated on.
struct EvalData {
  Handle data = nullptr;
  const char* name = "";  // without '-'
};

struct TrainOptions {
  Handle train_data = nullptr;       // of SHAP values
  Handle validation_data = nullptr;  // of predictions and labels
  std::map<std::string, std::string> hyperparameters = {};
};

class TrainHook final {
 public:
  TrainHook(smd::Hook& hook, const Library& library, TrainOptions options = {})
      : hook_(hook), library_(library), options_(std::move(options)) {}
  TrainHook(const TrainHook&) = delete;
  TrainHook& operator=(const TrainHook&) = delete;

  // The round `iteration` of the booster is over; it is the step of that number.
  void after_iteration(Handle booster, int iteration, std::initializer_list<EvalData> evals) {
    after_iteration(booster, iteration, std::vector<EvalData>(evals));
  }
  void after_iteration(Handle booster, int iteration, const std::vector<EvalData>& evals) {
    if (smd::Status begun = hook_.begin_step(smd::Step{iteration}); !begun.ok()) {
      return hook_.warn_once(begun.error().message);
    }
    if (!hook_.is_step_wanted()) return;
    save_hyperparameters();
    save_metrics(booster, iteration, evals);
    if (hook_.is_step_saved()) {
      find_features(booster);
      save_predictions(booster);
      save_importance(booster);
      save_trees(booster);
      save_shap(booster);
    }
    check(hook_.end_step());
  }

 private:
  static constexpr std::array<const char*, 5> kKinds = {"weight", "gain", "cover", "total_gain",
                                                        "total_cover"};
  static constexpr std::string_view kPrediction =
      R"({"type": 0, "training": false, "iteration_begin": 0, "iteration_end": 0, "strict_shape": false})";
  static constexpr std::string_view kContributions =
      R"({"type": 2, "training": false, "iteration_begin": 0, "iteration_end": 0, "strict_shape": false})";

  void check(const smd::Status& status) {
    if (!status.ok()) hook_.warn_once(status.error().message);
  }
  // Of XGBoost's functions: 0 is success.
  bool done(int code, std::string_view what) {
    if (code == 0) return true;
    hook_.warn_once("XGBoost does not tell " + std::string(what) + ". " + library_.error());
    return false;
  }
  bool wants(std::string_view collection, const std::vector<std::string>& names) {
    if (hook_.is_collection_active(collection)) return true;
    for (const std::string& name : names) {
      if (hook_.wants(name)) return true;
    }
    return false;
  }

  void save_number(const std::string& name, double value) {
    check(hook_.save(name, smd::view(&value, {1})));
  }
  void save_texts(const std::string& name, const std::vector<std::string>& texts) {
    if (!hook_.wants(name)) return;
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    const int64_t shape[] = {static_cast<int64_t>(views.size())};
    check(hook_.save_strings(name, views, shape, {}));
  }
  template <typename T>
  void save_list(const std::string& name, const std::vector<T>& values) {
    check(hook_.save(name, smd::view(values)));
  }

  void save_hyperparameters() {
    for (const auto& [key, value] : options_.hyperparameters) {
      save_texts("hyperparameters/" + key, {value});
    }
  }

  // Metrics that get better by growing are no losses.
  static bool is_loss(std::string_view metric) {
    metric = metric.substr(0, metric.find('@'));
    while (metric.ends_with('-')) metric.remove_suffix(1);
    for (std::string_view known :
         {"auc", "aucpr", "map", "ndcg", "pre", "interval-regression-accuracy"}) {
      if (metric == known) return false;
    }
    return true;
  }
  void join(const char* collection, const std::string& name) {
    const auto found = hook_.collections().create(collection);
    if (found.ok() && !(*found)->has_tensor_name(name)) (*found)->add_tensor_name(name);
  }

  void save_metrics(Handle booster, int iteration, const std::vector<EvalData>& evals) {
    if (evals.empty()) return;
    std::vector<Handle> data;
    std::vector<const char*> names;
    for (const EvalData& eval : evals) {
      data.push_back(eval.data);
      names.push_back(eval.name);
    }
    const char* text = nullptr;
    if (!done(library_.evaluate(booster, iteration, data.data(), names.data(), data.size(), &text),
              "metrics")) {
      return;
    }
    // "[3]\ttrain-logloss:0.25\tvalidation-logloss:0.5"
    std::string_view rest = text;
    for (size_t tab = rest.find('\t'); tab != std::string_view::npos; tab = rest.find('\t')) {
      rest.remove_prefix(tab + 1);
      const std::string_view word = rest.substr(0, rest.find('\t'));
      const size_t colon = word.rfind(':');
      if (colon == std::string_view::npos) continue;
      const std::string name(word.substr(0, colon));
      join("metrics", name);
      if (is_loss(name.substr(name.find('-') + 1))) join("losses", name);
      save_number(name, std::strtod(std::string(word.substr(colon + 1)).c_str(), nullptr));
    }
  }

  void find_features(Handle booster) {
    uint64_t count = 0;
    const char** names = nullptr;
    features_.clear();
    if (library_.feature_info(booster, "feature_name", &count, &names) == 0) {
      features_.assign(names, names + count);
    }
    if (features_.empty() && done(library_.feature_count(booster, &count), "features")) {
      for (uint64_t i = 0; i < count; ++i) features_.push_back("f" + std::to_string(i));
    }
  }

  struct Matrix {
    const float* values = nullptr;
    std::vector<int64_t> shape;
    smd::TensorView view() const {
      return {.data = values, .dtype = smd::DType::float32, .shape = shape};
    }
  };
  // The memory is XGBoost's until the next call.
  bool predict(Handle booster, Handle data, std::string_view config, Matrix& out) {
    const uint64_t* shape = nullptr;
    uint64_t rank = 0;
    if (!done(library_.predict(booster, data, config.data(), &shape, &rank, &out.values),
              "predictions or SHAP values")) {
      return false;
    }
    out.shape.assign(shape, shape + rank);
    return true;
  }

  void save_predictions(Handle booster) {
    if (options_.validation_data == nullptr) return;
    Matrix found;
    if (wants("predictions", {"predictions"}) &&
        predict(booster, options_.validation_data, kPrediction, found)) {
      check(hook_.save("predictions", found.view()));
    }
    uint64_t count = 0;
    if (wants("labels", {"labels"}) &&
        done(library_.float_info(options_.validation_data, "label", &count, &found.values),
             "labels") &&
        count > 0) {
      found.shape = {static_cast<int64_t>(count)};
      check(hook_.save("labels", found.view()));
    }
  }

  void save_importance(Handle booster) {
    std::vector<std::string> names;
    for (const char* kind : kKinds) {
      for (const std::string& feature : features_) {
        names.push_back(importance_name(kind, feature));
      }
    }
    if (!wants("feature_importance", names)) return;
    for (const char* kind : kKinds) {
      const std::string config = std::string(R"({"importance_type": ")") + kind + R"("})";
      uint64_t count = 0, rank = 0;
      const char** features = nullptr;
      const uint64_t* shape = nullptr;
      const float* scores = nullptr;
      if (!done(library_.feature_score(booster, config.c_str(), &count, &features, &rank, &shape,
                                       &scores),
                "the importance of features")) {
        return;  // linear models know the first kind only
      }
      // Linear models have one score per class.
      const uint64_t width = rank > 1 ? shape[1] : 1;
      double total = 0;
      for (uint64_t i = 0; i < count * width; ++i) total += std::abs(double{scores[i]});
      for (uint64_t i = 0; i < count; ++i) {
        std::vector<double> shares(width);
        for (uint64_t j = 0; j < width; ++j) {
          shares[j] = total > 0 ? scores[i * width + j] / total : 0;
        }
        save_list(importance_name(kind, features[i]), shares);
      }
    }
  }
  static std::string importance_name(std::string_view kind, std::string_view feature) {
    return "feature_importance/" + std::string(kind) + "/" + std::string(feature);
  }

  void save_trees(Handle booster) {
    if (!wants("trees",
               {"trees/Tree", "trees/Node", "trees/ID", "trees/Feature", "trees/Split", "trees/Yes",
                "trees/No", "trees/Missing", "trees/Gain", "trees/Cover", "trees/Category"})) {
      return;
    }
    int rounds = 0;
    Handle slice = nullptr;
    if (!done(library_.boosted_rounds(booster, &rounds), "trees") || rounds < 1 ||
        !done(library_.slice(booster, rounds - 1, rounds, 1, &slice), "trees")) {
      return;
    }
    uint64_t count = 0;
    const char** dumps = nullptr;
    if (done(library_.dump(slice, "", 1, "json", &count, &dumps), "trees")) {
      TreeTable table;
      const int64_t first = int64_t{rounds - 1} * static_cast<int64_t>(count);
      smd::Status read;
      for (uint64_t i = 0; i < count && read.ok(); ++i) {
        read = add_tree(table, first + static_cast<int64_t>(i), dumps[i]);
      }
      check(read);
      if (read.ok()) save_table(table);
    }
    library_.free(slice);
  }
  void save_table(const TreeTable& table) {
    save_list("trees/Tree", table.tree);
    save_list("trees/Node", table.node);
    save_texts("trees/ID", table.id);
    save_texts("trees/Feature", table.feature);
    save_list("trees/Split", table.split);
    save_texts("trees/Yes", table.yes);
    save_texts("trees/No", table.no);
    save_texts("trees/Missing", table.missing);
    save_list("trees/Gain", table.gain);
    save_list("trees/Cover", table.cover);
    save_texts("trees/Category", table.category);
  }

  void save_shap(Handle booster) {
    if (options_.train_data == nullptr) return;
    std::vector<std::string> columns = features_;
    bool has_bias = false;
    for (const std::string& feature : features_) has_bias = has_bias || feature == "bias";
    if (!has_bias) columns.push_back("bias");  // a feature of this name takes its place
    std::vector<std::string> full, average;
    for (const std::string& column : columns) full.push_back("full_shap/" + column);
    for (const char* family : {"average_shap/", "mean_shap/"}) {
      for (const std::string& column : columns) average.push_back(family + column);
    }
    const bool wants_full = wants("full_shap", full);
    const bool wants_average = wants("average_shap", average);
    Matrix found;
    if ((!wants_full && !wants_average) ||
        !predict(booster, options_.train_data, kContributions, found)) {
      return;
    }
    if (wants_full) check(hook_.save_named(full, found.view()));
    if (!wants_average) return;
    const auto width = static_cast<size_t>(found.shape.back());
    size_t rows = 1;
    for (size_t i = 0; i + 1 < found.shape.size(); ++i) rows *= static_cast<size_t>(found.shape[i]);
    for (size_t column = 0; column < columns.size(); ++column) {
      double sum = 0, signed_sum = 0;
      for (size_t row = 0; row < rows; ++row) {
        const double value = found.values[row * width + column];
        sum += std::abs(value);
        signed_sum += value;
      }
      const auto total = static_cast<float>(sum);
      const auto mean = static_cast<float>(signed_sum / static_cast<double>(rows));
      check(hook_.save(average[column], smd::view(&total, {1})));
      check(hook_.save(average[columns.size() + column], smd::view(&mean, {1})));
    }
  }

  smd::Hook& hook_;
  const Library& library_;
  const TrainOptions options_;
  std::vector<std::string> features_;
};

}  // namespace smdebug::xgb

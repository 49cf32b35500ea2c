#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "smd/rules/diagnosis.h"
#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kRule = "CreateXgboostReport";

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class CreateXgboostReport : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    dir_ = fs::path(testing::TempDir()) / "smd_report" / info->name();
    fs::remove_all(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  CaseOptions options(Json more = Json::object()) const {
    Json parameters = {{"out_dir", dir_.string()}};
    parameters.update(more);
    return {.parameters = parameters};
  }
  Json report() const {
    auto parsed = parse_json(read(dir_ / "xgboost_report.json"), "");
    EXPECT_TRUE(parsed.ok()) << parsed.error().message;
    return parsed.ok() ? *parsed : Json::object();
  }
  std::string page() const { return read(dir_ / "xgboost_report.html"); }
  // Makes the report.
  Verdict make(const std::string& run, Json more = Json::object()) const {
    const Verdict verdict = judge(kRule, run, options(std::move(more)));
    EXPECT_EQ(verdict.status, RuleStatus::no_issues_found) << verdict.error;
    EXPECT_EQ(verdict.hits.size(), 0u);
    return verdict;
  }

  fs::path dir_;
};

constexpr std::string_view kBinary =
    "hyperparameters/objective@0:str=binary:logistic; hyperparameters/max_depth@0=3;"
    "labels@0=[0,0,1,1]; predictions@0=[0.4,0.6,0.3,0.7];"
    "labels@5=[0,0,1,1]; predictions@5=[0.1,0.4,0.35,0.8];"
    "train-logloss@0,5=0.6,0.5; validation-logloss@0,5=0.62,0.51;"
    "feature_importance/weight/f0@5=0.7; feature_importance/weight/f1@5=0.3;"
    "feature_importance/gain/f1@5=0.9; feature_importance/gain/f0@5=0.1";

TEST_F(CreateXgboostReport, a_binary_run_has_a_roc_curve_and_no_hit) {
  const Verdict verdict = make(std::string(kBinary));
  EXPECT_THAT(verdict.remark, HasSubstr("xgboost_report.html"));
  EXPECT_EQ(verdict.missing, std::nullopt);
  const Json made = report();
  EXPECT_EQ(made["task"], "binary classification");
  EXPECT_EQ(made["objective"], "binary:logistic");
  EXPECT_EQ(made["hyperparameters"]["max_depth"], 3);
  EXPECT_EQ(made["step"], 5);
  const Json& sections = made["sections"];
  EXPECT_DOUBLE_EQ(sections["roc"]["auc"].get<double>(), 0.75);
  EXPECT_EQ(sections["roc"]["points"].size(), 5u);
  EXPECT_EQ(sections["label_distribution"]["classes"][1]["count"], 2);
  EXPECT_EQ(sections["confusion_matrix"]["matrix"], Json({{2, 0}, {1, 1}}));
  EXPECT_EQ(sections["confusion_matrix"]["scores"]["accuracy"], 0.75);
  EXPECT_EQ(sections["class_accuracy"]["classes"][0]["steps"], Json({0, 5}));
  EXPECT_EQ(sections["class_accuracy"]["classes"][0]["accuracy"], Json({0.5, 1.0}));
  EXPECT_EQ(sections["loss"]["metrics"][0]["metric"], "logloss");
  EXPECT_EQ(sections["loss"]["metrics"][0]["series"][0]["values"], Json({0.6, 0.5}));
  EXPECT_THAT(sections["loss"]["metrics"][0]["remark"].get<std::string>(),
              HasSubstr("Still improving"));
  EXPECT_EQ(sections["feature_importance"]["gain"]["features"][0]["feature"], "f1");
  EXPECT_EQ(sections["feature_importance"]["weight"]["features"][0]["importance"], 0.7);
  EXPECT_THAT(sections["feature_importance"]["cover"]["missing"].get<std::string>(),
              HasSubstr("feature_importance/cover"));
  EXPECT_FALSE(sections.contains("residuals"));

  const std::string html = page();
  EXPECT_THAT(html, HasSubstr("AUC 0.7500"));
  EXPECT_THAT(html, HasSubstr("Confusion matrix"));
  EXPECT_THAT(html, HasSubstr("<svg"));
  EXPECT_THAT(html, HasSubstr("It needs feature_importance/cover."));
}

TEST_F(CreateXgboostReport, a_regression_run_has_residuals_and_no_confusion_matrix) {
  make(
      "hyperparameters/objective@0:str=reg:squarederror;"
      "labels@0=[0,10,20,100]; predictions@0=[5,5,5,5];"
      "labels@5=[0,10,20,100]; predictions@5=[1,9,22,90];"
      "train-rmse@0,5=50,5; validation-rmse@0,5=50,6");
  const Json made = report();
  EXPECT_EQ(made["task"], "regression");
  const Json& sections = made["sections"];
  EXPECT_FALSE(sections.contains("confusion_matrix"));
  EXPECT_FALSE(sections.contains("roc"));
  const Json& residuals = sections["residuals"];
  EXPECT_EQ(residuals["step"], 5);
  EXPECT_EQ(residuals["count"], 4);
  EXPECT_EQ(residuals["mean"], 2);
  EXPECT_EQ(residuals["mean_absolute_error"], 3.5);
  EXPECT_EQ(residuals["min"], -2);
  EXPECT_EQ(residuals["max"], 10);
  int64_t total = 0;
  for (const Json& count : residuals["histogram"]["counts"]) total += count.get<int64_t>();
  EXPECT_EQ(total, 4);
  // Ten bins of ten: two labels below 20, one in the third, one in the last.
  const Json& errors = sections["target_error"];
  EXPECT_EQ(errors["edges"].size(), 11u);
  EXPECT_EQ(errors["steps"], Json({0, 5}));
  EXPECT_EQ(errors["mean_absolute_error"][1][0], 1);
  EXPECT_EQ(errors["mean_absolute_error"][1][2], 2);
  EXPECT_EQ(errors["mean_absolute_error"][0][9], 95);
  EXPECT_TRUE(errors["mean_absolute_error"][1][5].is_null());
  EXPECT_THAT(page(), HasSubstr("Residuals"));
  EXPECT_THAT(page(), Not(HasSubstr("Confusion matrix")));
}

TEST_F(CreateXgboostReport, the_page_needs_nothing_from_elsewhere) {
  make(std::string(kBinary) + "; feature_importance/weight/<script>@5=0.1");
  const std::string html = page();
  for (const char* foreign : {"http:", "https:", "<script", "src=", "@import", "url(", "<link"}) {
    EXPECT_THAT(html, Not(HasSubstr(foreign)));
  }
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;"));
}

TEST_F(CreateXgboostReport, many_classes_come_as_scores) {
  make(
      "hyperparameters/objective@0:str=multi:softprob; labels@0=[0,1,2];"
      "predictions@0=[[0.8,0.1,0.1],[0.1,0.8,0.1],[0.5,0.3,0.2]]");
  const Json made = report();
  EXPECT_EQ(made["task"], "multi-class classification");
  EXPECT_EQ(made["sections"]["confusion_matrix"]["matrix"],
            Json({{1, 0, 0}, {0, 1, 0}, {1, 0, 0}}));
  EXPECT_FALSE(made["sections"].contains("roc"));
}

TEST_F(CreateXgboostReport, margins_are_split_at_zero) {
  make(
      "hyperparameters/objective@0:str=binary:logitraw; labels@0=[0,1];"
      "predictions@0=[-3,0.2]");
  EXPECT_EQ(report()["sections"]["confusion_matrix"]["matrix"], Json({{1, 0}, {0, 1}}));
}

TEST_F(CreateXgboostReport, without_an_objective_the_labels_tell_the_task) {
  make("labels@0=[0,1]; predictions@0=[0.2,0.9]");
  EXPECT_EQ(report()["task"], "binary classification");
  make("labels@0=[0.5,1]; predictions@0=[0.2,0.9]");
  EXPECT_EQ(report()["task"], "regression");
  make("labels@0=[0,1,2]; predictions@0=[0,1,1]");
  EXPECT_EQ(report()["task"], "multi-class classification");
}

TEST_F(CreateXgboostReport, sections_say_which_inputs_are_missing) {
  make("train-rmse@0,5=1,0.5");
  const Json made = report();
  EXPECT_EQ(made["task"], "unknown");
  const Json& sections = made["sections"];
  EXPECT_THAT(sections["label_distribution"]["missing"].get<std::string>(),
              HasSubstr("'labels' and 'predictions'"));
  EXPECT_THAT(sections["feature_importance"]["missing"].get<std::string>(),
              HasSubstr("'feature_importance'"));
  EXPECT_THAT(sections["quality"]["missing"].get<std::string>(), HasSubstr("'hyperparameters'"));
  EXPECT_THAT(page(), HasSubstr("class=\"missing\""));
  make("labels@0=[0,1]; predictions@0=[0.2,0.9]");
  EXPECT_THAT(report()["sections"]["loss"]["missing"].get<std::string>(), HasSubstr("'metrics'"));
}

TEST_F(CreateXgboostReport, numbers_that_are_not_finite_do_no_harm) {
  make(
      "labels@0=[0,1,nan]; predictions@0=[nan,inf,1]; train-auc@0,1=nan,0.5;"
      "validation-auc@0,1=inf,0.4; feature_importance/weight/f0@0=nan");
  EXPECT_EQ(report()["sections"]["label_distribution"]["count"], 2);
  make("labels@0=[0.5,1]; predictions@0=[nan,inf]");
  EXPECT_THAT(report()["sections"]["residuals"]["missing"].get<std::string>(), HasSubstr("finite"));
}

TEST_F(CreateXgboostReport, nothing_is_written_without_any_input) {
  const Verdict verdict = judge(kRule, "loss@0,1=1,2", options());
  EXPECT_THAT(verdict.missing.value_or(""), HasSubstr("It needs metrics of boosted trees"));
  EXPECT_EQ(verdict.remark, "");
  EXPECT_FALSE(fs::exists(dir_));
}

// A clock that goes on by itself.
class RunningClock final : public Clock {
 public:
  explicit RunningClock(double secs_per_look) : step_(secs_per_look) {}
  double unix_secs() const override { return 1; }
  std::chrono::steady_clock::time_point now() const override {
    ++looks_;
    return std::chrono::steady_clock::time_point(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::duration<double>(step_ * looks_)));
  }

 private:
  double step_;
  mutable int looks_ = 0;
};

TEST_F(CreateXgboostReport, is_written_while_training_runs_and_not_too_often) {
  const auto trial = RuleCase("train-rmse@0,1,2,3=4,3,2,1").trial();
  for (const auto& [secs, is_there] : {std::pair(10.0, false), std::pair(100.0, true)}) {
    fs::remove_all(dir_);
    Runner runner({.context = {.clock = std::make_shared<RunningClock>(secs)}});
    ASSERT_TRUE(runner.add(**find_rule(kRule), options().parameters).ok());
    TrialFeed feed(trial);
    ASSERT_TRUE(feed.advance(runner).ok());
    EXPECT_EQ(fs::exists(dir_ / "xgboost_report.html"), is_there) << secs;
    runner.finish();
    EXPECT_TRUE(fs::exists(dir_ / "xgboost_report.html")) << secs;
    EXPECT_EQ(report()["step"], 3);
  }
}

TEST_F(CreateXgboostReport, lies_beside_the_run_unless_told_otherwise) {
  const fs::path run = dir_ / "runs" / "first";
  const auto from = RuleCase("train-rmse@0=1");
  const auto files = from.storage->list("", "");
  ASSERT_TRUE(files.ok());
  const auto to = storage::local_storage(run.string());
  for (const auto& file : *files) {
    const auto content = storage::read_all(*from.storage, file.path);
    ASSERT_TRUE(content.ok());
    ASSERT_TRUE(to->put(file.path, *content, storage::Put::always, {}).ok());
  }
  auto opened = Trial::open(run.string() + "/", {.end_delay_secs = 0});
  ASSERT_TRUE(opened.ok());
  const std::shared_ptr<Trial> trial = std::move(*opened);
  // Nobody gets files that were not asked for.
  const auto all = diagnose(trial, {});
  ASSERT_TRUE(all.ok());
  EXPECT_FALSE(fs::exists(dir_ / "runs" / "reports"));
  const auto left_out = std::ranges::find_if(
      all->not_evaluated, [](const auto& note) { return note.kind->name == kRule; });
  ASSERT_NE(left_out, all->not_evaluated.end());
  EXPECT_THAT(left_out->message, HasSubstr("asked for by name"));
  const auto one = diagnose(trial, {.rules = {std::string(kRule)}});
  ASSERT_TRUE(one.ok());
  EXPECT_TRUE(fs::exists(dir_ / "runs" / "reports" / "first" / "xgboost_report.html"));
  ASSERT_EQ(one->remarks.size(), 1u);
  EXPECT_THAT(one->remarks[0].message, HasSubstr("runs/reports/first/xgboost_report.html"));
}

TEST_F(CreateXgboostReport, a_place_that_cannot_be_written_is_an_error) {
  fs::create_directories(dir_);
  std::ofstream(dir_ / "file") << "x";
  const Verdict verdict =
      judge(kRule, "train-rmse@0=1", {.parameters = {{"out_dir", (dir_ / "file").string()}}});
  EXPECT_EQ(verdict.status, RuleStatus::error);
  EXPECT_THAT(verdict.error, HasSubstr("file"));
}

TEST_F(CreateXgboostReport, lengths_that_do_not_fit_are_an_error) {
  EXPECT_THAT(judge(kRule, "labels@3=[0,1]; predictions@3=[0,1,1]", options()).error,
              HasSubstr("'predictions' has 3 predictions for the 2 labels of 'labels' at step 3."));
}

TEST_F(CreateXgboostReport, bad_parameters_are_refused) {
  EXPECT_THAT(creation_error(kRule, {{"refresh_s", -1}}), HasSubstr("at least 0"));
  EXPECT_THAT(creation_error(kRule, {{"folder", "x"}}), HasSubstr("has no parameter 'folder'"));
}

}  // namespace
}  // namespace smd::rules

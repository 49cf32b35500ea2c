#pragma once

// Runs in a few words, and what rules say of them, for C++ tests of rules. One thread at a time.
//
//   expect_fires("VanishingGradient", "gradient/a@0=[1]; gradient/a@10=[5e-8]", 10);
//   expect_silent("ExplodingTensor", "x@5=[1,inf]", {.parameters = {{"only_nan", true}}});
//
// A run is a list of entries "name@step=value", separated by semicolons:
//
//   x@3=[[1,2],[3,4]]          a tensor of the shape (2, 2), float64
//   loss@0,4,8=0.3,0.2,0.1     single numbers at several steps
//   x@3:float16=[1,2]          another element type
//   x@3:str=[0-1,0-2]          texts; one without brackets is a single text
//   x@T3=…, x@E4=…, x@P5=…     steps of TRAIN, EVAL, PREDICT, each with mode steps from 0 on
//   x@T3/21=…                  mode step 21; without a letter the mode is GLOBAL
//   x@3#worker_1=…             of another worker than worker_0
//   x~abs_mean@3=5e-8          a saved reduction, without the tensor
//   x~shape@3=[2,3]            a saved shape
//
// Collections of every run: losses ("loss"), gradients ("gradient/"), weights ("weight"), and those
// of CaseOptions. The job has ended.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "smd/rules/runner.h"
#include "smd/storage/storage.h"
#include "smd/trial/trial.h"

namespace smd::rules {

struct CaseOptions {
  Json parameters = Json::object();
  // Name and pattern.
  std::vector<std::pair<std::string, std::string>> collections{};
  std::vector<std::shared_ptr<Trial>> other_trials{};
  bool packed = false;
  bool has_ended = true;
  std::shared_ptr<Log> log = null_log();
  std::shared_ptr<const Clock> clock = system_clock();
};

// A run in memory from the notation above.
class RuleCase final {
 public:
  explicit RuleCase(std::string_view text, const CaseOptions& options = {});

  std::shared_ptr<Trial> trial() const;
  // Adds steps to a run that has not ended.
  void grow(std::string_view text);

  std::shared_ptr<storage::Storage> storage = storage::memory_storage();
};

// What one rule said of a run.
struct Verdict {
  RuleStatus status = RuleStatus::in_progress;
  std::string error;
  std::vector<Hit> hits;
  std::optional<std::string> missing;
  std::optional<Finding> finding;
  std::string remark;

  std::vector<Step> steps() const {
    std::vector<Step> out;
    for (const Hit& hit : hits) out.push_back(hit.step.step);
    return out;
  }
};

Verdict judge(std::string_view rule, std::string_view run, const CaseOptions& options = {});

// The first hit is at this step, whether the run is stored in one layout or the other.
void expect_fires(std::string_view rule, std::string_view run, Step step, CaseOptions options = {});

// The rule judged something and found nothing.
void expect_silent(std::string_view rule, std::string_view run, CaseOptions options = {});

// The rule cannot be made: the message of the error.
std::string creation_error(std::string_view rule, const Json& parameters);

}  // namespace smd::rules

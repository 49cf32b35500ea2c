#include "smd/rules/finding.h"

namespace smd::rules {
namespace {

Json json_of(const StepInfo& step) {
  return {{"step", step.step}, {"mode", name_of(step.mode)}, {"mode_step", step.mode_step}};
}

}  // namespace

Json Finding::to_json() const {
  Json tensor_list = Json::array();
  for (const TensorHits& one : tensors) {
    tensor_list.push_back(
        {{"tensor", one.tensor}, {"first_step", one.first_step}, {"hits", one.hits}});
  }
  return {{"rule", kind->name},
          {"severity", name_of(severity)},
          {"message", first_hit.message},
          {"summary", kind->summary},
          {"why", kind->why},
          {"fix", kind->fix},
          {"docs", docs_page(*kind)},
          {"explained_by", explained_by.empty() ? Json(nullptr) : Json(explained_by)},
          {"hits", hit_count},
          {"violations", violation_count},
          {"first", json_of(first_step)},
          {"last", json_of(last_step)},
          {"tensors", std::move(tensor_list)},
          {"workers", workers},
          {"evidence", first_hit.to_json(parameters)}};
}

}  // namespace smd::rules

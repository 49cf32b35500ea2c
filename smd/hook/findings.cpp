#include "smd/hook/findings.h"

#include <fmt/format.h>

#include <cmath>

#include "smd/base/json.h"

namespace smd {
namespace {

// JSON has no NaN.
Json number_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Json tensor_json(const BadTensor& bad) {
  Json json = {{"tensor", bad.name}};
  if (bad.counts) {
    json["nan"] = bad.counts->nan;
    json["positive_inf"] = bad.counts->positive_inf;
    json["negative_inf"] = bad.counts->negative_inf;
  } else {
    json["nan"] = json["positive_inf"] = json["negative_inf"] = nullptr;
  }
  return json;
}

std::string kinds_text(const BadTensor& bad) {
  if (!bad.counts) return "NaN or infinity";
  std::string text;
  const auto add = [&](int64_t count, std::string_view what) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  };
  add(bad.counts->nan, "NaN");
  add(bad.counts->positive_inf, "+inf");
  add(bad.counts->negative_inf, "-inf");
  return text;
}

std::string steps_text(const std::vector<Step>& steps) {
  if (steps.size() == 1) return fmt::format("step {}", steps.front());
  return fmt::format("{} steps from {} to {}", steps.size(), steps.front(), steps.back());
}

}  // namespace

std::string bad_tensor_file_name(std::string_view worker) {
  return fmt::format("findings/first_bad_tensor_{}.json", worker);
}

std::string to_json(const BadTensorFinding& finding) {
  const BadTensors& bad = finding.bad;
  const CallSite& site = bad.call_site();
  Json json = tensor_json(bad.tensors().front());
  json["step"] = bad.step().step;
  json["mode"] = name_of(bad.step().mode);
  json["mode_step"] = bad.step().mode_step;
  json["worker"] = finding.worker;
  json["module"] = site.module.empty() ? Json() : Json(site.module);
  json["source"] =
      site.line > 0 ? Json{{"file", site.file}, {"line", site.line}, {"text", site.text}} : Json();
  json["note"] = site.note.empty() ? Json() : Json(site.note);
  json["last_saved_step"] = finding.last_saved_step ? Json(*finding.last_saved_step) : Json();
  json["before"] = Json::array();
  for (const FlightRecorder::Past& past : finding.before) {
    if (past.step.step >= bad.step().step) continue;
    Json entry = {{"step", past.step.step}};
    for (const StoredReduction& value : past.values) {
      entry[std::string(value.name)] =
          number_json(Number{.dtype = value.dtype, .bits = value.bits}.to_double());
    }
    json["before"].push_back(std::move(entry));
  }
  json["after_it"] = Json::array();
  for (size_t i = 1; i < bad.tensors().size(); ++i) {
    json["after_it"].push_back(tensor_json(bad.tensors()[i]));
  }
  json["bad_tensors_in_step"] = bad.count();
  json["taken_for_masks"] = bad.masks();
  return dump_json(json) + "\n";
}

std::string to_text(const BadTensorFinding& finding) {
  const BadTensors& bad = finding.bad;
  const CallSite& site = bad.call_site();
  std::string text =
      fmt::format("First non-finite value of the training: '{}' ({}) at step {} ({} step {})",
                  bad.tensors().front().name, kinds_text(bad.tensors().front()), bad.step().step,
                  name_of(bad.step().mode), bad.step().mode_step);
  if (!site.module.empty()) text += fmt::format(", module {}", site.module);
  if (bad.count() > 1) text += fmt::format(", followed by {} more in this step", bad.count() - 1);
  text += ".";
  if (!site.note.empty()) text += " " + site.note;
  if (site.line > 0) text += fmt::format(" Called at {}:{}: {}", site.file, site.line, site.text);
  return text;
}

std::string flight_file_name(std::string_view worker) {
  return fmt::format("findings/flight_recorder_{}.json", worker);
}

std::string to_json(const FlightDump& dump) {
  return dump_json({{"reason", dump.reason},
                    {"worker", dump.worker},
                    {"steps_in_run", dump.in_run},
                    {"steps_in_folder", dump.in_folder},
                    {"folder", dump.in_folder.empty() ? Json() : Json(dump.folder)}}) +
         "\n";
}

std::string to_text(const FlightDump& dump) {
  std::string text = fmt::format("Flight recorder written ({}): ", dump.reason);
  if (dump.in_run.empty() && dump.in_folder.empty()) {
    return text + "everything it holds is in the run already.";
  }
  if (!dump.in_run.empty()) text += steps_text(dump.in_run) + " added to the run";
  if (!dump.in_folder.empty()) {
    text += fmt::format("{}{} in the run '{}' below it", dump.in_run.empty() ? "" : ", ",
                        steps_text(dump.in_folder), dump.folder);
  }
  return text + ".";
}

}  // namespace smd

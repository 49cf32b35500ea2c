#include "smd/server/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "smd/server/encoding.h"
#include "smd/server/model.h"
#include "smd/server/page.h"
#include "smd/server/query.h"
#include "smd/server/route.h"
#include "smd/server/statistic.h"

namespace smd::server {
namespace {

constexpr size_t kMostTensors = 200;
constexpr int64_t kMostElements = 4096;
constexpr std::string_view kGrid =
    "channels=mean%2Cmin%2Cmax&columns=400&role={}&rows=400&statistic={}";

class Reporter final {
 public:
  explicit Reporter(Site& site) : site_(site) {}

  Result<Json> make() {
    const auto runs = site_.runs().runs();
    for (const auto& run : runs) SMD_RETURN_IF_ERROR(site_.judge_now(*run));
    for (const char* address : {"/api", "/api/rules", "/api/runs"}) {
      SMD_RETURN_IF_ERROR(add(address));
    }
    for (const auto& run : runs) SMD_RETURN_IF_ERROR(add_run(*run));
    if (runs.size() == 2) SMD_RETURN_IF_ERROR(add_comparison(*runs[0], *runs[1]));
    return std::move(answers_);
  }

 private:
  // What cannot be read is an error; what there is not is left out.
  Status add(const std::string& address) {
    const size_t mark = std::min(address.find('?'), address.size());
    SMD_TRY(const RouteMatch match, find_route(std::string_view(address).substr(0, mark)));
    SMD_TRY(const Query query,
            Query::parse(std::string_view(address).substr(std::min(mark + 1, address.size()))));
    SMD_RETURN_IF_ERROR(query.check(match.route->parameters));
    const auto answer = match.route->answer({.site = site_, .run = match.run, .query = query});
    auto body = answer.ok() ? answer->body() : Result<std::string>(answer.error());
    if (!body.ok()) {
      const ErrorCode code = body.error().code;
      if (code == ErrorCode::not_found || code == ErrorCode::invalid_argument) return {};
      return body.error();
    }
    if (answer->content_type == kBinaryType) {
      answers_[address] = {{"base64", base64(*body)}};
      return {};
    }
    SMD_TRY(Json document, parse_json(*body, ""));
    answers_[address] = {{"json", std::move(document)}};
    return {};
  }

  static std::vector<std::string> grid_statistics(const RunFacts& facts) {
    std::vector<std::string> out;
    for (const StatisticInfo& info : statistics_of(facts)) {
      if (info.name != "value" && info.is_stored) out.push_back(info.name);
    }
    // A run of values alone still gets an overview.
    if (out.empty()) out = {"l2", "abs_max", "mean"};
    for (const char* name : {"nonfinite", "gradient_ratio"}) {
      if (std::ranges::find(out, name) == out.end()) out.emplace_back(name);
    }
    return out;
  }

  Status add_grids(const ServedRun& run, const std::string& prefix) {
    const auto facts = run.facts();
    for (const std::string& name : grid_statistics(*facts)) {
      const auto statistic = Statistic::find(*facts, name);
      if (!statistic.ok()) continue;
      std::set<Role> roles;
      for (const Model::Tensor& tensor : facts->model->tensors) {
        if (statistic->is_of(tensor)) roles.insert(tensor.role);
      }
      for (const Role role : roles) {
        SMD_RETURN_IF_ERROR(
            add(prefix + fmt::format(fmt::runtime(kGrid), name_of(role), encode_component(name))));
      }
    }
    return {};
  }

  // Those that findings name, then others in the order of the model.
  static std::vector<uint32_t> shown_tensors(const ServedRun& run) {
    const auto facts = run.facts();
    std::vector<uint32_t> out;
    std::set<uint32_t> known;
    const auto add = [&](uint32_t id) {
      if (out.size() < kMostTensors && known.insert(id).second) out.push_back(id);
    };
    if (const auto verdict = run.verdict()) {
      for (const Json& finding : verdict->document["findings"]) {
        for (const Json& hit : finding["tensors"]) {
          const auto id = facts->snapshot->find_tensor(hit["tensor"].get_ref<const std::string&>());
          if (id && facts->model->find(*id) != nullptr) add(*id);
        }
      }
    }
    for (const Model::Tensor& tensor : facts->model->tensors) add(tensor.id);
    return out;
  }

  Status add_run(const ServedRun& run) {
    const std::string base = "/api/runs/" + encode_component(run.id());
    for (const char* what : {"", "/tensors", "/findings", "/metrics"}) {
      SMD_RETURN_IF_ERROR(add(base + what));
    }
    SMD_RETURN_IF_ERROR(add_grids(run, base + "/heatmap?"));
    const auto facts = run.facts();
    const auto forms = run.forms(*facts);
    for (const uint32_t id : shown_tensors(run)) {
      SMD_RETURN_IF_ERROR(add(fmt::format("{}/series?id={}&points=400", base, id)));
      if (!facts->model->find(id)->has_value) continue;
      SMD_RETURN_IF_ERROR(add(fmt::format("{}/histograms?id={}", base, id)));
      const auto& shape = forms[facts->model->positions[id]].shape;
      const auto count = shape ? element_count(*shape) : Result<int64_t>(kMostElements + 1);
      if (!count.ok() || *count > kMostElements) continue;
      SMD_RETURN_IF_ERROR(add(fmt::format("{}/values?id={}", base, id)));
    }
    return {};
  }

  Status add_comparison(const ServedRun& a, const ServedRun& b) {
    const std::string both =
        fmt::format("a={}&b={}", encode_component(a.id()), encode_component(b.id()));
    SMD_RETURN_IF_ERROR(add("/api/compare?" + both));
    return add_grids(a, "/api/compare/heatmap?" + both + "&");
  }

  Site& site_;
  Json answers_ = Json::object();
};

}  // namespace

Result<Json> report_answers(Site& site) { return Reporter(site).make(); }

Result<std::string> report_page(Site& site) {
  SMD_TRY(const Json answers, report_answers(site));
  return page_with_answers(page_document(), answers);
}

}  // namespace smd::server

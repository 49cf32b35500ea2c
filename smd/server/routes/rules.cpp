#include "smd/rules/rule_kind.h"
#include "smd/server/route.h"

namespace smd::server::route_list {
namespace {

Json json_of(const rules::RuleKind& kind) {
  Json parameters = Json::array();
  for (const rules::ParameterSpec& spec : kind.parameters) {
    parameters.push_back({{"name", spec.name},
                          {"type", rules::name_of(spec.type)},
                          {"default", spec.default_text},
                          {"help", spec.help}});
  }
  return {{"name", kind.name},
          {"group", rules::name_of(kind.group)},
          {"severity", rules::name_of(kind.severity)},
          {"summary", kind.summary},
          {"sees", kind.sees},
          {"why", kind.why},
          {"fix", kind.fix},
          {"docs", rules::docs_page(kind)},
          {"parameters", std::move(parameters)}};
}

}  // namespace

extern const Route rules;
const Route rules = {
    .path = "/api/rules",
    .answer = [](const Question&) -> Result<Answer> {
      return Answer{.version = "1", .body = []() -> Result<std::string> {
                      Json list = Json::array();
                      for (const smd::rules::RuleKind* kind : smd::rules::rule_kinds()) {
                        list.push_back(json_of(*kind));
                      }
                      return body_of({{"rules", std::move(list)}});
                    }};
    },
};

}  // namespace smd::server::route_list

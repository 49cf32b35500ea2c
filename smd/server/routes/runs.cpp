#include "smd/server/route.h"
#include "smd/server/run_summary.h"
#include "smd/server/site.h"

namespace smd::server::route_list {

extern const Route runs;
const Route runs = {
    .path = "/api/runs",
    .answer = [](const Question& question) -> Result<Answer> {
      Json list = Json::array();
      std::string version;
      for (const auto& run : question.site.runs().runs()) {
        const auto facts = run->facts();
        version += summary_version(*run, *facts) + ";";
        list.push_back(run_summary(*run, *facts));
      }
      return Answer{.version = std::move(version),
                    .body = [document = Json{{"runs", std::move(list)}}]() -> Result<std::string> {
                      return body_of(document);
                    },
                    .is_kept = false};
    },
};

}  // namespace smd::server::route_list

#include <unistd.h>

#include "smd/server/route.h"
#include "smd/server/site.h"

namespace smd::server::route_list {

extern const Route server;
const Route server = {
    .path = "/api",
    .answer = [](const Question& question) -> Result<Answer> {
      const Site& site = question.site;
      const size_t runs = site.runs().runs().size();
      const Json document = {{"program", "smdebug"},
                             {"version", site.options().version},
                             {"api", 1},
                             {"instance", site.instance()},
                             {"pid", ::getpid()},
                             {"runs", runs},
                             {"is_report", site.options().is_report}};
      return Answer{.version = std::to_string(runs),
                    .body = [document]() -> Result<std::string> { return body_of(document); }};
    },
};

}  // namespace smd::server::route_list

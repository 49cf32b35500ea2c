#include "smd/server/page.h"
#include "smd/server/route.h"

namespace smd::server::route_list {

extern const Route openapi;
const Route openapi = {
    .path = "/api/openapi.yaml",
    .answer = [](const Question&) -> Result<Answer> {
      return Answer{.version = "1", .content_type = kYamlType, .body = []() -> Result<std::string> {
                      return std::string(openapi_document());
                    }};
    },
};

}  // namespace smd::server::route_list

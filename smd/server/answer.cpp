#include "smd/server/answer.h"

namespace smd::server {

std::string body_of(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace smd::server

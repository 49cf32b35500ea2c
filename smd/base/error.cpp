#include "smd/base/error.h"

namespace smd {

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::not_yet: return "not_yet";
    case ErrorCode::end_of_data: return "end_of_data";
    case ErrorCode::truncated: return "truncated";
    case ErrorCode::corrupt: return "corrupt";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::io: return "io";
    case ErrorCode::closed: return "closed";
    case ErrorCode::internal: return "internal";
  }
  return "internal";
}

}  // namespace smd

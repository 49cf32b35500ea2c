#include "smd/hook/stride_notice.h"

#include "smd/base/json.h"
#include "smd/config/json_value.h"

namespace smd {

std::string StrideNotice::to_json() const {
  return dump_json({{"from_step", from_step}, {"stride", stride}}) + "\n";
}

Result<StrideNotice> StrideNotice::parse(std::string_view text) {
  SMD_TRY(const Json json, parse_json(text, kPath));
  SMD_RETURN_IF_ERROR(check_keys(json, kPath, {}, UnknownKeys::ignore));
  const Json* from = json_member(json, "from_step");
  const Json* stride = json_member(json, "stride");
  if (from == nullptr || stride == nullptr) {
    return Error{ErrorCode::corrupt, "The stride notice lacks from_step or stride."};
  }
  StrideNotice notice;
  SMD_TRY(notice.from_step, json_int(*from, "from_step"));
  SMD_TRY(notice.stride, json_int(*stride, "stride"));
  if (notice.stride < 1) return Error{ErrorCode::corrupt, "The stride is below 1."};
  return notice;
}

}  // namespace smd

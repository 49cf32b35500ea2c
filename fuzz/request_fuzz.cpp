// Any bytes make a request that is answered or refused: addresses, parameters and slices.

#include "fuzz/property.h"
#include "smd/server/http.h"
#include "smd/server/query.h"
#include "smd/server/route.h"
#include "smd/server/slice.h"

namespace {

constexpr smd::server::ParameterSpec kTable[] = {
    {.name = "tensor", .is_repeated = true},
    {.name = "mode", .default_text = "GLOBAL"},
    {.name = "points", .default_text = "1000"},
};

void check_query(std::string_view text) {
  using namespace smd;
  using namespace smd::server;
  const auto query = Query::parse(text);
  if (!query.ok()) {
    SMD_FUZZ_REQUIRE(query.error().code == ErrorCode::invalid_argument);
    SMD_FUZZ_REQUIRE(is_utf8(query.error().message));
    return;
  }
  for (const auto& [name, value] : query->pairs()) {
    SMD_FUZZ_REQUIRE(is_utf8(name) && is_utf8(value));
    const auto decoded = decode_component(encode_component(value), true);
    SMD_FUZZ_REQUIRE(decoded.ok() && *decoded == value);
  }
  const Status checked = query->check(kTable);
  SMD_FUZZ_REQUIRE(checked.ok() || is_utf8(checked.error().message));
  const std::string canonical = query->canonical(kTable);
  const auto again = Query::parse(canonical);
  SMD_FUZZ_REQUIRE(again.ok() && again->canonical(kTable) == canonical);
  const auto points = query->integer("points", {1, 4000});
  SMD_FUZZ_REQUIRE(!points.ok() || !*points || (**points >= 1 && **points <= 4000));
  (void)query->number("points", 0).ok();
  (void)query->mode().ok();
}

void check_slice(std::string_view text) {
  using namespace smd;
  using namespace smd::server;
  const Shape shape = {4, 0, 3, 5};
  const auto places = parse_slice(text, shape);
  if (!places.ok()) {
    SMD_FUZZ_REQUIRE(places.error().code == ErrorCode::invalid_argument);
    return;
  }
  SMD_FUZZ_REQUIRE(places->size() == shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    const SlicePlace& place = (*places)[i];
    SMD_FUZZ_REQUIRE(place.count >= 0 && place.step >= 1);
    SMD_FUZZ_REQUIRE(place.count == 0 || place.first + (place.count - 1) * place.step < shape[i]);
  }
  const auto again = parse_slice(slice_text(*places), shape);
  SMD_FUZZ_REQUIRE(again.ok() && slice_shape(*again) == slice_shape(*places));
}

void check_head(std::string_view bytes) {
  using namespace smd::server;
  const size_t size = head_size(bytes);
  SMD_FUZZ_REQUIRE(size <= bytes.size());
  if (size == 0 || size > kMostHeadBytes) return;
  static HttpParser parser([](const HttpRequest& request) {
    const std::string_view target = request.target;
    (void)find_route(target.substr(0, target.find('?'))).ok();
    return HttpResponse{.content_type = "text/plain", .body = request.header("Host")};
  });
  const auto outcome = parser.answer(bytes.substr(0, size));
  SMD_FUZZ_REQUIRE(outcome.bytes.empty() || outcome.bytes.starts_with("HTTP/1.1 "));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = smd::fuzz::input_text(data, size);
  check_query(text);
  check_slice(text);
  check_head(text);
  return 0;
}

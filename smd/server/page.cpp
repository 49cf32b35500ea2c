#include "smd/server/page.h"

#include "smd/server/answer.h"

extern "C" {
extern const char smd_embedded_page[];
extern const char smd_embedded_page_end[];
extern const char smd_embedded_openapi[];
extern const char smd_embedded_openapi_end[];
}

namespace smd::server {
namespace {

constexpr std::string_view kScript = "<script";
constexpr std::string_view kScriptEnd = "</script";
constexpr std::string_view kHead = "<head>";

}  // namespace

std::string_view page_document() {
  return {smd_embedded_page, static_cast<size_t>(smd_embedded_page_end - smd_embedded_page)};
}

std::string_view openapi_document() {
  return {smd_embedded_openapi,
          static_cast<size_t>(smd_embedded_openapi_end - smd_embedded_openapi)};
}

std::string page_with_nonce(std::string_view page, std::string_view nonce) {
  std::string out;
  out.reserve(page.size() + 256);
  for (;;) {
    const size_t at = page.find(kScript);
    if (at == std::string_view::npos) break;
    out.append(page.substr(0, at + kScript.size()));
    out.append(" nonce=\"").append(nonce).append("\"");
    page.remove_prefix(at + kScript.size());
    // Texts inside of a script may look like another one.
    const size_t end = std::min(page.find(kScriptEnd), page.size());
    out.append(page.substr(0, end));
    page.remove_prefix(end);
  }
  out.append(page);
  return out;
}

std::string page_with_answers(std::string_view page, const Json& answers) {
  std::string data = body_of({{"report", 1}, {"answers", answers}});
  std::string safe;
  safe.reserve(data.size());
  for (const char c : data) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  const size_t at = page.find(kHead);
  const size_t begin = at == std::string_view::npos ? 0 : at + kHead.size();
  std::string out(page.substr(0, begin));
  out += R"(<script type="application/json" id="smdebug-report">)";
  out += safe;
  out += "</script>";
  out += page.substr(begin);
  return out;
}

}  // namespace smd::server

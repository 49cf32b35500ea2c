#include "smd/server/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "smd/server/answer.h"
#include "smd/server/encoding.h"
#include "smd/server/page.h"
#include "smd/server/query.h"
#include "smd/server/route.h"
#include "smd/server/statistic.h"

namespace smd::server {
namespace {

constexpr std::string_view kCookie = "smdebug_token";
constexpr size_t kMostTargetBytes = 8000;
// Smaller bodies gain nothing.
constexpr size_t kLeastCompressed = 1024;

HttpResponse refuse(int status, std::string_view code, std::string_view message) {
  return {.status = status,
          .content_type = std::string(kJsonType),
          .body = body_of({{"error", {{"code", code}, {"message", message}}}})};
}

bool is_equal_in_constant_time(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < b.size(); ++i) {
    const char other = i < a.size() ? a[i] : '\0';
    difference |= static_cast<unsigned char>(other) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

// Of a list such as "a=1; b=2"; empty: not there.
std::string_view cookie_of(std::string_view cookies, std::string_view name) {
  while (!cookies.empty()) {
    const size_t end = std::min(cookies.find(';'), cookies.size());
    std::string_view one = cookies.substr(0, end);
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=') {
      return one.substr(name.size() + 1);
    }
  }
  return {};
}

uint64_t hash_of(std::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

bool is_known_tag(std::string_view known, std::string_view tag) {
  while (!known.empty()) {
    const size_t end = std::min(known.find(','), known.size());
    std::string_view one = known.substr(0, end);
    known.remove_prefix(std::min(end + 1, known.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one == tag || one == "*") return true;
  }
  return false;
}

// Whether "gzip" is among them and not forbidden.
bool takes_gzip(std::string_view accepted) {
  while (!accepted.empty()) {
    const size_t end = std::min(accepted.find(','), accepted.size());
    std::string one(accepted.substr(0, end));
    accepted.remove_prefix(std::min(end + 1, accepted.size()));
    std::erase(one, ' ');
    if (one != "gzip" && !one.starts_with("gzip;")) continue;
    const size_t weight = one.find("q=0");
    return weight == std::string::npos ||
           one.find_first_not_of("0.", weight + 2) != std::string::npos;
  }
  return false;
}

std::string path_of(const ServedRun& run) { return "/api/runs/" + encode_component(run.id()); }

// Tells the browser to ask for these while it still reads the page.
std::string preload(const std::vector<std::string>& addresses) {
  std::string out;
  for (const std::string& address : addresses) {
    out +=
        fmt::format("{}<{}>; rel=preload; as=fetch; crossorigin", out.empty() ? "" : ", ", address);
  }
  return out;
}

std::string random_nonce() {
  std::random_device random;
  std::string bytes;
  for (int i = 0; i < 4; ++i) {
    const uint32_t part = random();
    bytes.append(reinterpret_cast<const char*>(&part), sizeof part);
  }
  return base64(bytes);
}

}  // namespace

bool is_local_host(std::string_view host) {
  const bool is_bracketed = host.starts_with('[');
  const size_t end = is_bracketed ? host.find(']') : host.rfind(':');
  const std::string_view name = is_bracketed
                                    ? host.substr(0, end == std::string_view::npos ? end : end + 1)
                                    : host.substr(0, end);
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower == "localhost" || lower == "[::1]" || lower == "127.0.0.1" ||
         (lower.starts_with("127.") && lower.find_first_not_of("0123456789.") == std::string::npos);
}

HttpResponse problem(const Error& error) {
  switch (error.code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported: return refuse(400, "invalid_argument", error.message);
    case ErrorCode::not_found: return refuse(404, "not_found", error.message);
    case ErrorCode::closed: {
      HttpResponse out = refuse(503, "busy", error.message);
      out.headers.emplace_back("Retry-After", "2");
      return out;
    }
    default: return refuse(500, "unreadable", error.message);
  }
}

Service::Service(const Site& site, ServiceOptions options)
    : site_(site), options_(std::move(options)), preparation_([this] { prepare(); }) {
  // Whoever starts a server opens the page at once. Reading from elsewhere may cost money.
  const auto newest = newest_run();
  if (newest && !newest->trial()->storage().is_remote()) preparation_.want();
}

std::shared_ptr<ServedRun> Service::newest_run() const {
  std::shared_ptr<ServedRun> newest;
  for (const auto& run : site_.runs().runs()) {
    const auto secs = [](const ServedRun& one) { return one.facts()->last_wall_secs.value_or(0); };
    if (!newest || secs(*run) > secs(*newest)) newest = run;
  }
  return newest;
}

void Service::prepare() const {
  const auto newest = newest_run();
  if (!newest) return;
  const HttpRequest request{
      .method = "GET", .target = {}, .header = [](const std::string&) { return std::string(); }};
  const std::string path = path_of(*newest);
  answer_route(request, path, {});
  answer_route(request, path + "/tensors", {});
  const auto facts = newest->facts();
  for (const StatisticInfo& info : statistics_of(*facts)) {
    if (!info.is_stored) continue;
    const auto statistic = Statistic::find(*facts, info.name);
    // What cannot be read is told to those who ask.
    if (statistic.ok()) (void)site_.statistics().table(*newest, *facts, *statistic, {}, {});
    return;
  }
}

std::string event_text(const News& news) {
  return fmt::format("event: {}\ndata: {}\n\n", news.event, body_of(news.data));
}

bool Service::is_allowed(const HttpRequest& request, const Query& query, bool& from_query) const {
  if (options_.token.empty()) return true;
  constexpr std::string_view kBearer = "Bearer ";
  const std::string authorization = request.header("Authorization");
  if (authorization.starts_with(kBearer) &&
      is_equal_in_constant_time(std::string_view(authorization).substr(kBearer.size()),
                                options_.token)) {
    return true;
  }
  for (const std::string& given : query.texts("token")) {
    if (!is_equal_in_constant_time(given, options_.token)) continue;
    from_query = true;
    return true;
  }
  const std::string cookies = request.header("Cookie");
  return is_equal_in_constant_time(cookie_of(cookies, kCookie), options_.token);
}

HttpResponse Service::answer(const HttpRequest& request) const {
  const std::string_view target = request.target;
  if (options_.is_loopback && options_.token.empty() && !is_local_host(request.header("Host"))) {
    return refuse(403, "forbidden",
                  "This server is for this machine only; its name is localhost or 127.0.0.1.");
  }
  if (target.size() > kMostTargetBytes) {
    return refuse(414, "too_large", "The address is longer than 8000 bytes.");
  }
  const size_t mark = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, mark);
  auto query = Query::parse(target.substr(std::min(mark + 1, target.size())));
  bool from_query = false;
  if (!is_allowed(request, query.ok() ? *query : Query(), from_query)) {
    HttpResponse out = refuse(401, "unauthorized",
                              "A token is needed: the header 'Authorization: Bearer …', the cookie "
                              "smdebug_token, or the parameter token.");
    out.headers.emplace_back("WWW-Authenticate", "Bearer");
    return out;
  }
  if (!query.ok()) return problem(query.error());
  query->remove("token");
  if (request.method != "GET" && request.method != "HEAD") {
    HttpResponse out = refuse(405, "method_not_allowed", "Only GET and HEAD are answered here.");
    out.headers.emplace_back("Allow", "GET, HEAD");
    return out;
  }
  const bool is_api = path == "/api" || path.starts_with("/api/");
  if (path == "/api/events") return answer_events(std::move(*query));
  if (is_api) return answer_route(request, path, std::move(*query));
  if (path.starts_with('/') && path.find('.') == std::string_view::npos) return page(from_query);
  return refuse(404, "not_found", "There is no such address; the page is at /.");
}

HttpResponse Service::answer_events(Query query) const {
  constexpr ParameterSpec kParameters[] = {{.name = "run"}};
  if (const Status checked = query.check(kParameters); !checked.ok())
    return problem(checked.error());
  const auto id = query.text("run");
  if (!id.ok()) return problem(id.error());
  if (*id) {
    const auto run = site_.run(**id);
    if (!run.ok()) return problem(run.error());
    (*run)->want_verdict();
  }
  // For HEAD, which gets no stream.
  return {
      .content_type = "text/event-stream", .is_event_stream = true, .event_run = id->value_or("")};
}

HttpResponse Service::answer_route(const HttpRequest& request, std::string_view path,
                                   Query query) const {
  const auto match = find_route(path);
  if (!match.ok()) return problem(match.error());
  const Route& route = *match->route;
  if (const Status checked = query.check(route.parameters); !checked.ok()) {
    return problem(checked.error());
  }
  auto answer = route.answer({.site = site_, .run = match->run, .query = query});
  if (!answer.ok()) return problem(answer.error());
  const std::string asked = fmt::format("{}?{}", path, query.canonical(route.parameters));
  const std::string tag = fmt::format(
      "W/\"{:016x}\"", hash_of(fmt::format("{}{}#{}", site_.instance(), asked, answer->version)));
  HttpResponse out{.content_type = std::string(answer->content_type)};
  out.headers = {{"ETag", tag}, {"Vary", "Accept-Encoding"}};
  if (is_known_tag(request.header("If-None-Match"), tag)) {
    out.status = 304;
    return out;
  }
  const bool is_text = answer->content_type != kBinaryType;
  const auto make = [&]() -> Result<Body> {
    SMD_TRY(std::string plain, answer->body());
    Body body{.plain = std::move(plain), .compressed = {}};
    if (is_text && body.plain.size() >= kLeastCompressed) body.compressed = gzip(body.plain);
    return body;
  };
  const auto finish = [&](const Body& body) {
    const bool is_compressed =
        !body.compressed.empty() && takes_gzip(request.header("Accept-Encoding"));
    if (is_compressed) out.headers.emplace_back("Content-Encoding", "gzip");
    out.body = is_compressed ? body.compressed : body.plain;
    if (!answer->file_name.empty()) {
      out.headers.emplace_back("Content-Disposition",
                               fmt::format("attachment; filename=\"{}\"", answer->file_name));
    }
    return out;
  };
  if (answer->is_kept) {
    const auto body = site_.bodies().get({match->run, asked}, answer->version, make);
    return body.ok() ? finish(**body) : problem(body.error());
  }
  const auto body = make();
  return body.ok() ? finish(*body) : problem(body.error());
}

HttpResponse Service::page(bool sets_cookie) const {
  site_.make_room();
  preparation_.want();
  const std::string nonce = random_nonce();
  HttpResponse out{.content_type = "text/html; charset=utf-8",
                   .body = page_with_nonce(page_document(), nonce)};
  out.headers = {
      {"Content-Security-Policy",
       fmt::format("default-src 'none'; script-src 'nonce-{}'; style-src 'unsafe-inline'; "
                   "img-src 'self' data: blob:; font-src data:; connect-src 'self'; "
                   "base-uri 'none'; form-action 'none'; "
                   // Notebooks of this machine show the page inside of theirs.
                   "frame-ancestors 'self' http://localhost:* http://127.0.0.1:*",
                   nonce)},
      {"Cache-Control", "no-store"},
  };
  std::vector<std::string> first = {"/api", "/api/runs"};
  if (const auto newest = newest_run(); newest && newest->facts()->state != RunState::failed) {
    first.insert(first.end(), {path_of(*newest), path_of(*newest) + "/tensors"});
  }
  out.headers.emplace_back("Link", preload(first));
  if (sets_cookie) {
    out.headers.emplace_back("Set-Cookie", fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict",
                                                       kCookie, options_.token));
  }
  return out;
}

}  // namespace smd::server

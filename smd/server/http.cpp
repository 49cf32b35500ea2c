#include "smd/server/http.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <cstring>

#include "smd/server/answer.h"

namespace smd::server {
namespace {

bool starts_with_name(std::string_view line, std::string_view name) {
  if (line.size() <= name.size() || line[name.size()] != ':') return false;
  return std::equal(name.begin(), name.end(), line.begin(),
                    [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
}

// The line with a method that the parser knows: one that it does not know is refused as others are.
std::string known_method(std::string_view line) {
  const size_t end = line.find(' ');
  const std::string_view method = line.substr(0, end);
  const bool is_word =
      !method.empty() && end != std::string_view::npos && std::ranges::all_of(method, [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-';
      });
  if (!is_word || method == "GET" || method == "HEAD") return std::string(line);
  return "OPTIONS" + std::string(line.substr(end));
}

// Without what we do not serve: ranges, bodies, and waiting for permission to send one.
std::string reduced(std::string_view head, bool& has_body) {
  std::string out;
  out.reserve(head.size());
  bool is_first = true;
  while (!head.empty()) {
    const size_t end = std::min(head.find('\n'), head.size() - 1) + 1;
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end);
    const bool is_length = !is_first && starts_with_name(line, "content-length");
    const bool is_coding = !is_first && starts_with_name(line, "transfer-encoding");
    if (is_coding) has_body = true;
    if (is_length) {
      const std::string_view digits = line.substr(line.find(':') + 1);
      has_body = has_body || digits.find_first_not_of(" \t0\r\n") != std::string_view::npos;
    }
    const bool is_left_out =
        is_length || is_coding ||
        (!is_first && (starts_with_name(line, "range") || starts_with_name(line, "expect")));
    if (!is_left_out) out += is_first ? known_method(line) : std::string(line);
    is_first = false;
  }
  return out;
}

// A request that is there as a whole, and a response that is kept.
class MemoryStream final : public httplib::Stream {
 public:
  explicit MemoryStream(std::string_view input) : input_(input) {}

  bool is_readable() const override { return !input_.empty(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override {
    const size_t count = std::min(size, input_.size());
    std::memcpy(to, input_.data(), count);
    input_.remove_prefix(count);
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, size_t size) override {
    output_.append(from, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return 0; }

  std::string take() { return std::move(output_); }

 private:
  std::string_view input_;
  std::string output_;
};

}  // namespace

size_t head_size(std::string_view bytes) {
  // Lines may end without a carriage return, too.
  for (size_t at = bytes.find('\n'); at != std::string_view::npos; at = bytes.find('\n', at + 1)) {
    const std::string_view rest = bytes.substr(at + 1);
    if (rest.starts_with('\n')) return at + 2;
    if (rest.starts_with("\r\n")) return at + 3;
  }
  return 0;
}

class HttpParser::Server final : public httplib::Server {
 public:
  explicit Server(HttpParser::Handler handler) : handler_(std::move(handler)) {
    Headers headers;
    for (const auto& [name, value] : security_headers()) headers.emplace(name, value);
    set_default_headers(std::move(headers));
    set_payload_max_length(0);
    set_keep_alive_timeout(60);
    set_keep_alive_max_count(100'000);
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      handle(request, response);
      return HandlerResponse::Handled;
    });
    // Of requests that the parser itself refuses.
    set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (!response.body.empty()) return;
      const bool is_too_large = response.status == 413 || response.status == 414;
      response.set_content(
          body_of({{"error",
                    {{"code", is_too_large ? "too_large" : "invalid_argument"},
                     {"message", is_too_large ? "The address is longer than 8000 bytes."
                                              : "The request cannot be understood."}}}}),
          std::string(kJsonType));
    });
  }

  Outcome answer(std::string_view head) {
    bool has_body = false;
    const std::string request = reduced(head, has_body);
    MemoryStream stream(request);
    is_event_stream_ = false;
    is_understood_ = false;
    event_run_.clear();
    bool is_closed = has_body;
    const bool is_well = process_request(stream, has_body, is_closed, [](httplib::Request& parsed) {
      // Compression is ours, as theirs would choose a slow one.
      parsed.headers.erase("X-Smdebug-Accept-Encoding");
      const auto [first, last] = parsed.headers.equal_range("Accept-Encoding");
      std::string accepted;
      for (auto at = first; at != last; ++at) accepted += at->second + ",";
      parsed.headers.erase("Accept-Encoding");
      parsed.headers.emplace("X-Smdebug-Accept-Encoding", accepted);
    });
    Outcome out{.bytes = stream.take(),
                .is_closed = is_closed || !is_well || !is_understood_,
                .is_event_stream = is_event_stream_,
                .event_run = event_run_};
    if (out.is_event_stream) out.bytes.clear();
    return out;
  }

 private:
  using Headers = httplib::Headers;

  void handle(const httplib::Request& parsed, httplib::Response& response) {
    const HttpRequest request{
        .method = parsed.method, .target = parsed.target, .header = [&](const std::string& name) {
          return parsed.get_header_value(name == "Accept-Encoding" ? "X-Smdebug-Accept-Encoding"
                                                                   : name);
        }};
    is_understood_ = true;
    HttpResponse made = handler_(request);
    is_event_stream_ = made.is_event_stream && parsed.method == "GET";
    event_run_ = std::move(made.event_run);
    response.status = made.status;
    for (const auto& [name, value] : made.headers) {
      response.headers.erase(name);
      response.set_header(name, value);
    }
    if (made.status == 304) return;
    response.body = std::move(made.body);
    if (!made.content_type.empty()) response.set_header("Content-Type", made.content_type);
  }

  const HttpParser::Handler handler_;
  bool is_event_stream_ = false;
  bool is_understood_ = false;  // so that what follows on the connection can be, too
  std::string event_run_;
};

HttpParser::HttpParser(Handler handler) : server_(std::make_unique<Server>(std::move(handler))) {}
HttpParser::~HttpParser() = default;

HttpParser::Outcome HttpParser::answer(std::string_view head) { return server_->answer(head); }

const std::vector<std::pair<std::string, std::string>>& security_headers() {
  static const std::vector<std::pair<std::string, std::string>> kHeaders = {
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
      {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
      {"Cache-Control", "no-cache"},
      {"Server", "smdebug"},
  };
  return kHeaders;
}

std::string plain_response(int status, std::string_view code, std::string_view message) {
  const std::string body = body_of({{"error", {{"code", code}, {"message", message}}}});
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n", status, status == 503 ? "Busy" : "Refused");
  for (const auto& [name, value] : security_headers())
    out += fmt::format("{}: {}\r\n", name, value);
  if (status == 503) out += "Retry-After: 2\r\n";
  out += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                     kJsonType, body.size());
  return out + body;
}

std::string event_stream_head() {
  std::string out = "HTTP/1.1 200 OK\r\n";
  for (const auto& [name, value] : security_headers())
    out += fmt::format("{}: {}\r\n", name, value);
  return out +
         "Content-Type: text/event-stream\r\nX-Accel-Buffering: no\r\nConnection: close\r\n\r\n";
}

}  // namespace smd::server

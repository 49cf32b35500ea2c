#include "smd/storage/s3/http.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <mutex>

#include "smd/base/fork_guard.h"

namespace smd::storage {
namespace {

constexpr const char* kUserAgent = "smdebug";
constexpr size_t kMostIdleHandles = 8;
constexpr size_t kLongestText = size_t{64} << 20;  // of a body that is no object

using Handle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using Headers = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

void start_curl_once() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)started;
}

// One request on its way.
struct Transfer {
  const HttpRequest& request;
  Interrupt& interrupt;
  HttpResponse response{};
  size_t sent_bytes = 0;
};

size_t take_header(char* data, size_t size, size_t count, void* user) {
  auto& response = static_cast<Transfer*>(user)->response;
  std::string_view line(data, size * count);
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {  // also after an interim answer
    response.headers.clear();
    const size_t space = line.find(' ');
    response.status = space == std::string_view::npos
                          ? 0
                          : std::atoi(std::string(line.substr(space + 1)).c_str());
    return size * count;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size * count;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  response.headers[std::move(name)] = value;
  return size * count;
}

size_t take_body(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  auto& [request, interrupt, response, sent] = transfer;
  const size_t bytes = size * count;
  if (response.is_success() && !request.into.empty()) {
    const size_t room = request.into.size() - response.got_bytes;
    const size_t taken = std::min(room, bytes);
    std::memcpy(request.into.data() + response.got_bytes, data, taken);
    response.got_bytes += taken;
    return bytes;
  }
  if (response.body.size() + bytes > kLongestText) return 0;
  response.body.append(data, bytes);
  return bytes;
}

size_t give_body(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const ByteSpan rest = transfer.request.body.subspan(transfer.sent_bytes);
  const size_t bytes = std::min(rest.size(), size * count);
  if (bytes > 0) std::memcpy(data, rest.data(), bytes);
  transfer.sent_bytes += bytes;
  return bytes;
}

int rewind_body(void* user, curl_off_t offset, int origin) {
  if (origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  static_cast<Transfer*>(user)->sent_bytes = static_cast<size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

int stop_when_interrupted(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(user)->interrupt.is_set() ? 1 : 0;
}

bool is_worth_another_try(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_AGAIN: return true;
    default: return false;
  }
}

// "http://host:port" of an address.
std::string_view server_of(std::string_view url) {
  const size_t start = url.find("://");
  if (start == std::string_view::npos) return url;
  return url.substr(0, url.find('/', start + 3));
}

class CurlHttp final : public Http {
 public:
  CurlHttp(std::shared_ptr<Interrupt> interrupt, std::string ca_file)
      : interrupt_(std::move(interrupt)), ca_file_(std::move(ca_file)) {
    start_curl_once();
  }
  ~CurlHttp() override {
    if (!guard_.in_owner()) forget_idle();
  }

  Result<HttpResponse> send(const HttpRequest& request) override {
    Handle handle = take();
    if (!handle) return Error{ErrorCode::internal, "libcurl could not be started."};
    Transfer transfer{.request = request, .interrupt = *interrupt_};
    std::array<char, CURL_ERROR_SIZE> message{};
    const Headers headers = prepare(handle.get(), transfer);
    curl_easy_setopt(handle.get(), CURLOPT_ERRORBUFFER, message.data());
    const CURLcode code = curl_easy_perform(handle.get());
    curl_easy_setopt(handle.get(), CURLOPT_ERRORBUFFER, nullptr);
    give_back(std::move(handle));
    if (code == CURLE_OK) return std::move(transfer.response);
    if (code == CURLE_ABORTED_BY_CALLBACK) {
      return Error{ErrorCode::closed, "The transfer was interrupted."};
    }
    const std::string_view reason = message[0] != '\0' ? message.data() : curl_easy_strerror(code);
    return Error{is_worth_another_try(code) ? ErrorCode::not_yet : ErrorCode::io,
                 fmt::format("{} did not answer: {}.", server_of(request.url), reason)};
  }

 private:
  Headers prepare(CURL* handle, Transfer& transfer) const {
    const HttpRequest& request = transfer.request;
    const auto set = [&](CURLoption option, auto value) {
      curl_easy_setopt(handle, option, value);
    };
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(CURLOPT_USERAGENT, kUserAgent);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_TCP_KEEPALIVE, 1L);
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_timeout.count()));
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.stall_timeout.count()));
    set(CURLOPT_HEADERFUNCTION, &take_header);
    set(CURLOPT_HEADERDATA, &transfer);
    set(CURLOPT_WRITEFUNCTION, &take_body);
    set(CURLOPT_WRITEDATA, &transfer);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &stop_when_interrupted);
    set(CURLOPT_XFERINFODATA, &transfer);
    if (!ca_file_.empty()) set(CURLOPT_CAINFO, ca_file_.c_str());

    if (request.method == "HEAD") {
      set(CURLOPT_NOBODY, 1L);
    } else if (request.method == "PUT") {
      set(CURLOPT_UPLOAD, 1L);
      set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      set(CURLOPT_READFUNCTION, &give_body);
      set(CURLOPT_READDATA, &transfer);
      set(CURLOPT_SEEKFUNCTION, &rewind_body);
      set(CURLOPT_SEEKDATA, &transfer);
    } else if (request.method == "POST") {
      set(CURLOPT_POST, 1L);
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      set(CURLOPT_POSTFIELDS,
          request.body.empty() ? "" : reinterpret_cast<const char*>(request.body.data()));
    } else if (request.method != "GET") {
      set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    }

    Headers headers(nullptr, &curl_slist_free_all);
    for (const auto& [name, value] : request.headers) {
      const std::string line = name + ": " + value;
      headers.reset(curl_slist_append(headers.release(), line.c_str()));
    }
    set(CURLOPT_HTTPHEADER, headers.get());
    if (request.credentials) {
      set(CURLOPT_AWS_SIGV4, fmt::format("aws:amz:{}:s3", request.region).c_str());
      set(CURLOPT_USERNAME, request.credentials->access_key.c_str());
      set(CURLOPT_PASSWORD, request.credentials->secret_key.c_str());
    }
    return headers;
  }

  Handle take() {
    std::lock_guard lock(mutex_);
    if (!guard_.in_owner()) forget_idle();
    if (idle_.empty()) return {curl_easy_init(), &curl_easy_cleanup};
    Handle handle = std::move(idle_.back());
    idle_.pop_back();
    curl_easy_reset(handle.get());  // keeps its connections
    return handle;
  }

  void give_back(Handle handle) {
    std::lock_guard lock(mutex_);
    if (guard_.in_owner() && idle_.size() < kMostIdleHandles) idle_.push_back(std::move(handle));
  }

  // Their connections belong to the parent process: closing them here would end its TLS sessions.
  void forget_idle() {
    for (Handle& handle : idle_) (void)handle.release();
    idle_.clear();
  }

  const std::shared_ptr<Interrupt> interrupt_;
  const std::string ca_file_;
  const ForkGuard guard_;
  std::mutex mutex_;
  std::vector<Handle> idle_;  // guarded by mutex_
};

}  // namespace

std::shared_ptr<Http> curl_http(std::shared_ptr<Interrupt> interrupt, std::string ca_file) {
  return std::make_shared<CurlHttp>(std::move(interrupt), std::move(ca_file));
}

}  // namespace smd::storage

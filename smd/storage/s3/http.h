#pragma once

// HTTP requests as values, and who sends them. Thread-safe.

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/base/result.h"
#include "smd/storage/interrupt.h"
#include "smd/storage/s3/options.h"

namespace smd::storage {

struct HttpRequest {
  std::string method;
  std::string url;  // encoded; the query is sorted
  std::vector<std::pair<std::string, std::string>> headers;
  ByteSpan body;  // borrowed until send() returns
  // Where the body of a successful answer goes, borrowed. What is longer is cut. Empty: it goes to
  // HttpResponse::body.
  std::span<std::byte> into;

  // Signed with these for S3 of this region (AWS Signature Version 4).
  std::optional<Credentials> credentials;
  std::string region;

  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds timeout{60'000};
  std::chrono::seconds stall_timeout{20};
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  size_t got_bytes = 0;  // written to HttpRequest::into

  // Empty: not sent.
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
  bool is_success() const { return status >= 200 && status < 300; }
};

class Http {
 public:
  virtual ~Http() = default;
  // Any answer of the server is a success. not_yet: the connection failed, which another try may
  // change. closed: interrupted. io: the rest.
  virtual Result<HttpResponse> send(const HttpRequest& request) = 0;
};

// On libcurl, with connections that are kept and reused; one per thread that sends at a time.
// A forked child opens its own.
std::shared_ptr<Http> curl_http(std::shared_ptr<Interrupt> interrupt, std::string ca_file = {});

}  // namespace smd::storage

#include "smd/storage/s3/client.h"

#include <curl/curl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "smd/base/percent.h"
#include "smd/storage/s3/uri.h"

namespace smd::storage {
namespace {

using std::chrono::milliseconds;

// A transfer may take this much longer than the deadline, per byte: 64 KiB/s is a slow line.
constexpr int64_t kSlowestBytesPerMs = 64;
// S3 refuses requests whose time is off by more than 15 minutes.
constexpr double kGreatestSkewSecs = 14 * 60;

std::optional<double> server_secs(const HttpResponse& response) {
  const std::string date = response.header("date");
  if (date.empty()) return std::nullopt;
  const time_t time = curl_getdate(date.c_str(), nullptr);
  return time < 0 ? std::nullopt : std::optional(static_cast<double>(time));
}

bool is_temporary(const S3Answer& answer) {
  const int status = answer.http.status;
  const std::string& code = answer.fault.code;
  if (status == 501) return false;  // NotImplemented
  return status >= 500 || status == 429 || status == 408 || code == "RequestTimeout" ||
         code == "SlowDown" || code == "InternalError" || code == "OperationAborted" ||
         code == "ConditionalRequestConflict";
}

std::string sorted_query(std::vector<std::pair<std::string, std::string>> query) {
  for (auto& [name, value] : query) {
    name = percent_encoded(name);
    value = percent_encoded(value);
  }
  std::sort(query.begin(), query.end());
  std::string text;
  for (const auto& [name, value] : query) {
    text += fmt::format("{}{}={}", text.empty() ? "?" : "&", name, value);
  }
  return text;
}

}  // namespace

struct S3Client::Corrections {
  bool region = false;
  bool skew = false;
  bool credentials = false;
};

S3Client::S3Client(std::string bucket, S3Endpoint endpoint, S3Options options,
                   std::shared_ptr<Http> http)
    : bucket_(std::move(bucket)),
      options_(std::move(options)),
      http_(std::move(http)),
      credentials_(options_, http_),
      endpoint_(std::move(endpoint)) {}

std::string S3Client::region() const {
  std::lock_guard lock(mutex_);
  return endpoint_.region;
}

double S3Client::signing_secs() const { return options_.clock->unix_secs() + skew_secs_; }

HttpRequest S3Client::request_of(const S3Call& call, const Credentials& credentials,
                                 milliseconds left) const {
  HttpRequest request{.method = call.method,
                      .headers = call.headers,
                      .body = call.body,
                      .into = call.into,
                      .credentials = credentials};
  {
    std::lock_guard lock(mutex_);
    request.region = endpoint_.region;
    request.url = endpoint_.address_of(bucket_, call.key);
  }
  request.url += sorted_query(call.query);
  const auto time = static_cast<std::time_t>(signing_secs());
  request.headers.emplace_back("X-Amz-Date", fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(time)));
  // The line is encrypted or local; hashing every byte once more would protect nothing.
  request.headers.emplace_back("x-amz-content-sha256", "UNSIGNED-PAYLOAD");
  if (!credentials.session_token.empty()) {
    request.headers.emplace_back("x-amz-security-token", credentials.session_token);
  }
  const auto bytes = static_cast<int64_t>(call.body.size() + call.into.size());
  request.connect_timeout = std::min(options_.connect_timeout, left);
  request.stall_timeout = options_.stall_timeout;
  request.timeout = left + milliseconds(bytes / kSlowestBytesPerMs);
  return request;
}

// True: something was corrected, and the request is worth repeating at once.
bool S3Client::correct(const S3Answer& answer, Corrections& done) {
  const std::string& code = answer.fault.code;
  const int status = answer.http.status;
  std::string region = answer.http.header("x-amz-bucket-region");
  if (region.empty()) region = answer.fault.region;
  if (!done.region && !region.empty() && status >= 300 && status < 500) {
    std::lock_guard lock(mutex_);
    if (region != endpoint_.region) {
      endpoint_.region = region;
      return done.region = true;
    }
  }
  const auto theirs = server_secs(answer.http);
  const bool says_nothing = code.empty();  // as the answer to HEAD does
  if (!done.skew && status == 403 && theirs && (says_nothing || code == "RequestTimeTooSkewed") &&
      std::abs(*theirs - signing_secs()) > kGreatestSkewSecs) {
    skew_secs_ = *theirs - options_.clock->unix_secs();
    return done.skew = true;
  }
  if (!done.credentials && (code == "ExpiredToken" || code == "ExpiredTokenException")) {
    credentials_.forget();
    return done.credentials = true;
  }
  return false;
}

Result<S3Answer> S3Client::send(const S3Call& call) {
  const auto start = options_.clock->now();
  RetrySchedule schedule(options_.retry);
  Corrections done;
  bool uncertain = false;
  for (int tries = 1;; ++tries) {
    const auto passed = std::chrono::duration_cast<milliseconds>(options_.clock->now() - start);
    SMD_TRY(const Credentials credentials, credentials_.get());
    {
      std::lock_guard lock(mutex_);
      last_access_key_ = credentials.access_key;
    }
    if (options_.observer) options_.observer(call.kind);
    const milliseconds left = std::max(options_.deadline - passed, milliseconds(1));
    auto response = http_->send(request_of(call, credentials, left));
    std::optional<Error> failure;
    if (response.ok()) {
      S3Answer answer{.http = std::move(*response), .fault = {}, .uncertain = uncertain};
      // The end of a large upload may fail although its status says 200.
      if (!answer.http.is_success() || call.method == "POST") {
        answer.fault = parse_fault(answer.http.body);
      }
      if (answer.ok()) return answer;
      if (correct(answer, done)) continue;
      if (!is_temporary(answer)) return answer;
      uncertain = true;
      failure = error_of(call, answer);
    } else {
      if (response.error().code != ErrorCode::not_yet) return std::move(response.error());
      uncertain = true;
      failure = Error{ErrorCode::io, response.error().message};
    }
    const milliseconds wait = schedule.next();
    const auto until = options_.clock->now() + wait - start;
    if (until >= options_.deadline) {
      failure->message +=
          fmt::format(" Given up after {} {}.", tries, tries == 1 ? "try" : "tries");
      return std::move(*failure);
    }
    if (!options_.interrupt->wait(wait)) {
      return Error{ErrorCode::closed, "The transfer was interrupted."};
    }
  }
}

Error S3Client::error_of(const S3Call& call, const S3Answer& answer) const {
  const int status = answer.http.status;
  const std::string& code = answer.fault.code;
  const std::string object = S3Uri{bucket_, call.key}.text();
  std::string key_start;
  S3Endpoint endpoint;
  {
    std::lock_guard lock(mutex_);
    key_start = last_access_key_.substr(0, 4);
    endpoint = endpoint_;
  }
  const std::string place = endpoint.url.empty() ? "Amazon S3" : endpoint.url;
  const auto wrong = [](std::string message) {
    return Error{ErrorCode::invalid_argument, std::move(message)};
  };
  const auto failed = [](std::string message) { return Error{ErrorCode::io, std::move(message)}; };
  if (code == "NoSuchBucket") {
    return wrong(
        fmt::format("There is no bucket '{0}' at {1}; smdebug does not create buckets: correct the "
                    "name, or make it with: aws s3 mb s3://{0}",
                    bucket_, place));
  }
  if (code == "InvalidAccessKeyId") {
    return wrong(
        fmt::format("{} does not know the access key that begins with '{}' (InvalidAccessKeyId); "
                    "check AWS_ACCESS_KEY_ID or the profile: {}",
                    place, key_start, object));
  }
  if (code == "SignatureDoesNotMatch") {
    return wrong(
        fmt::format("The secret key does not belong to the access key that begins with '{}' "
                    "(SignatureDoesNotMatch); check AWS_SECRET_ACCESS_KEY or the profile: {}",
                    key_start, object));
  }
  if (code == "ExpiredToken" || code == "ExpiredTokenException") {
    return failed(fmt::format(
        "The session token has expired (ExpiredToken); get new credentials: {}", object));
  }
  if (code == "RequestTimeTooSkewed") {
    return failed(fmt::format(
        "The clock of this machine differs too much from that of {} (RequestTimeTooSkewed); set "
        "it: {}",
        place, object));
  }
  if (code == "AccessDenied" || (status == 403 && code.empty())) {
    return failed(
        fmt::format("The credentials that begin with '{}' do not allow {} (AccessDenied): {}",
                    key_start, call.kind, object));
  }
  if (status == 404 && (code.empty() || code == "NoSuchKey" || code == "404")) {
    return {ErrorCode::not_found, fmt::format("There is no object: {}", object)};
  }
  if (status == 301 || code == "PermanentRedirect" || code == "AuthorizationHeaderMalformed") {
    return failed(fmt::format("The bucket '{}' is not in the region '{}' ({}); set AWS_REGION: {}",
                              bucket_, endpoint.region, code.empty() ? "301" : code, object));
  }
  const std::string detail =
      code.empty() ? "" : fmt::format(" ({}: {})", code, answer.fault.message);
  return failed(fmt::format("{} answered to {} with status {}{}: {}", place, call.kind, status,
                            detail, object));
}

}  // namespace smd::storage

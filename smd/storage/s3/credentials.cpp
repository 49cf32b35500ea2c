#include "smd/storage/s3/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>

#include "smd/base/json.h"
#include "smd/storage/s3/profile.h"

namespace smd::storage {
namespace {

// Renewed so long before they expire, and used for so long when renewing them fails.
constexpr double kRenewSecs = 300;
constexpr double kLastSecs = 10;
constexpr std::string_view kContainerHost = "http://169.254.170.2";
constexpr std::chrono::milliseconds kContainerTimeout{2000};

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  return line;
}

}  // namespace

std::optional<double> parse_iso_time(std::string_view text) {
  std::tm time{};
  const std::string copy(text.substr(0, 19));
  if (copy.size() < 19 ||
      std::sscanf(copy.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d", &time.tm_year, &time.tm_mon,
                  &time.tm_mday, &time.tm_hour, &time.tm_min, &time.tm_sec) != 6) {
    return std::nullopt;
  }
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  return static_cast<double>(::timegm(&time));
}

Result<Credentials> parse_container_credentials(std::string_view json) {
  SMD_TRY(const Json document, parse_json(json, "the container's credentials"));
  const auto text = [&](const char* key) {
    return document.is_object() && document.contains(key) && document[key].is_string()
               ? document[key].get<std::string>()
               : std::string();
  };
  Credentials credentials{.access_key = text("AccessKeyId"),
                          .secret_key = text("SecretAccessKey"),
                          .session_token = text("Token"),
                          .expires_unix_secs = parse_iso_time(text("Expiration"))};
  if (credentials.access_key.empty() || credentials.secret_key.empty()) {
    return Error{ErrorCode::corrupt, "The container's endpoint answered without credentials."};
  }
  return credentials;
}

CredentialChain::CredentialChain(const S3Options& options, std::shared_ptr<Http> http)
    : options_(options), http_(std::move(http)) {}

bool CredentialChain::is_fresh(const Credentials& credentials, double margin_secs) const {
  return !credentials.expires_unix_secs ||
         options_.clock->unix_secs() + margin_secs < *credentials.expires_unix_secs;
}

Result<Credentials> CredentialChain::get() {
  std::lock_guard lock(mutex_);
  if (known_ && is_fresh(*known_, kRenewSecs)) return *known_;
  auto found = find();
  if (found.ok()) {
    known_ = *found;
  } else if (known_ && is_fresh(*known_, kLastSecs)) {
    return *known_;
  }
  return found;
}

void CredentialChain::forget() {
  std::lock_guard lock(mutex_);
  known_.reset();
}

Result<std::optional<Credentials>> CredentialChain::from_container() const {
  const auto& variable = options_.variables;
  const std::string relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  HttpRequest request{.method = "GET",
                      .url = relative.empty() ? variable("AWS_CONTAINER_CREDENTIALS_FULL_URI")
                                              : std::string(kContainerHost) + relative,
                      .connect_timeout = kContainerTimeout,
                      .timeout = 2 * kContainerTimeout};
  if (request.url.empty()) return std::optional<Credentials>();
  std::string token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty()) {
    token = first_line(file);
  }
  if (!token.empty()) request.headers.emplace_back("Authorization", token);
  SMD_TRY(const HttpResponse response, http_->send(request));
  if (!response.is_success()) {
    return Error{ErrorCode::io, fmt::format("The container's endpoint for credentials answered "
                                            "with status {}: {}",
                                            response.status, request.url)};
  }
  SMD_TRY(Credentials credentials, parse_container_credentials(response.body));
  return std::optional(std::move(credentials));
}

Result<Credentials> CredentialChain::find() const {
  const auto& variable = options_.variables;
  Credentials keys{.access_key = variable("AWS_ACCESS_KEY_ID"),
                   .secret_key = variable("AWS_SECRET_ACCESS_KEY"),
                   .session_token = variable("AWS_SESSION_TOKEN")};
  if (!keys.access_key.empty() && !keys.secret_key.empty()) return keys;
  if (keys.access_key.empty() != keys.secret_key.empty()) {
    const bool has_id = !keys.access_key.empty();
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} is set, but {} is not: requests to S3 cannot be signed.",
                             has_id ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                             has_id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID")};
  }

  const Profile profile = load_profile(variable);
  keys = {.access_key = profile.get("aws_access_key_id"),
          .secret_key = profile.get("aws_secret_access_key"),
          .session_token = profile.get("aws_session_token")};
  if (!keys.access_key.empty() && !keys.secret_key.empty()) return keys;

  auto container = from_container();
  if (container.ok() && *container) return **container;
  std::string why = container.ok() ? "" : " " + container.error().message;
  if (options_.more_credentials) {
    SMD_TRY(const auto more, options_.more_credentials());
    if (more) return *more;
  }
  const std::string more = options_.more_credentials_name.empty()
                               ? ""
                               : fmt::format("; {}", options_.more_credentials_name);
  return Error{ErrorCode::invalid_argument,
               fmt::format("No credentials for S3 were found in AWS_ACCESS_KEY_ID and "
                           "AWS_SECRET_ACCESS_KEY; profile '{}' of {} and {}; "
                           "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI and _FULL_URI{}.{}",
                           profile.name, profile.credentials_path, profile.config_path, more, why)};
}

}  // namespace smd::storage

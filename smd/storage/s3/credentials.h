#pragma once

// Finds the keys that sign requests, and renews those that expire. Thread-safe.
// Asked in this order: environment variables, profile files, the container's endpoint, and what
// S3Options::more_credentials gives.

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "smd/base/result.h"
#include "smd/storage/s3/http.h"
#include "smd/storage/s3/options.h"

namespace smd::storage {

class CredentialChain final {
 public:
  CredentialChain(const S3Options& options, std::shared_ptr<Http> http);

  // invalid_argument when no place has any; the message lists them.
  Result<Credentials> get();
  // The store says that they have expired: the next get() asks again.
  void forget();

 private:
  Result<Credentials> find() const;
  Result<std::optional<Credentials>> from_container() const;
  bool is_fresh(const Credentials& credentials, double margin_secs) const;

  const S3Options options_;
  const std::shared_ptr<Http> http_;
  std::mutex mutex_;
  std::optional<Credentials> known_;  // guarded by mutex_
};

// What a container's endpoint answers. corrupt: something else.
Result<Credentials> parse_container_credentials(std::string_view json);

// "2026-01-31T12:00:00Z", with or without a fraction. nullopt: not such a time.
std::optional<double> parse_iso_time(std::string_view text);

}  // namespace smd::storage

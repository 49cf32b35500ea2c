#pragma once

// How an object store is reached. A value; the functions and objects it holds are thread-safe.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "smd/base/clock.h"
#include "smd/base/result.h"
#include "smd/storage/interrupt.h"
#include "smd/storage/retry.h"

namespace smd::storage {

struct Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;                  // empty: none
  std::optional<double> expires_unix_secs{};  // nullopt: never

  bool operator==(const Credentials&) const = default;
};

// An environment variable; empty when it is not set.
using Variables = std::function<std::string(std::string_view name)>;
Variables process_variables();

struct S3Options {
  Variables variables = process_variables();
  // Asked when neither the variables nor the profile nor the container give credentials. nullopt:
  // it has none, either.
  std::function<Result<std::optional<Credentials>>()> more_credentials{};
  std::string more_credentials_name{};  // for the message that lists where was looked

  // No attempt of an operation begins later than this after its start.
  std::chrono::milliseconds deadline{60'000};
  RetryLimits retry{};
  std::chrono::milliseconds connect_timeout{5'000};
  // A transfer that moves nothing for so long has failed.
  std::chrono::seconds stall_timeout{20};

  size_t part_bytes = size_t{64} << 20;  // of large files, in memory one at a time
  // Told of every request that is sent: "GET", "HEAD", "PUT", "DELETE", "LIST", "POST".
  std::function<void(std::string_view kind)> observer{};
  std::shared_ptr<Interrupt> interrupt = std::make_shared<Interrupt>();
  std::shared_ptr<const Clock> clock = system_clock();
};

}  // namespace smd::storage

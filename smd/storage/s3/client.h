#pragma once

// Sends requests about one bucket: signs them, repeats what failed for the moment, and corrects a
// wrong region, a wrong clock and expired credentials once each. Thread-safe.

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "smd/base/result.h"
#include "smd/storage/s3/answer.h"
#include "smd/storage/s3/credentials.h"
#include "smd/storage/s3/endpoint.h"
#include "smd/storage/s3/http.h"
#include "smd/storage/s3/options.h"

namespace smd::storage {

struct S3Call {
  std::string_view kind;  // what the observer is told
  std::string method;
  std::string key;  // empty: the bucket itself
  std::vector<std::pair<std::string, std::string>> query;
  std::vector<std::pair<std::string, std::string>> headers;
  ByteSpan body;
  std::span<std::byte> into;
};

struct S3Answer {
  HttpResponse http;
  S3Fault fault;  // empty when it succeeded
  // An earlier try may have been carried out although it seemed to fail.
  bool uncertain = false;

  bool ok() const { return http.is_success() && fault.code.empty(); }
};

class S3Client final {
 public:
  S3Client(std::string bucket, S3Endpoint endpoint, S3Options options, std::shared_ptr<Http> http);

  const std::string& bucket() const { return bucket_; }
  const S3Options& options() const { return options_; }

  // The last answer, also when it is a refusal: see error_of(). An error: there was none within the
  // deadline, there are no credentials, or it was interrupted (closed).
  Result<S3Answer> send(const S3Call& call);

  // A refusal as a sentence. not_found: no such object. invalid_argument: a wrong bucket or wrong
  // keys, which no other try will change. io: the rest.
  Error error_of(const S3Call& call, const S3Answer& answer) const;

 private:
  struct Corrections;
  HttpRequest request_of(const S3Call& call, const Credentials& credentials,
                         std::chrono::milliseconds left) const;
  bool correct(const S3Answer& answer, Corrections& done);
  std::string region() const;
  double signing_secs() const;

  const std::string bucket_;
  const S3Options options_;
  const std::shared_ptr<Http> http_;
  CredentialChain credentials_;
  std::atomic<double> skew_secs_ = 0;  // the store's clock minus ours
  mutable std::mutex mutex_;
  S3Endpoint endpoint_;          // guarded by mutex_
  std::string last_access_key_;  // guarded by mutex_
};

}  // namespace smd::storage

#include "smd/storage/s3/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace smd::storage {
namespace {

// Answers every request with the same text.
class FakeHttp final : public Http {
 public:
  Result<HttpResponse> send(const HttpRequest& request) override {
    requests.push_back(request);
    return HttpResponse{.status = status, .headers = {}, .body = body};
  }
  int status = 200;
  std::string body;
  std::vector<HttpRequest> requests;
};

class CredentialChainTest : public testing::Test {
 protected:
  CredentialChainTest() {
    options.clock = clock;
    options.variables = [this](std::string_view name) { return variables[std::string(name)]; };
    variables["HOME"] = "/nonexistent";
  }
  Result<Credentials> get() { return CredentialChain(options, http).get(); }

  std::map<std::string, std::string> variables;
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(1000);
  std::shared_ptr<FakeHttp> http = std::make_shared<FakeHttp>();
  S3Options options;
};

TEST_F(CredentialChainTest, takes_the_variables_first) {
  variables["AWS_ACCESS_KEY_ID"] = "id";
  variables["AWS_SECRET_ACCESS_KEY"] = "secret";
  variables["AWS_SESSION_TOKEN"] = "token";
  variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://localhost/x";
  EXPECT_EQ(*get(), (Credentials{"id", "secret", "token"}));
  EXPECT_TRUE(http->requests.empty());
}

TEST_F(CredentialChainTest, says_which_half_is_missing) {
  variables["AWS_ACCESS_KEY_ID"] = "id";
  EXPECT_THAT(get().error().message, testing::HasSubstr("AWS_SECRET_ACCESS_KEY is not"));
}

TEST_F(CredentialChainTest, lists_where_it_looked) {
  options.more_credentials = [] { return std::optional<Credentials>(); };
  options.more_credentials_name = "the other library";
  const Error error = get().error();
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  for (const char* place : {"AWS_ACCESS_KEY_ID", "'default'", "/nonexistent/.aws/credentials",
                            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "the other library"}) {
    EXPECT_THAT(error.message, testing::HasSubstr(place));
  }
}

TEST_F(CredentialChainTest, asks_the_container_with_its_token_and_renews_in_time) {
  variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/v2/creds?id=1";
  variables["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "Bearer x";
  http->body = R"({"AccessKeyId": "A", "SecretAccessKey": "S", "Token": "T",
                   "Expiration": "1970-01-01T01:00:00Z"})";
  CredentialChain chain(options, http);
  EXPECT_EQ(chain.get()->session_token, "T");
  EXPECT_EQ(chain.get()->access_key, "A");
  ASSERT_EQ(http->requests.size(), 1u);
  EXPECT_EQ(http->requests[0].url, "http://169.254.170.2/v2/creds?id=1");
  EXPECT_EQ(http->requests[0].headers[0].second, "Bearer x");
  clock->advance(2400);  // 200 s are left
  http->body = R"({"AccessKeyId": "B", "SecretAccessKey": "S", "Token": "T"})";
  EXPECT_EQ(chain.get()->access_key, "B");
}

TEST_F(CredentialChainTest, keeps_what_still_works_when_renewing_fails) {
  variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://localhost:1/creds";
  http->body =
      R"({"AccessKeyId": "A", "SecretAccessKey": "S", "Expiration": "1970-01-01T01:00:00Z"})";
  CredentialChain chain(options, http);
  EXPECT_EQ(chain.get()->access_key, "A");
  http->status = 500;
  clock->advance(2400);
  EXPECT_EQ(chain.get()->access_key, "A");
  clock->advance(195);  // 5 s are left
  EXPECT_THAT(chain.get().error().message, testing::HasSubstr("status 500"));
}

TEST_F(CredentialChainTest, asks_the_caller_last_and_again_when_told_to_forget) {
  int asked = 0;
  options.more_credentials = [&] {
    ++asked;
    return std::optional(Credentials{"P", "S", ""});
  };
  CredentialChain chain(options, http);
  EXPECT_EQ(chain.get()->access_key, "P");
  EXPECT_EQ(chain.get()->access_key, "P");
  EXPECT_EQ(asked, 1);
  chain.forget();
  EXPECT_EQ(chain.get()->access_key, "P");
  EXPECT_EQ(asked, 2);
}

TEST(ContainerCredentials, refuse_what_is_something_else) {
  EXPECT_EQ(parse_container_credentials("[]").error().code, ErrorCode::corrupt);
  EXPECT_EQ(parse_container_credentials(R"({"AccessKeyId": 3})").error().code, ErrorCode::corrupt);
  EXPECT_FALSE(parse_container_credentials("<html>").ok());
}

TEST(IsoTime, is_seconds_since_1970) {
  EXPECT_EQ(parse_iso_time("1970-01-02T00:00:01Z"), 86401);
  EXPECT_EQ(parse_iso_time("2009-10-12T17:50:30.000Z"), 1255369830);
  EXPECT_EQ(parse_iso_time("yesterday"), std::nullopt);
}

}  // namespace
}  // namespace smd::storage

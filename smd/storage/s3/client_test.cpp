#include "smd/storage/s3/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "smd/storage/backends/s3.h"

namespace smd::storage {
namespace {

using testing::HasSubstr;

// Gives prepared answers and keeps the requests.
class ScriptedHttp final : public Http {
 public:
  Result<HttpResponse> send(const HttpRequest& request) override {
    requests.push_back(request);
    if (answers.empty()) return Error{ErrorCode::not_yet, "The server is gone."};
    auto answer = std::move(answers.front());
    answers.pop_front();
    if (answer.ok() && answer->is_success() && !request.into.empty()) {
      answer->got_bytes = std::min(answer->body.size(), request.into.size());
      std::copy_n(as_bytes(answer->body).begin(), answer->got_bytes, request.into.begin());
    }
    return answer;
  }

  void answer(int status, std::string code = {}, std::map<std::string, std::string> headers = {}) {
    std::string body = code.empty() ? "" : "<Error><Code>" + code + "</Code></Error>";
    answers.push_back(HttpResponse{status, std::move(headers), std::move(body)});
  }
  void lose() { answers.push_back(Error{ErrorCode::not_yet, "The connection broke."}); }

  std::string header(size_t request, std::string_view name) const {
    for (const auto& [key, value] : requests.at(request).headers) {
      if (key == name) return value;
    }
    return {};
  }

  std::deque<Result<HttpResponse>> answers;
  std::vector<HttpRequest> requests;
};

class S3ClientTest : public testing::Test {
 protected:
  S3ClientTest() {
    variables = {{"AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"},
                 {"AWS_SECRET_ACCESS_KEY", "secret"},
                 {"HOME", "/nonexistent"}};
    options.variables = [this](std::string_view name) { return variables[std::string(name)]; };
    options.clock = clock;
    options.retry = {.first = std::chrono::milliseconds(1),
                     .longest = std::chrono::milliseconds(2)};
    options.observer = [this](std::string_view kind) { kinds.emplace_back(kind); };
  }
  std::shared_ptr<S3Bucket> bucket() { return *S3Bucket::open("bucket", options, http); }
  std::shared_ptr<Storage> storage() { return s3_storage(bucket(), {"bucket", "run"}); }

  std::map<std::string, std::string> variables;
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(1'500'000'000);
  std::shared_ptr<ScriptedHttp> http = std::make_shared<ScriptedHttp>();
  S3Options options;
  std::vector<std::string> kinds;
};

TEST_F(S3ClientTest, signs_with_a_sorted_query_and_a_declared_body) {
  variables["AWS_SESSION_TOKEN"] = "token";
  http->answers.push_back(HttpResponse{200, {}, "<ListBucketResult/>"});
  ASSERT_TRUE(bucket()->list("a b/", "x").ok());
  const HttpRequest& request = http->requests[0];
  EXPECT_EQ(request.url,
            "https://bucket.s3.us-east-1.amazonaws.com/"
            "?encoding-type=url&list-type=2&max-keys=1000&prefix=a%20b%2F&start-after=x");
  EXPECT_EQ(http->header(0, "x-amz-content-sha256"), "UNSIGNED-PAYLOAD");
  EXPECT_EQ(http->header(0, "X-Amz-Date"), "20170714T024000Z");
  EXPECT_EQ(http->header(0, "x-amz-security-token"), "token");
  EXPECT_EQ(request.region, "us-east-1");
  EXPECT_EQ(kinds, std::vector<std::string>{"LIST"});
}

TEST_F(S3ClientTest, repeats_what_fails_for_the_moment) {
  http->answer(503, "SlowDown");
  http->lose();
  http->answer(429);
  http->answer(500, "InternalError");
  http->answer(200);
  EXPECT_TRUE(bucket()->put("x", {}).ok());
  EXPECT_EQ(http->requests.size(), 5u);
}

TEST_F(S3ClientTest, does_not_repeat_a_refusal) {
  for (const int status : {400, 403, 404, 409, 501}) {
    http->requests.clear();
    http->answer(status, "Whatever");
    EXPECT_FALSE(bucket()->put("x", {}).ok());
    EXPECT_EQ(http->requests.size(), 1u) << status;
  }
}

TEST_F(S3ClientTest, gives_up_when_the_deadline_has_passed) {
  options.clock = system_clock();
  options.deadline = std::chrono::milliseconds(20);
  const Status status = bucket()->put("x", {});
  EXPECT_EQ(status.error().code, ErrorCode::io);
  EXPECT_THAT(status.error().message, HasSubstr("The server is gone. Given up after"));
  EXPECT_GT(http->requests.size(), 1u);
}

TEST_F(S3ClientTest, stops_waiting_when_it_is_interrupted) {
  options.interrupt->set();
  EXPECT_EQ(bucket()->put("x", {}).error().code, ErrorCode::closed);
  EXPECT_EQ(http->requests.size(), 1u);
}

TEST_F(S3ClientTest, moves_to_the_region_of_the_bucket_once) {
  const std::map<std::string, std::string> there{{"x-amz-bucket-region", "eu-west-1"}};
  http->answer(301, "PermanentRedirect", there);
  http->answer(200);
  http->answer(200);
  const auto b = bucket();
  EXPECT_TRUE(b->put("x", {}).ok());
  EXPECT_EQ(http->requests[1].url, "https://bucket.s3.eu-west-1.amazonaws.com/x");
  EXPECT_EQ(http->requests[1].region, "eu-west-1");
  EXPECT_TRUE(b->put("y", {}).ok());  // remembered
  EXPECT_EQ(http->requests[2].region, "eu-west-1");
  http->answer(400, "AuthorizationHeaderMalformed", {{"x-amz-bucket-region", "eu-west-2"}});
  http->answer(400, "AuthorizationHeaderMalformed", {{"x-amz-bucket-region", "eu-west-3"}});
  EXPECT_THAT(b->put("z", {}).error().message, HasSubstr("set AWS_REGION"));
}

TEST_F(S3ClientTest, corrects_a_wrong_clock_once) {
  const std::map<std::string, std::string> later{{"date", "Fri, 14 Jul 2017 04:40:00 GMT"}};
  http->answer(403, "RequestTimeTooSkewed", later);
  http->answer(200);
  const auto b = bucket();
  EXPECT_TRUE(b->put("x", {}).ok());
  EXPECT_EQ(http->header(1, "X-Amz-Date"), "20170714T044000Z");
  http->answer(403, "", {{"date", "Fri, 14 Jul 2017 06:40:00 GMT"}});  // of HEAD
  http->answer(200, "", {{"content-length", "3"}});
  EXPECT_EQ(b->head("x")->size_bytes, 3);
  EXPECT_EQ(http->header(3, "X-Amz-Date"), "20170714T064000Z");
  http->answer(403, "RequestTimeTooSkewed");  // nothing to correct it with
  EXPECT_THAT(b->put("x", {}).error().message, HasSubstr("The clock of this machine"));
}

TEST_F(S3ClientTest, asks_again_for_credentials_that_have_expired) {
  variables.erase("AWS_ACCESS_KEY_ID");
  variables.erase("AWS_SECRET_ACCESS_KEY");
  int asked = 0;
  options.more_credentials = [&] {
    return std::optional(Credentials{"K" + std::to_string(++asked), "s", ""});
  };
  http->answer(400, "ExpiredToken");
  http->answer(200);
  const auto b = bucket();
  EXPECT_TRUE(b->put("x", {}).ok());
  EXPECT_EQ(http->requests[1].credentials->access_key, "K2");
  http->answer(400, "ExpiredToken");
  http->answer(400, "ExpiredToken");
  EXPECT_THAT(b->put("x", {}).error().message, HasSubstr("has expired"));
}

TEST_F(S3ClientTest, says_what_is_wrong_in_a_sentence) {
  struct Case {
    int status;
    const char* code;
    ErrorCode kind;
    const char* text;
  };
  for (const Case& c : {
           Case{404, "NoSuchBucket", ErrorCode::invalid_argument, "aws s3 mb s3://bucket"},
           Case{404, "NoSuchKey", ErrorCode::not_found, "There is no object: s3://bucket/run/x"},
           Case{403, "InvalidAccessKeyId", ErrorCode::invalid_argument, "'AKIA'"},
           Case{403, "SignatureDoesNotMatch", ErrorCode::invalid_argument, "The secret key"},
           Case{403, "AccessDenied", ErrorCode::io, "do not allow GET"},
           Case{418, "Teapot", ErrorCode::io, "status 418 (Teapot"},
       }) {
    http->answer(c.status, c.code);
    const Error error = read_all(*storage(), "x").error();
    EXPECT_EQ(error.code, c.kind) << c.code;
    EXPECT_THAT(error.message, HasSubstr(c.text));
  }
}

TEST_F(S3ClientTest, asks_why_head_was_refused) {
  http->answer(403);
  http->answer(403, "InvalidAccessKeyId");
  EXPECT_THAT(storage()->stat("x").error().message, HasSubstr("does not know the access key"));
  EXPECT_EQ(kinds, (std::vector<std::string>{"HEAD", "GET"}));
}

TEST_F(S3ClientTest, reads_a_small_file_with_one_request) {
  http->answers.push_back(HttpResponse{206, {{"content-range", "bytes 0-4/5"}}, "hello"});
  EXPECT_EQ(as_text(*read_all(*storage(), "x")), "hello");
  EXPECT_EQ(kinds, std::vector<std::string>{"GET"});
}

TEST_F(S3ClientTest, a_range_tells_the_size) {
  http->answers.push_back(HttpResponse{206, {{"content-range", "bytes 7-9/1000"}}, "abc"});
  auto file = *storage()->open("x");
  Bytes out(3);
  EXPECT_EQ(*file->read_at(7, out), 3u);
  EXPECT_EQ(http->header(0, "Range"), "bytes=7-9");
  EXPECT_EQ(*file->size(), 1000u);
  EXPECT_EQ(*file->read_at(1000, out), 0u);
  EXPECT_EQ(http->requests.size(), 1u);
}

TEST_F(S3ClientTest, an_empty_file_has_no_range) {
  http->answers.push_back(HttpResponse{
      416, {}, "<Error><Code>InvalidRange</Code><ActualObjectSize>0</ActualObjectSize></Error>"});
  EXPECT_TRUE(read_all(*storage(), "x")->empty());
  http->answer(416, "InvalidRange", {{"content-range", "bytes */0"}});
  EXPECT_TRUE(read_all(*storage(), "x")->empty());
  EXPECT_EQ(http->requests.size(), 2u);
}

TEST_F(S3ClientTest, a_lost_answer_to_a_conditional_put_is_looked_into) {
  http->lose();
  http->answer(412, "PreconditionFailed");
  http->answers.push_back(HttpResponse{206, {{"content-range", "bytes 0-1/2"}}, "me"});
  EXPECT_TRUE(*storage()->put("x", as_bytes("me"), Put::if_absent, {}));
  EXPECT_EQ(http->header(0, "If-None-Match"), "*");
  http->lose();
  http->answer(412, "PreconditionFailed");
  http->answers.push_back(HttpResponse{206, {{"content-range", "bytes 0-2/3"}}, "you"});
  EXPECT_FALSE(*storage()->put("x", as_bytes("me"), Put::if_absent, {}));
  http->answer(412, "PreconditionFailed");
  EXPECT_FALSE(*storage()->put("x", as_bytes("me"), Put::if_absent, {}));
  EXPECT_TRUE(http->answers.empty());
}

TEST_F(S3ClientTest, large_files_go_in_parts_and_are_aborted_when_abandoned) {
  options.part_bytes = 4;
  const auto begin = [&] {
    http->answers.push_back(HttpResponse{200,
                                         {},
                                         "<InitiateMultipartUploadResult><UploadId>u/1</UploadId>"
                                         "</InitiateMultipartUploadResult>"});
    http->answer(200, "", {{"etag", "\"1\""}});
    http->answer(200, "", {{"etag", "\"2\""}});
  };
  begin();
  http->answer(200, "", {{"etag", "\"3\""}});
  http->answer(200, "InternalError");  // with a status that says otherwise
  http->answer(404, "NoSuchUpload");   // because it had been carried out
  http->answer(200, "", {{"content-length", "9"}});
  {
    auto file = *storage()->create("x", {});
    EXPECT_TRUE(file->append({{as_bytes("123456789")}}).ok());
    EXPECT_TRUE(file->commit().ok());
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"POST", "PUT", "PUT", "PUT", "POST", "POST", "HEAD"}));
  EXPECT_THAT(http->requests[1].url, testing::EndsWith("/run/x?partNumber=1&uploadId=u%2F1"));
  kinds.clear();
  begin();
  http->answer(204);
  {
    auto file = *storage()->create("x", {});
    EXPECT_TRUE(file->append({{as_bytes("123456789")}}).ok());
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"POST", "PUT", "PUT", "DELETE"}));
}

TEST_F(S3ClientTest, lists_all_pages_and_skips_what_is_no_file) {
  http->answers.push_back(
      HttpResponse{200,
                   {},
                   "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t=</"
                   "NextContinuationToken><Contents><Key>run/a/</Key><Size>0</Size></Contents>"
                   "<Contents><Key>run/a/1</Key><Size>1</Size></Contents></ListBucketResult>"});
  http->answers.push_back(
      HttpResponse{200,
                   {},
                   "<ListBucketResult><Contents><Key>run/a//2</Key><Size>0</Size></Contents>"
                   "<Contents><Key>run/b</Key><Size>2</Size></Contents></ListBucketResult>"});
  const auto files = *storage()->list("", "0");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].path, "a/1");
  EXPECT_EQ(files[1].path, "b");
  EXPECT_THAT(http->requests[0].url, HasSubstr("start-after=run%2F0"));
  EXPECT_THAT(http->requests[1].url, HasSubstr("continuation-token=t%3D&"));
}

}  // namespace
}  // namespace smd::storage

#include "smd/hook/second_reader.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace smd {
namespace {

// Tensors of different sizes and their reductions.
class SecondReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int64_t size = 0; size < 40; ++size) {
      values.emplace_back(static_cast<size_t>(size * size));
      for (float& value : values.back()) value = static_cast<float>(std::rand() % 1000) / 7;
      shapes.push_back({size * size});
    }
    request.reductions = all_reductions();
    for (size_t i = 0; i < values.size(); ++i) {
      jobs.push_back({.tensor = view(i), .request = request});
    }
  }
  TensorView view(size_t i) const {
    return {.data = values[i].data(), .dtype = DType::float32, .shape = shapes[i]};
  }
  // Those that are the caller's, from the front.
  size_t take_some(SecondReader& reader, size_t most) {
    size_t taken = 0;
    while (taken < most && reader.take()) ++taken;
    return taken;
  }
  void expect_done(size_t first) const {
    for (size_t i = first; i < jobs.size(); ++i) {
      ASSERT_TRUE(jobs[i].status.ok());
      ReductionResult expected;
      ASSERT_TRUE(reduce(view(i), request, expected).ok());
      ASSERT_EQ(jobs[i].result.values.size(), expected.values.size());
      for (size_t k = 0; k < expected.values.size(); ++k) {
        EXPECT_EQ(jobs[i].result.values[k].second.bits, expected.values[k].second.bits);
      }
    }
  }

  std::vector<std::vector<float>> values;
  std::vector<Shape> shapes;
  ReductionRequest request;
  std::vector<SecondReader::Job> jobs;
};

TEST_F(SecondReaderTest, does_what_the_caller_does_not) {
  SecondReader reader;
  for (int round = 0; round < 300; ++round) {
    for (auto& job : jobs) job.result.values.clear();
    reader.begin(jobs);
    const size_t taken = take_some(reader, jobs.size());
    reader.finish();
    expect_done(taken);
  }
}

TEST_F(SecondReaderTest, a_caller_may_do_everything_or_give_up) {
  SecondReader reader;
  for (int round = 0; round < 300; ++round) {
    reader.begin(jobs);
    take_some(reader, static_cast<size_t>(round % 3));
    reader.finish();
    reader.begin({});
    EXPECT_FALSE(reader.take());
    reader.finish();
  }
}

TEST_F(SecondReaderTest, ends_in_a_child_without_its_thread) {
  SecondReader reader;
  reader.begin(jobs);
  const pid_t child = fork();
  if (child == 0) {
    reader.~SecondReader();
    _exit(0);
  }
  reader.finish();
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace smd

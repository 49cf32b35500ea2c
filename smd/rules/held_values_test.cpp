#include "smd/rules/held_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd::rules {
namespace {

class Messages final : public Log {
 public:
  void write(LogLevel, std::string_view message) override { texts.emplace_back(message); }
  std::vector<std::string> texts;
};

TensorValue value_of(size_t bytes) {
  TensorValue out{.dtype = DType::uint8, .shape = {static_cast<int64_t>(bytes)}};
  out.memory = std::shared_ptr<std::byte>(new std::byte[bytes], std::default_delete<std::byte[]>());
  out.elements = {out.memory.get(), bytes};
  return out;
}

TEST(HeldValues, holds_what_fits_and_shares_its_memory) {
  const ParameterSpec table[] = {kMaxMemoryMib};
  const auto log = std::make_shared<Messages>();
  HeldValues held("Rule", *Parameters::parse("Rule", table, {{"max_memory_mib", 1}}), log);
  const TensorValue value = value_of(size_t{600} << 10);
  HeldValue first = held.hold(value, "a");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->elements.data(), value.elements.data());
  EXPECT_EQ(held.size_bytes(), 600 << 10);
  EXPECT_EQ(held.hold(value, "b"), nullptr);
  EXPECT_EQ(held.hold(value, "c"), nullptr);
  EXPECT_THAT(log->texts,
              testing::ElementsAre(testing::HasSubstr("Rule does not judge 'b' and perhaps "
                                                      "others, as the values of earlier steps "
                                                      "would take more than 1 MiB")));
  HeldValue copy = first;
  first.reset();
  EXPECT_EQ(held.hold(value, "d"), nullptr);
  copy.reset();
  EXPECT_EQ(held.size_bytes(), 0);
  EXPECT_NE(held.hold(value, "e"), nullptr);
}

}  // namespace
}  // namespace smd::rules

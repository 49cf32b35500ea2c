#include "smd/cli/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd::cli {
namespace {

using testing::ElementsAre;

TEST(Options, are_described_with_the_common_ones_last) {
  std::vector<std::string> names;
  for (const OptionHelp& option : describe_options(*find_command("verify"))) {
    names.push_back(option.names.back());
  }
  EXPECT_THAT(names,
              ElementsAre("RUN", "--deep", "--repair", "--stopped", "--json", "--color", "--help"));
}

TEST(Options, positionals_flags_and_choices_are_told_apart) {
  const auto verify = describe_options(*find_command("verify"));
  EXPECT_TRUE(verify[0].is_positional);
  EXPECT_TRUE(verify[0].is_required);
  EXPECT_FALSE(verify[1].is_positional);
  EXPECT_EQ(verify[1].value, "");
  EXPECT_THAT(verify[5].choices, ElementsAre("auto", "always", "never"));
  const auto completion = describe_options(*find_command("completion"));
  EXPECT_THAT(completion[0].choices, ElementsAre("bash", "fish", "zsh"));
}

TEST(Options, the_usage_line_shows_what_is_required) {
  EXPECT_EQ(usage_line(*find_command("verify")), "smdebug verify [options] RUN");
  EXPECT_EQ(usage_line(*find_command("help")), "smdebug help [options] [COMMAND]");
  EXPECT_EQ(usage_line(*find_command("completion")), "smdebug completion [options] bash|fish|zsh");
}

TEST(Options, a_wrong_choice_gets_the_nearest_one) {
  CLI::App app;
  std::string value;
  constexpr std::string_view kChoices[] = {"left", "right"};
  add_choice(app, "--side", value, kChoices, "which side");
  try {
    app.parse(std::vector<std::string>{"rigth", "--side"});
    FAIL() << "not refused";
  } catch (const CLI::ParseError& error) {
    EXPECT_STREQ(error.what(), "--side: 'rigth' is not one of left, right. Did you mean 'right'?");
  }
  app.parse(std::vector<std::string>{"left", "--side"});
  EXPECT_EQ(value, "left");
}

}  // namespace
}  // namespace smd::cli

#include "smd/storage/s3/profile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace smd::storage {
namespace {

TEST(ParseIni, reads_sections_comments_and_nested_blocks) {
  const IniFile file = parse_ini(
      "stray = 1\n# note\n[default]\nregion = eu-west-1\r\nempty =\n\n[ profile x ]\n"
      "s3 =\n  endpoint_url = http://a:1/?x=y\n  other=2\nregion=us-west-2\nnonsense\n[broken\n");
  EXPECT_EQ(file.at("default").at("region"), "eu-west-1");
  EXPECT_EQ(file.at("default").at("empty"), "");
  EXPECT_EQ(file.at("profile x").at("s3.endpoint_url"), "http://a:1/?x=y");
  EXPECT_EQ(file.at("profile x").at("s3.other"), "2");
  EXPECT_EQ(file.at("profile x").at("region"), "us-west-2");
  EXPECT_EQ(file.size(), 2u);
}

TEST(LoadProfile, merges_both_files_of_the_named_profile) {
  const std::string root = testing::TempDir() + "/smd_profile_" + std::to_string(getpid());
  std::filesystem::create_directories(root + "/.aws");
  std::ofstream(root + "/.aws/config")
      << "[default]\nregion = eu-west-1\n[profile work]\nregion = ap-south-1\nservices = local\n"
         "aws_access_key_id = old\n[services local]\ns3 =\n  endpoint_url = http://127.0.0.1:9\n";
  std::ofstream(root + "/.aws/credentials")
      << "[default]\naws_access_key_id = D\n[work]\naws_access_key_id = W\n";
  std::string wanted;
  const Variables variables = [&](std::string_view name) {
    return name == "HOME" ? root : name == "AWS_PROFILE" ? wanted : std::string();
  };
  EXPECT_EQ(load_profile(variables).get("aws_access_key_id"), "D");
  EXPECT_EQ(load_profile(variables).get("region"), "eu-west-1");
  wanted = "work";
  const Profile work = load_profile(variables);
  EXPECT_EQ(work.get("aws_access_key_id"), "W");
  EXPECT_EQ(work.get("region"), "ap-south-1");
  EXPECT_EQ(work.s3_endpoint_url, "http://127.0.0.1:9");
  wanted = "nobody";
  EXPECT_TRUE(load_profile(variables).values.empty());
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace smd::storage

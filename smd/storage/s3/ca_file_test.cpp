#include "smd/storage/s3/ca_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

namespace smd::storage {
namespace {

class CaFile : public testing::Test {
 protected:
  CaFile() {
    for (const std::string& path : {first_, second_}) std::ofstream(path) << "x";
  }

  std::string found(const std::map<std::string, std::string>& set, const std::string& built_in) {
    const std::array<const char*, 3> usual = {missing_.c_str(), first_.c_str(), second_.c_str()};
    const Variables variables = [&](std::string_view name) {
      const auto at = set.find(std::string(name));
      return at == set.end() ? std::string() : at->second;
    };
    return find_ca_file(variables, built_in, usual);
  }

  const std::string missing_ = testing::TempDir() + "ca_file_missing.pem";
  const std::string first_ = testing::TempDir() + "ca_file_first.pem";
  const std::string second_ = testing::TempDir() + "ca_file_second.pem";
};

TEST_F(CaFile, what_the_user_names_comes_first_even_if_it_is_missing) {
  EXPECT_EQ(found({{"AWS_CA_BUNDLE", "a"}, {"SSL_CERT_FILE", "b"}}, second_), "a");
  EXPECT_EQ(found({{"SSL_CERT_FILE", "b"}}, second_), "b");
}

TEST_F(CaFile, the_library_knows_the_place_where_it_was_built) {
  EXPECT_EQ(found({}, second_), "");
}

TEST_F(CaFile, elsewhere_the_usual_places_are_searched) {
  EXPECT_EQ(found({}, missing_), first_);
  EXPECT_EQ(found({}, ""), first_);
}

TEST_F(CaFile, without_any_the_library_decides) {
  const std::array<const char*, 1> usual = {missing_.c_str()};
  EXPECT_EQ(find_ca_file([](std::string_view) { return std::string(); }, missing_, usual), "");
}

TEST_F(CaFile, the_library_tells_its_place) { EXPECT_EQ(built_in_ca_file().front(), '/'); }

}  // namespace
}  // namespace smd::storage

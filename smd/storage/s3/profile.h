#pragma once

// A profile of the files that Amazon's tools share, ~/.aws/credentials and ~/.aws/config.
// Pure functions but for reading these two files.

#include <map>
#include <string>
#include <string_view>

#include "smd/storage/s3/options.h"

namespace smd::storage {

// Section → key → value. The keys of a nested block are "outer.inner".
using IniFile = std::map<std::string, std::map<std::string, std::string>>;
// Lines that mean nothing are skipped, as Amazon's tools do.
IniFile parse_ini(std::string_view text);

struct Profile {
  std::string name;
  std::string credentials_path;
  std::string config_path;
  std::map<std::string, std::string> values;  // the credentials file wins over the config file
  std::string s3_endpoint_url;                // of its services section

  // Empty: not set.
  std::string get(const std::string& key) const;
};

// AWS_PROFILE, AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE say which and where. Files that are
// not there count as empty.
Profile load_profile(const Variables& variables);

}  // namespace smd::storage

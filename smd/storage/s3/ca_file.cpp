#include "smd/storage/s3/ca_file.h"

#include <curl/curl.h>
#include <unistd.h>

namespace smd::storage {
namespace {

bool is_readable(const char* path) { return ::access(path, R_OK) == 0; }

}  // namespace

std::string find_ca_file(const Variables& variables, const std::string& built_in,
                         std::span<const char* const> usual) {
  for (const char* name : {"AWS_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (std::string named = variables(name); !named.empty()) return named;
  }
  if (is_readable(built_in.c_str())) return {};
  for (const char* path : usual) {
    if (is_readable(path)) return path;
  }
  return {};
}

std::string built_in_ca_file() {
  const curl_version_info_data* about = curl_version_info(CURLVERSION_NOW);
  return about->cainfo != nullptr ? about->cainfo : "";
}

}  // namespace smd::storage

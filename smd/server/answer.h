#pragma once

// What a route gives for a request, before HTTP adds its own: how to tell whether the answer
// changed, and how to make it. Plain values.

#include <functional>
#include <string>
#include <string_view>

#include "smd/base/json.h"
#include "smd/base/result.h"

namespace smd::server {

inline constexpr std::string_view kJsonType = "application/json";
inline constexpr std::string_view kBinaryType = "application/octet-stream";
inline constexpr std::string_view kYamlType = "application/yaml";

struct Answer {
  // Equal for two requests with the same parameters if and only if the answers are equal as far as
  // anybody knows without making them.
  std::string version;
  std::string_view content_type = kJsonType;
  // Makes the body; called at most once, on the thread that serves the request.
  std::function<Result<std::string>()> body;
  // Whether the body is worth keeping for others who ask the same.
  bool is_kept = true;
  std::string file_name{};  // for those who save it; empty: nobody does
};

// One line. Texts that are no UTF-8 get U+FFFD, numbers that JSON does not have become null.
std::string body_of(const Json& document);

}  // namespace smd::server

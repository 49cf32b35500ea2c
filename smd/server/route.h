#pragma once

// The questions that a server answers. Each lives in one file of routes/, named like its constant;
// the build collects them, so adding a file adds a route. Immutable table, thread-safe.

#include <span>
#include <string>
#include <string_view>

#include "smd/base/result.h"
#include "smd/server/answer.h"
#include "smd/server/query.h"

namespace smd::server {

class Site;
class ServedRun;

// What a route gets to see of a request.
struct Question {
  const Site& site;
  std::string run;  // of the address; empty: it has none
  const Query& query;
};

struct Route {
  std::string_view path;  // "/api/runs/{run}/series"
  std::span<const ParameterSpec> parameters{};
  // Quick: checks the arguments and says how to make the answer. Any thread.
  // invalid_argument and not_found become 400 and 404.
  Result<Answer> (*answer)(const Question& question) = nullptr;
};

std::span<const Route* const> routes();

// An address that fits a route.
struct RouteMatch {
  const Route* route = nullptr;
  std::string run;
};
// not_found: none. `path` is not decoded.
Result<RouteMatch> find_route(std::string_view path);

}  // namespace smd::server

#include "smd/server/route.h"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace smd::server {

namespace route_list {
#define SMD_CATALOG_ENTRY(stem) extern const Route stem;
#include "smd/server/routes_catalog.inc"
#undef SMD_CATALOG_ENTRY
}  // namespace route_list

namespace {

constexpr const Route* kRoutes[] = {
#define SMD_CATALOG_ENTRY(stem) &route_list::stem,
#include "smd/server/routes_catalog.inc"
#undef SMD_CATALOG_ENTRY
};

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> out;
  for (;;) {
    const size_t end = path.find('/');
    out.push_back(path.substr(0, end));
    if (end == std::string_view::npos) return out;
    path.remove_prefix(end + 1);
  }
}

}  // namespace

std::span<const Route* const> routes() { return kRoutes; }

Result<RouteMatch> find_route(std::string_view path) {
  const auto parts = parts_of(path);
  for (const Route* route : kRoutes) {
    const auto pattern = parts_of(route->path);
    if (pattern.size() != parts.size()) continue;
    RouteMatch match{.route = route};
    bool fits = true;
    for (size_t i = 0; fits && i < parts.size(); ++i) {
      if (pattern[i] == "{run}") {
        const auto run = decode_component(parts[i], false);
        fits = run.ok() && !run->empty();
        if (fits) match.run = *run;
      } else {
        fits = pattern[i] == parts[i];
      }
    }
    if (fits) return match;
  }
  return Error{ErrorCode::not_found, "There is no such address; /api/openapi.yaml lists them."};
}

}  // namespace smd::server

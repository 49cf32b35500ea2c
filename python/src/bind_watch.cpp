// Rules inside of the training process: given to a hook, and what they say taken by a thread.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "python/src/values.h"
#include "smd/config/json_value.h"
#include "smd/hook/hook.h"
#include "smd/watch/watch.h"

namespace smdebug {
namespace {

using smd::watch::Watch;
using smd::watch::WatchHit;
using smd::watch::WatchMessage;

using Described = std::tuple<std::string, nb::object, std::optional<int64_t>>;

std::shared_ptr<Watch> create(const std::vector<Described>& rules) {
  smd::watch::WatchOptions options;
  for (const auto& [rule, parameters, save_interval] : rules) {
    options.rules.push_back({.rule = rule,
                             .parameters = to_json(parameters, "parameters"),
                             .save_interval = save_interval});
  }
  return check(Watch::create(std::move(options)));
}

nb::object take(Watch& watch, double timeout_secs) {
  constexpr double kLongestSecs = 3600;
  const std::chrono::duration<double> wait(std::clamp(timeout_secs, 0.0, kLongestSecs));
  std::optional<smd::watch::WatchEvent> event;
  {
    const nb::gil_scoped_release released;
    event = watch.take(std::chrono::steady_clock::now() +
                       std::chrono::duration_cast<std::chrono::steady_clock::duration>(wait));
  }
  if (!event) return nb::none();
  if (const auto* hit = std::get_if<WatchHit>(&*event)) {
    return nb::make_tuple(hit->rule, to_python(hit->record));
  }
  const auto& message = std::get<WatchMessage>(*event);
  return nb::make_tuple(static_cast<int>(message.level), to_text(message.text));
}

}  // namespace

void bind_watch(nb::module_& m) {
  m.def(
      "rules_of_config",
      [](const std::string& path) -> nb::object {
        const auto json = smd::Hook::read_json(path);
        const smd::Json* rules = json.ok() ? smd::json_member(*json, "rules") : nullptr;
        return rules == nullptr ? nb::none() : to_python(*rules);
      },
      nb::arg("path"),
      "The rules of a hook's JSON file; None: it has none, or the hook will say what is wrong.");
  nb::class_<Watch>(m, "Watch", "Rules that judge what a hook saves, while it is saved.")
      .def_static("create", &create, nb::arg("rules"),
                  "Of (name, parameters, save_interval or None) for each rule.")
      .def("take", &take, nb::arg("timeout_secs"),
           "(number of the rule, record of the hit), or (level, text) for the log; None when there "
           "was nothing in time or the hook is closed.")
      .def("end", &Watch::end)
      .def_prop_ro("ended", &Watch::ended);
}

}  // namespace smdebug

#include "python/src/credentials.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>

namespace smdebug {

namespace nb = nanobind;
using smd::storage::Credentials;

void use_credentials_of(smd::storage::S3Options& options, nb::object callable) {
  auto shared = std::shared_ptr<nb::object>(new nb::object(std::move(callable)), [](nb::object* o) {
    if (Py_IsInitialized() == 0) return;
    const nb::gil_scoped_acquire gil;
    delete o;
  });
  options.more_credentials_name = "what botocore knows, if it is installed";
  options.more_credentials = [shared]() -> smd::Result<std::optional<Credentials>> {
    if (Py_IsInitialized() == 0) return std::optional<Credentials>();
    const nb::gil_scoped_acquire gil;
    try {
      const nb::object found = (*shared)();
      if (found.is_none()) return std::optional<Credentials>();
      auto [access, secret, token, expires] =
          nb::cast<std::tuple<std::string, std::string, std::string, std::optional<double>>>(found);
      return std::optional(Credentials{access, secret, token, expires});
    } catch (const std::exception& error) {
      return smd::Error{smd::ErrorCode::invalid_argument,
                        std::string("Asking botocore for credentials failed: ") + error.what()};
    }
  };
}

}  // namespace smdebug

// Storages and S3 buckets as Python sees them, for the access layer of the original and for tests.

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.h"
#include "python/src/credentials.h"
#include "python/src/errors.h"
#include "python/src/storage_arg.h"
#include "smd/packed/delivery.h"
#include "smd/storage/s3/bucket.h"
#include "smd/storage/storage.h"
#include "smd/storage/sync.h"

namespace smdebug {
namespace {

using namespace smd::storage;  // NOLINT: everything here is about it

struct PyBucket {
  std::shared_ptr<S3Bucket> bucket;
  std::shared_ptr<RequestCounter> counter;
};

// Runs f without the GIL; its error becomes an exception.
template <typename F>
auto without_gil(F&& f) {
  auto result = [&] {
    const nb::gil_scoped_release released;
    return f();
  }();
  return check(std::move(result));
}

smd::ByteSpan span_of(const nb::bytes& bytes) {
  return {static_cast<const std::byte*>(bytes.data()), bytes.size()};
}

nb::bytes bytes_of(const smd::Bytes& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

S3Options options_of(const std::shared_ptr<RequestCounter>& counter, nb::object credentials,
                     double deadline_secs, size_t part_bytes) {
  S3Options options;
  if (!credentials.is_none()) use_credentials_of(options, std::move(credentials));
  options.deadline = std::chrono::milliseconds(static_cast<int64_t>(deadline_secs * 1000));
  options.part_bytes = part_bytes;
  options.observer = [counter](std::string_view kind) { counter->add(kind); };
  return options;
}

PyStorage open(std::string_view uri, nb::object credentials, double deadline_secs,
               size_t part_bytes) {
  auto counter = std::make_shared<RequestCounter>();
  const S3Options options = options_of(counter, std::move(credentials), deadline_secs, part_bytes);
  return {check(open_storage(uri, options)), counter};
}

PyBucket open_bucket(std::string name, nb::object credentials, double deadline_secs) {
  auto counter = std::make_shared<RequestCounter>();
  S3Options options =
      options_of(counter, std::move(credentials), deadline_secs, S3Options().part_bytes);
  return {check(S3Bucket::open(std::move(name), std::move(options))), counter};
}

nb::bytes read_range(PyStorage& s, std::string_view path, uint64_t offset, size_t length) {
  return bytes_of(without_gil([&]() -> smd::Result<smd::Bytes> {
    SMD_TRY(const auto file, s.storage->open(path));
    smd::Bytes out(length);
    SMD_TRY(const size_t got, file->read_at(offset, out));
    out.resize(got);
    return out;
  }));
}

void write(PyStorage& s, std::string_view path, nb::bytes content) {
  const smd::ByteSpan span = span_of(content);
  without_gil([&]() -> smd::Status {
    SMD_TRY(const auto file, s.storage->create(path, {}));
    SMD_RETURN_IF_ERROR(file->append({{span}}));
    return file->commit();
  });
}

nb::bytes get(PyBucket& b, std::string_view key, uint64_t start, std::optional<size_t> length) {
  return bytes_of(without_gil([&]() -> smd::Result<smd::Bytes> {
    constexpr size_t kFirstBytes = size_t{256} << 10;
    smd::Bytes out(length.value_or(kFirstBytes));
    if (out.empty()) return out;
    SMD_TRY(const auto piece, b.bucket->get(key, start, out));
    size_t got = piece.got_bytes;
    if (!length && start + got < piece.object_bytes) {
      out.resize(piece.object_bytes - start);
      SMD_TRY(const auto rest, b.bucket->get(key, start + got, std::span(out).subspan(got)));
      got += rest.got_bytes;
    }
    out.resize(got);
    return out;
  }));
}

std::pair<std::vector<std::string>, std::vector<std::string>> list_keys(
    PyBucket& b, std::string_view prefix, std::string_view start_after,
    std::string_view delimiter) {
  S3Listing listing = without_gil([&] { return b.bucket->list(prefix, start_after, delimiter); });
  std::vector<std::string> keys;
  keys.reserve(listing.objects.size());
  for (auto& object : listing.objects) keys.push_back(std::move(object.path));
  return {std::move(keys), std::move(listing.folders)};
}

}  // namespace

void bind_storage(nb::module_& m) {
  const double deadline_secs = 60;
  nb::class_<PyStorage>(m, "Storage")
      .def_static("open", &open, nb::arg("uri"), nb::arg("credentials") = nb::none(),
                  nb::arg("deadline_secs") = deadline_secs,
                  nb::arg("part_bytes") = S3Options().part_bytes)
      .def_prop_ro("name", [](PyStorage& s) { return s.storage->name(); })
      .def_prop_ro("requests", [](PyStorage& s) { return s.counter->counts(); })
      .def(
          "list",
          [](PyStorage& s, std::string_view folder, std::string_view after) {
            std::vector<std::pair<std::string, int64_t>> files;
            for (auto& file : without_gil([&] { return s.storage->list(folder, after); })) {
              files.emplace_back(std::move(file.path), file.size_bytes);
            }
            return files;
          },
          nb::arg("folder") = "", nb::arg("start_after") = "", "(path, size) of each file.")
      .def(
          "size",
          [](PyStorage& s, std::string_view path) {
            return without_gil([&] { return s.storage->stat(path); }).size_bytes;
          },
          nb::arg("path"))
      .def(
          "read",
          [](PyStorage& s, std::string_view path) {
            return bytes_of(without_gil([&] { return read_all(*s.storage, path); }));
          },
          nb::arg("path"))
      .def("read_range", &read_range, nb::arg("path"), nb::arg("offset"), nb::arg("length"))
      .def("write", &write, nb::arg("path"), nb::arg("content"))
      .def(
          "put_if_absent",
          [](PyStorage& s, std::string_view path, nb::bytes content) {
            const smd::ByteSpan span = span_of(content);
            return without_gil([&] { return s.storage->put(path, span, Put::if_absent, {}); });
          },
          nb::arg("path"), nb::arg("content"))
      .def(
          "remove",
          [](PyStorage& s, std::string_view path) {
            without_gil([&] { return s.storage->remove(path); });
          },
          nb::arg("path"));

  nb::class_<PyBucket>(m, "S3Bucket")
      .def_static("open", &open_bucket, nb::arg("name"), nb::arg("credentials") = nb::none(),
                  nb::arg("deadline_secs") = deadline_secs)
      .def_prop_ro("requests", [](PyBucket& b) { return b.counter->counts(); })
      .def("get", &get, nb::arg("key"), nb::arg("start") = 0, nb::arg("length") = nb::none())
      .def(
          "exists",
          [](PyBucket& b, std::string_view key) {
            return without_gil([&]() -> smd::Result<bool> {
              const auto info = b.bucket->head(key);
              if (info.ok()) return true;
              if (info.error().code == smd::ErrorCode::not_found) return false;
              return info.error();
            });
          },
          nb::arg("key"))
      .def(
          "put",
          [](PyBucket& b, std::string_view key, nb::bytes content) {
            const smd::ByteSpan span = span_of(content);
            without_gil([&] { return b.bucket->put(key, span); });
          },
          nb::arg("key"), nb::arg("content"))
      .def(
          "remove",
          [](PyBucket& b, std::string_view key) {
            without_gil([&] { return b.bucket->remove(key); });
          },
          nb::arg("key"))
      .def("list", &list_keys, nb::arg("prefix") = "", nb::arg("start_after") = "",
           nb::arg("delimiter") = "", "(keys, folders).");

  m.def(
      "sync_to",
      [](const std::string& root, PyStorage& remote, bool remove_source) {
        const SyncReport report = without_gil([&] {
          return smd::packed::sync_run(root, remote.storage, {.remove_source = remove_source});
        });
        return std::tuple(report.files_sent, report.bytes_sent, report.files_skipped);
      },
      nb::arg("root"), nb::arg("remote"), nb::arg("remove_source") = false,
      "(files sent, bytes sent, files skipped).");
}

}  // namespace smdebug

#include "smd/cli/output_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "smd/base/bytes.h"
#include "smd/picture/text_width.h"
#include "smd/storage/storage.h"

namespace smd::cli {
namespace {

namespace fs = std::filesystem;

Error wrong(const std::string& path, std::string_view why) {
  return {ErrorCode::io,
          printable(fmt::format("The file cannot be written, as {}: {}", why, path))};
}

}  // namespace

Status write_output_file(const std::string& path, std::string_view content) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (path.empty() || fs::is_directory(status)) {
    return wrong(path, path.empty() ? "its name is empty" : "it is a directory");
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    std::ofstream out(path, std::ios::binary);
    out << content << std::flush;
    return out ? Status() : wrong(path, "it does not take what is written");
  }
  // Through links, so that the link stays.
  const fs::path whole = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) return wrong(path, error.message());
  if (!whole.has_filename()) return wrong(path, "it is a directory");
  const auto folder = storage::local_storage(whole.parent_path().string());
  const auto written =
      folder->put(whole.filename().string(), as_bytes(content), storage::Put::always, {});
  return written.ok() ? Status() : written.error();
}

}  // namespace smd::cli

#include "smd/writer/outputs/metrics_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "smd/base/json.h"

namespace smd {
namespace {

// What waits for a file that cannot be written.
constexpr size_t kMostPendingBytes = size_t{1} << 20;

class MetricsFile final : public Output {
 public:
  explicit MetricsFile(const MetricsFileOptions& options)
      : folder_(options.folder), path_(fmt::format("{}/{}.json", options.folder, options.pid)) {}
  ~MetricsFile() override {
    if (file_ >= 0) ::close(file_);
  }
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  Status scalar(const StepInfo& step, const SavedScalar& scalar) override {
    if (!scalar.is_metric) return {};
    if (pending_.size() > kMostPendingBytes) return {};  // its failure was reported
    name_.assign(scalar.name).append("_").append(name_of(step.mode));
    pending_ += "{\"MetricName\": ";
    append_json_string(pending_, name_);
    pending_ += fmt::format(R"(, "Value": {}, "Timestamp": {}, "IterationNumber": {}}})",
                            dump_json(scalar.value), dump_json(scalar.wall_secs), step.mode_step);
    pending_ += '\n';
    return {};
  }

  Status end_step() override {
    if (pending_.empty()) return {};
    if (file_ < 0) SMD_RETURN_IF_ERROR(open());
    // One call for all lines, so that a reader does not see half of one.
    size_t done = 0;
    while (done < pending_.size()) {
      const ssize_t count = ::write(file_, pending_.data() + done, pending_.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        const Error error = failure("written");
        pending_.erase(0, done);
        return error;
      }
      done += static_cast<size_t>(count);
    }
    pending_.clear();
    return {};
  }

  Status close() override {
    Status status = end_step();
    if (file_ >= 0) ::close(file_);
    file_ = -1;
    return status;
  }

 private:
  Error failure(std::string_view what) const {
    return {ErrorCode::io, fmt::format("The metrics file cannot be {}: {}: {}", what,
                                       std::strerror(errno), path_)};
  }

  Status open() {
    std::error_code ignored;  // opening tells what is wrong
    std::filesystem::create_directories(folder_, ignored);
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file_ < 0) return failure("opened");
    // An earlier process of this number may have died in the middle of a line.
    const off_t size = ::lseek(file_, 0, SEEK_END);
    char last = '\n';
    if (size > 0 && ::pread(file_, &last, 1, size - 1) == 1 && last != '\n') {
      pending_.insert(0, 1, '\n');
    }
    return {};
  }

  const std::string folder_;
  const std::string path_;
  int file_ = -1;
  std::string pending_;  // lines that are not in the file yet
  std::string name_;
};

}  // namespace

std::unique_ptr<Output> metrics_file(MetricsFileOptions options) {
  return std::make_unique<MetricsFile>(options);
}

}  // namespace smd

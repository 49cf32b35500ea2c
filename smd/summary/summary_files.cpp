#include "smd/summary/summary_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include "smd/base/host_name.h"
#include "smd/summary/tag.h"

namespace smd {
namespace {

// What cannot be written is kept up to this size; then it is given up.
constexpr size_t kMostKeptBytes = size_t{64} << 20;

}  // namespace

SummaryFiles::File& SummaryFiles::begin(const StepInfo& step) {
  File& file = files_[index_of(step.mode)];
  if (file.buffer.empty()) {
    file.first_step = step.step;
    file.since = options_.clock->now();
  }
  return file;
}

void SummaryFiles::scalar(const StepInfo& step, std::string_view name, double value,
                          double wall_secs) {
  format::append_scalar(begin(step).buffer,
                        {.tag = summary_tag(name), .step = step.step, .wall_secs = wall_secs},
                        static_cast<float>(value));
}

void SummaryFiles::histogram(const StepInfo& step, std::string_view name,
                             const format::HistogramView& histogram, double wall_secs) {
  if (histogram.counts.empty()) return;
  format::append_histogram(begin(step).buffer,
                           {.tag = summary_tag(name), .step = step.step, .wall_secs = wall_secs},
                           histogram);
}

void SummaryFiles::text(const StepInfo& step, std::string_view name, std::string_view markdown,
                        double wall_secs) {
  format::append_text(begin(step).buffer,
                      {.tag = summary_tag(name), .step = step.step, .wall_secs = wall_secs},
                      markdown);
}

// A process that starts again may have the number of an earlier one.
Result<std::string> SummaryFiles::free_path(Mode mode, Step step) const {
  for (int life = 0;; ++life) {
    const std::string writer =
        life == 0 ? options_.writer : fmt::format("{}.{}", options_.writer, life);
    std::string path = format::summary_file_name(mode, options_.step.value_or(step), writer);
    const auto found = options_.storage->stat(path);
    if (found.ok()) continue;
    if (found.error().code != ErrorCode::not_found) return found.error();
    return path;
  }
}

Status SummaryFiles::flush(Mode mode, File& file, bool everything) {
  if (file.buffer.empty()) return {};
  if (!file.growing && grows_) {
    SMD_TRY(const std::string path, free_path(mode, file.first_step));
    auto growing = options_.storage->append(path);
    if (growing.ok()) {
      file.growing = std::move(*growing);
    } else if (growing.error().code == ErrorCode::unsupported) {
      grows_ = false;
    } else {
      return growing.error();
    }
  }
  if (file.growing) {
    SMD_RETURN_IF_ERROR(file.growing->append({{as_bytes(file.buffer)}}));
  } else {
    const bool due = everything || file.buffer.size() >= options_.roll_bytes ||
                     options_.clock->now() - file.since >= options_.roll_interval;
    if (!due) return {};
    SMD_TRY(const std::string path, free_path(mode, file.first_step));
    SMD_TRY(auto whole, options_.storage->create(path, {}));
    SMD_RETURN_IF_ERROR(whole->append({{as_bytes(file.buffer)}}));
    SMD_RETURN_IF_ERROR(whole->commit());
  }
  file.buffer.clear();
  return {};
}

Status SummaryFiles::flush() {
  Status first;
  for (Mode mode : kModes) {
    File& file = files_[index_of(mode)];
    if (Status status = flush(mode, file, false); !status.ok()) {
      if (file.buffer.size() > kMostKeptBytes) file.buffer.clear();
      if (first.ok()) first = std::move(status);
    }
  }
  return first;
}

Status SummaryFiles::close() {
  Status first;
  for (Mode mode : kModes) {
    Status status = flush(mode, files_[index_of(mode)], true);
    files_[index_of(mode)] = {};
    if (first.ok()) first = std::move(status);
  }
  return first;
}

format::HistogramView view_of(const Histogram& histogram) {
  return {.min = histogram.min,
          .max = histogram.max,
          .count = static_cast<double>(histogram.count),
          .sum = histogram.sum,
          .sum_squares = histogram.sum_squares,
          .limits = histogram.limits,
          .counts = histogram.counts};
}

std::string summary_writer_name() { return fmt::format("{}_{}", ::getpid(), host_name()); }

}  // namespace smd

#include "smd/repack/index_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "smd/base/crc32c.h"
#include "smd/base/json.h"
#include "smd/format/file_name.h"
#include "smd/format/index.h"
#include "smd/format/packed_file_name.h"
#include "smd/format/tensor_record.h"
#include "smd/format/tfrecord.h"
#include "smd/tensor/widen.h"
#include "smd/trial/trial.h"
#include "smd/types/tensor_name.h"
#include "smd/types/worker.h"

namespace smd {
namespace {

// An event file takes the records of this many steps of a worker, or fewer if their indexes, which
// wait until it is complete, become long.
constexpr size_t kStepsPerFile = 1000;
constexpr size_t kMostIndexBytes = size_t{64} << 20;
constexpr size_t kBufferBytes = size_t{256} << 10;

class IndexExport final {
 public:
  explicit IndexExport(std::shared_ptr<storage::Storage> run) : storage_(std::move(run)) {}

  Result<IndexExportReport> run(
      const std::function<void(uint64_t done, uint64_t total)>& progress) {
    SMD_RETURN_IF_ERROR(check_packed());
    SMD_TRY(run_, Trial::open(storage_, {.check = true, .end_delay_secs = 0}));
    SMD_RETURN_IF_ERROR(run_->refresh());
    snapshot_ = run_->snapshot();
    uint64_t total = 0;
    for (uint32_t i = 0; i < snapshot_->row_count(); ++i) {
      snapshot_->for_each_part(snapshot_->row(i), [&](uint32_t id, const Part& part) {
        parts_[part.worker].emplace_back(i, id);
        ++total;
      });
    }
    SMD_TRY(stale_, files_of_last_export());
    // Before the first index, so that nobody takes the directory for two runs.
    SMD_RETURN_IF_ERROR(put(std::string(format::kExportMark),
                            dump_json({{"version", 1}, {"index", "exported from v2"}})));
    uint64_t done = 0;
    for (const auto& [worker, parts] : parts_) {
      worker_ = worker_to_file_name(snapshot_->names().workers[worker]);
      for (const auto& [row, part] : parts) {
        SMD_RETURN_IF_ERROR(export_part(snapshot_->row(row).info, part));
        if (waiting_steps_ >= kStepsPerFile || waiting_bytes_ >= kMostIndexBytes) {
          SMD_RETURN_IF_ERROR(publish());
        }
        if (progress) progress(++done, total);
      }
      SMD_RETURN_IF_ERROR(publish());
    }
    for (const std::string& path : stale_) SMD_RETURN_IF_ERROR(storage_->remove(path));
    report_.steps = snapshot_->row_count();
    report_.workers = parts_.size();
    report_.too_large.assign(too_large_.begin(), too_large_.end());
    return report_;
  }

 private:
  Status check_packed() const {
    SMD_TRY(const auto files, storage_->list(format::kPackedFolder, ""));
    const bool packed = std::any_of(files.begin(), files.end(), [](const auto& file) {
      return format::parse_packed_file_name(file.path).has_value();
    });
    if (packed) return {};
    return Error{ErrorCode::invalid_argument,
                 fmt::format("The run is not in the packed layout, so there is no index to be "
                             "written: {}",
                             storage_->name())};
  }

  Result<std::set<std::string>> files_of_last_export() const {
    std::set<std::string> out;
    for (std::string_view folder : {"index", "events"}) {
      SMD_TRY(const auto files, storage_->list(folder, ""));
      for (const auto& file : files) out.insert(file.path);
    }
    return out;
  }

  Status put(const std::string& path, std::string_view content) {
    SMD_RETURN_IF_ERROR(storage_->put(path, as_bytes(content), storage::Put::always, {}));
    stale_.erase(path);
    return {};
  }

  Status export_part(const StepInfo& step, uint32_t id) {
    const Part& part = snapshot_->part(id);
    const Layout& layout = snapshot_->layout_of(part);
    format::IndexBuilder in_place;
    format::IndexBuilder copied;
    const auto entries = layout.entries();
    const uint64_t copied_before = report_.copied;
    for (uint32_t i = 0; i < entries.size(); ++i) {
      const Layout::Entry& entry = entries[i];
      const Slot slot = Slot::from_id(entry.slot);
      std::string name = snapshot_->names().tensors[entry.tensor];
      if (!slot.is_value()) {
        name = reduction_tensor_name(snapshot_->names().ops[slot.op()], slot.abs(), name);
      }
      SMD_TRY(const auto about, run_->describe(*snapshot_, {id, i}));
      if (entry.form == Layout::Form::record && !is_stored_widened(about.dtype)) {
        const auto crc = part.checksums ? part.checksums->records[i] : std::nullopt;
        in_place.add_tensor(name, part.base + entry.offset, entry.length, crc);
        ++report_.in_place;
        continue;
      }
      const format::TensorHead head{
          .name = name, .dtype = about.dtype, .shape = about.shape, .wall_secs = about.wall_secs};
      const auto count = static_cast<uint64_t>(TensorView{.shape = about.shape}.size());
      if (!format::check_record_size(head, count).ok()) {
        too_large_.insert(name);
        ++report_.left_out;
        continue;
      }
      SMD_TRY(const TensorValue value, run_->read(*snapshot_, {id, i}));
      SMD_RETURN_IF_ERROR(append_record(step, head, value, copied));
    }
    for (const Layout::ShapeOf& shape : layout.shapes()) {
      copied.add_shape(snapshot_->names().tensors[shape.tensor], shape.original_name, shape.shape);
    }
    const std::string path = format::index_file_name(step.step, worker_);
    const bool both = !in_place.empty() && !copied.empty();
    if (!in_place.empty()) {
      std::string first = path;
      if (both) first.replace(first.rfind('.'), std::string::npos, ".csv");
      wait(std::move(first), in_place.finish(step, snapshot_->file_of(part)));
    }
    if (!copied.empty()) {
      const bool only_shapes = report_.copied == copied_before;
      wait(path, copied.finish(step, only_shapes ? "" : file_path_));
    }
    ++waiting_steps_;
    return {};
  }

  // Opens the event file of the next steps, whose first one names it.
  Status append_record(const StepInfo& step, const format::TensorHead& head,
                       const TensorValue& value, format::IndexBuilder& index) {
    if (!file_) {
      file_path_ = format::event_file_name(step.step, worker_);
      SMD_TRY(file_, storage_->create(file_path_, {}));
      offset_ = 0;
    }
    Bytes wide;
    ByteSpan stored = value.elements;
    if (is_stored_widened(value.dtype)) {
      const size_t count = value.elements.size() / size_of(value.dtype);
      wide.resize(count * sizeof(float));
      std::vector<float> floats(count);
      widen(value.dtype, value.elements, floats);
      const ByteSpan bits = std::as_bytes(std::span(floats));
      std::copy(bits.begin(), bits.end(), wide.begin());
      stored = wide;
    }
    const uint64_t count = value.elements.size() / size_of(value.dtype);
    std::string start;
    std::string end;
    format::append_record_start(start, step, head, count);
    format::append_record_end(end, step, head);
    uint32_t crc = crc32c(as_bytes(start).subspan(format::kRecordHeaderBytes));
    crc = crc32c(stored, crc);
    const ByteSpan tail = as_bytes(end);
    crc = crc32c(tail.first(tail.size() - format::kRecordFooterBytes), crc);
    const uint64_t length = start.size() + stored.size() + end.size();
    index.add_tensor(head.name, offset_, length, crc);
    offset_ += length;
    ++report_.copied;
    if (length > kBufferBytes) {
      const ByteSpan pieces[] = {as_bytes(buffer_), as_bytes(start), stored, tail};
      SMD_RETURN_IF_ERROR(file_->append(pieces));
      buffer_.clear();
      return {};
    }
    buffer_.append(start).append(as_text(stored)).append(end);
    return buffer_.size() < kBufferBytes ? Status() : flush();
  }

  Status flush() {
    if (buffer_.empty()) return {};
    SMD_RETURN_IF_ERROR(file_->append({{as_bytes(buffer_)}}));
    buffer_.clear();
    return {};
  }

  void wait(std::string path, std::string index) {
    waiting_bytes_ += index.size();
    waiting_.emplace_back(std::move(path), std::move(index));
  }

  // The event file, and then what names it.
  Status publish() {
    if (file_) {
      SMD_RETURN_IF_ERROR(flush());
      SMD_RETURN_IF_ERROR(file_->commit());
      file_.reset();
      stale_.erase(file_path_);
      report_.event_bytes += offset_;
      ++report_.event_files;
    }
    for (const auto& [path, index] : waiting_) SMD_RETURN_IF_ERROR(put(path, index));
    report_.index_files += waiting_.size();
    waiting_.clear();
    waiting_bytes_ = 0;
    waiting_steps_ = 0;
    return {};
  }

  const std::shared_ptr<storage::Storage> storage_;
  std::unique_ptr<Trial> run_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::map<uint32_t, std::vector<std::pair<uint32_t, uint32_t>>> parts_;  // row and part by worker
  std::set<std::string> stale_;  // files of an earlier export that were not written again
  std::set<std::string> too_large_;

  std::string worker_;                        // as it stands in file names
  std::unique_ptr<storage::WriteFile> file_;  // once a record goes there
  std::string file_path_;
  std::string buffer_;                                        // what is not in the file yet
  uint64_t offset_ = 0;                                       // of the next record
  std::vector<std::pair<std::string, std::string>> waiting_;  // index files: path and content
  size_t waiting_bytes_ = 0;
  size_t waiting_steps_ = 0;
  IndexExportReport report_;
};

}  // namespace

Result<IndexExportReport> export_index(
    std::shared_ptr<storage::Storage> run,
    const std::function<void(uint64_t done, uint64_t total)>& progress) {
  return IndexExport(std::move(run)).run(progress);
}

}  // namespace smd

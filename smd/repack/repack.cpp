#include "smd/repack/repack.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "smd/base/json.h"
#include "smd/config/hook_config.h"
#include "smd/format/file_name.h"
#include "smd/format/tensor_record.h"
#include "smd/repack/exact_match.h"
#include "smd/trial/trial.h"
#include "smd/types/tensor_name.h"
#include "smd/types/worker.h"
#include "smd/writer/sinks/original.h"
#include "smd/writer/sinks/packed.h"

namespace smd {
namespace {

using format::kRepackMark;

constexpr std::string_view kCollections = "collections";
// The original's layout takes four bytes for the smallest float, and its records end here.
constexpr uint64_t kLargeBytes = (uint64_t{2} << 30) / 4 - 4096;

// Whether the number fits StoredReduction.
bool is_stored_number(const TensorValue& value) {
  return value.strings.empty() && value.dtype != DType::string &&
         info_of(value.dtype).kind != DTypeKind::complex &&
         value.elements.size() == size_of(value.dtype) && value.elements.size() <= 8;
}

class Repack final {
 public:
  Repack(std::shared_ptr<storage::Storage> from, std::shared_ptr<storage::Storage> to,
         const RepackOptions& options)
      : from_(std::move(from)), to_(std::move(to)), options_(options) {}

  Result<RepackReport> run() {
    SMD_RETURN_IF_ERROR(check_empty());
    SMD_TRY(run_, open(from_));
    snapshot_ = run_->snapshot();
    SMD_TRY(const bool ended, has_end_marker(*from_));
    gather_parts();
    if (options_.layout == RunLayout::original) SMD_RETURN_IF_ERROR(check_sizes());
    SMD_RETURN_IF_ERROR(write_mark());
    SMD_RETURN_IF_ERROR(copy_collections());
    for (const auto& [worker, parts] : parts_) SMD_RETURN_IF_ERROR(copy_worker(worker, parts));
    if (options_.verify) SMD_RETURN_IF_ERROR(verify());
    SMD_RETURN_IF_ERROR(to_->sync());
    if (ended) SMD_RETURN_IF_ERROR(put(format::kEndMarker, {}));
    SMD_RETURN_IF_ERROR(to_->remove(kRepackMark));
    report_.ended = ended;
    report_.workers = parts_.size();
    return report_;
  }

 private:
  struct Place {
    uint32_t row = 0;
    uint32_t part = 0;
  };

  static Result<std::unique_ptr<Trial>> open(std::shared_ptr<storage::Storage> storage) {
    // A copy must not make damage look whole.
    SMD_TRY(auto trial, Trial::open(std::move(storage), {.check = true, .end_delay_secs = 0}));
    SMD_RETURN_IF_ERROR(trial->refresh());
    return trial;
  }

  static Result<bool> has_end_marker(storage::Storage& storage) {
    const auto marker = storage.stat(format::kEndMarker);
    if (!marker.ok() && marker.error().code != ErrorCode::not_found) return marker.error();
    return marker.ok();
  }

  Status check_empty() const {
    if (const auto interrupted = interrupted_repack(*to_)) {
      return Error{ErrorCode::invalid_argument, *interrupted};
    }
    SMD_TRY(const auto files, to_->list("", ""));
    if (files.empty()) return {};
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("The destination must be empty, but holds '{}'{}: {}", files.front().path,
                    files.size() > 1 ? fmt::format(" and {} more", files.size() - 1) : "",
                    to_->name())};
  }

  // By worker, so that few files are open at a time; by step for each of them.
  void gather_parts() {
    for (uint32_t i = 0; i < snapshot_->row_count(); ++i) {
      bool any = false;
      snapshot_->for_each_part(snapshot_->row(i), [&](uint32_t id, const Part& part) {
        if (snapshot_->layout_of(part).tensors().empty()) {
          ++report_.empty_left_out;
          return;
        }
        parts_[part.worker].push_back({i, id});
        ++total_;
        any = true;
      });
      if (any) ++report_.steps;
    }
    if (options_.verify) total_ *= 2;
  }

  // Before anything is written.
  Status check_sizes() const {
    for (const auto& [worker, parts] : parts_) {
      for (const Place& place : parts) {
        const auto entries = snapshot_->layout_of(snapshot_->part(place.part)).entries();
        for (uint32_t i = 0; i < entries.size(); ++i) {
          if (entries[i].length < kLargeBytes) continue;
          SMD_TRY(const auto about, run_->describe(*snapshot_, {place.part, i}));
          const std::string& name = snapshot_->names().tensors[entries[i].tensor];
          const format::TensorHead head{.name = name, .dtype = about.dtype, .shape = about.shape};
          const auto count = static_cast<uint64_t>(TensorView{.shape = about.shape}.size());
          if (about.dtype == DType::string || format::check_record_size(head, count).ok()) continue;
          return Error{
              ErrorCode::unsupported,
              fmt::format("The tensor '{}' of step {} has {} bytes, {} in the original layout, "
                          "which ends at 2 GiB a tensor; nothing was written.",
                          name, snapshot_->row(place.row).info.step, count * size_of(about.dtype),
                          format::stored_bytes(head, count))};
        }
      }
    }
    return {};
  }

  Status put(std::string_view path, ByteSpan content) const {
    SMD_RETURN_IF_ERROR(to_->put(path, content, storage::Put::always, {}));
    return {};
  }

  Status write_mark() const {
    const Json mark = {{"source", from_->name()}, {"layout", name_of(options_.layout)}};
    const std::string text = dump_json(mark);
    SMD_TRY(const bool first, to_->put(kRepackMark, as_bytes(text), storage::Put::if_absent, {}));
    if (first) return {};
    return Error{ErrorCode::invalid_argument,
                 fmt::format("Somebody else copies a run to this place: {}", to_->name())};
  }

  Status copy_collections() {
    SMD_TRY(const auto files, from_->list(kCollections, ""));
    for (const auto& file : files) {
      SMD_TRY(const Bytes content, storage::read_all(*from_, file.path, storage::kMostJsonBytes));
      SMD_RETURN_IF_ERROR(put(file.path, content));
      ++report_.collections_files;
    }
    return {};
  }

  std::unique_ptr<Sink> sink_for(const std::string& worker) const {
    if (options_.layout == RunLayout::original) {
      return original_sink({.storage = to_, .worker = worker});
    }
    return packed_sink({.storage = to_, .worker = worker, .clock = options_.clock});
  }

  Status copy_worker(uint32_t worker, const std::vector<Place>& parts) {
    const auto sink = sink_for(worker_to_file_name(snapshot_->names().workers[worker]));
    for (const Place& place : parts) {
      SMD_RETURN_IF_ERROR(sink->begin_step(snapshot_->row(place.row).info));
      const Status copied = copy_part(place.part, *sink);
      if (!copied.ok()) {
        sink->abandon_step();
        return copied;
      }
      tell();
    }
    return sink->close();
  }

  Status copy_part(uint32_t id, Sink& sink) {
    const Layout& layout = snapshot_->layout_of(snapshot_->part(id));
    const auto entries = layout.entries();
    // Reductions of one tensor with one time, which go together.
    std::vector<StoredReduction> together;
    double time = 0;
    for (uint32_t i = 0; i < entries.size(); ++i) {
      const std::string& tensor = snapshot_->names().tensors[entries[i].tensor];
      const Slot slot = Slot::from_id(entries[i].slot);
      SMD_TRY(const TensorValue value, run_->read(*snapshot_, {id, i}));
      report_.element_bytes += value.elements.size();
      ++(slot.is_value() ? report_.values : report_.reductions);
      if (slot.is_value() || !is_stored_number(value)) {
        const std::string name =
            slot.is_value()
                ? tensor
                : reduction_tensor_name(snapshot_->names().ops[slot.op()], slot.abs(), tensor);
        SMD_RETURN_IF_ERROR(copy_value(name, value, sink));
        continue;
      }
      time = value.wall_secs;
      StoredReduction stored{.name = name_of(slot), .dtype = value.dtype};
      std::copy(value.elements.begin(), value.elements.end(), stored.bits.begin());
      together.push_back(stored);
      const bool more = i + 1 < entries.size() && entries[i + 1].tensor == entries[i].tensor;
      if (more) {
        SMD_TRY(const auto next, run_->describe(*snapshot_, {id, i + 1}));
        if (next.wall_secs == time) continue;
      }
      SMD_RETURN_IF_ERROR(sink.reductions(tensor, time, together));
      together.clear();
    }
    for (const Layout::ShapeOf& shape : layout.shapes()) {
      SMD_RETURN_IF_ERROR(
          sink.shape(snapshot_->names().tensors[shape.tensor], shape.original_name, shape.shape));
      ++report_.shapes;
    }
    return sink.end_step();
  }

  static Status copy_value(std::string_view name, const TensorValue& value, Sink& sink) {
    const format::TensorHead head{
        .name = name, .dtype = value.dtype, .shape = value.shape, .wall_secs = value.wall_secs};
    if (value.dtype != DType::string) return sink.tensor(head, value.elements);
    const std::vector<std::string_view> texts(value.strings.begin(), value.strings.end());
    return sink.strings(head, texts);
  }

  std::string_view name_of(Slot slot) {
    auto [known, is_new] = slot_names_.try_emplace(slot.id());
    if (is_new) known->second = snapshot_->slot_name(slot);
    return known->second;
  }
  static std::string_view name_of(RunLayout layout) { return smd::name_of(layout); }

  Status verify() {
    SMD_TRY(const auto copy, open(to_));
    SMD_TRY(const auto mismatch, first_mismatch(*run_, *copy, [this] { tell(); }));
    if (mismatch) {
      return Error{ErrorCode::internal,
                   fmt::format("The copy is not like the run. {} {}", *mismatch, to_->name())};
    }
    report_.verified = true;
    return {};
  }

  void tell() {
    if (options_.progress) options_.progress(++done_, total_);
  }

  const std::shared_ptr<storage::Storage> from_;
  const std::shared_ptr<storage::Storage> to_;
  const RepackOptions& options_;
  std::unique_ptr<Trial> run_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::map<uint32_t, std::vector<Place>> parts_;  // by worker
  std::map<uint32_t, std::string> slot_names_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
  RepackReport report_;
};

}  // namespace

Result<RepackReport> repack_run(std::shared_ptr<storage::Storage> from,
                                std::shared_ptr<storage::Storage> to,
                                const RepackOptions& options) {
  return Repack(std::move(from), std::move(to), options).run();
}

std::optional<std::string> interrupted_repack(storage::Storage& storage) {
  if (!storage.stat(kRepackMark).ok()) return std::nullopt;
  std::string source = "another place";
  if (const auto bytes = storage::read_all(storage, kRepackMark, storage::kMostJsonBytes);
      bytes.ok()) {
    const auto mark = parse_json(as_text(*bytes), kRepackMark);
    if (mark.ok() && mark->is_object() && mark->contains("source") &&
        (*mark)["source"].is_string()) {
      source = fmt::format("'{}'", (*mark)["source"].get<std::string>());
    }
  }
  return fmt::format(
      "The directory holds a part of a copy of {}: repack is still running, or was interrupted; "
      "remove the directory and begin anew: {}",
      source, storage.name());
}

}  // namespace smd

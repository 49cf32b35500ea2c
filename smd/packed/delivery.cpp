#include "smd/packed/delivery.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "smd/base/crc32c.h"
#include "smd/format/file_name.h"
#include "smd/format/packed_file_name.h"
#include "smd/format/packed_footer.h"
#include "smd/format/packed_log.h"
#include "smd/format/packed_manifest.h"
#include "smd/format/tfrecord.h"
#include "smd/packed/segment_file.h"
#include "smd/storage/copy.h"

namespace smd::packed {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{4} << 20;

bool is_in(std::string_view folder, std::string_view path) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

// How far a segment can be used.
struct Closed {
  std::string log;  // with its end
  uint64_t data_bytes = 0;
  Step watermark = -1;
  bool damaged = false;  // the log says less than it could
};

// `log` as far as it is whole, cut after the last step that lies in the segment completely.
Result<Closed> close(std::string_view log, uint64_t segment_bytes) {
  Closed closed;
  size_t used = 0;
  for (size_t at = 0; at < log.size();) {
    const auto record = format::parse_record(as_bytes(log).subspan(at), at);
    if (!record.ok() && record.error().code == ErrorCode::truncated) break;  // it was killed here
    closed.damaged = !record.ok() || record->footer != format::Footer::checksum;
    if (closed.damaged) break;
    const auto entry = format::parse_log_entry(record->payload);
    if (!entry.ok()) {
      if (entry.error().code == ErrorCode::unsupported) return entry.error();
      closed.damaged = true;
      break;
    }
    at += record->size_bytes;
    if (const auto* step = std::get_if<format::PackedStep>(&*entry)) {
      if (step->base + step->length > segment_bytes) break;
      closed.data_bytes = std::max(closed.data_bytes, step->base + step->length);
      closed.watermark = std::max(closed.watermark, step->info.step);
      used = at;
    }
  }
  if (used == 0) return closed;
  closed.log = log.substr(0, used);
  format::append_log_entry(closed.log, format::PackedEnd());
  return closed;
}

class PackedDelivery final : public storage::Delivery {
 public:
  // `whole_run`: `local` is a run whose files beside the steps have no notes.
  PackedDelivery(std::shared_ptr<storage::Storage> remote, bool whole_run)
      : remote_(std::move(remote)), journal_(journal_of(remote_)), whole_run_(whole_run) {}

  bool takes(std::string_view path) const override {
    return is_in(format::kSegmentFolder, path) || is_in(format::kNoteFolder, path) ||
           (whole_run_ && (is_in("collections", path) || path == format::kEndMarker));
  }

  std::string owner_of(std::string_view path) const override {
    if (!is_in(format::kLogFolder, path)) return {};
    const auto name = format::parse_packed_file_name(path);
    return name ? format::segment_file_name(name->writer, name->sequence) : std::string();
  }

  Result<uint64_t> deliver(storage::Storage& local, std::string_view path,
                           const Options& options) override {
    if (is_in(format::kNoteFolder, path)) return deliver_note(local, path, options.again);
    if (!is_in(format::kSegmentFolder, path)) return deliver_file(local, path, options.again);
    const auto name = format::parse_packed_file_name(path);
    if (!name) return storage::copy_file(local, *remote_, path);
    const std::string log = format::log_file_name(name->writer, name->sequence);
    SMD_TRY(const uint64_t sent, deliver_segment(local, path, log, options.again));
    if (!options.keep) SMD_RETURN_IF_ERROR(local.remove(log));
    return sent;
  }

 private:
  Result<uint64_t> deliver_segment(storage::Storage& local, std::string_view path,
                                   const std::string& log_path, bool again) {
    SMD_TRY(const auto segment, local.open(path));
    SMD_TRY(const uint64_t size, segment->size());
    const auto own = storage::read_all(local, log_path, format::kMostLogBytes);
    SMD_TRY(Closed closed, close(own.ok() ? as_text(*own) : std::string_view(), size));
    if ((closed.log.empty() && size > 0) || closed.damaged) {
      SMD_TRY(const std::string log, log_of_segment(*segment));
      SMD_TRY(Closed other, close(log, size));
      if (other.data_bytes > closed.data_bytes) closed = std::move(other);
    }
    if (closed.log.empty()) return uint64_t{0};

    // The same bytes give the same name, whoever closes the segment and however often.
    const std::string id = fmt::format("{}#{}", path, closed.data_bytes);
    if (again) {
      SMD_TRY(const auto known, journal_.find(id));
      if (known) return uint64_t{0};
    }
    std::string footer;
    SMD_RETURN_IF_ERROR(format::append_footer(footer, closed.data_bytes, closed.log));
    SMD_RETURN_IF_ERROR(send(*segment, path, closed.data_bytes, footer));
    const auto name = format::parse_packed_file_name(path);
    const uint64_t bytes = closed.data_bytes + footer.size();
    SMD_RETURN_IF_ERROR(
        journal_.commit({.id = id,
                         .content = format::encode_manifest({.writer = name->writer,
                                                             .segment = std::string(path),
                                                             .segment_bytes = bytes,
                                                             .log = std::move(closed.log),
                                                             .watermark = closed.watermark})}));
    return bytes;
  }

  Status send(storage::ReadFile& segment, std::string_view path, uint64_t data_bytes,
              const std::string& footer) {
    SMD_TRY(const auto target, remote_->create(path, {.durable = true}));
    target->expect(data_bytes + footer.size());
    Bytes piece(std::min(data_bytes, kPieceBytes));
    for (uint64_t done = 0; done < data_bytes;) {
      const auto now = std::span(piece).first(std::min<uint64_t>(piece.size(), data_bytes - done));
      SMD_TRY(const size_t got, segment.read_at(done, now));
      if (got == 0) {
        return Error{ErrorCode::truncated,
                     fmt::format("The segment became shorter while it was sent: {}", path)};
      }
      SMD_RETURN_IF_ERROR(target->append({{ByteSpan(now).first(got)}}));
      done += got;
    }
    SMD_RETURN_IF_ERROR(target->append({{as_bytes(footer)}}));
    return target->commit();
  }

  // A note is what is committed; its name is taken once.
  Result<uint64_t> deliver_note(storage::Storage& local, std::string_view path, bool again) {
    SMD_TRY(const Bytes content, storage::read_all(local, path, storage::kMostJournalBytes));
    if (const auto note = format::parse_manifest(content); !note.ok()) {
      // Its machine failed while it was written: nobody can use it, and others wait behind it.
      if (note.error().code == ErrorCode::corrupt) return uint64_t{0};
      return note.error();
    }
    SMD_RETURN_IF_ERROR(journal_.commit(
        {.id = std::string(path), .content = std::string(as_text(content)), .again = again}));
    return uint64_t{content.size()};
  }

  Result<uint64_t> deliver_file(storage::Storage& local, std::string_view path, bool again) {
    SMD_TRY(const Bytes content, storage::read_all(local, path, storage::kMostJsonBytes));
    SMD_TRY(const storage::FileInfo info, local.stat(path));
    format::PackedManifest manifest;
    if (path == format::kEndMarker) {
      constexpr double kNanos = 1e9;
      manifest.end_secs = static_cast<double>(info.mtime_ns) / kNanos;
    } else {
      manifest.files.push_back({std::string(path), std::string(as_text(content))});
    }
    const std::string id = fmt::format("{}#{:08x}.{}", path, crc32c(content), info.mtime_ns);
    if (again) {
      SMD_TRY(const auto known, journal_.find(id));
      if (known) return uint64_t{0};
    }
    SMD_TRY(const uint64_t bytes, storage::copy_file(local, *remote_, path));
    SMD_RETURN_IF_ERROR(journal_.commit({.id = id, .content = format::encode_manifest(manifest)}));
    return std::max<uint64_t>(bytes, 1);
  }

  const std::shared_ptr<storage::Storage> remote_;
  storage::Journal journal_;
  const bool whole_run_;
};

}  // namespace

storage::Journal journal_of(std::shared_ptr<storage::Storage> storage) {
  return storage::Journal(std::move(storage), {.root = std::string(format::kPackedFolder)});
}

std::shared_ptr<storage::Delivery> delivery_to(std::shared_ptr<storage::Storage> remote) {
  return std::make_shared<PackedDelivery>(std::move(remote), false);
}

Result<storage::SyncReport> sync_run(const std::string& root,
                                     const std::shared_ptr<storage::Storage>& remote,
                                     storage::SyncOptions options) {
  if (remote->is_remote()) {
    const auto local = storage::local_storage(root);
    SMD_TRY(const auto packed, local->list(format::kPackedFolder, ""));
    SMD_TRY(const auto notes, local->list(format::kNoteFolder, ""));
    options.delivery = std::make_shared<PackedDelivery>(remote, !packed.empty() && notes.empty());
  }
  return storage::sync_to(root, *remote, options);
}

}  // namespace smd::packed

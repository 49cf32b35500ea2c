#include "smd/trial/internal/segment_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "smd/format/event_name.h"
#include "smd/format/packed_block.h"
#include "smd/format/packed_footer.h"
#include "smd/format/tfrecord.h"
#include "smd/types/tensor_name.h"

namespace smd::internal {
namespace {

constexpr std::string_view kAbs = "abs_";

Error corrupt(std::string what) { return {ErrorCode::corrupt, std::move(what)}; }

// Up to `length` bytes; fewer at the end of the file.
Result<Bytes> read_bytes(storage::ReadFile& file, uint64_t offset, uint64_t length) {
  Bytes bytes(length);
  SMD_TRY(const size_t got, file.read_at(offset, bytes));
  bytes.resize(got);
  return bytes;
}

Result<std::string> log_of_footer(storage::ReadFile& file, uint64_t size) {
  if (size < format::kFooterTailBytes) {
    return Error{ErrorCode::not_found, "The segment has no footer."};
  }
  SMD_TRY(const Bytes tail,
          read_bytes(file, size - format::kFooterTailBytes, format::kFooterTailBytes));
  SMD_TRY(const auto place, format::parse_footer_tail(tail, size));
  SMD_TRY(const Bytes compressed, read_bytes(file, place.offset, place.length));
  return format::unpack_footer(place, compressed);
}

// The entries that stand in the blocks of a segment, up to the first record that is not whole.
Result<std::string> log_of_blocks(storage::ReadFile& file, uint64_t size) {
  constexpr uint64_t kHeadBytes = 256;  // enough for the name of a block
  std::string log;
  for (uint64_t at = 0; at < size;) {
    SMD_TRY(const Bytes head, read_bytes(file, at, format::kRecordHeaderBytes + kHeadBytes));
    if (head.size() < format::kRecordHeaderBytes) break;
    const auto payload = load_le<uint64_t>(head.data());
    const auto header = format::record_header(payload);
    if (!std::equal(header.begin(), header.end(), head.begin()) ||
        payload > size - at - format::kRecordHeaderBytes ||
        size - at - format::kRecordHeaderBytes - payload < format::kRecordFooterBytes) {
      break;
    }
    const uint64_t length = payload + format::kRecordOverheadBytes;
    if (format::peek_name(ByteSpan(head).subspan(format::kRecordHeaderBytes)) ==
        format::kBlockTag) {
      SMD_TRY(const Bytes bytes, read_bytes(file, at, length));
      const auto record = format::parse_record(bytes, at);
      if (!record.ok()) break;
      if (const auto entries = format::block_entries(record->payload)) log += *entries;
    }
    at += length;
  }
  return log;
}

}  // namespace

Status SegmentLog::read(storage::Storage& storage) {
  const std::string path = format::log_file_name(name_.writer, name_.sequence);
  SMD_TRY(auto file, storage.open(path));
  SMD_TRY(const uint64_t size, file->size());
  if (size <= read_bytes_) return {};
  SMD_TRY(const Bytes text, read_bytes(*file, read_bytes_, size - read_bytes_));
  const Status status = parse(text);
  if (status.ok()) return {};
  return Error{status.error().code, fmt::format("{} File: {}", status.error().message, path)};
}

Status SegmentLog::read_segment(storage::Storage& storage) {
  const std::string path = format::segment_file_name(name_.writer, name_.sequence);
  SMD_TRY(auto file, storage.open(path));
  SMD_TRY(const uint64_t size, file->size());
  auto log = log_of_footer(*file, size);
  if (!log.ok()) {
    if (log.error().code == ErrorCode::unsupported) return log.error();
    log = log_of_blocks(*file, size);
  }
  if (!log.ok()) return log.error();
  // The same bytes as those of the log, so what was read before need not be read again.
  if (log->size() <= read_bytes_) return {};
  const Status status = parse(as_bytes(*log).subspan(read_bytes_));
  if (status.ok()) return {};
  return Error{status.error().code, fmt::format("{} File: {}", status.error().message, path)};
}

Status SegmentLog::parse(ByteSpan text) {
  for (uint64_t at = 0; at < text.size() && !ended_;) {
    const auto record = format::parse_record(text.subspan(at), read_bytes_);
    if (!record.ok()) {
      // The rest is still to come, or never will: its writer was killed.
      if (record.error().code == ErrorCode::truncated) return {};
      return record.error();
    }
    if (record->footer != format::Footer::checksum) {
      return corrupt(fmt::format("The entry at offset {} has no checksum.", read_bytes_));
    }
    SMD_TRY(const auto entry, format::parse_log_entry(record->payload));
    SMD_RETURN_IF_ERROR(take(entry));
    at += record->size_bytes;
    read_bytes_ += record->size_bytes;
  }
  return {};
}

Status SegmentLog::take(const format::PackedEntry& entry) {
  if (std::holds_alternative<format::PackedHeader>(entry)) {
    begun_ = true;
    return {};
  }
  if (!begun_) return corrupt("The log does not begin with a header.");
  if (const auto* names = std::get_if<format::PackedNames>(&entry)) {
    if (names->first_id != names_.size()) {
      return corrupt(fmt::format("The names from number {} on do not follow the {} before.",
                                 names->first_id, names_.size()));
    }
    names_.insert(names_.end(), names->names.begin(), names->names.end());
  }
  if (const auto* schema = std::get_if<format::PackedSchema>(&entry)) return take_schema(*schema);
  if (const auto* step = std::get_if<format::PackedStep>(&entry)) return take_step(*step);
  ended_ = std::holds_alternative<format::PackedEnd>(entry);
  return {};
}

Status SegmentLog::take_schema(const format::PackedSchema& schema) {
  for (const format::PackedValue& value : schema.values) {
    if (value.tensor >= names_.size()) {
      return corrupt(fmt::format("The schema {} names the tensor {}, but there are only {} names.",
                                 schema.id, value.tensor, names_.size()));
    }
  }
  format::BlockPlaces places = format::places_of(schema.values);
  schemas_.insert_or_assign(schema.id, Schema{.ops = {schema.ops.begin(), schema.ops.end()},
                                              .values = schema.values,
                                              .offsets = std::move(places.offsets),
                                              .size_bytes = places.size_bytes});
  layouts_.clear();
  last_key_.clear();
  return {};
}

Status SegmentLog::take_step(const format::PackedStep& step) {
  const auto schema = schemas_.find(step.schema);
  if (schema == schemas_.end()) {
    return corrupt(fmt::format("Step {} has the schema {}, which the log does not hold.",
                               step.info.step, step.schema));
  }
  bool unknown = false;
  for (const auto& raw : step.raws) unknown = unknown || raw.tensor >= names_.size();
  for (const auto& shape : step.shapes) {
    unknown = unknown || shape.tensor >= names_.size() || shape.original_name >= names_.size();
  }
  if (unknown) {
    return corrupt(
        fmt::format("Step {} names tensors that the log does not hold.", step.info.step));
  }
  if (schema->second.size_bytes > step.length - step.block_offset) {
    return corrupt(fmt::format("The {} bytes of numbers of step {} lie outside of it.",
                               schema->second.size_bytes, step.info.step));
  }
  steps_.push_back(step);
  return {};
}

void SegmentLog::merge(Staging& staging, bool keep_checksums) {
  const std::string file = format::segment_file_name(name_.writer, name_.sequence);
  for (const format::PackedStep& step : steps_) {
    const uint32_t layout = layout_of(step, staging);
    std::shared_ptr<Checksums> checksums;
    if (keep_checksums) {
      const Layout& known = staging.layout(layout);
      checksums = std::make_shared<Checksums>();
      checksums->records.resize(known.entries().size());
      checksums->block = step.block_crc32c;
      for (size_t i = 0; i < step.raws.size(); ++i) {
        // A number of the same name counts more than the record.
        const uint32_t at = known.order()[i];
        if (known.entries()[at].form == Layout::Form::record) {
          checksums->records[at] = step.raws[i].crc32c;
        }
      }
    }
    staging.add({.step = step.info,
                 .worker = name_.worker,
                 .layout = layout,
                 .file = file,
                 .checksums = std::move(checksums),
                 .base = step.base,
                 .precedence = name_.micros,
                 .append_only = true,
                 .wall_secs = step.wall_secs});
  }
  steps_.clear();
}

Layout::Entry SegmentLog::entry_of(uint32_t name, Staging& staging) const {
  const auto reduction = parse_reduction_name(names_[name]);
  const Slot slot = reduction ? staging.reduction(reduction->op, reduction->abs) : Slot::value();
  return {.tensor = staging.tensor(reduction ? reduction->tensor : names_[name]),
          .slot = slot.id()};
}

uint32_t SegmentLog::tensor_of(uint32_t name, Staging& staging) {
  if (tensors_.size() < names_.size()) tensors_.resize(names_.size(), kNone);
  if (tensors_[name] == kNone) tensors_[name] = staging.tensor(names_[name]);
  return tensors_[name];
}

uint32_t SegmentLog::layout_of(const format::PackedStep& step, Staging& staging) {
  key_.assign({step.schema, step.block_offset, step.raws.size()});
  for (const format::PackedRaw& raw : step.raws) {
    key_.insert(key_.end(), {raw.tensor, raw.offset, raw.length});
  }
  for (const format::PackedShape& shape : step.shapes) {
    key_.insert(key_.end(), {shape.tensor, shape.original_name, shape.shape.size()});
    key_.insert(key_.end(), shape.shape.begin(), shape.shape.end());
  }
  if (key_ == last_key_) return last_layout_;
  const auto [known, is_new] = layouts_.try_emplace(key_, 0);
  if (is_new) {
    std::vector<Layout::Entry> entries;
    std::vector<Layout::ShapeOf> shapes;
    const Schema& schema = schemas_.at(step.schema);
    entries.reserve(step.raws.size() + schema.values.size());
    for (const format::PackedRaw& raw : step.raws) {
      Layout::Entry entry = entry_of(raw.tensor, staging);
      entry.offset = raw.offset;
      entry.length = raw.length;
      entries.push_back(entry);
    }
    std::vector<uint32_t> slots;  // of the schema's reductions
    for (std::string_view op : schema.ops) {
      const bool abs = op.starts_with(kAbs);
      if (abs) op.remove_prefix(kAbs.size());
      slots.push_back(staging.reduction(op, abs).id());
    }
    for (size_t i = 0; i < schema.values.size(); ++i) {
      const format::PackedValue& value = schema.values[i];
      Layout::Entry entry;
      if (value.op == 0) {
        entry = entry_of(value.tensor, staging);
      } else {
        entry.tensor = tensor_of(value.tensor, staging);
        entry.slot = slots[value.op - 1];
      }
      entry.offset = step.block_offset + schema.offsets[i];
      entry.length = size_of(value.dtype);
      entry.form = value.rank == 0 ? Layout::Form::scalar : Layout::Form::number;
      entry.dtype = value.dtype;
      entries.push_back(entry);
    }
    for (const format::PackedShape& shape : step.shapes) {
      shapes.push_back(
          {tensor_of(shape.tensor, staging), names_[shape.original_name], shape.shape});
    }
    known->second = staging.add_layout(std::move(entries), std::move(shapes),
                                       {step.block_offset, schema.size_bytes});
  }
  std::swap(key_, last_key_);
  last_layout_ = known->second;
  return last_layout_;
}

}  // namespace smd::internal

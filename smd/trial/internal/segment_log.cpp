#include "smd/trial/internal/segment_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "smd/format/packed_block.h"
#include "smd/format/packed_footer.h"
#include "smd/format/tfrecord.h"
#include "smd/packed/segment_file.h"
#include "smd/types/tensor_name.h"

namespace smd::internal {
namespace {

constexpr std::string_view kAbs = "abs_";

Error corrupt(std::string what) { return {ErrorCode::corrupt, std::move(what)}; }

}  // namespace

Status SegmentLog::read_more(std::string_view text) { return parse(as_bytes(text)); }

uint64_t SegmentLog::numbers_of(const format::PackedStep& step) const {
  return schemas_.at(step.schema).values.size();
}

uint64_t SegmentLog::number_bytes_of(const format::PackedStep& step) const {
  return schemas_.at(step.schema).size_bytes;
}

Status SegmentLog::read(storage::Storage& storage) {
  const std::string path = format::log_file_name(name_.writer, name_.sequence);
  SMD_TRY(auto file, storage.open(path));
  SMD_TRY(const uint64_t size, file->size());
  if (size <= read_bytes_) return {};
  if (size > format::kMostLogBytes) {
    return corrupt(fmt::format("A log of {} bytes is longer than any may be: {}", size, path));
  }
  SMD_TRY(const Bytes text, packed::read_bytes(*file, read_bytes_, size - read_bytes_));
  const Status status = parse(text);
  if (status.ok()) return {};
  return Error{status.error().code, fmt::format("{} File: {}", status.error().message, path)};
}

Status SegmentLog::read_segment(storage::Storage& storage) {
  SMD_TRY(auto file, storage.open(format::segment_file_name(name_.writer, name_.sequence)));
  SMD_TRY(const std::string log, packed::log_of_segment(*file));
  return read_whole(log);
}

Status SegmentLog::read_whole(std::string_view log) {
  // The same bytes as those of the log, so what was read before need not be read again.
  if (log.size() <= read_bytes_) return {};
  const Status status = parse(as_bytes(log).subspan(read_bytes_));
  if (status.ok()) return {};
  return Error{status.error().code,
               fmt::format("{} File: {}", status.error().message,
                           format::segment_file_name(name_.writer, name_.sequence))};
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
  if (const auto* header = std::get_if<format::PackedHeader>(&entry)) {
    // A header that stands again brings features that the steps after it need.
    begun_ = true;
    segment_ = header->segment;
    return {};
  }
  if (!begun_) return corrupt("The log does not begin with a header.");
  if (const auto* names = std::get_if<format::PackedNames>(&entry)) {
    if (names->first_id != names_.size()) {
      return corrupt(fmt::format("The names from number {} on do not follow the {} before.",
                                 names->first_id, names_.size()));
    }
    for (std::string_view name : names->names) {
      if (!is_utf8(name)) {
        return corrupt(fmt::format("The name number {} is not UTF-8.", names_.size()));
      }
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
  for (std::string_view op : schema.ops) {
    if (!is_utf8(op))
      return corrupt(fmt::format("A name in the schema {} is not UTF-8.", schema.id));
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
  for (const RawGroup& group : groups_of(step.raws)) {
    SMD_RETURN_IF_ERROR(check_group(step, group));
  }
  steps_.push_back(step);
  return {};
}

std::vector<SegmentLog::RawGroup> SegmentLog::groups_of(std::span<const format::PackedRaw> raws) {
  std::vector<RawGroup> groups;
  for (const format::PackedRaw& raw : raws) {
    const bool follows = raw.first > 0 && !groups.empty() && groups.back().back().count > 0 &&
                         groups.back().front().tensor == raw.tensor;
    if (follows) {
      groups.back() = {groups.back().data(), groups.back().size() + 1};
    } else {
      groups.push_back({&raw, 1});
    }
  }
  return groups;
}

Status SegmentLog::check_group(const format::PackedStep& step, const RawGroup& group) const {
  const format::PackedRaw& first = group.front();
  if (first.count == 0 && first.first == 0) return {};
  const auto wrong = [&] {
    return corrupt(fmt::format("The parts of '{}' at step {} do not make a tensor.",
                               names_[first.tensor], step.info.step));
  };
  const size_t size = size_of(first.dtype);
  if (size == 0) return wrong();  // texts
  uint64_t count = 0;
  for (const format::PackedRaw& raw : group) {
    if (raw.first != count || raw.dtype != first.dtype || raw.shape != first.shape ||
        raw.count == 0 || raw.count > raw.length / size) {
      return wrong();
    }
    count += raw.count;
  }
  const auto whole = element_count(first.shape);
  return whole.ok() && static_cast<uint64_t>(*whole) == count ? Status() : wrong();
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
      const auto groups = groups_of(step.raws);
      for (size_t i = 0; i < groups.size(); ++i) {
        // A number of the same name counts more than the record.
        const uint32_t at = known.order()[i];
        if (known.entries()[at].form == Layout::Form::record && groups[i].front().count == 0) {
          checksums->records[at] = groups[i].front().crc32c;
        }
      }
      for (const format::PackedRaw& raw : step.raws) {
        if (raw.count > 0) checksums->pieces.push_back(raw.crc32c);
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

void SegmentLog::number_tensors(const format::PackedStep& step, Staging& staging) {
  std::vector<uint32_t> ids;
  for (const format::PackedRaw& raw : step.raws) ids.push_back(raw.tensor);
  for (const format::PackedValue& value : schemas_.at(step.schema).values) {
    ids.push_back(value.tensor);
  }
  for (const format::PackedShape& shape : step.shapes) ids.push_back(shape.tensor);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (const uint32_t id : ids) (void)entry_of(id, staging);
}

uint32_t SegmentLog::layout_of(const format::PackedStep& step, Staging& staging) {
  key_.assign({step.schema, step.block_offset, step.raws.size()});
  for (const format::PackedRaw& raw : step.raws) {
    key_.insert(key_.end(), {raw.tensor, raw.offset, raw.length, raw.first, raw.count});
    if (raw.count == 0) continue;
    key_.insert(key_.end(), {static_cast<uint64_t>(raw.dtype), raw.shape.size()});
    key_.insert(key_.end(), raw.shape.begin(), raw.shape.end());
  }
  for (const format::PackedShape& shape : step.shapes) {
    key_.insert(key_.end(), {shape.tensor, shape.original_name, shape.shape.size()});
    key_.insert(key_.end(), shape.shape.begin(), shape.shape.end());
  }
  if (key_ == last_key_) return last_layout_;
  const auto [known, is_new] = layouts_.try_emplace(key_, 0);
  if (is_new) {
    number_tensors(step, staging);
    std::vector<Layout::Entry> entries;
    std::vector<Layout::ShapeOf> shapes;
    const Schema& schema = schemas_.at(step.schema);
    entries.reserve(step.raws.size() + schema.values.size());
    std::vector<Layout::Split> splits;
    uint32_t pieces = 0;
    for (const RawGroup& group : groups_of(step.raws)) {
      Layout::Entry entry = entry_of(group.front().tensor, staging);
      entry.offset = group.front().offset;
      entry.length = group.front().length;
      if (group.front().count > 0) {
        Layout::Split split{.tensor = entry.tensor, .slot = entry.slot, .shape = group[0].shape};
        uint64_t end = 0;
        for (const format::PackedRaw& raw : group) {
          split.pieces.push_back({raw.offset, raw.length, raw.first, raw.count, pieces++});
          entry.offset = std::min(entry.offset, raw.offset);
          end = std::max(end, raw.offset + raw.length);
        }
        entry.length = end - entry.offset;
        entry.form = Layout::Form::split;
        entry.dtype = group.front().dtype;
        splits.push_back(std::move(split));
      }
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
                                       {step.block_offset, schema.size_bytes}, std::move(splits));
  }
  std::swap(key_, last_key_);
  last_layout_ = known->second;
  return last_layout_;
}

}  // namespace smd::internal

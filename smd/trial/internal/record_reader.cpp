#include "smd/trial/internal/record_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "smd/base/crc32c.h"
#include "smd/format/event.h"
#include "smd/format/tfrecord.h"
#include "smd/reduce/reduce.h"
#include "smd/types/tensor_name.h"

namespace smd::internal {
namespace {

constexpr size_t kMostIdleFiles = 256;
// Records up to this size are read in one go with their neighbours.
constexpr uint64_t kSmallBytes = uint64_t{64} << 10;
// Where reading through a gap is cheaper than another read.
constexpr uint64_t kLocalGapBytes = uint64_t{8} << 10;
constexpr uint64_t kRemoteGapBytes = uint64_t{256} << 10;
constexpr uint64_t kMostExtentBytes = uint64_t{8} << 20;
constexpr uint64_t kMostBlockBytes = uint64_t{64} << 20;
// Enough for the beginning of a record up to its elements.
constexpr uint64_t kHeadBytes = 4096;
// Remote sizes are asked for, at the price of a request, before more than this is allocated.
constexpr uint64_t kTrustedBytes = uint64_t{64} << 20;

Error in_file(const Error& error, std::string_view path) {
  return {error.code, fmt::format("{} File: {}", error.message, path)};
}

Error outside(uint64_t offset, uint64_t length, uint64_t size, std::string_view path) {
  return {ErrorCode::truncated,
          fmt::format("The record of {} bytes at offset {} ends behind the file's {} bytes: {}",
                      length, offset, size, path)};
}

// The whole record, checked as far as the snapshot tells how.
Result<format::EventView> parse(const Snapshot& snapshot, const Location& at, ByteSpan record,
                                std::string_view path) {
  const Part& part = snapshot.part(at.part);
  const Layout::Entry& entry = snapshot.entry(at);
  const auto framed = format::parse_record(record, entry.offset);
  if (!framed.ok()) return in_file(framed.error(), path);
  if (framed->size_bytes != entry.length) {
    return Error{ErrorCode::corrupt,
                 fmt::format("The record at offset {} has {} bytes, but the index says {}: {}",
                             entry.offset, framed->size_bytes, entry.length, path)};
  }
  if (part.checksums) {
    const auto expected = (*part.checksums)[at.entry];
    if (expected && crc32c(framed->payload) != *expected) {
      return Error{ErrorCode::corrupt,
                   fmt::format("The record at offset {} does not have the checksum {:#010x} that "
                               "the index says, but {:#010x}: {}",
                               entry.offset, *expected, crc32c(framed->payload), path)};
    }
  }
  auto event = format::view_event(framed->payload);
  if (!event.ok()) {
    return Error{event.error().code, fmt::format("{} Offset {} of file: {}", event.error().message,
                                                 entry.offset, path)};
  }
  if (!event->tensor) {
    return Error{ErrorCode::corrupt,
                 fmt::format("The record at offset {} holds no tensor: {}", entry.offset, path)};
  }
  if (part.checksums) {
    const Slot slot = Slot::from_id(entry.slot);
    const std::string& tensor = snapshot.names().tensors[entry.tensor];
    const std::string name =
        slot.is_value()
            ? tensor
            : reduction_tensor_name(snapshot.names().ops[slot.op()], slot.abs(), tensor);
    if (event->name != name) {
      return Error{ErrorCode::corrupt,
                   fmt::format("The record at offset {} holds '{}', but the index says '{}': {}",
                               entry.offset, event->name, name, path)};
    }
  }
  return event;
}

bool is_single_number(const format::TensorContent& tensor) {
  const DTypeKind kind = info_of(tensor.dtype).kind;
  return kind != DTypeKind::string && kind != DTypeKind::complex &&
         tensor.elements.size() == size_of(tensor.dtype);
}

Result<double> number_of(const format::TensorContent& tensor) {
  if (tensor.dtype == DType::string || tensor.elements.size() != size_of(tensor.dtype)) {
    return Error{ErrorCode::corrupt, "The record holds something other than one number."};
  }
  switch (tensor.dtype) {
    case DType::float32: return double{load_le<float>(tensor.elements.data())};
    case DType::float64: return load_le<double>(tensor.elements.data());
    default: break;
  }
  // The largest of one number is that number; complex ones have none.
  alignas(16) std::array<std::byte, 16> element{};
  std::copy(tensor.elements.begin(), tensor.elements.end(), element.begin());
  SMD_TRY(const Reduction max, parse_reduction("max"));
  ReductionRequest request;
  request.reductions.add(max);
  ReductionResult result;
  SMD_RETURN_IF_ERROR(reduce({.data = element.data(), .dtype = tensor.dtype}, request, result));
  if (result.values.empty()) {
    return Error{ErrorCode::corrupt, "The record holds a complex number."};
  }
  return result.values.front().second.to_double();
}

bool is_aligned(ByteSpan elements, size_t alignment) {
  return reinterpret_cast<uintptr_t>(elements.data()) % alignment == 0;
}

// `memory` is what the event's views point into.
Result<TensorValue> value_of(format::EventView& event, std::shared_ptr<std::byte> memory) {
  format::TensorContent& tensor = *event.tensor;
  TensorValue value{.dtype = tensor.dtype,
                    .shape = std::move(tensor.shape),
                    .strings = std::move(tensor.strings),
                    .wall_secs = event.wall_secs};
  if (tensor.elements.empty()) return value;
  constexpr size_t kAlignment = 16;
  if (memory && tensor.decoded.empty() && is_aligned(tensor.elements, kAlignment)) {
    value.memory = std::move(memory);
    value.elements = tensor.elements;
    return value;
  }
  value.memory = allocate_aligned(tensor.elements.size(), 0);
  if (!value.memory) {
    return Error{ErrorCode::io,
                 fmt::format("There is no memory for {} bytes.", tensor.elements.size())};
  }
  std::memcpy(value.memory.get(), tensor.elements.data(), tensor.elements.size());
  value.elements = {value.memory.get(), tensor.elements.size()};
  return value;
}

}  // namespace

Result<RecordReader::OpenFile> RecordReader::take(const std::string& path) {
  {
    std::lock_guard lock(mutex_);
    if (const auto known = idle_by_path_.find(path); known != idle_by_path_.end()) {
      const auto at = known->second;
      idle_by_path_.erase(known);
      OpenFile file = std::move(*at);
      idle_.erase(at);
      return file;
    }
  }
  SMD_TRY(auto file, storage_->open(path));
  return OpenFile{path, std::move(file)};
}

void RecordReader::give_back(OpenFile file) {
  std::lock_guard lock(mutex_);
  if (idle_by_path_.contains(file.path)) return;
  idle_.push_front(std::move(file));
  idle_by_path_.emplace(idle_.front().path, idle_.begin());
  if (idle_.size() <= kMostIdleFiles) return;
  idle_by_path_.erase(idle_.back().path);
  idle_.pop_back();
}

Result<RecordReader::Block> RecordReader::read_extent(OpenFile& file, const Extent& extent) {
  const uint64_t length = extent.end - extent.begin;
  if (!storage_->is_remote() || length > kTrustedBytes) {
    SMD_TRY(const uint64_t size, file.file->size());
    if (extent.end > size) return outside(extent.begin, length, size, file.path);
  }
  auto bytes = std::make_shared<Bytes>(length);
  SMD_TRY(const size_t got, file.file->read_at(extent.begin, *bytes));
  if (got < length) return outside(extent.begin, length, extent.begin + got, file.path);
  return Block{extent.begin, std::move(bytes)};
}

// All small records that lie close together around this one.
RecordReader::Extent RecordReader::neighbourhood(const Snapshot& snapshot,
                                                 const Location& at) const {
  const Layout::Entry& wanted = snapshot.entry(at);
  std::vector<Extent> small;
  for (const Layout::Entry& entry : snapshot.layout_of(snapshot.part(at.part)).entries()) {
    if (entry.length <= kSmallBytes) small.push_back({entry.offset, entry.offset + entry.length});
  }
  std::ranges::sort(small, {}, &Extent::begin);
  Extent extent{wanted.offset, wanted.offset + wanted.length};
  const auto first = std::ranges::lower_bound(small, wanted.offset, {}, &Extent::begin);
  for (auto it = first; it != small.end(); ++it) {
    if (it->begin > extent.end + kRemoteGapBytes || it->end - extent.begin > kMostExtentBytes)
      break;
    extent.end = std::max(extent.end, it->end);
  }
  for (auto it = first; it != small.begin();) {
    --it;
    if (it->end + kRemoteGapBytes < extent.begin || extent.end - it->begin > kMostExtentBytes)
      break;
    extent.begin = it->begin;
  }
  return extent;
}

Result<RecordReader::Block> RecordReader::read_block(const Snapshot& snapshot, const Location& at) {
  const std::string path = snapshot.file_of(snapshot.part(at.part));
  const Layout::Entry& entry = snapshot.entry(at);
  if (!storage_->is_remote()) {
    SMD_TRY(OpenFile file, take(path));
    SMD_TRY(Block block, read_extent(file, {entry.offset, entry.offset + entry.length}));
    give_back(std::move(file));
    return block;
  }
  const Extent extent = neighbourhood(snapshot, at);
  const std::string key = fmt::format("{}:{}", path, extent.begin);
  {
    std::lock_guard lock(mutex_);
    const auto known = blocks_.find(key);
    if (known != blocks_.end() && known->second.bytes->size() >= extent.end - extent.begin) {
      return known->second;
    }
  }
  SMD_TRY(OpenFile file, take(path));
  SMD_TRY(Block block, read_extent(file, extent));
  give_back(std::move(file));
  std::lock_guard lock(mutex_);
  if (block_bytes_ + block.bytes->size() > kMostBlockBytes) {
    blocks_.clear();
    block_bytes_ = 0;
  }
  if (blocks_.insert_or_assign(key, block).second) block_bytes_ += block.bytes->size();
  return block;
}

Result<TensorValue> RecordReader::read_large(const Snapshot& snapshot, const Location& at,
                                             OpenFile& file) {
  const Layout::Entry& entry = snapshot.entry(at);
  if (!storage_->is_remote() || entry.length > kTrustedBytes) {
    SMD_TRY(const uint64_t size, file.file->size());
    if (entry.offset + entry.length > size) {
      return outside(entry.offset, entry.length, size, file.path);
    }
  }
  // The elements go where they will stay, aligned. A remote beginning would cost a request.
  uint64_t elements_at = 0;
  if (!storage_->is_remote()) {
    std::array<std::byte, kHeadBytes> head;
    SMD_TRY(const size_t got, file.file->read_at(entry.offset, head));
    if (const auto place = format::locate_content(ByteSpan(head).first(got))) {
      elements_at = place->offset;
    }
  }
  auto memory = allocate_aligned(entry.length, elements_at);
  if (!memory) {
    return Error{ErrorCode::io, fmt::format("There is no memory for a tensor of {} bytes: {}",
                                            entry.length, file.path)};
  }
  SMD_TRY(const size_t got, file.file->read_at(entry.offset, {memory.get(), entry.length}));
  if (got < entry.length) return outside(entry.offset, entry.length, entry.offset + got, file.path);
  SMD_TRY(auto event, parse(snapshot, at, {memory.get(), entry.length}, file.path));
  return value_of(event, std::move(memory));
}

Result<TensorValue> RecordReader::read(const Snapshot& snapshot, const Location& at) {
  const std::string path = snapshot.file_of(snapshot.part(at.part));
  const Layout::Entry& entry = snapshot.entry(at);
  if (entry.length > kSmallBytes) {
    SMD_TRY(OpenFile file, take(path));
    SMD_TRY(TensorValue value, read_large(snapshot, at, file));
    give_back(std::move(file));
    return value;
  }
  SMD_TRY(const Block block, read_block(snapshot, at));
  const ByteSpan record = ByteSpan(*block.bytes).subspan(entry.offset - block.begin, entry.length);
  SMD_TRY(auto event, parse(snapshot, at, record, path));
  return value_of(event, nullptr);
}

Status RecordReader::read_numbers(const Snapshot& snapshot, std::span<const Location> at,
                                  std::span<double> out) {
  SMD_CHECK(at.size() == out.size());
  return visit(snapshot, at, [&](uint32_t i, const format::TensorContent& tensor) -> Status {
    SMD_TRY(out[i], number_of(tensor));
    return {};
  });
}

Status RecordReader::read_single_numbers(const Snapshot& snapshot, std::span<const Location> at,
                                         std::span<std::optional<double>> out) {
  SMD_CHECK(at.size() == out.size());
  return visit(snapshot, at, [&](uint32_t i, const format::TensorContent& tensor) -> Status {
    out[i] = std::nullopt;
    if (!is_single_number(tensor)) return {};
    SMD_TRY(out[i], number_of(tensor));
    return {};
  });
}

Status RecordReader::visit(const Snapshot& snapshot, std::span<const Location> at,
                           const Visitor& visitor) {
  // By part and place, so that neighbours are read together.
  std::vector<uint32_t> order(at.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](uint32_t i) { return std::pair(at[i].part, snapshot.entry(at[i]).offset); };
  if (!std::ranges::is_sorted(order, {}, key)) std::ranges::sort(order, {}, key);

  const uint64_t gap = storage_->is_remote() ? kRemoteGapBytes : kLocalGapBytes;
  for (size_t first = 0; first < order.size();) {
    const uint32_t part = at[order[first]].part;
    const Layout::Entry& start = snapshot.entry(at[order[first]]);
    Extent extent{start.offset, start.offset + start.length};
    size_t last = first + 1;
    for (; last < order.size() && at[order[last]].part == part; ++last) {
      const Layout::Entry& next = snapshot.entry(at[order[last]]);
      const uint64_t end = next.offset + next.length;
      if (next.offset > extent.end + gap || end - extent.begin > kMostExtentBytes) break;
      extent.end = std::max(extent.end, end);
    }
    Block block;
    const std::string path = snapshot.file_of(snapshot.part(part));
    if (storage_->is_remote() && start.length <= kSmallBytes && last - first == 1) {
      SMD_TRY(block, read_block(snapshot, at[order[first]]));
    } else {
      SMD_TRY(OpenFile file, take(path));
      SMD_TRY(block, read_extent(file, extent));
      give_back(std::move(file));
    }
    for (; first < last; ++first) {
      const Location& where = at[order[first]];
      const Layout::Entry& entry = snapshot.entry(where);
      const ByteSpan record =
          ByteSpan(*block.bytes).subspan(entry.offset - block.begin, entry.length);
      SMD_TRY(const auto event, parse(snapshot, where, record, path));
      const Status status = visitor(order[first], *event.tensor);
      if (!status.ok()) {
        return Error{status.error().code, fmt::format("{} Offset {} of file: {}",
                                                      status.error().message, entry.offset, path)};
      }
    }
  }
  return {};
}

}  // namespace smd::internal

#include "smd/trial/internal/record_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "smd/base/crc32c.h"
#include "smd/format/tfrecord.h"
#include "smd/packed/segment_file.h"
#include "smd/storage/mappable_file.h"
#include "smd/trial/internal/stored_record.h"

namespace smd::internal {
namespace {

// Records up to this size are read in one go with their neighbours.
constexpr uint64_t kSmallBytes = uint64_t{64} << 10;
// Where reading through a gap is cheaper than another read.
constexpr uint64_t kLocalGapBytes = uint64_t{8} << 10;
constexpr uint64_t kRemoteGapBytes = uint64_t{256} << 10;
constexpr uint64_t kMostExtentBytes = uint64_t{8} << 20;
// Enough for the beginning of a record up to its elements.
constexpr uint64_t kHeadBytes = 4096;
// Records from this size on are mapped rather than copied, where files can be.
constexpr uint64_t kMappedBytes = uint64_t{1} << 20;
// Remote sizes are asked for, at the price of a request, before more than this is allocated.
constexpr uint64_t kTrustedBytes = uint64_t{64} << 20;

Error outside(uint64_t offset, uint64_t length, uint64_t size, std::string_view path) {
  return {ErrorCode::truncated,
          fmt::format("The record of {} bytes at offset {} ends behind the file's {} bytes: {}",
                      length, offset, size, path)};
}

}  // namespace

RecordReader::Extent RecordReader::extent_of(const Snapshot& snapshot, const Location& at) {
  const Layout::Entry& entry = snapshot.entry(at);
  const Part& part = snapshot.part(at.part);
  if (entry.form != Layout::Form::record && part.checksums) {
    const Layout::Block& block = snapshot.layout_of(part).block();
    return {block.offset, block.offset + block.length};
  }
  return {entry.offset, entry.offset + entry.length};
}

Result<RecordReader::Block> RecordReader::read_extent(OpenFile& file, uint64_t base,
                                                      const Extent& extent,
                                                      KeptBlocks::Room* room) {
  const uint64_t length = extent.end - extent.begin;
  const uint64_t begin = base + extent.begin;
  if (!storage_->is_remote() || length > kTrustedBytes) {
    SMD_TRY(const uint64_t size, file.file->size());
    if (begin + length > size) return outside(begin, length, size, file.path);
  }
  if (room != nullptr) *room = kept_.allocate(length);
  const auto memory = room != nullptr ? room->memory : allocate_aligned(length, 0, 0);
  if (!memory) {
    return Error{ErrorCode::io, fmt::format("There is no memory for {} bytes at offset {}: {}",
                                            length, begin, file.path)};
  }
  SMD_TRY(const size_t got, file.file->read_at(begin, {memory.get(), length}));
  if (got < length) return outside(begin, length, begin + got, file.path);
  return Block{extent.begin, length, memory};
}

// Stretches of small records that lie close together, in the order of the file.
std::vector<RecordReader::Extent> RecordReader::stretches_of(const Layout& layout) {
  std::vector<Extent> small;
  for (const Layout::Entry& entry : layout.entries()) {
    if (entry.form == Layout::Form::split) continue;
    if (entry.length <= kSmallBytes) small.push_back({entry.offset, entry.offset + entry.length});
  }
  std::ranges::sort(small, {}, &Extent::begin);
  std::vector<Extent> out;
  for (const Extent& next : small) {
    if (out.empty() || next.begin > out.back().end + kRemoteGapBytes ||
        next.end - out.back().begin > kMostExtentBytes) {
      out.push_back(next);
    } else {
      out.back().end = std::max(out.back().end, next.end);
    }
  }
  return out;
}

std::shared_ptr<const std::vector<RecordReader::Extent>> RecordReader::stretches_of(
    const Snapshot& snapshot, uint32_t part) {
  const std::lock_guard lock(mutex_);
  auto& known = stretches_[snapshot.part(part).layout];
  if (!known) {
    known = std::make_shared<const std::vector<Extent>>(
        stretches_of(snapshot.layout_of(snapshot.part(part))));
  }
  return known;
}

bool RecordReader::is_second_visit(uint32_t part) {
  const std::lock_guard lock(mutex_);
  if (part >= visited_.size()) visited_.resize(part + 1);
  const bool is_second = visited_[part];
  visited_[part] = true;
  return is_second;
}

Result<RecordReader::Block> RecordReader::read_block(const Snapshot& snapshot, uint32_t part,
                                                     const Extent& wanted) {
  // Whoever comes back to a part will come again: its small records are read together then, from
  // remote storages at once. Nothing else costs less than a look at memory.
  const auto stretches = stretches_of(snapshot, part);
  const auto after = std::ranges::upper_bound(*stretches, wanted.begin, {}, &Extent::begin);
  const auto stretch = static_cast<size_t>(after - stretches->begin()) - 1;
  const bool inside = after != stretches->begin() && wanted.end <= (*stretches)[stretch].end;
  const uint64_t key = uint64_t{part} << 32 | stretch;
  bool together = false;
  if (inside) {
    const Extent& all = (*stretches)[stretch];
    if (auto bytes = kept_.find(key)) return Block{all.begin, all.end - all.begin, bytes};
    together = storage_->is_remote() || is_second_visit(part);
  }
  SMD_TRY(OpenFile file, files_.take(snapshot, part));
  KeptBlocks::Room room;
  SMD_TRY(Block block,
          read_extent(file, snapshot.part(part).base, together ? (*stretches)[stretch] : wanted,
                      together ? &room : nullptr));
  files_.give_back(std::move(file));
  if (together) kept_.keep(key, room);
  return block;
}

Result<TensorValue> RecordReader::read_large(const Snapshot& snapshot, const Location& at,
                                             OpenFile& file) {
  const Layout::Entry& entry = snapshot.entry(at);
  const uint64_t begin = snapshot.part(at.part).base + entry.offset;
  if (!storage_->is_remote() || entry.length > kTrustedBytes) {
    SMD_TRY(const uint64_t size, file.file->size());
    if (begin + entry.length > size) {
      return outside(begin, entry.length, size, file.path);
    }
  }
  // What grows only is never cut, and its elements are aligned. A check reads everything anyway.
  const Part& part = snapshot.part(at.part);
  if (part.append_only && !part.checksums && entry.length >= kMappedBytes) {
    if (auto* const mappable = dynamic_cast<storage::MappableFile*>(file.file.get())) {
      if (auto mapped = mappable->map(begin, entry.length)) {
        SMD_TRY(auto event, parse_stored(snapshot, at, {mapped.get(), entry.length}));
        return value_of(event, std::move(mapped));
      }
    }
  }
  // The elements go where they will stay, aligned. A remote beginning would cost a request.
  uint64_t elements_at = 0;
  if (!storage_->is_remote()) {
    std::array<std::byte, kHeadBytes> head;
    SMD_TRY(const size_t got, file.file->read_at(begin, head));
    if (const auto place = format::locate_content(ByteSpan(head).first(got))) {
      elements_at = place->offset;
    }
  }
  auto memory = allocate_aligned(entry.length, elements_at, begin);
  if (!memory) {
    return Error{ErrorCode::io, fmt::format("There is no memory for a tensor of {} bytes: {}",
                                            entry.length, file.path)};
  }
  SMD_TRY(const size_t got, file.file->read_at(begin, {memory.get(), entry.length}));
  if (got < entry.length) return outside(begin, entry.length, begin + got, file.path);
  SMD_TRY(auto event, parse_stored(snapshot, at, {memory.get(), entry.length}));
  return value_of(event, std::move(memory));
}

// Reads the elements of one piece to `out`; the time at which it was recorded.
Result<double> RecordReader::read_piece(const Part& part, const Layout::Piece& piece,
                                        OpenFile& file, std::span<std::byte> out) {
  const uint64_t begin = part.base + piece.offset;
  const auto wrong = [&](std::string_view what) {
    return Error{ErrorCode::corrupt,
                 fmt::format("{} at offset {} of file: {}", what, begin, file.path)};
  };
  const auto check = [&](uint32_t crc) -> Status {
    if (!part.checksums || part.checksums->pieces[piece.number] == crc) return {};
    return wrong(
        fmt::format("The part of a tensor does not have the checksum {:#010x} that the "
                    "log says, but {:#010x},",
                    part.checksums->pieces[piece.number], crc));
  };
  // What a record says besides its elements is short.
  constexpr uint64_t kMostOverheadBytes = uint64_t{1} << 20;
  if (piece.length - out.size() > kMostOverheadBytes) {
    return wrong("There is no such part of a tensor");
  }
  std::array<std::byte, kHeadBytes> head;
  SMD_TRY(const size_t got,
          file.file->read_at(begin, std::span(head).first(std::min(kHeadBytes, piece.length))));
  const auto place = format::locate_content(ByteSpan(head).first(got));
  if (!place || place->length != out.size() || place->offset > piece.length - out.size()) {
    // Small, or written by somebody else.
    SMD_TRY(const Bytes record, packed::read_bytes(*file.file, begin, piece.length));
    const auto framed = format::parse_record(record, begin);
    if (!framed.ok()) return in_file(framed.error(), file.path);
    SMD_RETURN_IF_ERROR(check(crc32c(framed->payload)));
    const auto event = format::view_event(framed->payload);
    if (!event.ok()) return in_file(event.error(), file.path);
    if (!event->tensor || event->tensor->elements.size() != out.size()) {
      return wrong("There is no such part of a tensor");
    }
    std::copy(event->tensor->elements.begin(), event->tensor->elements.end(), out.begin());
    return event->wall_secs;
  }
  const auto header = format::record_header(piece.length - format::kRecordOverheadBytes);
  if (!std::equal(header.begin(), header.end(), head.begin())) {
    return wrong("There is no record of the length that the log says");
  }
  SMD_TRY(const size_t elements, file.file->read_at(begin + place->offset, out));
  if (elements < out.size()) {
    return outside(begin, piece.length, begin + place->offset + elements, file.path);
  }
  Bytes after(piece.length - place->offset - out.size());
  SMD_TRY(const size_t rest, file.file->read_at(begin + place->offset + out.size(), after));
  if (rest < after.size() || after.size() < format::kRecordFooterBytes) {
    return outside(begin, piece.length, begin + piece.length - after.size() + rest, file.path);
  }
  if (part.checksums) {
    uint32_t crc = crc32c(ByteSpan(head).subspan(format::kRecordHeaderBytes,
                                                 place->offset - format::kRecordHeaderBytes));
    crc = crc32c(out, crc);
    crc = crc32c(ByteSpan(after).first(after.size() - format::kRecordFooterBytes), crc);
    SMD_RETURN_IF_ERROR(check(crc));
  }
  const auto outline = format::outline_tensor(ByteSpan(head).first(got), after);
  return outline ? outline->wall_secs : part.wall_secs;
}

Result<TensorValue> RecordReader::read_split(const Snapshot& snapshot, const Location& at) {
  const Part& part = snapshot.part(at.part);
  const Layout::Entry& entry = snapshot.entry(at);
  const Layout::Split& split = snapshot.layout_of(part).split_of(entry);
  const size_t size = size_of(entry.dtype);
  const uint64_t bytes = (split.pieces.back().first + split.pieces.back().count) * size;
  SMD_TRY(OpenFile file, files_.take(snapshot, at.part));
  SMD_TRY(const uint64_t file_bytes, file.file->size());
  for (const Layout::Piece& piece : split.pieces) {
    const uint64_t begin = part.base + piece.offset;
    if (begin + piece.length > file_bytes) {
      return outside(begin, piece.length, file_bytes, file.path);
    }
  }
  TensorValue value{.dtype = entry.dtype, .shape = split.shape};
  // One piece of memory for all; the pieces hold as many bytes, so the file does, too.
  value.memory = allocate_aligned(bytes, 0, 0);
  if (!value.memory) {
    return Error{ErrorCode::io,
                 fmt::format("There is no memory for a tensor of {} bytes: {}", bytes, file.path)};
  }
  const std::span<std::byte> elements(value.memory.get(), bytes);
  for (const Layout::Piece& piece : split.pieces) {
    SMD_TRY(value.wall_secs, read_piece(part, piece, file,
                                        elements.subspan(piece.first * size, piece.count * size)));
  }
  value.elements = elements;
  files_.give_back(std::move(file));
  return value;
}

Result<TensorValue> RecordReader::read(const Snapshot& snapshot, const Location& at) {
  const Layout::Entry& entry = snapshot.entry(at);
  if (entry.form == Layout::Form::split) return read_split(snapshot, at);
  if (entry.length > kSmallBytes) {
    SMD_TRY(OpenFile file, files_.take(snapshot, at.part));
    SMD_TRY(TensorValue value, read_large(snapshot, at, file));
    files_.give_back(std::move(file));
    return value;
  }
  const Extent extent = extent_of(snapshot, at);
  SMD_TRY(const Block block, read_block(snapshot, at.part, extent));
  if (entry.form == Layout::Form::record) {
    SMD_TRY(auto event, parse_stored(snapshot, at, block.at(entry)));
    return value_of(event, nullptr);
  }
  const Part& part = snapshot.part(at.part);
  if (part.checksums) SMD_RETURN_IF_ERROR(check_block(snapshot, part, block.at(extent)));
  format::EventView event{.wall_secs = part.wall_secs};
  event.tensor.emplace();
  event.tensor->dtype = entry.dtype;
  event.tensor->elements = block.at(entry);
  if (entry.form == Layout::Form::number) event.tensor->shape = {1};
  return value_of(event, nullptr);
}

Result<TensorDescription> RecordReader::describe(const Snapshot& snapshot, const Location& at) {
  const Layout::Entry& entry = snapshot.entry(at);
  if (entry.form == Layout::Form::split) {
    const Part& part = snapshot.part(at.part);
    return TensorDescription{entry.dtype, snapshot.layout_of(part).split_of(entry).shape,
                             part.wall_secs};
  }
  if (entry.length > kHeadBytes) {
    const uint64_t begin = snapshot.part(at.part).base + entry.offset;
    SMD_TRY(OpenFile file, files_.take(snapshot, at.part));
    std::array<std::byte, kHeadBytes> head;
    SMD_TRY(const size_t got, file.file->read_at(begin, head));
    const ByteSpan start = ByteSpan(head).first(got);
    const auto place = format::locate_content(start);
    if (place && place->length < entry.length && place->offset < entry.length - place->length) {
      // Enough for a field that tells of another element type.
      constexpr uint64_t kAfterBytes = 32;
      const uint64_t left = entry.length - place->offset - place->length;
      std::array<std::byte, kAfterBytes> after;
      SMD_TRY(const size_t more,
              file.file->read_at(begin + place->offset + place->length,
                                 std::span(after).first(std::min(left, kAfterBytes))));
      auto outline = format::outline_tensor(start, ByteSpan(after).first(more));
      files_.give_back(std::move(file));
      if (outline) {
        return TensorDescription{outline->dtype, std::move(outline->shape), outline->wall_secs};
      }
    }
  }
  // A small record, or one that is written in another way, such as a list of texts.
  SMD_TRY(TensorValue value, read(snapshot, at));
  return TensorDescription{value.dtype, std::move(value.shape), value.wall_secs};
}

template <typename Visitor>
Status RecordReader::visit(const Snapshot& snapshot, std::span<const Location> at,
                           Visitor&& visitor) {
  // By part and place, so that neighbours are read together.
  std::vector<uint32_t> order(at.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](uint32_t i) { return std::pair(at[i].part, snapshot.entry(at[i]).offset); };
  if (!std::ranges::is_sorted(order, {}, key)) std::ranges::sort(order, {}, key);

  // Tensors in parts are no numbers, and need not be read to know that.
  const auto is_split = [&](uint32_t i) {
    return snapshot.entry(at[i]).form == Layout::Form::split;
  };
  for (uint32_t i : order) {
    if (is_split(i)) {
      SMD_RETURN_IF_ERROR(visitor(i, format::TensorContent{.dtype = snapshot.entry(at[i]).dtype}));
    }
  }
  order.erase(std::remove_if(order.begin(), order.end(), is_split), order.end());

  const uint64_t gap = storage_->is_remote() ? kRemoteGapBytes : kLocalGapBytes;
  for (size_t first = 0; first < order.size();) {
    const uint32_t part = at[order[first]].part;
    Extent extent = extent_of(snapshot, at[order[first]]);
    bool numbers = false;  // some of the block are read
    const auto note = [&](const Layout::Entry& entry) {
      numbers = numbers || entry.form != Layout::Form::record;
    };
    note(snapshot.entry(at[order[first]]));
    size_t last = first + 1;
    for (; last < order.size() && at[order[last]].part == part; ++last) {
      const Extent next = extent_of(snapshot, at[order[last]]);
      const uint64_t end = std::max(extent.end, next.end);
      if (next.begin > extent.end + gap || end - extent.begin > kMostExtentBytes) break;
      extent = {std::min(extent.begin, next.begin), end};
      note(snapshot.entry(at[order[last]]));
    }
    SMD_TRY(const Block block, read_block(snapshot, part, extent));
    const Part& of = snapshot.part(part);
    if (numbers && of.checksums) {
      const Layout::Block& all = snapshot.layout_of(of).block();
      SMD_RETURN_IF_ERROR(
          check_block(snapshot, of, block.at(Extent{all.offset, all.offset + all.length})));
    }
    for (; first < last; ++first) {
      const Location& where = at[order[first]];
      const Layout::Entry& entry = snapshot.entry(where);
      Status status;
      if (entry.form == Layout::Form::record) {
        SMD_TRY(const auto event, parse_stored(snapshot, where, block.at(entry)));
        status = visitor(order[first], *event.tensor);
      } else {
        status = visitor(order[first],
                         format::TensorContent{.dtype = entry.dtype, .elements = block.at(entry)});
      }
      if (!status.ok()) {
        return Error{status.error().code,
                     fmt::format("{} Offset {} of file: {}", status.error().message,
                                 of.base + entry.offset, snapshot.file_of(of))};
      }
    }
  }
  return {};
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

}  // namespace smd::internal

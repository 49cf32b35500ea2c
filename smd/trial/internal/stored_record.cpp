#include "smd/trial/internal/stored_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "smd/base/crc32c.h"
#include "smd/format/tfrecord.h"
#include "smd/reduce/reduce.h"
#include "smd/types/tensor_name.h"

namespace smd::internal {
namespace {

bool is_aligned(ByteSpan elements, size_t alignment) {
  return reinterpret_cast<uintptr_t>(elements.data()) % alignment == 0;
}

}  // namespace

Error in_file(const Error& error, std::string_view path) {
  return {error.code, fmt::format("{} File: {}", error.message, path)};
}

Result<format::EventView> parse_stored(const Snapshot& snapshot, const Location& at,
                                       ByteSpan record) {
  const Part& part = snapshot.part(at.part);
  const Layout::Entry& entry = snapshot.entry(at);
  const auto path = [&] { return snapshot.file_of(part); };
  const uint64_t offset = part.base + entry.offset;
  const auto framed = format::parse_record(record, offset);
  if (!framed.ok()) return in_file(framed.error(), path());
  if (framed->size_bytes != entry.length) {
    return Error{ErrorCode::corrupt,
                 fmt::format("The record at offset {} has {} bytes, but the index says {}: {}",
                             offset, framed->size_bytes, entry.length, path())};
  }
  if (part.checksums) {
    const auto expected = part.checksums->records[at.entry];
    if (expected && crc32c(framed->payload) != *expected) {
      return Error{ErrorCode::corrupt,
                   fmt::format("The record at offset {} does not have the checksum {:#010x} that "
                               "the index says, but {:#010x}: {}",
                               offset, *expected, crc32c(framed->payload), path())};
    }
  }
  auto event = format::view_event(framed->payload);
  if (!event.ok()) {
    return Error{event.error().code,
                 fmt::format("{} Offset {} of file: {}", event.error().message, offset, path())};
  }
  if (!event->tensor) {
    return Error{ErrorCode::corrupt,
                 fmt::format("The record at offset {} holds no tensor: {}", offset, path())};
  }
  if (part.checksums) {
    const Slot slot = Slot::from_id(entry.slot);
    const std::string& tensor = snapshot.names().tensors[entry.tensor];
    const std::string name =
        slot.is_value()
            ? tensor
            : reduction_tensor_name(snapshot.names().ops[slot.op()], slot.abs(), tensor);
    if (!event->is_named(name)) {
      return Error{ErrorCode::corrupt,
                   fmt::format("The record at offset {} holds '{}', but the index says '{}': {}",
                               offset, event->name, name, path())};
    }
  }
  return event;
}

Status check_block(const Snapshot& snapshot, const Part& part, ByteSpan numbers) {
  if (!part.checksums || !part.checksums->block) return {};
  if (const uint32_t found = crc32c(numbers); found != *part.checksums->block) {
    return Error{ErrorCode::corrupt,
                 fmt::format("The numbers of step {} at offset {} do not have the checksum "
                             "{:#010x} that the log says, but {:#010x}: {}",
                             part.step, part.base + snapshot.layout_of(part).block().offset,
                             *part.checksums->block, found, snapshot.file_of(part))};
  }
  return {};
}

bool is_single_number(const format::TensorContent& tensor) {
  return tensor.dtype != DType::string && tensor.dtype != DType::complex64 &&
         tensor.dtype != DType::complex128 && tensor.elements.size() == size_of(tensor.dtype);
}

Result<double> number_of(const format::TensorContent& tensor) {
  if (!is_single_number(tensor)) {
    return Error{ErrorCode::corrupt, "The record holds something other than one number."};
  }
  switch (tensor.dtype) {
    case DType::float32: return double{load_le<float>(tensor.elements.data())};
    case DType::float64: return load_le<double>(tensor.elements.data());
    default: break;
  }
  // The largest of one number is that number.
  alignas(16) std::array<std::byte, 16> element{};
  std::copy(tensor.elements.begin(), tensor.elements.end(), element.begin());
  SMD_TRY(const Reduction max, parse_reduction("max"));
  ReductionRequest request;
  request.reductions.add(max);
  ReductionResult result;
  SMD_RETURN_IF_ERROR(reduce({.data = element.data(), .dtype = tensor.dtype}, request, result));
  SMD_CHECK(!result.values.empty());
  return result.values.front().second.to_double();
}

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
  value.memory = allocate_aligned(tensor.elements.size(), 0, 0);
  if (!value.memory) {
    return Error{ErrorCode::io,
                 fmt::format("There is no memory for {} bytes.", tensor.elements.size())};
  }
  std::memcpy(value.memory.get(), tensor.elements.data(), tensor.elements.size());
  value.elements = {value.memory.get(), tensor.elements.size()};
  return value;
}

}  // namespace smd::internal

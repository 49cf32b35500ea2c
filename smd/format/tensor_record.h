#pragma once

// Writes tensor records: one protobuf Event with one Summary.Value, framed as a TFRecord.
// A record can be split into what comes before and after the tensor's bytes, so that large tensors
// are written from where they lie. Pure functions over bytes.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "smd/base/bytes.h"
#include "smd/base/result.h"
#include "smd/tensor/tensor_view.h"
#include "smd/types/step.h"

namespace smd::format {

// What a record says about a tensor besides its elements.
struct TensorHead {
  std::string_view name;
  DType dtype = DType::float32;
  std::span<const int64_t> shape;
  double wall_secs = 0;
  // Further names of the same tensor, whose values are stored once.
  std::span<const std::string_view> other_names = {};
  // Below: for packed segments only; see docs/format/packed.md.
  // bfloat16 and float8 elements are stored as they are, not widened.
  bool as_is = false;
  // Bytes of filling before the elements; other readers skip it.
  std::optional<uint32_t> padding = {};
  // Text that travels in front of the elements; other readers skip it.
  std::string_view attached = {};
};

// In packed segments the elements begin at a multiple of this, counted from the file's start.
inline constexpr uint64_t kPackedAlignment = 64;

// The kernel keeps and maps a file in pieces of up to this size, if they are written whole: what is
// as large as kLargeTensorBytes begins at a multiple of it.
inline constexpr uint64_t kLargeAlignment = uint64_t{2} << 20;
inline constexpr uint64_t kLargeTensorBytes = uint64_t{64} << 20;

// The padding with which the elements of a record that begins at `offset` are aligned.
uint32_t aligning_padding(const StepInfo& step, const TensorHead& head, uint64_t count,
                          uint64_t offset, uint64_t alignment = kPackedAlignment);

// Appends a record at `offset` that holds nothing, so that little padding is left to align the
// elements of the record behind it at kLargeAlignment.
void append_filling(std::string& out, const StepInfo& step, const TensorHead& head, uint64_t count,
                    uint64_t offset);

inline constexpr std::string_view kFillingTag = "smdebug/filling";

// Number of bytes that the elements take in the file: types the original cannot read are widened.
uint64_t stored_bytes(const TensorHead& head, uint64_t count);

// Protobuf messages end at 2 GiB - 1; unsupported if this tensor's record would be larger.
Status check_record_size(const TensorHead& head, uint64_t count);

// Appends the framed record up to the first byte of the elements …
void append_record_start(std::string& out, const StepInfo& step, const TensorHead& head,
                         uint64_t count);
// … and what follows the last one. Returns nothing else: the total length is record_bytes().
void append_record_end(std::string& out, const StepInfo& step, const TensorHead& head);
uint64_t record_bytes(const StepInfo& step, const TensorHead& head, uint64_t count);
// The sizes of what append_record_start and append_record_end append.
uint64_t record_start_bytes(const StepInfo& step, const TensorHead& head, uint64_t count);
uint64_t record_end_bytes(const StepInfo& step, const TensorHead& head);

// A record with its elements, which are stored as they are (never for widened types).
void append_record(std::string& out, const StepInfo& step, const TensorHead& head,
                   ByteSpan elements);

// A tensor of strings; head.dtype is ignored. The shape's element count equals strings.size().
void append_string_record(std::string& out, const StepInfo& step, const TensorHead& head,
                          std::span<const std::string_view> strings);

}  // namespace smd::format

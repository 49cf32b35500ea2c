#include "smd/format/packed_block.h"

#include <protozero/pbf_message.hpp>

#include "smd/format/internal/event_fields.h"
#include "smd/format/internal/text_of.h"
#include "smd/format/tensor_record.h"

namespace smd::format {
namespace {

using internal::EventField;
using internal::SummaryField;
using internal::TensorField;
using internal::text_of;
using internal::ValueField;
using protozero::pbf_wire_type;

// The record of a block with everything but its elements.
struct Framed {
  TensorHead head;
  Shape shape;
};

Framed frame(const BlockHead& block) {
  Framed framed{.head = {.name = kBlockTag,
                         .dtype = DType::uint8,
                         .wall_secs = block.wall_secs,
                         .attached = block.entries}};
  // The elements begin aligned, so only they and what follows decide where the record ends.
  const uint64_t after = block.values_bytes + record_end_bytes(block.step, framed.head);
  const uint64_t filling = (kPackedAlignment - after % kPackedAlignment) % kPackedAlignment;
  framed.shape = {static_cast<int64_t>(block.values_bytes + filling)};
  framed.head.shape = framed.shape;
  framed.head.padding = aligning_padding(block.step, framed.head,
                                         static_cast<uint64_t>(framed.shape[0]), block.offset);
  return framed;
}

std::optional<std::string_view> read_entries(ByteSpan payload) {
  constexpr auto kText = pbf_wire_type::length_delimited;
  const std::string_view text = as_text(payload);
  protozero::pbf_message<EventField> event(protozero::data_view(text.data(), text.size()));
  if (!event.next(EventField::summary, kText)) return std::nullopt;
  protozero::pbf_message<SummaryField> summary(event.get_message());
  if (!summary.next(SummaryField::value, kText)) return std::nullopt;
  protozero::pbf_message<ValueField> value(summary.get_message());
  if (!value.next(ValueField::tag, kText) || text_of(value.get_view()) != kBlockTag) {
    return std::nullopt;
  }
  if (!value.next(ValueField::tensor, kText)) return std::nullopt;
  protozero::pbf_message<TensorField> tensor(value.get_message());
  if (!tensor.next(TensorField::attached, kText)) return std::nullopt;
  return text_of(tensor.get_view());
}

}  // namespace

BlockPlaces places_of(std::span<const PackedValue> values) {
  BlockPlaces places;
  places.offsets.reserve(values.size());
  uint64_t end = 0;
  for (const PackedValue& value : values) {
    const uint64_t width = size_of(value.dtype) <= 4 ? 4 : 8;
    end = (end + width - 1) / width * width;
    places.offsets.push_back(static_cast<uint32_t>(end));
    end += width;
  }
  places.size_bytes = end;
  return places;
}

bool is_block_value(DType dtype, std::span<const int64_t> shape) {
  const size_t size = size_of(dtype);
  return size > 0 && size <= 8 && info_of(dtype).kind != DTypeKind::complex &&
         (shape.empty() || (shape.size() == 1 && shape[0] == 1));
}

BlockPlan plan_block(const BlockHead& block) {
  const Framed framed = frame(block);
  const auto count = static_cast<uint64_t>(framed.shape[0]);
  return {.values_offset = record_start_bytes(block.step, framed.head, count),
          .record_bytes = record_bytes(block.step, framed.head, count)};
}

void append_block(std::string& out, const BlockHead& block, ByteSpan values) {
  SMD_CHECK(values.size() == block.values_bytes);
  const Framed framed = frame(block);
  const auto count = static_cast<uint64_t>(framed.shape[0]);
  append_record_start(out, block.step, framed.head, count);
  out += as_text(values);
  out.append(count - values.size(), '\0');
  append_record_end(out, block.step, framed.head);
}

std::optional<std::string_view> block_entries(ByteSpan payload) {
  try {
    return read_entries(payload);
  } catch (const protozero::exception&) {
    return std::nullopt;
  }
}

}  // namespace smd::format

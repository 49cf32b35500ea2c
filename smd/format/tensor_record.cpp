#include "smd/format/tensor_record.h"

#include <fmt/format.h>

#include <cstring>
#include <protozero/varint.hpp>

#include "smd/format/internal/event_fields.h"
#include "smd/format/tfrecord.h"

namespace smd::format {
namespace {

using internal::DimField;
using internal::EventField;
using internal::kMode;
using internal::kModeStep;
using internal::MetadataField;
using internal::PluginField;
using internal::ShapeField;
using internal::SummaryField;
using internal::TensorField;
using internal::ValueField;
using protozero::pbf_wire_type;

constexpr uint64_t kMostMessageBytes = (uint64_t{1} << 31) - 1;

template <typename Field>
constexpr uint32_t key(Field field, pbf_wire_type wire) {
  return static_cast<uint32_t>(field) << 3 | static_cast<uint32_t>(wire);
}

// Bytes of a length-delimited field with a one-byte key.
uint64_t field_bytes(uint64_t length) { return 1 + protozero::length_of_varint(length) + length; }

// Decimal text of a number without allocation.
class Decimal final {
 public:
  explicit Decimal(int64_t value) : digits_(value) {}
  std::string_view text() const { return {digits_.data(), digits_.size()}; }

 private:
  fmt::format_int digits_;
};

// Writes protobuf fields through a pointer into memory that was sized before.
class Cursor final {
 public:
  explicit Cursor(char* at) : at_(at) {}
  char* at() const { return at_; }
  void varint(uint64_t value) { at_ += protozero::add_varint_to_buffer(at_, value); }
  template <typename Field>
  void number(Field field, uint64_t value) {
    varint(key(field, pbf_wire_type::varint));
    varint(value);
  }
  template <typename Field>
  void open(Field field, uint64_t length) {
    varint(key(field, pbf_wire_type::length_delimited));
    varint(length);
  }
  void raw(const void* data, size_t size) {
    if (size == 0) return;  // `data` may be null
    std::memcpy(at_, data, size);
    at_ += size;
  }
  void zeros(size_t size) {
    std::memset(at_, 0, size);
    at_ += size;
  }
  template <typename Field>
  void text(Field field, std::string_view value) {
    open(field, value.size());
    raw(value.data(), value.size());
  }

 private:
  char* at_;
};

// All nested lengths of one record.
struct Layout {
  uint64_t shape = 0;
  uint64_t tensor = 0;
  uint64_t plugin_step = 0;
  uint64_t plugin_mode = 0;
  uint64_t metadata = 0;
  uint64_t value = 0;
  uint64_t summary = 0;
  uint64_t event = 0;
  uint64_t content = 0;
};

// name + '_' + extent: the names the original gives to dimensions.
uint64_t dim_bytes(const TensorHead& head, int64_t extent) {
  const uint64_t size =
      extent == 0 ? 0 : 1 + protozero::length_of_varint(static_cast<uint64_t>(extent));
  return size + field_bytes(head.name.size() + 1 + Decimal(extent).text().size());
}

bool is_widened(const TensorHead& head) { return !head.as_is && is_stored_widened(head.dtype); }

uint64_t source_dtype_bytes(const TensorHead& head) {
  return is_widened(head) ? 3 : 0;  // two bytes of key, one of value
}

// Fields that only packed segments have, before the elements; their keys take two bytes.
uint64_t extra_bytes(const TensorHead& head) {
  uint64_t bytes = 0;
  if (!head.attached.empty()) bytes += 1 + field_bytes(head.attached.size());
  if (head.padding) bytes += 1 + field_bytes(*head.padding);
  return bytes;
}

// Behind the elements: those who read the beginning of a record look for them.
uint64_t other_names_bytes(const TensorHead& head) {
  uint64_t bytes = 0;
  for (std::string_view name : head.other_names) bytes += 1 + field_bytes(name.size());
  return bytes;
}

DType stored_dtype(const TensorHead& head) {
  return is_widened(head) ? DType::float32 : head.dtype;
}

// `content` is the size of tensor_content, or, for strings, of all string_val fields with their
// keys.
Layout layout_of(const StepInfo& step, const TensorHead& head, uint64_t content, bool strings) {
  Layout l;
  l.content = content;
  for (int64_t extent : head.shape) l.shape += field_bytes(dim_bytes(head, extent));
  l.tensor = field_bytes(l.shape);
  l.tensor += extra_bytes(head) + other_names_bytes(head);
  l.tensor += strings ? content : 2 + field_bytes(content) + source_dtype_bytes(head);
  l.plugin_step =
      field_bytes(kModeStep.size()) + field_bytes(Decimal(step.mode_step).text().size());
  l.plugin_mode = field_bytes(kMode.size()) + field_bytes(1);
  l.metadata = field_bytes(l.plugin_step) + field_bytes(l.plugin_mode);
  l.value = field_bytes(head.name.size()) + field_bytes(l.tensor) + field_bytes(l.metadata);
  l.summary = field_bytes(l.value);
  l.event = field_bytes(l.summary);
  if (head.wall_secs != 0) l.event += 9;
  if (step.step != 0) l.event += 1 + protozero::length_of_varint(static_cast<uint64_t>(step.step));
  return l;
}

// Framing and everything up to and including the shape.
void write_start(Cursor& out, const Layout& l, const StepInfo& step, const TensorHead& head,
                 bool strings) {
  const auto header = record_header(l.event);
  out.raw(header.data(), header.size());
  if (head.wall_secs != 0) {
    out.varint(key(EventField::wall_time, pbf_wire_type::fixed64));
    out.raw(&head.wall_secs, sizeof head.wall_secs);
  }
  if (step.step != 0) out.number(EventField::step, static_cast<uint64_t>(step.step));
  out.open(EventField::summary, l.summary);
  out.open(SummaryField::value, l.value);
  out.text(ValueField::tag, head.name);
  out.open(ValueField::tensor, l.tensor);
  if (!strings) {
    out.number(TensorField::dtype, static_cast<uint64_t>(info_of(stored_dtype(head)).code));
  }
  out.open(TensorField::shape, l.shape);
  for (int64_t extent : head.shape) {
    const Decimal digits(extent);
    out.open(ShapeField::dim, dim_bytes(head, extent));
    if (extent != 0) out.number(DimField::size, static_cast<uint64_t>(extent));
    out.open(DimField::name, head.name.size() + 1 + digits.text().size());
    out.raw(head.name.data(), head.name.size());
    out.raw("_", 1);
    out.raw(digits.text().data(), digits.text().size());
  }
  if (!head.attached.empty()) out.text(TensorField::attached, head.attached);
  if (head.padding) {
    out.open(TensorField::padding, *head.padding);
    out.zeros(*head.padding);
  }
  if (!strings) out.open(TensorField::content, l.content);
}

void write_end(Cursor& out, const Layout& l, const StepInfo& step, const TensorHead& head,
               bool strings) {
  if (!strings && is_widened(head)) {
    out.number(TensorField::source_dtype, static_cast<uint64_t>(info_of(head.dtype).code));
  }
  for (std::string_view name : head.other_names) out.text(TensorField::other_name, name);
  out.open(ValueField::metadata, l.metadata);
  out.open(MetadataField::plugin_data, l.plugin_step);
  out.text(PluginField::name, kModeStep);
  out.text(PluginField::content, Decimal(step.mode_step).text());
  out.open(MetadataField::plugin_data, l.plugin_mode);
  out.text(PluginField::name, kMode);
  out.text(PluginField::content, Decimal(static_cast<int>(step.mode)).text());
  out.raw(&kConstantFooter, sizeof kConstantFooter);
}

uint64_t end_bytes(const Layout& l, const TensorHead& head, bool strings) {
  return (strings ? 0 : source_dtype_bytes(head)) + other_names_bytes(head) +
         field_bytes(l.metadata) + kRecordFooterBytes;
}

uint64_t start_bytes(const Layout& l, const TensorHead& head, bool strings) {
  return kRecordOverheadBytes + l.event - l.content - end_bytes(l, head, strings);
}

// Grows `out` by `bytes`, writes through `write` and checks that the sizes agreed.
template <typename Write>
void append_sized(std::string& out, uint64_t bytes, Write&& write) {
  const size_t old = out.size();
  out.resize(old + bytes);
  Cursor cursor(out.data() + old);
  write(cursor);
  SMD_CHECK(cursor.at() == out.data() + out.size());
}

}  // namespace

uint64_t stored_bytes(const TensorHead& head, uint64_t count) {
  return count * size_of(stored_dtype(head));
}

uint32_t aligning_padding(const StepInfo& step, const TensorHead& head, uint64_t count,
                          uint64_t offset, uint64_t alignment) {
  TensorHead padded = head;
  padded.padding = 0;
  const auto beyond = [&] {
    return static_cast<uint32_t>((offset + record_start_bytes(step, padded, count)) % alignment);
  };
  // More padding may make the lengths before it longer, so more looks may be needed.
  for (;;) {
    const uint32_t over = beyond();
    if (over == 0) return *padded.padding;
    if (over <= *padded.padding) {
      *padded.padding -= over;
      if (beyond() == 0) return *padded.padding;
      *padded.padding += over;
    }
    *padded.padding += static_cast<uint32_t>(alignment - over);
  }
}

void append_filling(std::string& out, const StepInfo& step, const TensorHead& head, uint64_t count,
                    uint64_t offset) {
  // More than a record takes that holds nothing, and little enough for those who read the beginning
  // of a record to find its elements.
  constexpr uint64_t kLeftBytes = 512;
  const uint64_t gap = aligning_padding(step, head, count, offset, kLargeAlignment);
  if (gap <= kLeftBytes) return;
  const std::string zeros(gap - kLeftBytes, '\0');
  const int64_t shape[] = {static_cast<int64_t>(zeros.size())};
  append_record(
      out, step,
      {.name = kFillingTag, .dtype = DType::uint8, .shape = shape, .wall_secs = head.wall_secs},
      as_bytes(zeros));
}

Status check_record_size(const TensorHead& head, uint64_t count) {
  // Steps and wall time only shift the sum by a few bytes; the largest step is the safe choice.
  const StepInfo longest{.step = INT64_MAX, .mode = Mode::global, .mode_step = INT64_MAX};
  const uint64_t size = layout_of(longest, head, stored_bytes(head, count), false).event;
  if (size <= kMostMessageBytes) return {};
  return Error{
      ErrorCode::unsupported,
      fmt::format("The tensor '{}' of {} bytes is too large for this format, which ends at "
                  "2 GiB a tensor; save reductions or a part of it instead.",
                  head.name, count * size_of(head.dtype))};
}

uint64_t record_bytes(const StepInfo& step, const TensorHead& head, uint64_t count) {
  return kRecordOverheadBytes + layout_of(step, head, stored_bytes(head, count), false).event;
}

uint64_t record_start_bytes(const StepInfo& step, const TensorHead& head, uint64_t count) {
  return start_bytes(layout_of(step, head, stored_bytes(head, count), false), head, false);
}

uint64_t record_end_bytes(const StepInfo& step, const TensorHead& head) {
  return end_bytes(layout_of(step, head, 0, false), head, false);
}

void append_record_start(std::string& out, const StepInfo& step, const TensorHead& head,
                         uint64_t count) {
  const Layout l = layout_of(step, head, stored_bytes(head, count), false);
  append_sized(out, start_bytes(l, head, false),
               [&](Cursor& cursor) { write_start(cursor, l, step, head, false); });
}

void append_record_end(std::string& out, const StepInfo& step, const TensorHead& head) {
  const Layout l = layout_of(step, head, 0, false);
  append_sized(out, end_bytes(l, head, false),
               [&](Cursor& cursor) { write_end(cursor, l, step, head, false); });
}

void append_record(std::string& out, const StepInfo& step, const TensorHead& head,
                   ByteSpan elements) {
  const Layout l = layout_of(step, head, elements.size(), false);
  append_sized(out, kRecordOverheadBytes + l.event, [&](Cursor& cursor) {
    write_start(cursor, l, step, head, false);
    cursor.raw(elements.data(), elements.size());
    write_end(cursor, l, step, head, false);
  });
}

void append_string_record(std::string& out, const StepInfo& step, const TensorHead& head,
                          std::span<const std::string_view> strings) {
  uint64_t content = 0;
  for (std::string_view text : strings) content += field_bytes(text.size());
  const Layout l = layout_of(step, head, content, true);
  append_sized(out, kRecordOverheadBytes + l.event, [&](Cursor& cursor) {
    write_start(cursor, l, step, head, true);
    for (std::string_view text : strings) cursor.text(TensorField::string_val, text);
    write_end(cursor, l, step, head, true);
  });
}

}  // namespace smd::format

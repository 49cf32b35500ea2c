#include "smd/format/event.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <protozero/pbf_message.hpp>
#include <protozero/varint.hpp>

#include "smd/tensor/widen.h"

namespace smd::format {
namespace {

constexpr uint64_t kMostMessageBytes = (uint64_t{1} << 31) - 1;

// Field numbers of the messages in the files.
enum class EventField : protozero::pbf_tag_type { wall_time = 1, step = 2, summary = 5 };
enum class SummaryField : protozero::pbf_tag_type { value = 1 };
enum class ValueField : protozero::pbf_tag_type { tag = 1, simple_value = 2, tensor = 8, metadata = 9 };
enum class TensorField : protozero::pbf_tag_type {
  dtype = 1, shape = 2, content = 4, float_val = 5, double_val = 6, int_val = 7, string_val = 8,
  int64_val = 10, bool_val = 11, half_val = 13,
  // Ours, skipped by other readers: the DataType number before widening to float32.
  source_dtype = 1001,
};
enum class ShapeField : protozero::pbf_tag_type { dim = 2 };
enum class DimField : protozero::pbf_tag_type { size = 1, name = 2 };
enum class MetadataField : protozero::pbf_tag_type { plugin_data = 1 };
enum class PluginField : protozero::pbf_tag_type { name = 1, content = 2 };

using protozero::pbf_wire_type;

constexpr pbf_wire_type wire_of(EventField field) {
  return field == EventField::wall_time ? pbf_wire_type::fixed64
         : field == EventField::step    ? pbf_wire_type::varint
                                        : pbf_wire_type::length_delimited;
}
constexpr pbf_wire_type wire_of(TensorField field) {
  const bool number = field == TensorField::dtype || field == TensorField::source_dtype;
  return number ? pbf_wire_type::varint : pbf_wire_type::length_delimited;
}
constexpr pbf_wire_type wire_of(DimField field) {
  return field == DimField::size ? pbf_wire_type::varint : pbf_wire_type::length_delimited;
}
constexpr pbf_wire_type wire_of(ValueField) { return pbf_wire_type::length_delimited; }
constexpr pbf_wire_type wire_of(PluginField) { return pbf_wire_type::length_delimited; }

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

constexpr std::string_view kModeStep = "mode_step";
constexpr std::string_view kMode = "mode";

// name + '_' + extent: the names the original gives to dimensions.
uint64_t dim_bytes(const TensorHead& head, int64_t extent) {
  const uint64_t size = extent == 0 ? 0 : 1 + protozero::length_of_varint(static_cast<uint64_t>(extent));
  return size + field_bytes(head.name.size() + 1 + Decimal(extent).text().size());
}

uint64_t source_dtype_bytes(DType dtype) {
  return is_stored_widened(dtype) ? 3 : 0;  // two bytes of key, one of value
}

DType stored_dtype(DType dtype) { return is_stored_widened(dtype) ? DType::float32 : dtype; }

// `content` is the size of tensor_content, or, for strings, of all string_val fields with their keys.
Layout layout_of(const StepInfo& step, const TensorHead& head, uint64_t content, bool strings) {
  Layout l;
  l.content = content;
  for (int64_t extent : head.shape) l.shape += field_bytes(dim_bytes(head, extent));
  l.tensor = field_bytes(l.shape);
  l.tensor += strings ? content : 2 + field_bytes(content) + source_dtype_bytes(head.dtype);
  l.plugin_step = field_bytes(kModeStep.size()) + field_bytes(Decimal(step.mode_step).text().size());
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
    out.number(TensorField::dtype, static_cast<uint64_t>(info_of(stored_dtype(head.dtype)).code));
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
  if (!strings) out.open(TensorField::content, l.content);
}

void write_end(Cursor& out, const Layout& l, const StepInfo& step, const TensorHead& head,
               bool strings) {
  if (!strings && is_stored_widened(head.dtype)) {
    out.number(TensorField::source_dtype, static_cast<uint64_t>(info_of(head.dtype).code));
  }
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
  return (strings ? 0 : source_dtype_bytes(head.dtype)) + field_bytes(l.metadata) + kRecordFooterBytes;
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

// ---- reading

// Goes to the next field. A known number with another wire type is as good as an unknown one;
// protozero does not check that itself.
template <typename Message>
bool next_field(Message& message) {
  while (message.next()) {
    if (message.wire_type() == wire_of(message.tag())) return true;
    message.skip();
  }
  return false;
}

Error corrupt(std::string_view what) {
  return {ErrorCode::corrupt, fmt::format("The event is not valid: {}.", what)};
}

template <typename T, typename Range>
void append_elements(Bytes& out, const Range& values) {
  for (auto value : values) {
    const T element = static_cast<T>(value);
    const auto* bytes = reinterpret_cast<const std::byte*>(&element);
    out.insert(out.end(), bytes, bytes + sizeof element);
  }
}

// The packed lists that other writers use instead of tensor_content.
template <typename Reader>
void read_list(TensorField field, Reader& message, DType dtype, Bytes& out) {
  switch (field) {
    case TensorField::float_val: return append_elements<float>(out, message.get_packed_float());
    case TensorField::double_val: return append_elements<double>(out, message.get_packed_double());
    case TensorField::int64_val: return append_elements<int64_t>(out, message.get_packed_int64());
    case TensorField::bool_val: return append_elements<uint8_t>(out, message.get_packed_bool());
    case TensorField::half_val: return append_elements<uint16_t>(out, message.get_packed_int32());
    default: break;
  }
  const auto values = message.get_packed_int32();
  switch (dtype) {
    case DType::int8: return append_elements<int8_t>(out, values);
    case DType::uint8: return append_elements<uint8_t>(out, values);
    case DType::int16: return append_elements<int16_t>(out, values);
    case DType::uint16: return append_elements<uint16_t>(out, values);
    default: return append_elements<int32_t>(out, values);
  }
}

Shape read_shape(protozero::pbf_message<ShapeField> message) {
  Shape shape;
  while (message.next(ShapeField::dim, pbf_wire_type::length_delimited)) {
    auto dim = protozero::pbf_message<DimField>(message.get_message());
    int64_t size = 0;
    while (next_field(dim)) {
      if (dim.tag() == DimField::size) {
        size = dim.get_int64();
      } else {
        dim.skip();
      }
    }
    shape.push_back(size);
  }
  return shape;
}

// Restores bfloat16 and float8 from the float32 that they were stored as.
void narrow_elements(StoredTensor& tensor, DType source) {
  std::vector<float> wide(tensor.elements.size() / sizeof(float));
  std::memcpy(wide.data(), tensor.elements.data(), wide.size() * sizeof(float));
  tensor.dtype = source;
  tensor.elements.resize(wide.size() * size_of(source));
  narrow(source, wide, tensor.elements);
}

Result<StoredTensor> read_tensor(protozero::pbf_message<TensorField> message) {
  StoredTensor tensor;
  int code = 0;
  int source = 0;
  bool has_strings = false;
  // The type decides how lists are read, and may follow them.
  for (auto first = message; next_field(first);) {
    if (first.tag() == TensorField::dtype) {
      code = first.get_enum();
    } else {
      first.skip();
    }
  }
  const auto dtype = dtype_from_code(code);
  while (next_field(message)) {
    switch (message.tag()) {
      case TensorField::shape:
        tensor.shape = read_shape(protozero::pbf_message<ShapeField>(message.get_message()));
        break;
      case TensorField::content: {
        const auto view = message.get_view();
        const ByteSpan bytes = as_bytes({view.data(), view.size()});
        tensor.elements.assign(bytes.begin(), bytes.end());
        break;
      }
      case TensorField::string_val: {
        tensor.strings.push_back(message.get_string());
        has_strings = true;
        break;
      }
      case TensorField::float_val:
      case TensorField::double_val:
      case TensorField::int_val:
      case TensorField::int64_val:
      case TensorField::bool_val:
      case TensorField::half_val:
        read_list(message.tag(), message, dtype.value_or(DType::int32), tensor.elements);
        break;
      case TensorField::source_dtype: source = message.get_enum(); break;
      default: message.skip();
    }
  }
  const auto count = element_count(tensor.shape);
  if (!count.ok()) return corrupt(count.error().message);
  if (has_strings || dtype == DType::string || (code == 0 && tensor.elements.empty())) {
    tensor.dtype = DType::string;
    if (*count != static_cast<int64_t>(tensor.strings.size())) {
      return corrupt(fmt::format("{} strings do not fill the shape [{}]", tensor.strings.size(),
                                 fmt::join(tensor.shape, ", ")));
    }
    return tensor;
  }
  if (!dtype) {
    return Error{ErrorCode::unsupported, fmt::format("The element type number {} is not known.", code)};
  }
  tensor.dtype = *dtype;
  const uint64_t item = size_of(*dtype);
  if (tensor.elements.size() % item != 0 ||
      tensor.elements.size() / item != static_cast<uint64_t>(*count)) {
    return corrupt(fmt::format("{} bytes do not fill the shape [{}] of {}", tensor.elements.size(),
                               fmt::join(tensor.shape, ", "), name_of(*dtype)));
  }
  const auto original = dtype_from_code(source);
  if (*dtype == DType::float32 && original && is_stored_widened(*original)) {
    narrow_elements(tensor, *original);
  }
  return tensor;
}

std::optional<int64_t> parse_decimal(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void read_metadata(protozero::pbf_message<MetadataField> message, Event& event) {
  while (message.next(MetadataField::plugin_data, pbf_wire_type::length_delimited)) {
    auto plugin = protozero::pbf_message<PluginField>(message.get_message());
    std::string_view name;
    std::string_view content;
    while (next_field(plugin)) {
      if (plugin.tag() != PluginField::name && plugin.tag() != PluginField::content) {
        plugin.skip();
        continue;
      }
      const bool is_name = plugin.tag() == PluginField::name;
      const auto view = plugin.get_view();
      (is_name ? name : content) = {view.data(), view.size()};
    }
    const auto number = parse_decimal(content);
    if (!number) continue;
    if (name == kModeStep) event.step.mode_step = *number;
    if (name == kMode && *number >= 1 && *number <= 4) event.step.mode = static_cast<Mode>(*number);
  }
}

Status read_value(protozero::pbf_message<ValueField> message, Event& event) {
  while (next_field(message)) {
    switch (message.tag()) {
      case ValueField::tag: event.name = message.get_string(); break;
      case ValueField::tensor: {
        SMD_TRY(event.tensor, read_tensor(protozero::pbf_message<TensorField>(message.get_message())));
        break;
      }
      case ValueField::metadata:
        read_metadata(protozero::pbf_message<MetadataField>(message.get_message()), event);
        break;
      default: message.skip();
    }
  }
  return {};
}

Result<Event> read_event(ByteSpan payload) {
  Event event;
  event.step.mode_step = -1;
  protozero::pbf_message<EventField> message(
      protozero::data_view(as_text(payload).data(), payload.size()));
  while (next_field(message)) {
    switch (message.tag()) {
      case EventField::wall_time: event.wall_secs = message.get_double(); break;
      case EventField::step: event.step.step = message.get_int64(); break;
      case EventField::summary: {
        protozero::pbf_message<SummaryField> summary(message.get_message());
        if (summary.next(SummaryField::value, pbf_wire_type::length_delimited)) {
          SMD_RETURN_IF_ERROR(
              read_value(protozero::pbf_message<ValueField>(summary.get_message()), event));
        }
        break;
      }
      default: message.skip();
    }
  }
  if (event.step.mode_step < 0) event.step.mode_step = event.step.step;
  return event;
}

}  // namespace

uint64_t stored_bytes(DType dtype, uint64_t count) { return count * size_of(stored_dtype(dtype)); }

Status check_record_size(const TensorHead& head, uint64_t count) {
  // Steps and wall time only shift the sum by a few bytes; the largest step is the safe choice.
  const StepInfo longest{.step = INT64_MAX, .mode = Mode::global, .mode_step = INT64_MAX};
  const uint64_t size =
      layout_of(longest, head, stored_bytes(head.dtype, count), false).event;
  if (size <= kMostMessageBytes) return {};
  return Error{ErrorCode::unsupported,
               fmt::format("The tensor '{}' of {} bytes is too large for this format, which ends at "
                           "2 GiB a tensor; save reductions or a part of it instead.",
                           head.name, count * size_of(head.dtype))};
}

uint64_t record_bytes(const StepInfo& step, const TensorHead& head, uint64_t count) {
  return kRecordOverheadBytes + layout_of(step, head, stored_bytes(head.dtype, count), false).event;
}

void append_record_start(std::string& out, const StepInfo& step, const TensorHead& head,
                         uint64_t count) {
  const Layout l = layout_of(step, head, stored_bytes(head.dtype, count), false);
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

Result<Event> parse_event(ByteSpan payload) {
  try {
    return read_event(payload);
  } catch (const std::exception& e) {  // protozero reports malformed input by exceptions
    return corrupt(e.what());
  }
}

}  // namespace smd::format

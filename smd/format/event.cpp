#include "smd/format/event.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <protozero/pbf_message.hpp>
#include <protozero/varint.hpp>

#include "smd/format/internal/event_fields.h"
#include "smd/format/tfrecord.h"
#include "smd/tensor/widen.h"

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
using internal::wire_of;
using protozero::pbf_wire_type;

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
void narrow_elements(TensorContent& tensor, DType source) {
  std::vector<float> wide(tensor.elements.size() / sizeof(float));
  // Not memcpy, which must not be called for a tensor without elements.
  std::ranges::copy(tensor.elements.first(wide.size() * sizeof(float)),
                    std::as_writable_bytes(std::span(wide)).begin());
  tensor.dtype = source;
  tensor.decoded.resize(wide.size() * size_of(source));
  narrow(source, wide, tensor.decoded);
  tensor.elements = tensor.decoded;
}

Result<TensorContent> read_tensor(protozero::pbf_message<TensorField> message) {
  TensorContent tensor;
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
        tensor.elements = as_bytes({view.data(), view.size()});
        tensor.decoded.clear();
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
        if (tensor.decoded.empty()) {
          tensor.decoded.assign(tensor.elements.begin(), tensor.elements.end());
        }
        read_list(message.tag(), message, dtype.value_or(DType::int32), tensor.decoded);
        tensor.elements = tensor.decoded;
        break;
      case TensorField::source_dtype: source = message.get_enum(); break;
      case TensorField::other_name: {
        const auto view = message.get_view();
        tensor.other_names.emplace_back(view.data(), view.size());
        break;
      }
      default: message.skip();
    }
  }
  const auto count = element_count(tensor.shape);
  if (!count.ok()) return corrupt(count.error().message);
  if (has_strings || dtype == DType::string || (code == 0 && tensor.elements.empty())) {
    tensor.dtype = DType::string;
    tensor.decoded.clear();
    tensor.elements = {};  // strings win over numbers that stand beside them
    if (*count != static_cast<int64_t>(tensor.strings.size())) {
      return corrupt(fmt::format("{} strings do not fill the shape [{}]", tensor.strings.size(),
                                 fmt::join(tensor.shape, ", ")));
    }
    return tensor;
  }
  if (!dtype) {
    return Error{ErrorCode::unsupported,
                 fmt::format("The element type number {} is not known.", code)};
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

void read_metadata(protozero::pbf_message<MetadataField> message, EventView& event) {
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
      (is_name ? name : content) = std::string_view(view.data(), view.size());
    }
    const auto number = parse_decimal(content);
    if (!number) continue;
    if (name == kModeStep) event.step.mode_step = *number;
    if (name == kMode && *number >= 1 && *number <= 4) event.step.mode = static_cast<Mode>(*number);
  }
}

Status read_value(protozero::pbf_message<ValueField> message, EventView& event) {
  while (next_field(message)) {
    switch (message.tag()) {
      case ValueField::tag: {
        const auto view = message.get_view();
        event.name = {view.data(), view.size()};
        break;
      }
      case ValueField::tensor: {
        SMD_TRY(event.tensor,
                read_tensor(protozero::pbf_message<TensorField>(message.get_message())));
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

Result<EventView> read_event(ByteSpan payload) {
  EventView event;
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

bool EventView::is_named(std::string_view wanted) const {
  if (wanted == name) return true;
  return tensor && std::ranges::find(tensor->other_names, wanted) != tensor->other_names.end();
}

Result<EventView> view_event(ByteSpan payload) {
  try {
    return read_event(payload);
  } catch (const std::exception& e) {  // protozero reports malformed input by exceptions
    return corrupt(e.what());
  }
}

Result<Event> parse_event(ByteSpan payload) {
  SMD_TRY(EventView view, view_event(payload));
  Event event{.wall_secs = view.wall_secs, .step = view.step, .name = std::string(view.name)};
  if (view.tensor) {
    TensorContent& tensor = *view.tensor;
    event.other_names.assign(tensor.other_names.begin(), tensor.other_names.end());
    if (tensor.decoded.empty())
      tensor.decoded.assign(tensor.elements.begin(), tensor.elements.end());
    event.tensor = StoredTensor{.dtype = tensor.dtype,
                                .shape = std::move(tensor.shape),
                                .elements = std::move(tensor.decoded),
                                .strings = std::move(tensor.strings)};
  }
  return event;
}

namespace {

template <typename Field>
constexpr uint64_t key_of(Field field, pbf_wire_type wire) {
  return static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire);
}

// Goes down to the elements; what stands before them goes to `outline`, if there. Throws what
// protozero throws.
std::optional<ContentPlace> descend(ByteSpan record_start, TensorOutline* outline) {
  constexpr auto kMessage = pbf_wire_type::length_delimited;
  constexpr uint64_t kPath[] = {
      key_of(EventField::summary, kMessage), key_of(SummaryField::value, kMessage),
      key_of(ValueField::tensor, kMessage), key_of(TensorField::content, kMessage)};
  constexpr size_t kInTensor = 3;
  constexpr size_t kFixed64 = 8;
  constexpr size_t kFixed32 = 4;

  if (record_start.size() < kRecordHeaderBytes) return std::nullopt;
  const char* const begin = as_text(record_start).data();
  const char* const end = begin + record_start.size();
  const char* at = begin + kRecordHeaderBytes;
  size_t depth = 0;
  std::optional<DType> dtype;
  while (at < end) {
    const uint64_t found = protozero::decode_varint(&at, end);
    const auto left = static_cast<size_t>(end - at);
    switch (static_cast<pbf_wire_type>(found & 7)) {
      case pbf_wire_type::varint: {
        const uint64_t number = protozero::decode_varint(&at, end);
        if (depth == kInTensor && found == key_of(TensorField::dtype, pbf_wire_type::varint)) {
          dtype = dtype_from_code(static_cast<int>(number));
        }
        continue;
      }
      case pbf_wire_type::fixed64:
        if (left < kFixed64) return std::nullopt;
        if (depth == 0 && outline != nullptr &&
            found == key_of(EventField::wall_time, pbf_wire_type::fixed64)) {
          std::memcpy(&outline->wall_secs, at, kFixed64);
        }
        at += kFixed64;
        continue;
      case pbf_wire_type::fixed32:
        if (left < kFixed32) return std::nullopt;
        at += kFixed32;
        continue;
      case pbf_wire_type::length_delimited: break;
      default: return std::nullopt;
    }
    const uint64_t length = protozero::decode_varint(&at, end);
    if (found == kPath[depth]) {
      if (++depth <= kInTensor) continue;
      if (outline != nullptr) {
        if (!dtype) return std::nullopt;
        outline->dtype = *dtype;
      }
      return ContentPlace{.offset = static_cast<uint64_t>(at - begin), .length = length};
    }
    if (length > static_cast<uint64_t>(end - at)) return std::nullopt;
    if (depth == kInTensor && outline != nullptr && found == key_of(TensorField::shape, kMessage)) {
      outline->shape = read_shape(protozero::pbf_message<ShapeField>(
          protozero::data_view(at, static_cast<size_t>(length))));
    }
    at += length;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ContentPlace> locate_content(ByteSpan record_start) {
  try {
    return descend(record_start, nullptr);
  } catch (const protozero::exception&) {  // ends within a varint
    return std::nullopt;
  }
}

std::optional<TensorOutline> outline_tensor(ByteSpan record_start, ByteSpan after_content) {
  TensorOutline outline;
  try {
    if (!descend(record_start, &outline)) return std::nullopt;
    const char* at = as_text(after_content).data();
    const char* const end = at + after_content.size();
    constexpr uint64_t kSource = key_of(TensorField::source_dtype, pbf_wire_type::varint);
    if (at < end && protozero::decode_varint(&at, end) == kSource) {
      const auto source = dtype_from_code(static_cast<int>(protozero::decode_varint(&at, end)));
      if (outline.dtype == DType::float32 && source && is_stored_widened(*source)) {
        outline.dtype = *source;
      }
    }
  } catch (const protozero::exception&) {
    return std::nullopt;
  }
  return outline;
}

}  // namespace smd::format

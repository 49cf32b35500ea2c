#pragma once

// Field numbers of the protobuf messages in event files, and words that both directions use.

#include <protozero/types.hpp>
#include <string_view>

namespace smd::format::internal {

using protozero::pbf_wire_type;

// Field numbers of the messages in the files.
enum class EventField : protozero::pbf_tag_type { wall_time = 1, step = 2, summary = 5 };
enum class SummaryField : protozero::pbf_tag_type { value = 1 };
enum class ValueField : protozero::pbf_tag_type {
  tag = 1,
  simple_value = 2,
  histogram = 5,
  tensor = 8,
  metadata = 9
};
enum class TensorField : protozero::pbf_tag_type {
  dtype = 1,
  shape = 2,
  content = 4,
  float_val = 5,
  double_val = 6,
  int_val = 7,
  string_val = 8,
  int64_val = 10,
  bool_val = 11,
  half_val = 13,
  // Ours, skipped by other readers: the DataType number before widening to float32.
  source_dtype = 1001,
  // Filling and attached text of packed segments, skipped by other readers, too.
  padding = 1002,
  attached = 1003,
  // Ours: another name of the tensor, under which the index lists the same record.
  other_name = 1004,
};
enum class ShapeField : protozero::pbf_tag_type { dim = 2 };
enum class DimField : protozero::pbf_tag_type { size = 1, name = 2 };
enum class MetadataField : protozero::pbf_tag_type { plugin_data = 1 };
enum class PluginField : protozero::pbf_tag_type { name = 1, content = 2 };

// How the fields that are read are encoded; anything else under their number is skipped.
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

// Names of the two plugin entries that every tensor record carries.
inline constexpr std::string_view kModeStep = "mode_step";
inline constexpr std::string_view kMode = "mode";

}  // namespace smd::format::internal

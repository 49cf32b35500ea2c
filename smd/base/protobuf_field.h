#pragma once

// Fields of protobuf messages, for those who read them with protozero.

#include <cstdint>
#include <protozero/types.hpp>

namespace smd {

inline constexpr auto kVarint = protozero::pbf_wire_type::varint;
inline constexpr auto kFixed64 = protozero::pbf_wire_type::fixed64;
inline constexpr auto kFixed32 = protozero::pbf_wire_type::fixed32;
inline constexpr auto kText = protozero::pbf_wire_type::length_delimited;

// What a switch over tag_and_type() compares with: a known number of another wire type is skipped.
template <typename Field>
constexpr uint32_t field(Field number, protozero::pbf_wire_type wire) {
  return protozero::tag_and_type(number, wire);
}

}  // namespace smd

// Any text gives an index or an error; an index that parses is built and read back the same.

#include "fuzz/property.h"
#include "smd/format/index.h"
#include "smd/format/file_name.h"

namespace {

using namespace smd;

bool same(const format::TensorLocation& a, const format::TensorLocation& b) {
  return a.name == b.name && a.offset == b.offset && a.length == b.length;
}

bool same(const format::ShapeEntry& a, const format::ShapeEntry& b) {
  return a.name == b.name && a.original_name == b.original_name && a.shape == b.shape;
}

template <typename T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same(a[i], b[i])) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::input_text(data, size);
  (void)format::parse_step_file_name(text);
  const auto index = format::parse_index(text, "x.json");
  if (!index.ok()) {
    SMD_FUZZ_REQUIRE(index.error().code == ErrorCode::corrupt);
    return 0;
  }
  format::IndexBuilder builder;
  for (const auto& at : index->tensors) builder.add_tensor(at.name, at.offset, at.length);
  for (const auto& shape : index->shapes) {
    builder.add_shape(shape.name, shape.original_name, shape.shape);
  }
  const std::string written =
      builder.finish({.mode = index->mode, .mode_step = index->mode_step}, index->event_file);
  const auto again = format::parse_index(written, "");
  SMD_FUZZ_REQUIRE(again.ok());
  SMD_FUZZ_REQUIRE(again->mode == index->mode && again->mode_step == index->mode_step);
  SMD_FUZZ_REQUIRE(again->event_file == index->event_file);
  SMD_FUZZ_REQUIRE(same(again->tensors, index->tensors));
  SMD_FUZZ_REQUIRE(same(again->shapes, index->shapes));
  return 0;
}

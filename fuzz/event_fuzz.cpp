// Any bytes give an event or an error; an event that parses is written and read back the same.

#include <cmath>
#include <vector>

#include "fuzz/property.h"
#include "smd/format/event.h"
#include "smd/format/tensor_record.h"
#include "smd/format/tfrecord.h"
#include "smd/tensor/widen.h"

namespace {

using namespace smd;

std::string encode(const format::Event& event) {
  const format::StoredTensor& tensor = *event.tensor;
  const std::vector<std::string_view> other_names(event.other_names.begin(),
                                                  event.other_names.end());
  const format::TensorHead head{.name = event.name,
                                .dtype = tensor.dtype,
                                .shape = tensor.shape,
                                .wall_secs = event.wall_secs,
                                .other_names = other_names};
  std::string out;
  if (tensor.dtype == DType::string) {
    const std::vector<std::string_view> strings(tensor.strings.begin(), tensor.strings.end());
    format::append_string_record(out, event.step, head, strings);
    return out;
  }
  const size_t count = tensor.elements.size() / size_of(tensor.dtype);
  SMD_FUZZ_REQUIRE(format::check_record_size(head, count).ok());
  if (!is_stored_widened(tensor.dtype)) {
    format::append_record(out, event.step, head, tensor.elements);
  } else {
    format::append_record_start(out, event.step, head, count);
    std::vector<float> wide(count);
    widen(tensor.dtype, tensor.elements, wide);
    out += as_text(std::as_bytes(std::span(wide)));
    format::append_record_end(out, event.step, head);
  }
  SMD_FUZZ_REQUIRE(out.size() == format::record_bytes(event.step, head, count));
  return out;
}

bool same_time(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Narrow floats have many NaNs, which need not keep their bits through float32.
bool same_elements(const format::StoredTensor& a, const format::StoredTensor& b) {
  if (a.dtype != b.dtype || a.elements.size() != b.elements.size()) return false;
  if (!is_stored_widened(a.dtype)) return a.elements == b.elements;
  const size_t count = a.elements.size() / size_of(a.dtype);
  std::vector<float> x(count);
  std::vector<float> y(count);
  widen(a.dtype, a.elements, x);
  widen(b.dtype, b.elements, y);
  for (size_t i = 0; i < count; ++i) {
    if (!(x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i])))) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto event = format::parse_event(fuzz::input_bytes(data, size));
  if (!event.ok()) {
    SMD_FUZZ_REQUIRE(event.error().code == ErrorCode::corrupt ||
                     event.error().code == ErrorCode::unsupported);
    return 0;
  }
  if (!event->tensor || event->tensor->shape.size() * event->name.size() > (1u << 20)) return 0;
  const std::string written = encode(*event);
  const auto record = format::parse_record(as_bytes(written), 0);
  SMD_FUZZ_REQUIRE(record.ok() && record->size_bytes == written.size());
  const auto again = format::parse_event(record->payload);
  // An empty tensor of numbers is never written, so it need not come back.
  if (event->tensor->elements.empty() && event->tensor->dtype != DType::string) return 0;
  SMD_FUZZ_REQUIRE(again.ok());
  SMD_FUZZ_REQUIRE(again->name == event->name);
  SMD_FUZZ_REQUIRE(again->other_names == event->other_names);
  SMD_FUZZ_REQUIRE(again->step == event->step);
  SMD_FUZZ_REQUIRE(same_time(again->wall_secs, event->wall_secs));
  SMD_FUZZ_REQUIRE(again->tensor.has_value());
  SMD_FUZZ_REQUIRE(again->tensor->shape == event->tensor->shape);
  SMD_FUZZ_REQUIRE(again->tensor->strings == event->tensor->strings);
  SMD_FUZZ_REQUIRE(same_elements(*again->tensor, *event->tensor));
  return 0;
}

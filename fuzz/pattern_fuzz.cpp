// A pattern, a newline and a name: compiling and searching end soon, whatever the pattern.

#include <chrono>

#include "fuzz/property.h"
#include "smd/collection/pattern.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace smd;
  constexpr size_t kLongest = 4096;
  constexpr std::chrono::seconds kLongestTime{3};  // far above the limit, for sanitizers
  const std::string_view text = fuzz::input_text(data, size < kLongest ? size : kLongest);
  const size_t newline = text.find('\n');
  const std::string_view name = newline == text.npos ? text : text.substr(newline + 1);
  const auto begun = std::chrono::steady_clock::now();
  const auto pattern = Pattern::compile(text.substr(0, newline));
  if (pattern.ok()) {
    SMD_FUZZ_REQUIRE(pattern->text() == text.substr(0, newline));
    const auto found = pattern->search(name);
    if (found.ok()) SMD_FUZZ_REQUIRE(pattern->found_in(name) == *found);
  } else {
    SMD_FUZZ_REQUIRE(!pattern.error().message.empty());
  }
  SMD_FUZZ_REQUIRE(std::chrono::steady_clock::now() - begun < kLongestTime);
  return 0;
}

#include "smd/collection/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <utility>

#include "smd/collection/internal/python_pattern.h"

namespace smd {
namespace {

// Ordinary searches in names need tens of steps; this many take some milliseconds.
constexpr uint32_t kMatchLimit = 1'000'000;

constexpr uint32_t kCompileOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF;

struct Free {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
  void operator()(pcre2_compile_context* p) const { pcre2_compile_context_free(p); }
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
};

PCRE2_SPTR units(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data() == nullptr ? "" : text.data());
}

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

struct Pattern::Compiled {
  std::string text;
  std::unique_ptr<pcre2_code, Free> code;
  std::unique_ptr<pcre2_match_context, Free> limits;
};

Result<Pattern> Pattern::compile(std::string_view text) {
  SMD_TRY(const std::string translated, pcre_from_python(text));
  std::unique_ptr<pcre2_compile_context, Free> context(pcre2_compile_context_create(nullptr));
  std::unique_ptr<pcre2_match_context, Free> limits(pcre2_match_context_create(nullptr));
  SMD_CHECK(context != nullptr && limits != nullptr);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_match_limit(limits.get(), kMatchLimit);

  int error = 0;
  PCRE2_SIZE offset = 0;
  std::unique_ptr<pcre2_code, Free> code(pcre2_compile(
      units(translated), translated.size(), kCompileOptions, &error, &offset, context.get()));
  if (code == nullptr) {
    const std::string where = translated == text ? fmt::format(" at offset {}", offset) : "";
    return Error{ErrorCode::invalid_argument,
                 fmt::format("'{}' is not a valid pattern: {}{}.", text, message_of(error), where)};
  }
  // Without JIT, for instance where memory must not be executable, matching is only slower.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return Pattern(
      std::make_shared<Compiled>(Compiled{std::string(text), std::move(code), std::move(limits)}));
}

const std::string& Pattern::text() const { return compiled_->text; }

Result<bool> Pattern::search(std::string_view name) const {
  if (compiled_->text == ".*") return true;  // found in anything, also where UTF-8 is broken
  // Per call, so that one pattern serves many threads; callers cache the outcome per name.
  std::unique_ptr<pcre2_match_data, Free> data(pcre2_match_data_create(1, nullptr));
  SMD_CHECK(data != nullptr);
  auto match = [&](uint32_t options) {
    return pcre2_match(compiled_->code.get(), units(name), name.size(), 0, options, data.get(),
                       compiled_->limits.get());
  };
  int outcome = match(0);
  if (outcome == PCRE2_ERROR_JIT_STACKLIMIT) outcome = match(PCRE2_NO_JIT);
  if (outcome >= 0) return true;
  if (outcome == PCRE2_ERROR_NOMATCH) return false;
  return Error{ErrorCode::unsupported,
               fmt::format("The search for the pattern '{}' in '{}' was given up: {}.", text(),
                           name, message_of(outcome))};
}

bool Pattern::found_in(std::string_view name) const {
  const auto found = search(name);
  return found.ok() && *found;
}

}  // namespace smd

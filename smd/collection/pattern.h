#pragma once

// One pattern for tensor names: Python's `re` language with search semantics, on PCRE2.
// Immutable, cheap to copy, thread-safe.

#include <memory>
#include <string>
#include <string_view>

#include "smd/base/result.h"

namespace smd {

class Pattern final {
 public:
  // `invalid_argument`: not a pattern. `unsupported`: valid or nearly so in one of the two
  // languages, but without an exact meaning in both (inline ASCII flags, named characters, …).
  static Result<Pattern> compile(std::string_view text);

  // As it was given.
  const std::string& text() const;

  // Whether the pattern is found anywhere in `name`. Bytes that are not UTF-8 match nothing but
  // `.*`. Error when the search was given up because it would have taken too long.
  Result<bool> search(std::string_view name) const;
  // The same; a search that was given up counts as not found.
  bool found_in(std::string_view name) const;

  bool operator==(const Pattern& other) const { return text() == other.text(); }

 private:
  struct Compiled;
  explicit Pattern(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace smd

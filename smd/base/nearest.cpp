#include "smd/base/nearest.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace smd {
namespace {

size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      const size_t change = diagonal + (lower(a[i]) != lower(b[j]) ? 1 : 0);
      row[j + 1] = std::min({above + 1, row[j] + 1, change});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::vector<std::string_view> views(const std::vector<std::string>& choices) {
  return {choices.begin(), choices.end()};
}

}  // namespace

std::string_view nearest(std::string_view typed, std::span<const std::string_view> choices) {
  constexpr size_t kLongest = 256;  // longer names are not typing mistakes
  if (typed.size() > kLongest) return {};
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, typed.size() / 2);
  for (std::string_view choice : choices) {
    if (choice.size() > kLongest) continue;
    const size_t d = distance(typed, choice);
    if (d < best_distance || (d == best_distance && best.empty() && d < choice.size())) {
      best = choice;
      best_distance = d;
    }
  }
  return best;
}

std::string_view nearest(std::string_view typed, const std::vector<std::string>& choices) {
  return nearest(typed, views(choices));
}

std::string did_you_mean(std::string_view typed, std::span<const std::string_view> choices) {
  const std::string_view found = nearest(typed, choices);
  return found.empty() ? std::string() : " Did you mean '" + std::string(found) + "'?";
}

std::string did_you_mean(std::string_view typed, const std::vector<std::string>& choices) {
  return did_you_mean(typed, views(choices));
}

}  // namespace smd

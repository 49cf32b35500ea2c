#include "smd/trial/layout.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "smd/base/result.h"

namespace smd {
namespace {

auto key_of(const Layout::Entry& entry) { return std::tuple(entry.tensor, entry.slot); }

}  // namespace

Layout::Layout(std::vector<Entry> entries, std::vector<ShapeOf> shapes)
    : Layout(std::move(entries), std::move(shapes), Block()) {}

Layout::Layout(std::vector<Entry> entries, std::vector<ShapeOf> shapes, Block block,
               std::vector<Split> splits)
    : shapes_(std::move(shapes)), block_(block), splits_(std::move(splits)) {
  std::vector<uint32_t> sorted(entries.size());
  std::iota(sorted.begin(), sorted.end(), 0u);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](uint32_t a, uint32_t b) { return key_of(entries[a]) < key_of(entries[b]); });
  order_.resize(entries.size());
  for (uint32_t from : sorted) {
    if (entries_.empty() || key_of(entries_.back()) != key_of(entries[from])) {
      entries_.push_back(entries[from]);
    } else {
      entries_.back() = entries[from];
    }
    order_[from] = static_cast<uint32_t>(entries_.size() - 1);
  }
  entries_.shrink_to_fit();
  std::stable_sort(shapes_.begin(), shapes_.end(),
                   [](const ShapeOf& a, const ShapeOf& b) { return a.tensor < b.tensor; });
  // Of equal neighbours the last one counts, too.
  const auto same = [](const ShapeOf& a, const ShapeOf& b) { return a.tensor == b.tensor; };
  const auto kept = std::unique(shapes_.rbegin(), shapes_.rend(), same);
  shapes_.erase(shapes_.begin(), kept.base());
}

std::span<const Layout::Entry> Layout::entries_of(uint32_t tensor) const {
  const auto first = std::ranges::lower_bound(entries_, tensor, {}, &Entry::tensor);
  const auto last = std::ranges::upper_bound(first, entries_.end(), tensor, {}, &Entry::tensor);
  return {first, last};
}

std::optional<uint32_t> Layout::find(uint32_t tensor, Slot slot) const {
  const auto it = std::ranges::lower_bound(entries_, std::tuple(tensor, slot.id()), {}, key_of);
  if (it == entries_.end() || it->tensor != tensor || it->slot != slot.id()) return std::nullopt;
  return static_cast<uint32_t>(it - entries_.begin());
}

const Layout::ShapeOf* Layout::shape_of(uint32_t tensor) const {
  const auto it = std::ranges::lower_bound(shapes_, tensor, {}, &ShapeOf::tensor);
  return it != shapes_.end() && it->tensor == tensor ? &*it : nullptr;
}

const Layout::Split& Layout::split_of(const Entry& entry) const {
  // The last one counts here, too.
  const auto it = std::find_if(splits_.rbegin(), splits_.rend(), [&](const Split& split) {
    return split.tensor == entry.tensor && split.slot == entry.slot;
  });
  SMD_CHECK(it != splits_.rend());
  return *it;
}

std::vector<uint32_t> Layout::tensors() const {
  std::vector<uint32_t> out;
  for (const Entry& entry : entries_) {
    if (out.empty() || out.back() != entry.tensor) out.push_back(entry.tensor);
  }
  const auto middle = static_cast<std::ptrdiff_t>(out.size());
  for (const ShapeOf& shape : shapes_) out.push_back(shape.tensor);
  std::inplace_merge(out.begin(), out.begin() + middle, out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace smd

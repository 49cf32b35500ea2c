#pragma once

// A growing sequence whose copies share their memory: what a trial reads once and its snapshots
// see. Copies are cheap and independent; a page that a copy may see is cloned before it is changed.
// A copy may be read by any number of threads while the one it came from is changed.

#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace smd {

template <typename T>
class PagedVector final {
 public:
  static constexpr size_t kPage = 512;

  PagedVector() = default;
  PagedVector(const PagedVector& other) : pages_(other.pages_), size_(other.size_) {
    other.owned_.assign(other.pages_.size(), false);
    owned_.assign(pages_.size(), false);
  }
  PagedVector& operator=(const PagedVector&) = delete;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t i) const { return (*pages_[i / kPage])[i % kPage]; }
  const T& back() const { return (*this)[size_ - 1]; }

  // For changing an element.
  T& edit(size_t i) { return own(i / kPage)[i % kPage]; }

  void push_back(T value) {
    if (size_ == pages_.size() * kPage) {
      pages_.push_back(std::make_shared<Page>());
      owned_.push_back(true);
    }
    own(size_ / kPage)[size_ % kPage] = std::move(value);
    ++size_;
  }

  // Moves everything from `at` on by one.
  void insert(size_t at, T value) {
    push_back(std::move(value));
    for (size_t i = size_ - 1; i > at; --i) std::swap(edit(i), edit(i - 1));
  }

 private:
  using Page = std::array<T, kPage>;

  Page& own(size_t page) {
    if (!owned_[page]) {
      pages_[page] = std::make_shared<Page>(*pages_[page]);
      owned_[page] = true;
    }
    return *pages_[page];
  }

  std::vector<std::shared_ptr<Page>> pages_;
  // Pages that no copy sees. Making a copy ends that, so copying is for one thread at a time.
  mutable std::vector<bool> owned_;
  size_t size_ = 0;
};

}  // namespace smd

#include "smd/writer/batch.h"

#include <cstring>

namespace smd {

Block BlockPool::take() {
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      Block block = std::move(free_.back());
      free_.pop_back();
      return block;
    }
  }
  return std::make_unique_for_overwrite<std::byte[]>(kBlockBytes);
}

void BlockPool::give(Block block) {
  std::lock_guard lock(mutex_);
  if (free_.size() < kept_) free_.push_back(std::move(block));
}

Batch::~Batch() {
  for (Block& block : blocks_) pool_->give(std::move(block));
}

std::span<std::byte> Batch::reserve(size_t bytes) {
  constexpr size_t kAlignment = 16;
  const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (size > kBlockBytes) {
    large_.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
    weight_ += size;
    return {large_.back().get(), bytes};
  }
  if (blocks_.empty() || size > room()) {
    blocks_.push_back(pool_->take());
    used_ = 0;
    weight_ += kBlockBytes;
  }
  const std::span<std::byte> out(blocks_.back().get() + used_, bytes);
  used_ += size;
  return out;
}

std::string_view Batch::copy(std::string_view text) {
  const auto out = copy(std::span<const char>(text.data(), text.size()));
  return {out.data(), out.size()};
}

void Batch::keep(std::shared_ptr<const void> owner, size_t bytes) {
  owners_.push_back(std::move(owner));
  weight_ += bytes;
}

}  // namespace smd

#include "smd/writer/batch.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace smd {

namespace {

Block new_block() {
  constexpr size_t kAlignment = 4096;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, kBlockBytes));
  if (memory == nullptr) throw std::bad_alloc();
  return Block(memory);
}

}  // namespace

void FreeBlock::operator()(std::byte* block) const { std::free(block); }

Block BlockPool::take() {
  std::unique_lock lock(mutex_);
  ++in_use_;
  if (free_.empty() && in_use_ > warm_ && waiting_pays_) {
    waiting_pays_ = returned_.wait_for(lock, patience_, [&] { return !free_.empty(); });
  }
  if (free_.empty()) {
    lock.unlock();
    return new_block();
  }
  Block block = std::move(free_.back());
  free_.pop_back();
  return block;
}

void BlockPool::give(Block block) {
  {
    std::lock_guard lock(mutex_);
    --in_use_;
    waiting_pays_ = true;
    if (free_.size() < warm_) free_.push_back(std::move(block));
  }
  returned_.notify_one();
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

std::span<const std::string_view> Batch::copy_texts(std::span<const std::string_view> texts) {
  if (texts.empty()) return {};
  std::vector<std::string_view> copies;
  copies.reserve(texts.size());
  for (std::string_view text : texts) copies.push_back(copy(text));
  return copy(std::span<const std::string_view>(copies));
}

void Batch::keep(std::shared_ptr<const void> owner, size_t bytes) {
  owners_.push_back(std::move(owner));
  weight_ += bytes;
}

}  // namespace smd

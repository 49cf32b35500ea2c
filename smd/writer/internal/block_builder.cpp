#include "smd/writer/internal/block_builder.h"

#include <algorithm>
#include <numeric>

#include "smd/format/packed_block.h"

namespace smd::internal {
namespace {

bool is_wide(DType dtype) { return size_of(dtype) > 4; }

}  // namespace

uint32_t NameTable::add(std::string_view name) {
  if (const auto known = ids_.find(name); known != ids_.end()) return known->second;
  const uint32_t id = size();
  names_.emplace_back(name);
  ids_.emplace(name, id);
  return id;
}

bool BlockBuilder::follows(std::string_view tensor, std::span<const Number> numbers) const {
  if (!following_ || bits_count_ + numbers.size() > last_->keys.size()) return false;
  const Key* key = last_->keys.data() + bits_count_;
  const uint32_t id = key->tensor;
  if (names_[id] != tensor) return false;
  for (const Number& number : numbers) {
    if (key->tensor != id || key->dtype != number.dtype || key->rank != number.rank ||
        ops_[key->op] != number.op) {
      return false;
    }
    ++key;
  }
  return true;
}

void BlockBuilder::add(std::string_view tensor, std::span<const Number> numbers) {
  if (numbers.empty()) return;
  if (!follows(tensor, numbers)) {
    if (following_) {
      keys_.assign(last_->keys.begin(),
                   last_->keys.begin() + static_cast<std::ptrdiff_t>(bits_count_));
      following_ = false;
    }
    const uint32_t id = names_.add(tensor);
    for (const Number& number : numbers) {
      keys_.push_back({id, ops_.add(number.op), number.dtype, number.rank});
    }
  }
  if (bits_.size() < bits_count_ + numbers.size()) bits_.resize(2 * (bits_count_ + numbers.size()));
  for (const Number& number : numbers) {
    bits_[bits_count_++] = load_le<uint64_t>(number.bits.data());
  }
}

BlockBuilder::Schema& BlockBuilder::finish(Bytes& block) {
  if (following_ && bits_count_ != last_->keys.size()) {
    keys_.assign(last_->keys.begin(),
                 last_->keys.begin() + static_cast<std::ptrdiff_t>(bits_count_));
    following_ = false;
  }
  if (!following_) last_ = &known_for(keys_);
  const Schema& schema = last_->schema;
  block.assign(schema.size_bytes, std::byte{0});
  for (size_t i = 0; i < bits_count_; ++i) {
    const size_t size = is_wide(last_->keys[i].dtype) ? 8 : 4;
    std::memcpy(block.data() + schema.offsets[i], &bits_[i], size);
  }
  return last_->schema;
}

void BlockBuilder::clear() {
  bits_count_ = 0;
  keys_.clear();
  following_ = last_ != nullptr;
}

void BlockBuilder::forget_logged() {
  for (const auto& known : known_) known->schema.logged = false;
}

BlockBuilder::Known& BlockBuilder::known_for(const std::vector<Key>& keys) {
  uint64_t hash = keys.size();
  for (const Key& key : keys) {
    constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;
    hash = (hash ^ key.tensor ^ uint64_t{key.op} << 32) * kFactor;
    hash ^= hash >> 29;
  }
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (it->second->keys == keys) return *it->second;
  }
  known_.push_back(std::make_unique<Known>());
  Known& made = *known_.back();
  made.keys = keys;
  lay_out(made, static_cast<uint32_t>(known_.size() - 1));
  by_hash_.emplace(hash, &made);
  return made;
}

// One statistic of all tensors stands together; short numbers come before long ones.
void BlockBuilder::lay_out(Known& known, uint32_t id) const {
  const std::vector<Key>& keys = known.keys;
  std::vector<uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(is_wide(keys[a].dtype), keys[a].op) <
           std::pair(is_wide(keys[b].dtype), keys[b].op);
  });
  Schema& schema = known.schema;
  schema.packed.id = id;
  std::vector<uint32_t> op_numbers(ops_.size(), 0);  // in the schema; 0: none yet
  for (uint32_t from : order) {
    const Key& key = keys[from];
    if (key.op != 0 && op_numbers[key.op] == 0) {
      schema.packed.ops.push_back(ops_[key.op]);
      op_numbers[key.op] = static_cast<uint32_t>(schema.packed.ops.size());
    }
    schema.packed.values.push_back(
        {.tensor = key.tensor, .op = op_numbers[key.op], .dtype = key.dtype, .rank = key.rank});
  }
  const format::BlockPlaces places = format::places_of(schema.packed.values);
  schema.size_bytes = places.size_bytes;
  schema.offsets.resize(keys.size());
  for (size_t i = 0; i < order.size(); ++i) schema.offsets[order[i]] = places.offsets[i];
}

}  // namespace smd::internal

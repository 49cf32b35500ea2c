#include "smd/storage/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <random>

namespace smd::storage {
namespace {

// HEAD holds little more than max_head_bytes; something larger is no HEAD.
constexpr uint64_t kMostHeadBytes = uint64_t{1} << 20;
// So many others may be faster before it is worth asking how far they are.
constexpr int kMostMisses = 4;
// So often a reader may find that the snapshot it was told of has been replaced.
constexpr int kMostLooks = 16;

Error no_conditions(const Storage& storage) {
  return {ErrorCode::unsupported,
          fmt::format("This one ignores the conditions: {}", storage.name())};
}

}  // namespace

Journal::Journal(std::shared_ptr<Storage> storage, JournalOptions options)
    : storage_(std::move(storage)), options_(std::move(options)) {}

std::string Journal::entry_path(uint64_t number) const {
  return fmt::format("{}/manifest/{:012}", options_.root, number);
}

std::string Journal::snapshot_path(const JournalSnapshot& snapshot) const {
  return fmt::format("{}/snapshot/{:012}-{:012}-{:08x}", options_.root, snapshot.first,
                     snapshot.last, snapshot.chance);
}

Error Journal::about(const Error& error, std::string_view path) const {
  return {error.code, fmt::format("{} Object: {}/{}", error.message, storage_->name(), path)};
}

Status Journal::check_storage() {
  if (checked_) return {};
  if (Status heeds = check_conditions(); !heeds.ok()) {
    if (heeds.error().code != ErrorCode::unsupported) return heeds;
    return Error{ErrorCode::unsupported,
                 fmt::format("layout='packed' needs a store with conditional writes "
                             "(If-None-Match, If-Match); record with layout='original'. {}",
                             heeds.error().message)};
  }
  checked_ = true;
  return {};
}

Status Journal::check_conditions() {
  const std::string path = options_.root + "/conditional";
  const ByteSpan content = as_bytes("Shows whether the store heeds the conditions of writes.\n");
  // Two writers that may each make the file only if it is absent: one of them must be refused. The
  // file may be there from an earlier check.
  SMD_TRY(bool made, storage_->put(path, content, Put::if_absent, {}));
  if (made) {
    SMD_TRY(made, storage_->put(path, content, Put::if_absent, {}));
  }
  if (made) return no_conditions(*storage_);
  SMD_TRY(const auto replaced,
          storage_->replace(path, content, "\"00000000000000000000000000000000\""));
  return replaced ? Status(no_conditions(*storage_)) : Status();
}

Status Journal::load_head() {
  SMD_TRY(const auto file, storage_->read_version(head_path(), version_, kMostHeadBytes));
  if (!file) return {};
  auto head = parse_head(file->content);
  if (!head.ok()) {
    const Error& error = head.error();
    const std::string_view advice = error.code == ErrorCode::unsupported
                                        ? ""
                                        : " Restore the object, or record the run anew elsewhere.";
    return about({error.code, error.message + std::string(advice)}, head_path());
  }
  if (head_ && head->last < head_->last) {
    return about({ErrorCode::corrupt,
                  fmt::format("The journal went back from entry {} to {}: the run was replaced by "
                              "another one; open it again.",
                              head_->last, head->last)},
                 head_path());
  }
  head_ = std::move(*head);
  version_ = file->version;
  beyond_.erase(beyond_.begin(), beyond_.upper_bound(head_->last));
  return {};
}

Status Journal::load_or_make_head() {
  Status loaded = load_head();
  if (loaded.ok() || loaded.error().code != ErrorCode::not_found || head_) return loaded;
  // Before the first number is given, so that a reader who finds no HEAD need not look further.
  SMD_TRY(const std::string empty, encode_head({}));
  SMD_RETURN_IF_ERROR(storage_->replace(head_path(), as_bytes(empty), ""));
  return load_head();
}

Result<std::optional<JournalEntry>> Journal::read_entry(uint64_t number) {
  const std::string path = entry_path(number);
  const auto bytes = read_all(*storage_, path, kMostJournalBytes);
  if (!bytes.ok()) {
    if (bytes.error().code == ErrorCode::not_found) return std::optional<JournalEntry>();
    return bytes.error();
  }
  auto entries = parse_entries(*bytes);
  if (!entries.ok()) return about(entries.error(), path);
  if (entries->size() != 1 || entries->front().number != number) {
    return about({ErrorCode::corrupt, "The object holds other entries than its name says."}, path);
  }
  return std::optional(std::move(entries->front()));
}

Result<std::vector<JournalEntry>> Journal::read_snapshot(const JournalSnapshot& snapshot) {
  const std::string path = snapshot_path(snapshot);
  SMD_TRY(const Bytes bytes, read_all(*storage_, path, kMostJournalBytes));
  auto entries = parse_entries(bytes);
  if (!entries.ok()) return about(entries.error(), path);
  if (entries->front().number != snapshot.first || entries->back().number != snapshot.last) {
    return about({ErrorCode::corrupt, "The object holds other entries than its name says."}, path);
  }
  return entries;
}

Result<std::optional<std::vector<JournalEntry>>> Journal::entries_of_head() {
  std::vector<JournalEntry> found;
  const auto take = [&](std::vector<JournalEntry> entries) {
    for (JournalEntry& entry : entries) {
      if (entry.number > read_upto_) found.push_back(std::move(entry));
    }
  };
  for (const JournalSnapshot& snapshot : head_->snapshots) {
    if (snapshot.last <= read_upto_) continue;
    auto entries = read_snapshot(snapshot);
    if (!entries.ok()) {
      if (entries.error().code != ErrorCode::not_found) return entries.error();
      return std::optional<std::vector<JournalEntry>>();
    }
    take(std::move(*entries));
  }
  take(head_->entries);
  return std::optional(std::move(found));
}

Result<std::vector<JournalEntry>> Journal::read_new() { return read_new(!opened_); }

Result<std::vector<JournalEntry>> Journal::read_new(bool beyond_head) {
  std::optional<std::vector<JournalEntry>> found;
  for (int look = 0; !found; ++look) {
    SMD_RETURN_IF_ERROR(load_head());
    SMD_TRY(found, entries_of_head());
    if (!found && look == kMostLooks) {
      return about({ErrorCode::corrupt, "A snapshot that HEAD names is missing."}, head_path());
    }
    if (!found) version_.clear();
  }
  read_upto_ = std::max(read_upto_, head_->last);
  if (beyond_head) {
    for (;; ++read_upto_) {
      SMD_TRY(auto entry, read_entry(read_upto_ + 1));
      if (!entry) break;
      beyond_.emplace(entry->number, *entry);
      found->push_back(std::move(*entry));
    }
    opened_ = true;
  }
  return std::move(*found);
}

Result<uint64_t> Journal::commit(Commit entry) {
  SMD_RETURN_IF_ERROR(check_storage());
  SMD_RETURN_IF_ERROR(load_or_make_head());
  if (entry.again) {
    SMD_TRY(const auto known, find(entry.id));
    if (known) return *known;
  }
  SMD_TRY(const uint64_t number, claim(entry));
  SMD_RETURN_IF_ERROR(advance_head(number));
  return number;
}

Result<std::optional<uint64_t>> Journal::find(const std::string& id) {
  SMD_RETURN_IF_ERROR(load_or_make_head());
  SMD_TRY(const auto fresh, read_new(true));
  for (const JournalEntry& entry : fresh) numbers_.emplace(entry.id, entry.number);
  const auto known = numbers_.find(id);
  if (known == numbers_.end()) return std::optional<uint64_t>();
  SMD_RETURN_IF_ERROR(advance_head(known->second));
  return std::optional(known->second);
}

// A number is tried only if the one before is known to be taken, so there are no gaps.
Result<uint64_t> Journal::claim(const Commit& entry) {
  uint64_t number = (beyond_.empty() ? head_->last : beyond_.rbegin()->first) + 1;
  for (int misses = 0;; ++misses) {
    if (misses > 0 && misses % kMostMisses == 0) {
      SMD_RETURN_IF_ERROR(load_head());
      number = std::max(number, head_->last + 1);
    }
    const JournalEntry mine{.number = number, .id = entry.id, .content = entry.content};
    SMD_TRY(const std::string bytes, encode_entries({mine}));
    SMD_TRY(const bool ours,
            storage_->put(entry_path(number), as_bytes(bytes), Put::if_absent, {}));
    if (ours) {
      beyond_.emplace(number, mine);
      return number;
    }
    ++number;
  }
}

Status Journal::advance_head(uint64_t number) {
  while (head_->last < number) {
    JournalHead next = *head_;
    for (uint64_t n = next.last + 1; n <= number; ++n) {
      auto known = beyond_.find(n);
      if (known == beyond_.end()) {
        SMD_TRY(auto entry, read_entry(n));
        if (!entry) {
          return about({ErrorCode::corrupt, "An object of the journal is missing."}, entry_path(n));
        }
        known = beyond_.emplace(n, std::move(*entry)).first;
      }
      next.entries.push_back(known->second);
    }
    next.last = number;
    auto replaced = shrink(next);
    if (!replaced.ok()) {
      if (replaced.error().code != ErrorCode::not_found) return replaced.error();
      version_.clear();  // the snapshot that it was to replace is gone: somebody was faster
      SMD_RETURN_IF_ERROR(load_head());
      continue;
    }
    SMD_TRY(const std::string bytes, encode_head(next));
    SMD_TRY(auto version, storage_->replace(head_path(), as_bytes(bytes), version_));
    if (!version) {
      const std::vector<JournalSnapshot> before = head_->snapshots;
      SMD_RETURN_IF_ERROR(load_head());
      // A snapshot that was made in vain; if the answer was lost, others may build on it by now.
      for (const JournalSnapshot& made : next.snapshots) {
        const auto holds = [&](const std::vector<JournalSnapshot>& list) {
          return std::find(list.begin(), list.end(), made) != list.end();
        };
        if (!holds(before) && !holds(head_->snapshots)) (void)storage_->remove(snapshot_path(made));
      }
      continue;
    }
    head_ = std::move(next);
    version_ = std::move(*version);
    beyond_.erase(beyond_.begin(), beyond_.upper_bound(head_->last));
    // Whoever was told of it looks at HEAD again. What cannot be removed does no harm.
    if (*replaced) (void)storage_->remove(snapshot_path(**replaced));
  }
  return {};
}

Result<std::optional<JournalSnapshot>> Journal::shrink(JournalHead& head) {
  uint64_t size_bytes = 0;
  for (const JournalEntry& entry : head.entries) size_bytes += size_of(entry);
  bool large = size_bytes > options_.max_head_entry_bytes;
  if (!large && size_bytes > options_.max_head_bytes) {
    SMD_TRY(const std::string bytes, encode_head(head));
    large = bytes.size() > options_.max_head_bytes;
  }
  std::optional<JournalSnapshot> replaced;
  if (!large) return replaced;

  std::vector<JournalEntry> entries = std::move(head.entries);
  head.entries.clear();
  if (!head.snapshots.empty() &&
      head.snapshots.back().size_bytes + size_bytes <= options_.max_snapshot_bytes) {
    replaced = head.snapshots.back();
    SMD_TRY(auto older, read_snapshot(*replaced));
    head.snapshots.pop_back();
    size_bytes += replaced->size_bytes;
    older.insert(older.end(), std::make_move_iterator(entries.begin()),
                 std::make_move_iterator(entries.end()));
    entries = std::move(older);
  }
  const JournalSnapshot snapshot{
      .first = entries.front().number, .last = entries.back().number, .size_bytes = size_bytes};
  SMD_TRY(const std::string bytes, encode_entries(entries));
  // Whoever else makes it gives it the same content.
  SMD_RETURN_IF_ERROR(storage_->put(snapshot_path(snapshot), as_bytes(bytes), Put::always, {}));
  head.snapshots.push_back(snapshot);
  return replaced;
}

}  // namespace smd::storage

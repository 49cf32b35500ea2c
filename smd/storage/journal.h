#pragma once

// An ordered list of entries in a storage that many processes commit to, on nothing but writes that
// happen only if nobody else was faster:
//
//   <root>/manifest/<number>        one entry, made if absent: whoever makes it owns the number
//   <root>/HEAD                     the last number, the newest entries and which snapshots there
//   are <root>/snapshot/<first>-<last>  the entries before those of HEAD
//
// A commit makes the object of its number and then brings HEAD up to it. Who dies in between leaves
// an entry beyond HEAD: readers look for it when they open the journal, and the next commit takes
// it into HEAD. Objects of numbers are never removed, so no number is given twice. One thread at a
// time; any number of journals, in any number of processes, share the objects.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/result.h"
#include "smd/storage/journal_bytes.h"
#include "smd/storage/storage.h"

namespace smd::storage {

struct JournalOptions {
  std::string root;  // a folder
  // When the entries in HEAD have reached this, as they are or compressed, they go to a snapshot.
  uint64_t max_head_entry_bytes = uint64_t{1} << 20;
  uint64_t max_head_bytes = uint64_t{256} << 10;
  // The newest snapshot is replaced by a longer one until its entries have reached this.
  uint64_t max_snapshot_bytes = uint64_t{32} << 20;
};

class Journal final {
 public:
  Journal(std::shared_ptr<Storage> storage, JournalOptions options);

  // Entries that no earlier call gave, in the order of their numbers. One request when there is
  // nothing new, and one when HEAD holds what is new; the first call also looks for entries beyond
  // HEAD. not_found: there is no journal. truncated, corrupt, unsupported: there is something else.
  Result<std::vector<JournalEntry>> read_new();

  struct Commit {
    std::string id;
    std::string content;
    // Perhaps it was committed already, as an earlier try failed or its process was killed: then
    // nothing happens.
    bool again = false;
  };
  // The number of the entry, which is in HEAD when this returns. After an error another try must
  // say `again`. unsupported: the storage has no conditional writes.
  Result<uint64_t> commit(Commit entry);

  // The number under which this was committed, by whomever; HEAD holds it when this returns.
  // nullopt: it was not.
  Result<std::optional<uint64_t>> find(const std::string& id);

  // unsupported: the storage does not know conditional writes, or ignores the conditions.
  Status check_storage();

  std::string head_path() const { return options_.root + "/HEAD"; }

 private:
  Status check_conditions();
  std::string entry_path(uint64_t number) const;
  std::string snapshot_path(const JournalSnapshot& snapshot) const;
  // Reads HEAD if it has changed. not_found: there is none.
  Status load_head();
  // The same; makes an empty one if there is none.
  Status load_or_make_head();
  // nullopt: there is none.
  Result<std::optional<JournalEntry>> read_entry(uint64_t number);
  Result<std::vector<JournalEntry>> read_snapshot(const JournalSnapshot& snapshot);
  // Entries after read_upto_ that HEAD knows; nullopt: a snapshot was replaced meanwhile.
  Result<std::optional<std::vector<JournalEntry>>> entries_of_head();
  Result<std::vector<JournalEntry>> read_new(bool beyond_head);
  Result<uint64_t> claim(const Commit& entry);
  // Brings HEAD up to this number, which is taken.
  Status advance_head(uint64_t number);
  // Moves the entries of a HEAD that is too large to a snapshot. The one that it replaces, if any.
  Result<std::optional<JournalSnapshot>> shrink(JournalHead& head);
  Error about(const Error& error, std::string_view path) const;

  const std::shared_ptr<Storage> storage_;
  const JournalOptions options_;
  std::optional<JournalHead> head_;          // as it was last seen
  std::string version_;                      // of it
  uint64_t read_upto_ = 0;                   // what read_new() has given
  bool opened_ = false;                      // entries beyond HEAD were looked for
  bool checked_ = false;                     // the storage knows conditional writes
  std::map<uint64_t, JournalEntry> beyond_;  // known entries that HEAD, as it was seen, lacks
  std::map<std::string, uint64_t> numbers_;  // of entries by their ids, as far as find() looked
};

}  // namespace smd::storage

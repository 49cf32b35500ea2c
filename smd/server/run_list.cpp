#include "smd/server/run_list.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "smd/base/signals_blocked.h"
#include "smd/storage/location.h"
#include "smd/trial/run_folder.h"

namespace smd::server {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kInterval{2};
constexpr size_t kMostIdBytes = 100;
// A run that is gone is told of for half a minute; then its files and memory are given back.
constexpr int kGoneLooks = 15;

// Which directory lies there; false: none.
bool identify(const std::string& path, uint64_t& device, uint64_t& inode) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0 || !S_ISDIR(about.st_mode)) return false;
  device = about.st_dev;
  inode = about.st_ino;
  return true;
}

uint32_t short_hash_of(std::string_view text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

std::string last_part(std::string_view location) {
  while (location.ends_with('/')) location.remove_suffix(1);
  return std::string(location.substr(location.rfind('/') + 1));
}

}  // namespace

std::string slug_of(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kMostIdBytes)) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                          (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
    out += is_plain ? c : '-';
  }
  // Browsers would take dots for a way up.
  if (out.find_first_not_of('.') == std::string::npos) out = "run" + out;
  return out;
}

Result<std::unique_ptr<RunList>> RunList::open(RunListOptions options) {
  std::unique_ptr<RunList> out(new RunList(std::move(options)));
  for (const std::string& location : out->options_.locations) {
    if (location.empty()) return Error{ErrorCode::invalid_argument, "The path of a run is empty."};
    std::error_code error;
    if (!storage::is_uri(location) && fs::exists(location, error) &&
        !fs::is_directory(location, error)) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("'{}' is a file, but a run is a directory.", location)};
    }
    if (storage::is_uri(location))
      SMD_RETURN_IF_ERROR(out->add({location, last_part(location)}, 0, 0));
  }
  out->look();
  return out;
}

RunList::~RunList() { stop(); }

void RunList::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_all();
  if (thread_.joinable()) thread_.join();
  const auto all = runs();
  for (const auto& run : all) run->ask_to_stop();
  for (const auto& run : all) run->stop();
}

std::vector<std::shared_ptr<ServedRun>> RunList::runs() const {
  std::vector<std::shared_ptr<ServedRun>> out;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : by_id_) out.push_back(entry.run);
  return out;
}

std::shared_ptr<ServedRun> RunList::find(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second.run;
}

void RunList::start() {
  for (const auto& run : runs()) run->start();
  is_started_ = true;
  const SignalsBlocked none;
  thread_ = std::thread([this] { watch(); });
}

void RunList::watch() {
  std::map<std::string, int> gone_looks;  // by id
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (stopping_.wait_for(lock, kInterval, [this] { return stop_; })) return;
    }
    bool has_changed = look();
    for (const auto& run : runs()) {
      if (run->facts()->state != RunState::gone) {
        gone_looks.erase(run->id());
      } else if (++gone_looks[run->id()] >= kGoneLooks) {
        gone_looks.erase(run->id());
        Entry old;  // destroyed without the mutex
        const std::lock_guard lock(mutex_);
        old = std::move(by_id_.at(run->id()));
        by_id_.erase(run->id());
        has_changed = true;
      }
    }
    if (has_changed && options_.changed) options_.changed("");
  }
}

std::vector<RunList::Place> RunList::places() const {
  std::vector<Place> out;
  for (const std::string& location : options_.locations) {
    if (storage::is_uri(location)) continue;
    std::error_code error;
    const fs::path root = fs::absolute(location, error).lexically_normal();
    if (is_run_folder(root)) {
      out.push_back({root.string(), last_part(root.string())});
      continue;
    }
    for (const std::string& run : find_runs_below(root, {.most_runs = kMostRuns})) {
      out.push_back({run, fs::path(run).lexically_relative(root).string()});
    }
  }
  return out;
}

bool RunList::look() {
  bool has_changed = false;
  // Removed runs first, so that one that took the place of another is new. An unmounted or empty
  // directory is no run any more.
  for (const auto& run : runs()) {
    if (storage::is_uri(run->location())) continue;
    uint64_t device = 0;
    uint64_t inode = 0;
    const bool is_there =
        identify(run->location(), device, inode) && is_run_folder(run->location());
    bool is_same = is_there;
    {
      const std::lock_guard lock(mutex_);
      const Entry& entry = by_id_.at(run->id());
      is_same = is_same && entry.device == device && entry.inode == inode;
    }
    if (is_same) continue;
    run->mark_gone();
  }
  for (const Place& place : places()) {
    uint64_t device = 0;
    uint64_t inode = 0;
    if (!identify(place.location, device, inode)) continue;
    {
      const std::lock_guard lock(mutex_);
      const auto id = ids_.find(place.location);
      const auto known = id == ids_.end() ? by_id_.end() : by_id_.find(id->second);
      if (known != by_id_.end() && known->second.run->facts()->state != RunState::gone) continue;
    }
    // What cannot be opened now is tried again with the next look.
    if (add(place, device, inode).ok()) has_changed = true;
  }
  return has_changed;
}

std::string RunList::id_of(const Place& place) const {
  const auto known = ids_.find(place.location);
  if (known != ids_.end()) return known->second;
  const std::string slug = slug_of(place.name);
  // Of two runs with one name, or with a name that cannot be an id, the path tells them apart.
  if (slug == place.name && !by_id_.contains(slug)) return slug;
  return fmt::format("{}~{:08x}", slug, short_hash_of(place.location));
}

Status RunList::add(const Place& place, uint64_t device, uint64_t inode) {
  std::string id;
  uint64_t revision = 1;
  {
    const std::lock_guard lock(mutex_);
    id = id_of(place);
    const auto before = by_id_.find(id);
    if (before != by_id_.end()) {
      revision = before->second.run->facts()->revision + 1;
    } else if (ids_.contains(place.location)) {
      // It was there and is forgotten: the time is beyond every number that it can have had.
      revision = static_cast<uint64_t>(options_.clock->unix_secs());
    }
  }
  SMD_TRY(auto run, ServedRun::open({.id = id,
                                     .name = place.name,
                                     .location = place.location,
                                     .first_revision = revision,
                                     .clock = options_.clock,
                                     .changed = options_.changed}));
  run->load();
  Entry old;  // destroyed without the mutex, as its thread may be waiting for it
  {
    const std::lock_guard lock(mutex_);
    old = std::exchange(by_id_[id], Entry{run, device, inode});
    ids_[place.location] = id;
  }
  // News about a run that nobody can find yet would be lost.
  if (is_started_) run->start();
  return {};
}

}  // namespace smd::server

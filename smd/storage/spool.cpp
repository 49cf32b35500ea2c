#include "smd/storage/spool.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "smd/base/signals_blocked.h"
#include "smd/storage/copy.h"
#include "smd/storage/internal/spool_queue.h"
#include "smd/storage/spool_directory.h"

namespace smd::storage {

using internal::SpoolJob;
using internal::SpoolQueue;

namespace {
// How long the thread may take to notice that it shall end.
constexpr std::chrono::seconds kFarewell{5};
}  // namespace

struct Spool::Shared {
  Shared(SpoolOptions o, std::shared_ptr<Storage> r, SpoolDirectory d)
      : options(std::move(o)),
        remote(std::move(r)),
        directory(std::move(d)),
        local(local_storage(directory.files())),
        removed(local_storage(directory.removed())) {}

  const SpoolOptions options;
  const std::shared_ptr<Storage> remote;
  SpoolDirectory directory;
  const std::shared_ptr<Storage> local;
  // Names of files to be removed, so that whoever takes the directory over knows.
  const std::shared_ptr<Storage> removed;
  std::atomic<bool> has_new_error = false;

  mutable std::mutex mutex;  // guards everything below
  std::condition_variable changed;
  SpoolQueue queue;
  int64_t growing = 0;  // files that are open
  std::optional<Error> new_error;
  std::string last_message;
  bool failing = false;  // since the last file that was sent
  bool started = false;
  bool stopping = false;
  bool finished = false;

  // Needs the mutex. `self` is the owner of this.
  void enqueue(const std::shared_ptr<Shared>& self, SpoolJob job) {
    queue.add(std::move(job));
    start(self);
    changed.notify_all();
  }

  bool delivers(std::string_view path) const {
    return options.delivery && options.delivery->takes(path);
  }
  std::string owner_of(std::string_view path) const {
    return options.delivery ? options.delivery->owner_of(path) : std::string();
  }

  // Needs the mutex.
  void start(const std::shared_ptr<Shared>& self) {
    if (started || stopping) return;
    const SignalsBlocked inherited_by_the_thread;
    std::thread(&Spool::run, self).detach();
    started = true;
  }

  // False: there is no room.
  bool reserve(uint64_t bytes) {
    std::lock_guard lock(mutex);
    if (queue.held_bytes() + bytes > options.max_bytes) return false;
    queue.hold(bytes);
    return true;
  }
  void release(uint64_t bytes) {
    std::lock_guard lock(mutex);
    queue.release(bytes);
  }

  Error full() const {
    std::lock_guard lock(mutex);
    return {ErrorCode::io,
            fmt::format("The spool is full: {} bytes wait to be sent to {}, and {} are allowed. {}",
                        queue.held_bytes(), remote->name(), options.max_bytes, last_message)};
  }

  // Needs the mutex.
  void report(Error error) {
    last_message = error.message;
    if (std::exchange(failing, true)) return;
    new_error = std::move(error);
    has_new_error = true;
  }
};

// A file of the directory; counts its bytes, and queues it when it is committed.
class Spool::File final : public WriteFile {
 public:
  File(std::shared_ptr<Shared> shared, std::string path, std::unique_ptr<WriteFile> file)
      : shared_(std::move(shared)), path_(std::move(path)), file_(std::move(file)) {}
  ~File() override {
    if (!committed_) shared_->release(bytes_);
  }

  Status append(std::span<const ByteSpan> pieces) override {
    uint64_t bytes = 0;
    for (const ByteSpan piece : pieces) bytes += piece.size();
    if (!shared_->reserve(bytes)) return shared_->full();
    bytes_ += bytes;
    return file_->append(pieces);
  }
  void expect(uint64_t bytes) override { file_->expect(bytes); }
  Status commit() override {
    // Under the lock, so that an older file of this name is not removed when it has been sent.
    std::lock_guard lock(shared_->mutex);
    SMD_RETURN_IF_ERROR(file_->commit());
    committed_ = true;
    shared_->enqueue(shared_, {.path = path_, .bytes = bytes_});
    return {};
  }

 private:
  const std::shared_ptr<Shared> shared_;
  const std::string path_;
  const std::unique_ptr<WriteFile> file_;
  uint64_t bytes_ = 0;
  bool committed_ = false;
};

// A file of the directory that grows; queued when it is complete, or when its writer gave it up:
// the delivery knows how far it can be used.
class Spool::GrowingFile final : public AppendFile {
 public:
  GrowingFile(std::shared_ptr<Shared> shared, std::string path, std::unique_ptr<AppendFile> file)
      : shared_(std::move(shared)),
        path_(std::move(path)),
        sent_(shared_->delivers(path_)),
        file_(std::move(file)) {
    std::lock_guard lock(shared_->mutex);
    ++shared_->growing;
  }
  ~GrowingFile() override {
    if (!finished_) (void)finish();
  }

  Status append(std::span<const ByteSpan> pieces) override {
    uint64_t bytes = 0;
    for (const ByteSpan piece : pieces) bytes += piece.size();
    if (!shared_->reserve(bytes)) return shared_->full();
    Status status = file_->append(pieces);
    if (status.ok()) {
      bytes_ += bytes;
    } else {
      shared_->release(bytes);
    }
    return status;
  }
  void truncate(uint64_t size_bytes) override {
    file_->truncate(size_bytes);
    if (size_bytes >= bytes_) return;
    shared_->release(bytes_ - size_bytes);
    bytes_ = size_bytes;
  }
  Status sync() override { return file_->sync(); }
  uint64_t size() const override { return file_->size(); }
  Status finish() override {
    if (std::exchange(finished_, true)) return {};
    std::lock_guard lock(shared_->mutex);
    --shared_->growing;
    if (!sent_) {  // goes with the file that it belongs to
      shared_->queue.release(bytes_);
      return {};
    }
    shared_->enqueue(shared_, {.path = path_, .bytes = bytes_});
    return {};
  }

 private:
  const std::shared_ptr<Shared> shared_;
  const std::string path_;
  const bool sent_;
  const std::unique_ptr<AppendFile> file_;
  uint64_t bytes_ = 0;
  bool finished_ = false;
};

Spool::Spool(std::string directory, std::shared_ptr<Shared> shared)
    : directory_(std::move(directory)), shared_(std::move(shared)) {}

Result<std::shared_ptr<Spool>> Spool::open(std::shared_ptr<Storage> remote, SpoolOptions options) {
  SMD_TRY(SpoolDirectory directory, SpoolDirectory::claim(options.root, remote->name()));
  auto shared =
      std::make_shared<Shared>(std::move(options), std::move(remote), std::move(directory));
  SMD_TRY(const auto removed, shared->removed->list("", ""));
  SMD_TRY(auto left, shared->local->list("", ""));
  std::stable_sort(left.begin(), left.end(), [](const FileInfo& a, const FileInfo& b) {
    return arrival_rank(a.path) < arrival_rank(b.path);
  });
  {
    std::lock_guard lock(shared->mutex);
    // First of all: an index that was to go must not point into data that is new.
    for (const FileInfo& file : removed) shared->queue.add({.path = file.path, .removal = true});
    std::set<std::string_view> names;
    for (const FileInfo& file : left) names.insert(file.path);
    for (const FileInfo& file : left) {
      if (const std::string owner = shared->owner_of(file.path); !owner.empty()) {
        // What it belonged to has arrived.
        if (!names.contains(owner)) (void)shared->local->remove(file.path);
        continue;
      }
      const auto bytes = static_cast<uint64_t>(file.size_bytes);
      shared->queue.hold(bytes);
      shared->queue.add({.path = file.path, .bytes = bytes, .again = true});
    }
    if (!shared->queue.empty()) shared->start(shared);
  }
  std::string files = shared->directory.files();
  return std::shared_ptr<Spool>(new Spool(std::move(files), std::move(shared)));
}

Spool::~Spool() {
  if (guard_.in_owner()) {
    stop();
  } else {
    // Its thread does not exist here, and may hold the mutex for ever.
    (void)new std::shared_ptr<Shared>(shared_);
  }
}

void Spool::run(std::shared_ptr<Shared> shared) {
  pthread_setname_np(pthread_self(), "smdebug-upload");
  RetrySchedule schedule(shared->options.retry);
  std::unique_lock lock(shared->mutex);
  SpoolQueue& queue = shared->queue;
  while (true) {
    shared->changed.wait(lock, [&] { return shared->stopping || !queue.empty(); });
    if (shared->stopping) break;
    const SpoolJob job = queue.front();
    // What was replaced before it was sent needs no sending. What was to be removed must go, even
    // if it comes again: files that were committed in between count on it.
    const auto matters = [&] { return job.removal || queue.front_is_latest(); };
    Status done;
    if (matters()) {
      lock.unlock();
      if (job.removal) {
        done = shared->remote->remove(job.path);
      } else {
        const auto sent =
            shared->delivers(job.path)
                ? shared->options.delivery->deliver(*shared->local, job.path, {.again = job.again})
                : copy_file(*shared->local, *shared->remote, job.path);
        if (!sent.ok()) done = sent.error();
      }
      lock.lock();
      if (!done.ok()) queue.keep_front();
    }
    if (!done.ok() && matters()) {
      const bool vanished = done.error().code == ErrorCode::not_found && !job.removal &&
                            !shared->local->stat(job.path).ok();
      if (done.error().code != ErrorCode::closed) shared->report(std::move(done.error()));
      if (!vanished) {
        shared->changed.wait_for(lock, schedule.next(), [&] { return shared->stopping; });
        continue;
      }
    }
    schedule.reset();
    if (done.ok()) shared->failing = false;
    // What cannot be removed here is sent or removed there once more, which changes nothing.
    if (job.removal) (void)shared->removed->remove(job.path);
    if (!job.removal && queue.front_is_latest()) (void)shared->local->remove(job.path);
    queue.pop();
    shared->changed.notify_all();
  }
  shared->finished = true;
  shared->changed.notify_all();
}

Status Spool::check_owner() const {
  if (guard_.in_owner()) return {};
  return Error{ErrorCode::closed, "A forked child cannot use the spool of its parent."};
}

Spool::Pending Spool::pending() const {
  if (!guard_.in_owner()) return {};
  std::lock_guard lock(shared_->mutex);
  Pending pending;
  for (const SpoolJob* job : shared_->queue.latest_below("")) {
    if (job->removal) continue;
    ++pending.files;
    pending.bytes += job->bytes;
  }
  return pending;
}

std::vector<std::string> Spool::waiting(std::string_view folder) const {
  std::vector<std::string> paths;
  if (!guard_.in_owner()) return paths;
  const std::string prefix = std::string(folder) + "/";
  std::lock_guard lock(shared_->mutex);
  for (const SpoolJob* job : shared_->queue.latest_below(prefix)) {
    if (!job->removal) paths.push_back(job->path);
  }
  return paths;
}

std::optional<Error> Spool::take_error() {
  if (!shared_->has_new_error.exchange(false) || !guard_.in_owner()) return std::nullopt;
  std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->new_error, std::nullopt);
}

Status Spool::drain() {
  {
    std::unique_lock lock(shared_->mutex);
    const auto is_empty = [&] { return shared_->queue.empty() || shared_->stopping; };
    shared_->changed.wait_for(lock, shared_->options.drain_timeout, is_empty);
    if (shared_->queue.empty()) return {};
  }
  const Pending left = pending();
  std::lock_guard lock(shared_->mutex);
  const std::string reason =
      shared_->last_message.empty() ? "" : fmt::format(" {}", shared_->last_message);
  return Error{
      ErrorCode::io,
      fmt::format("{} file{} with {} bytes could not be sent to {} within {} s and wait in {}; "
                  "the command 'smdebug sync {} {}' sends them.{}",
                  left.files, left.files == 1 ? "" : "s", left.bytes, shared_->remote->name(),
                  shared_->options.drain_timeout.count() / 1000, directory_, directory_,
                  shared_->remote->name(), reason)};
}

void Spool::stop() {
  std::unique_lock lock(shared_->mutex);
  if (shared_->stopping) return;
  shared_->stopping = true;
  shared_->options.interrupt->set();
  shared_->changed.notify_all();
  if (shared_->started) {
    const bool ended =
        shared_->changed.wait_for(lock, kFarewell, [&] { return shared_->finished; });
    if (!ended) return;  // the thread keeps the directory, until the process ends
  }
  shared_->directory.release(shared_->queue.empty() && shared_->growing == 0);
}

Status Spool::close() {
  SMD_RETURN_IF_ERROR(check_owner());
  if (closed_) return {};
  closed_ = true;
  Status drained = drain();
  // What is left must survive the machine, too: nobody else has it.
  if (!drained.ok()) (void)shared_->local->sync();
  stop();
  return drained;
}

std::string Spool::name() const { return shared_->remote->name(); }

Result<std::unique_ptr<WriteFile>> Spool::create(std::string_view path,
                                                 const CreateOptions& options) {
  SMD_RETURN_IF_ERROR(check_owner());
  SMD_TRY(auto file, shared_->local->create(path, options));
  if (!shared_->reserve(1)) return shared_->full();
  shared_->release(1);
  return std::unique_ptr<WriteFile>(
      std::make_unique<File>(shared_, std::string(path), std::move(file)));
}

Result<std::unique_ptr<AppendFile>> Spool::append(std::string_view path) {
  SMD_RETURN_IF_ERROR(check_owner());
  if (!shared_->delivers(path) && shared_->owner_of(path).empty()) return Storage::append(path);
  if (!shared_->reserve(1)) return shared_->full();
  shared_->release(1);
  SMD_TRY(auto file, shared_->local->append(path));
  return std::unique_ptr<AppendFile>(
      std::make_unique<GrowingFile>(shared_, std::string(path), std::move(file)));
}

Result<bool> Spool::put(std::string_view path, ByteSpan content, Put when,
                        const CreateOptions& options) {
  SMD_RETURN_IF_ERROR(check_owner());
  if (when == Put::if_absent) {
    {
      std::lock_guard lock(shared_->mutex);
      const SpoolJob* job = shared_->queue.latest(path);
      if (job != nullptr && !job->removal) return false;
    }
    return shared_->remote->put(path, content, when, options);
  }
  // Small, and never refused: an index or a marker without room would lose what is there already.
  std::lock_guard lock(shared_->mutex);
  SMD_RETURN_IF_ERROR(shared_->local->put(path, content, when, options));
  shared_->queue.hold(content.size());
  shared_->enqueue(shared_, {.path = std::string(path), .bytes = content.size()});
  return true;
}

Result<std::unique_ptr<ReadFile>> Spool::open(std::string_view path) {
  SMD_RETURN_IF_ERROR(check_owner());
  {
    std::lock_guard lock(shared_->mutex);
    if (const SpoolJob* job = shared_->queue.latest(path)) {
      if (!job->removal) return shared_->local->open(path);
      return Error{ErrorCode::not_found, fmt::format("There is no file: {}", path)};
    }
  }
  return shared_->remote->open(path);
}

Result<FileInfo> Spool::stat(std::string_view path) {
  SMD_RETURN_IF_ERROR(check_owner());
  {
    std::lock_guard lock(shared_->mutex);
    if (const SpoolJob* job = shared_->queue.latest(path)) {
      if (!job->removal) return shared_->local->stat(path);
      return Error{ErrorCode::not_found, fmt::format("There is no file: {}", path)};
    }
  }
  return shared_->remote->stat(path);
}

Result<std::vector<FileInfo>> Spool::list(std::string_view folder, std::string_view start_after) {
  SMD_RETURN_IF_ERROR(check_owner());
  // First what waits: a file that is sent meanwhile is then seen at least once.
  std::map<std::string, std::optional<FileInfo>> waiting;
  const std::string prefix = folder.empty() ? "" : std::string(folder) + "/";
  {
    std::lock_guard lock(shared_->mutex);
    for (const SpoolJob* job : shared_->queue.latest_below(prefix)) {
      if (job->path <= start_after) continue;
      auto& entry = waiting[job->path];
      if (job->removal) continue;
      SMD_TRY(entry, shared_->local->stat(job->path));
    }
  }
  SMD_TRY(const auto there, shared_->remote->list(folder, start_after));
  for (const FileInfo& file : there) waiting.try_emplace(file.path, file);
  std::vector<FileInfo> files;
  files.reserve(waiting.size());
  for (auto& [path, info] : waiting) {
    if (info) files.push_back(std::move(*info));
  }
  return files;
}

Status Spool::remove(std::string_view path) {
  SMD_RETURN_IF_ERROR(check_owner());
  std::lock_guard lock(shared_->mutex);
  SMD_RETURN_IF_ERROR(shared_->removed->put(path, {}, Put::always, {}));
  SMD_RETURN_IF_ERROR(shared_->local->remove(path));
  shared_->enqueue(shared_, {.path = std::string(path), .removal = true});
  return {};
}

Status Spool::sync() {
  SMD_RETURN_IF_ERROR(check_owner());
  return drain();
}

}  // namespace smd::storage

#include <fmt/format.h>

#include <deque>
#include <iterator>

#include "smd/format/packed_file_name.h"
#include "smd/format/packed_manifest.h"
#include "smd/packed/delivery.h"
#include "smd/trial/internal/collection_files.h"
#include "smd/trial/internal/poll.h"
#include "smd/trial/internal/record_reader.h"
#include "smd/trial/internal/segment_log.h"
#include "smd/trial/source.h"

namespace smd {
namespace {

class CommittedSource final : public Source {
 public:
  explicit CommittedSource(SourceOptions options)
      : options_(std::move(options)),
        journal_(packed::journal_of(options_.storage)),
        collections_(options_.storage, options_.log),
        reader_(options_.storage) {}

  // not_found: there is no journal.
  Status open() {
    SMD_RETURN_IF_ERROR(load());
    fresh_ = true;
    return {};
  }

  Status refresh(Staging& staging) override {
    if (!std::exchange(fresh_, false)) SMD_RETURN_IF_ERROR(load());
    for (; !entries_.empty(); entries_.pop_front()) {
      if (Status taken = take(entries_.front(), staging); !taken.ok()) {
        if (taken.error().code == ErrorCode::unsupported) return taken;
        options_.log->warning(fmt::format("Entry {} of the journal is left out. {}",
                                          entries_.front().number, taken.error().message));
      }
    }
    return collections_.publish(staging);
  }

  Result<std::optional<double>> ended() override { return ended_; }

  bool wait(std::chrono::steady_clock::time_point deadline) override {
    return internal::wait_for_next_look(internal::kRemotePoll, deadline);
  }

  Result<TensorValue> read(const Snapshot& snapshot, const Location& at) override {
    return explained(reader_.read(snapshot, at));
  }
  Result<TensorDescription> describe(const Snapshot& snapshot, const Location& at) override {
    return explained(reader_.describe(snapshot, at));
  }
  Status read_numbers(const Snapshot& snapshot, std::span<const Location> at,
                      std::span<double> out) override {
    return explained(reader_.read_numbers(snapshot, at, out));
  }
  Status read_single_numbers(const Snapshot& snapshot, std::span<const Location> at,
                             std::span<std::optional<double>> out) override {
    return explained(reader_.read_single_numbers(snapshot, at, out));
  }

 private:
  Status load() {
    SMD_TRY(auto entries, journal_.read_new());
    entries_.insert(entries_.end(), std::make_move_iterator(entries.begin()),
                    std::make_move_iterator(entries.end()));
    return {};
  }

  Status take(const storage::JournalEntry& entry, Staging& staging) {
    SMD_TRY(auto manifest, format::parse_manifest(as_bytes(entry.content)));
    for (auto& file : manifest.files) collections_.add(file.path, std::move(file.content));
    if (manifest.end_secs) ended_ = manifest.end_secs;
    if (manifest.segment.empty()) return {};
    const auto name = format::parse_packed_file_name(manifest.segment);
    if (!name || !manifest.segment.starts_with(format::kSegmentFolder)) {
      return Error{ErrorCode::corrupt,
                   fmt::format("'{}' is not the name of a segment.", manifest.segment)};
    }
    internal::SegmentLog log(*name);
    const Status read = log.read_whole(manifest.log);
    log.merge(staging, options_.check);  // as far as it could be read
    return read;
  }

  // A segment that was committed was there once.
  template <typename T>
  static T explained(T result) {
    if (result.ok() || result.error().code != ErrorCode::not_found) return result;
    return Error{
        ErrorCode::not_found,
        fmt::format("The segment that holds this step is missing: it has expired by a life "
                    "cycle rule of the bucket or was removed; steps in other segments can "
                    "still be read. {}",
                    result.error().message)};
  }

  const SourceOptions options_;
  storage::Journal journal_;
  internal::CollectionFiles collections_;
  internal::RecordReader reader_;
  std::deque<storage::JournalEntry> entries_;  // read and not taken yet
  bool fresh_ = false;                         // open() has just looked
  std::optional<double> ended_;                // when the job ended
};

}  // namespace

Result<std::unique_ptr<Source>> committed_source(SourceOptions options) {
  auto source = std::make_unique<CommittedSource>(std::move(options));
  if (const Status opened = source->open(); !opened.ok()) {
    if (opened.error().code == ErrorCode::not_found) return std::unique_ptr<Source>();
    return opened.error();
  }
  return std::unique_ptr<Source>(std::move(source));
}

}  // namespace smd

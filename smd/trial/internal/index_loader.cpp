#include "smd/trial/internal/index_loader.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <unordered_map>

#include "smd/format/file_name.h"
#include "smd/format/index.h"
#include "smd/types/tensor_name.h"

namespace smd::internal {
namespace {

// A thread is worth its start from this many files on; each file is some microseconds of work.
constexpr size_t kFilesPerThread = 32;
constexpr size_t kMostThreads = 8;
// Object stores answer slowly but many at a time.
constexpr size_t kMostRequests = 32;

// One tensor of an index, its name as the reader's own number.
struct RawEntry {
  uint32_t name = 0;
  uint64_t offset = 0;
  uint64_t length = 0;

  bool operator==(const RawEntry&) const = default;
};

struct RawShape {
  std::string name;
  std::string original_name;
  Shape shape;

  bool operator==(const RawShape&) const = default;
};

struct RawLayout {
  std::vector<RawEntry> entries;
  std::vector<RawShape> shapes;
  uint32_t id = kNone;  // in the staging, once it is there

  bool operator==(const RawLayout& other) const {
    return entries == other.entries && shapes == other.shapes;
  }
};

uint64_t hash_of(const RawLayout& layout) {
  uint64_t hash = layout.entries.size() + layout.shapes.size();
  for (const RawEntry& entry : layout.entries) {
    constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;
    hash = (hash ^ entry.name ^ entry.offset << 20) * kFactor;
    hash ^= hash >> 31;
  }
  return hash;
}

struct RawPart {
  size_t file = 0;  // number in the list of paths
  StepInfo step;
  std::string worker;
  std::string event_file;
  uint32_t layout = 0;  // number in the reader's layouts
  std::shared_ptr<const Checksums> checksums;
};

}  // namespace

// Reads and parses on a thread of its own; what it found is merged afterwards.
class IndexLoader::Reader final {
 public:
  Reader(storage::Storage& storage, bool keep_checksums)
      : storage_(storage), keep_checksums_(keep_checksums) {}

  void read(const std::string& path, size_t number) {
    try {
      if (Status status = try_read(path, number); !status.ok()) {
        broken.push_back({path, std::move(status.error())});
      }
    } catch (const std::bad_alloc&) {  // on a thread of its own it would end the program
      broken.push_back({path, {ErrorCode::io, "There is no memory for the index: " + path}});
    }
  }

  // Number of an own layout in the staging.
  uint32_t merge(uint32_t layout, Staging& staging) {
    RawLayout& raw = layouts_[layout];
    if (raw.id != kNone) return raw.id;
    std::vector<Layout::Entry> entries;
    entries.reserve(raw.entries.size());
    for (const RawEntry& entry : raw.entries) {
      const std::string& name = names_[entry.name];
      const auto reduction = parse_reduction_name(name);
      const Slot slot =
          reduction ? staging.reduction(reduction->op, reduction->abs) : Slot::value();
      entries.push_back({.tensor = staging.tensor(reduction ? reduction->tensor : name),
                         .slot = slot.id(),
                         .offset = entry.offset,
                         .length = entry.length});
    }
    std::vector<Layout::ShapeOf> shapes;
    for (const RawShape& shape : raw.shapes) {
      shapes.push_back({staging.tensor(shape.name), shape.original_name, shape.shape});
    }
    raw.id = staging.add_layout(std::move(entries), std::move(shapes));
    return raw.id;
  }

  std::vector<RawPart> parts;
  std::vector<BrokenIndex> broken;

 private:
  Status try_read(const std::string& path, size_t number) {
    const auto name = format::parse_step_file_name(path);
    if (!name) {
      return Error{ErrorCode::corrupt, "The file's name is not <step>_<worker>.json: " + path};
    }
    if (!is_utf8(name->worker)) {
      return Error{ErrorCode::corrupt, "The file's name is not valid UTF-8: " + path};
    }
    SMD_TRY(const Bytes text, storage::read_all(storage_, path, storage::kMostJsonBytes));
    SMD_TRY(const format::IndexView* index, parser_.parse(as_text(text), path));
    // The name of a file in the run comes from the file: it must not lead anywhere else.
    if (!index->event_file.empty()) {
      if (Status status = storage::check_path(index->event_file); !status.ok()) {
        return Error{ErrorCode::corrupt, "The index names an event file outside of the run: " +
                                             status.error().message + ": " + path};
      }
    }
    RawPart part{.file = number,
                 .step = {.step = name->step, .mode = index->mode, .mode_step = index->mode_step},
                 .worker = name->worker,
                 .event_file = std::string(index->event_file),
                 .layout = layout_of(*index)};
    if (keep_checksums_) {
      auto checksums = std::make_shared<Checksums>();
      checksums->records.reserve(index->tensors.size());
      for (const auto& at : index->tensors) checksums->records.push_back(at.crc32c);
      part.checksums = std::move(checksums);
    }
    parts.push_back(std::move(part));
    return {};
  }

  uint32_t layout_of(const format::IndexView& index) {
    RawLayout layout;
    layout.entries.reserve(index.tensors.size());
    for (size_t i = 0; i < index.tensors.size(); ++i) {
      const auto& at = index.tensors[i];
      layout.entries.push_back({number_of(at.name, i), at.offset, at.length});
    }
    for (const auto& at : index.shapes) {
      layout.shapes.push_back({std::string(at.name), std::string(at.original_name), at.shape});
    }
    const uint64_t hash = hash_of(layout);
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      if (layouts_[it->second] == layout) return it->second;
    }
    const auto id = static_cast<uint32_t>(layouts_.size());
    layouts_.push_back(std::move(layout));
    by_hash_.emplace(hash, id);
    return id;
  }

  // Steps mostly name the same tensors in the same order: the one at the same place is tried first.
  uint32_t number_of(std::string_view name, size_t place) {
    if (place < last_names_.size() && names_[last_names_[place]] == name) return last_names_[place];
    const uint32_t id = names_.add(name);
    if (place >= last_names_.size()) last_names_.resize(place + 1);
    last_names_[place] = id;
    return id;
  }

  storage::Storage& storage_;
  const bool keep_checksums_;
  format::IndexParser parser_;
  NameList names_;
  std::vector<uint32_t> last_names_;
  std::vector<RawLayout> layouts_;
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
};

IndexLoader::IndexLoader(std::shared_ptr<storage::Storage> storage, bool keep_checksums)
    : storage_(std::move(storage)), keep_checksums_(keep_checksums) {}
IndexLoader::~IndexLoader() = default;

std::vector<BrokenIndex> IndexLoader::load(std::span<const std::string> paths, Staging& staging) {
  const size_t processors = std::max(1u, std::thread::hardware_concurrency());
  const bool remote = storage_->is_remote();
  const size_t most = remote ? kMostRequests : std::min(kMostThreads, processors);
  const size_t wanted =
      std::clamp<size_t>(remote ? paths.size() : paths.size() / kFilesPerThread, 1, most);
  while (readers_.size() < wanted) {
    readers_.push_back(std::make_unique<Reader>(*storage_, keep_checksums_));
  }
  std::atomic<size_t> next{0};
  const auto work = [&](Reader& reader) {
    for (size_t i = next++; i < paths.size(); i = next++) reader.read(paths[i], i);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < wanted; ++i) threads.emplace_back(work, std::ref(*readers_[i]));
  work(*readers_[0]);
  for (std::thread& thread : threads) thread.join();

  // Added in the order of the paths, whichever thread read them.
  struct Found {
    Reader* reader;
    RawPart* part;
  };
  std::vector<Found> found;
  std::vector<BrokenIndex> broken;
  for (size_t i = 0; i < wanted; ++i) {
    for (RawPart& part : readers_[i]->parts) found.push_back({readers_[i].get(), &part});
    std::move(readers_[i]->broken.begin(), readers_[i]->broken.end(), std::back_inserter(broken));
    readers_[i]->broken.clear();
  }
  std::ranges::sort(found, {}, [](const Found& f) { return f.part->file; });
  for (const Found& f : found) {
    const uint32_t layout = f.reader->merge(f.part->layout, staging);
    std::shared_ptr<const Checksums> checksums;
    if (f.part->checksums) {
      // In the order of the layout, in which the last of several records of one name counts.
      const auto& order = staging.layout(layout).order();
      const auto& read = f.part->checksums->records;
      auto sorted = std::make_shared<Checksums>();
      sorted->records.resize(staging.layout(layout).entries().size());
      for (size_t i = 0; i < order.size() && i < read.size(); ++i) {
        sorted->records[order[i]] = read[i];
      }
      checksums = std::move(sorted);
    }
    staging.add({.step = f.part->step,
                 .worker = f.part->worker,
                 .layout = layout,
                 .file = f.part->event_file,
                 .checksums = std::move(checksums)});
  }
  for (size_t i = 0; i < wanted; ++i) readers_[i]->parts.clear();
  std::ranges::sort(broken, {}, &BrokenIndex::path);
  return broken;
}

}  // namespace smd::internal

#include "smd/trial/internal/collection_files.h"

#include <algorithm>
#include <set>

#include "smd/types/tensor_name.h"
#include "smd/types/worker.h"

namespace smd::internal {
namespace {

constexpr std::string_view kFolder = "collections";
constexpr std::string_view kSuffix = "_collections.json";

// The worker in a path that ends in <worker>_collections.json.
std::string worker_of(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  name.remove_suffix(kSuffix.size());
  return worker_from_file_name(name);
}

// Names of the other workers join those of the first; everything else is the first one's.
void add_names(CollectionSet& to, const CollectionSet& from) {
  for (const auto& collection : from.collections()) {
    const auto known = to.find(collection->name());
    if (!known) {
      (void)to.add(std::make_shared<Collection>(collection->clone()));
      continue;
    }
    for (const std::string& name : collection->tensor_names()) known->add_tensor_name(name);
  }
}

}  // namespace

bool is_collections_file(std::string_view path) {
  return path.starts_with(kFolder) && path.ends_with(kSuffix) &&
         path.size() > path.rfind('/') + 1 + kSuffix.size();
}

Status CollectionFiles::refresh(Staging& staging) {
  SMD_TRY(const auto files, storage_->list(kFolder, ""));
  for (const auto& file : files) {
    if (!is_usable(file.path)) continue;
    Known& known = known_[file.path];
    if (!known.text.empty() && known.size_bytes == file.size_bytes &&
        known.mtime_ns == file.mtime_ns) {
      continue;
    }
    SMD_TRY(const Bytes text, storage::read_all(*storage_, file.path, storage::kMostJsonBytes));
    known = {file.size_bytes, file.mtime_ns, std::string(as_text(text))};
    changed_ = true;
  }
  return publish(staging);
}

bool CollectionFiles::is_usable(const std::string& path) {
  if (!is_collections_file(path)) return false;
  if (is_utf8(path)) return true;
  if (unnamed_.insert(path).second) {
    log_->warning("A collections file is left out, as its name is not valid UTF-8: " + path);
  }
  return false;
}

void CollectionFiles::add(const std::string& path, std::string text) {
  if (!is_usable(path)) return;
  known_[path].text = std::move(text);
  changed_ = true;
}

Status CollectionFiles::publish(Staging& staging) {
  if (!changed_) return {};
  auto all = std::make_shared<CollectionSet>();
  bool first = true;
  std::vector<std::string> workers;
  std::set<std::string_view> read;  // most workers write the same text
  for (const auto& [path, known] : known_) {
    workers.push_back(worker_of(path));
    if (!read.insert(known.text).second) continue;
    std::vector<std::string> warnings;
    SMD_TRY(CollectionSet set, CollectionSet::from_json(known.text, path, &warnings));
    for (const std::string& warning : warnings) log_->warning(warning);
    if (first) {
      *all = std::move(set);
    } else {
      add_names(*all, set);
    }
    first = false;
  }
  std::ranges::sort(workers);
  staging.set_collections(std::move(all), std::move(workers));
  changed_ = false;
  return {};
}

}  // namespace smd::internal

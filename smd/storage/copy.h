#pragma once

// Files of a run from one storage to another, in an order that readers of the other can live with.

#include <cstdint>
#include <string_view>

#include "smd/base/result.h"
#include "smd/storage/storage.h"

namespace smd::storage {

// Copies one file, some of it in memory at a time. Its size.
Result<uint64_t> copy_file(Storage& from, Storage& to, std::string_view path);

// A file must arrive after those of a smaller rank: 0 data, 1 the indexes that name places in the
// data and notes that follow it, 2 the marks that say that everything is there (all files outside
// of folders, and those of the workers that have ended).
int arrival_rank(std::string_view path);
inline constexpr int kLastArrivalRank = 2;

}  // namespace smd::storage

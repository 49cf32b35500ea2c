#include "smd/storage/copy.h"

#include <algorithm>

namespace smd::storage {
namespace {
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;
}  // namespace

Result<uint64_t> copy_file(Storage& from, Storage& to, std::string_view path) {
  SMD_TRY(const auto source, from.open(path));
  SMD_TRY(const uint64_t size, source->size());
  SMD_TRY(const auto target, to.create(path, {.durable = true}));
  target->expect(size);
  Bytes piece(std::min(size, kPieceBytes));
  for (uint64_t done = 0; done < size;) {
    SMD_TRY(const size_t got, source->read_at(done, piece));
    if (got == 0) break;
    SMD_RETURN_IF_ERROR(target->append({{ByteSpan(piece).first(got)}}));
    done += got;
  }
  SMD_RETURN_IF_ERROR(target->commit());
  return size;
}

int arrival_rank(std::string_view path) {
  if (path.find('/') == std::string_view::npos || path.starts_with(".smdebug/ended/")) return 2;
  return path.starts_with("index/") || path.starts_with("v2/note/") ? 1 : 0;
}

}  // namespace smd::storage

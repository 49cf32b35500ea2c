#include "smd/base/heap.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/sanitized.h"

namespace smd {
namespace {

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  file >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST(Heap, holes_between_what_is_used_go_back_to_the_system) {
  if (kHasOwnHeap) GTEST_SKIP() << "This is not the heap of the C library.";
  constexpr size_t kBytes = size_t{32} << 20;
  constexpr size_t kPieceBytes = 30'000;
  std::vector<std::unique_ptr<int>> used;
  // Of another arena than that of the first thread.
  std::thread([&] {
    std::vector<std::unique_ptr<char[]>> pieces;
    for (size_t bytes = 0; bytes < kBytes; bytes += kPieceBytes) {
      pieces.push_back(std::make_unique<char[]>(kPieceBytes));
      std::memset(pieces.back().get(), 1, kPieceBytes);
      used.push_back(std::make_unique<int>(1));
    }
  }).join();
  const int64_t before = resident_bytes();
  trim_heap();
  EXPECT_LT(resident_bytes(), before - int64_t{kBytes} / 2);
}

}  // namespace
}  // namespace smd

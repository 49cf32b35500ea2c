#pragma once

// What files of some storages can do besides being read: be mapped into memory. Used by one thread
// at a time; what was mapped lives on without the file.

#include <cstddef>
#include <cstdint>
#include <memory>

namespace smd::storage {

class MappableFile {
 public:
  virtual ~MappableFile() = default;
  // Memory that shows these bytes, which must lie in the file, without a copy. Changes to it stay
  // private. Only for files that are never shortened: touching what was cut off ends the process.
  // nullptr: the system refuses.
  virtual std::shared_ptr<std::byte> map(uint64_t offset, uint64_t length) = 0;
};

}  // namespace smd::storage

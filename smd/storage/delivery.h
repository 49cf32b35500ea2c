#pragma once

// How files of a spool reach the place where they belong when copying them there is not enough.
// Called by one thread at a time.

#include <cstdint>
#include <string>
#include <string_view>

#include "smd/base/result.h"
#include "smd/storage/storage.h"

namespace smd::storage {

class Delivery {
 public:
  virtual ~Delivery() = default;

  // Whether this file is delivered here; all others are copied.
  virtual bool takes(std::string_view path) const = 0;
  // The file that this one belongs to, which takes it along; empty: it stands for itself.
  virtual std::string owner_of(std::string_view path) const = 0;

  struct Options {
    bool again = false;  // perhaps an earlier try has done it already
    bool keep = false;   // what belongs to the file stays, too
  };
  // Brings the file of this name there, whole or as a killed process left it, and then removes what
  // belongs to it from `local`; the file itself is the caller's. How many bytes were sent; 0: it
  // was there, or holds nothing.
  virtual Result<uint64_t> deliver(Storage& local, std::string_view path,
                                   const Options& options) = 0;
};

}  // namespace smd::storage

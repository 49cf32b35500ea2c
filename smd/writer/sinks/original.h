#pragma once

// The original's layout: per step and worker one event file and one index file.
// The index appears only after the event file is complete under its final name.

#include <memory>
#include <string>

#include "smd/storage/storage.h"
#include "smd/types/durability.h"
#include "smd/writer/sink.h"

namespace smd {

struct OriginalSinkOptions {
  std::shared_ptr<storage::Storage> storage;
  std::string worker;  // as it stands in file names
  // One worker writes here: refuse when another process does.
  bool exclusive = false;
  Durability durable = Durability::off;
};

std::unique_ptr<Sink> original_sink(OriginalSinkOptions options);

}  // namespace smd

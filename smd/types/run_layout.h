#pragma once

// How the steps of a run lie on disk.

namespace smd {

enum class RunLayout {
  original,  // an event and an index file per step and worker
  packed,    // a few files that grow
};

}  // namespace smd

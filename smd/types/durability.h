#pragma once

// When recorded data must be on stable storage.

namespace smd {

enum class Durability {
  off,    // the operating system decides
  step,   // each file before it becomes visible
  close,  // once, when recording ends
};

}  // namespace smd

#pragma once

// What happens to values that find no room in a full queue.

namespace smd {

enum class Overflow {
  block,  // the training waits for the writer
  drop,   // they are left out of their step, and counted
};

}  // namespace smd

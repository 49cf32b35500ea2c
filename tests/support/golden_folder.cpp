#include "tests/support/golden_folder.h"

namespace smd {

std::string golden_folder() { return SMD_GOLDEN_DIR; }

}  // namespace smd

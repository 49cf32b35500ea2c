#include "smd/base/heap.h"

#include <malloc.h>

namespace smd {

void trim_heap() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace smd

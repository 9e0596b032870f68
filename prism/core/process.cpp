#include "prism/core/process.h"

#include <malloc.h>

#include <cstdlib>

namespace prism {

void set_up_process() {
  ::setenv("MKL_CBWR", "AUTO,STRICT", 0);
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_TOP_PAD, 64 << 20);
}

}  // namespace prism

// What the benchmarks of prism bench share.
#pragma once

#include "prism/cli/command.h"
#include "prism/core/machine.h"

namespace prism {

/// Ends a benchmark: prints what is left of its rows, and a note if the cores were busy meanwhile. @return  the exit
/// status.
int finish_bench(CoreWait& wait);

int run_bench_budgets(const Arguments& arguments);

}  // namespace prism

// What the benchmarks of prism bench share.
#pragma once

#include <string>

#include "prism/cli/command.h"
#include "prism/core/machine.h"

namespace prism {

/// Ends a benchmark: prints what is left of its rows, and a note if the cores were busy meanwhile. @return  the exit
/// status.
int finish_bench(CoreWait& wait);

/// The dtype's name as results show it, e.g. bfloat16 for bf16 or auto.
std::string full_dtype(const std::string& name);

int run_bench_budgets(const Arguments& arguments);

}  // namespace prism

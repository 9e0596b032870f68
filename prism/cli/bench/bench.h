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
/// @param option  that gave the name. @throws InputError for an unknown dtype.
std::string full_dtype(const std::string& name, const char* option = "--dtypes");

int run_bench_budgets(const Arguments& arguments);
int run_bench_feed_forward(const Arguments& arguments);
int run_bench_model(const Arguments& arguments);

}  // namespace prism

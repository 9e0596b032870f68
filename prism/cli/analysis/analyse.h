// The analyses of prism analyse, one function each.
#pragma once

#include "prism/cli/command.h"

namespace prism {

int run_analyse_budgets(const Arguments& arguments);
int run_analyse_capture(const Arguments& arguments);
int run_analyse_distance(const Arguments& arguments);
int run_analyse_entropy(const Arguments& arguments);
int run_analyse_gates(const Arguments& arguments);
int run_analyse_gradients(const Arguments& arguments);
int run_analyse_heads(const Arguments& arguments);
int run_analyse_maps(const Arguments& arguments);
int run_analyse_norms(const Arguments& arguments);
int run_analyse_spectrum(const Arguments& arguments);
int run_analyse_twins(const Arguments& arguments);
int run_analyse_weights(const Arguments& arguments);

}  // namespace prism

// The kinds of prism analyse, each in a file of its own.
#pragma once

#include "prism/cli/command.h"

namespace prism {

int run_analyse_spectrum(const Arguments& arguments);

}  // namespace prism

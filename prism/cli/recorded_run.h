// Runs as reports read them, whichever version of prism recorded them.
#pragma once

#include <filesystem>

#include "prism/report/run.h"

namespace prism {

/// read_run(), where fields that the run's recipe.json does not know yet have their defaults, so that it is the same
/// experiment as a later run of the same recipe. A recipe that this version cannot read stays as it is written.
/// @throws InputError as read_run().
Run read_recorded_run(const std::filesystem::path& folder);

}  // namespace prism

// Reads recorded runs for reports, whichever version of prism recorded them.
#pragma once

#include <filesystem>

#include "prism/report/compare/run.h"

namespace prism {

/// Calls read_run() and adds defaults for recipe fields that the run's version did not have yet. So the run counts as
/// the same experiment as a later run of the same recipe. A recipe that this version cannot read is left as it is.
/// @throws InputError as read_run().
Run read_recorded_run(const std::filesystem::path& folder);

}  // namespace prism

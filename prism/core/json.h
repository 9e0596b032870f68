// The type of JSON values, for headers that only pass them on; core/fields.h has what is done with them.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace prism {

/// JSON that keeps the order of its members, so that saved files read in the order of the fields.
using Json = nlohmann::ordered_json;

}  // namespace prism

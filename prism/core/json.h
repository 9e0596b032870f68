// The JSON type, for headers that only pass values on. core/fields.h has the functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace prism {

/// JSON that keeps the order of its members, so that saved files list fields in the order of visit().
using Json = nlohmann::ordered_json;

}  // namespace prism

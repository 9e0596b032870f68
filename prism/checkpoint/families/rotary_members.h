// The rotary encoding in the names of transformers: version 4 has rope_theta and rope_scaling, version 5 has both in
// rope_parameters. Both are read, and both are written.
#pragma once

#include "prism/attention/rotary.h"
#include "prism/checkpoint/families/members.h"

namespace prism {

/// @param base  rope_theta if the file has none.
/// @throws InputError for a scaling that prism does not support, and for members that contradict each other.
RotaryConfig read_rotary(const MemberReader& members, double base);

/// Adds rope_theta, rope_scaling and rope_parameters.
void write_rotary(Json& json, const RotaryConfig& rotary);

}  // namespace prism

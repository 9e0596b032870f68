#include "prism/checkpoint/families/rotary_members.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace prism {
namespace {

Json scaling_to_json(const RotaryConfig& rotary) {
  if (rotary.scaling == "none") return nullptr;
  Json json = {{"rope_type", rotary.scaling}, {"factor", rotary.factor}};
  if (rotary.scaling != "linear") json["original_max_position_embeddings"] = rotary.original_context;
  if (rotary.scaling == "yarn") {
    json["beta_fast"] = rotary.beta_fast;
    json["beta_slow"] = rotary.beta_slow;
    json["attention_factor"] = rotary_attention_factor(rotary);
  }
  if (rotary.scaling == "llama3") {
    json["low_freq_factor"] = rotary.low_freq_factor;
    json["high_freq_factor"] = rotary.high_freq_factor;
  }
  return json;
}

/// The member with the scaling. In transformers 5 a rope_scaling added by hand takes the place of all rope_parameters.
const char* scaling_member(const MemberReader& all) {
  return all.has("rope_scaling") ? "rope_scaling" : "rope_parameters";
}

/// The rope_theta, which transformers 5 nests with the scaling and version 4 keeps at the top.
std::optional<double> rotary_base(const MemberReader& all) {
  std::optional<double> base;
  for (const char* name : {"", scaling_member(all)}) {
    if (*name != '\0' && !all.has(name)) continue;
    const MemberReader members = *name == '\0' ? all : all.within(name);
    if (!members.has("rope_theta")) continue;
    const auto found = members.get<double>("rope_theta");
    PRISM_CHECK(!base || *base == found, "config.json",
                "{}: expected one rope_theta; found {} and, in {}, {}; make them equal, or remove one.", all.source(),
                base.value_or(0), name, found);
    base = found;
  }
  return base;
}

/// The attention factor of a file that gives two numbers in its place; 0 unless it gives both. They are not the
/// paper's. Source: transformers, modeling_rope_utils.py.
double quotient_of_mscales(const MemberReader& members, const RotaryConfig& rotary) {
  const auto above = members.get<double>("mscale", 0), below = members.get<double>("mscale_all_dim", 0);
  if (above == 0 || below == 0) return 0;
  const double growth = 0.1 * std::log(std::max(rotary.factor, 1.0));
  return (above * growth + 1) / (below * growth + 1);
}

void read_yarn(const MemberReader& members, RotaryConfig& rotary) {
  rotary.beta_fast = members.get<double>("beta_fast", rotary.beta_fast);
  rotary.beta_slow = members.get<double>("beta_slow", rotary.beta_slow);
  const double by_formula = rotary_attention_factor(rotary);
  rotary.attention_factor = members.get<double>("attention_factor", quotient_of_mscales(members, rotary));
  if (rotary.attention_factor == by_formula) rotary.attention_factor = 0;
  members.expect("truncate", true);
}

}  // namespace

RotaryConfig read_rotary(const MemberReader& all, double base) {
  all.expect("partial_rotary_factor", 1.0);
  all.expect("rope_interleaved", false);
  RotaryConfig rotary;
  rotary.base = rotary_base(all).value_or(base);
  const char* nested = scaling_member(all);
  if (!all.has(nested)) return rotary;
  const MemberReader members = all.within(nested);
  members.expect("partial_rotary_factor", 1.0);
  const auto type = members.get<std::string>("rope_type", members.get<std::string>("type", "default"));
  if (type == "default") return rotary;
  PRISM_CHECK(
      type != "dynamic", "config.json",
      "{}: expected rope_type default, linear, yarn or llama3; found \"dynamic\", which has no fixed meaning with "
      "a cache of keys; set it to yarn, or remove it.",
      all.source());
  PRISM_CHECK(
      type == "linear" || type == "yarn" || type == "llama3", "config.json",
      "{}: expected rope_type default, linear, yarn or llama3; found \"{}\"; prism supports no other yet; choose "
      "another model.",
      all.source(), type);
  rotary.scaling = type;
  const auto context = all.get<int64_t>("max_position_embeddings", 0);
  if (type != "linear")  // As in transformers 5, the member beside the scaling wins.
    rotary.original_context =
        all.get<int64_t>("original_max_position_embeddings", members.get("original_max_position_embeddings", context));
  if (!members.has("factor") && rotary.original_context > 0) {
    rotary.factor = static_cast<double>(context) / static_cast<double>(rotary.original_context);
  } else {
    rotary.factor = members.get<double>("factor");
  }
  if (type == "yarn") read_yarn(members, rotary);
  if (type == "llama3") {
    rotary.low_freq_factor = members.get<double>("low_freq_factor");
    rotary.high_freq_factor = members.get<double>("high_freq_factor");
  }
  return rotary;
}

void write_rotary(Json& json, const RotaryConfig& rotary) {
  const Json scaling = scaling_to_json(rotary);
  json["rope_theta"] = rotary.base;
  json["rope_scaling"] = scaling;
  json["rope_parameters"] = scaling.is_null() ? Json{{"rope_type", "default"}} : scaling;
  json["rope_parameters"]["rope_theta"] = rotary.base;
}

}  // namespace prism

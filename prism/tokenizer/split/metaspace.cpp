#include "prism/tokenizer/split/metaspace.h"

#include "prism/core/error.h"
#include "prism/core/text/printable.h"
#include "prism/tokenizer/space_marker.h"

namespace prism {
namespace {

using nlohmann::json;

constexpr size_t kShownMetaspace = 80;

Metaspace::Prepend scheme_of(const json& value, const std::string& source) {
  const json scheme = value.value("prepend_scheme", json("always"));
  const json prefix = value.value("add_prefix_space", json());
  if (prefix == false) {
    PRISM_CHECK(
        scheme == "never" || !value.contains("prepend_scheme"), "tokenizer",
        "{}: expected Metaspace with \"add_prefix_space\": false to have the prepend_scheme \"never\"; found {}; "
        "change one of them.",
        source, scheme.dump());
    return Metaspace::Prepend::never;
  }
  if (scheme == "never") return Metaspace::Prepend::never;
  if (scheme == "first") return Metaspace::Prepend::first;
  PRISM_CHECK(
      scheme == "always", "tokenizer",
      "{}: expected the prepend_scheme of Metaspace to be \"always\", \"first\" or \"never\"; found {}; choose one "
      "of them.",
      source, short_line(scheme.dump(), kShownMetaspace));
  return Metaspace::Prepend::always;
}

}  // namespace

Metaspace Metaspace::from_json(const json& value, bool spaces_are_gone, const std::string& source) {
  if (value.is_null()) return {};
  const json type = value.is_object() ? value.value("type", json()) : json();
  const json parts = type == "Sequence" ? value.value("pretokenizers", json()) : json();
  if (parts.is_array() && parts.size() == 1 && parts[0].is_object() && parts[0].value("type", json()) != "Sequence")
    return from_json(parts[0], spaces_are_gone, source);
  // Gemma's files split at spaces after having replaced them all.
  if (spaces_are_gone && type == "Split" && value.value("pattern", json()) == json{{"String", " "}}) return {};
  PRISM_CHECK(
      type == "Metaspace", "tokenizer",
      "{}: expected a tokenizer with byte fallback to have no pre_tokenizer, or Metaspace; found {}; other kinds "
      "are not supported, choose another tokenizer.",
      source, short_line(type.is_null() ? value.dump() : type.dump(), kShownMetaspace));
  const json replacement = value.value("replacement", json());
  PRISM_CHECK(replacement == kSpaceMarker, "tokenizer",
              "{}: expected Metaspace to replace spaces by \"{}\"; found {}; choose another tokenizer.", source,
              kSpaceMarker, short_line(replacement.dump(), kShownMetaspace));
  const json split = value.value("split", json(true));
  return {.marks_spaces = true, .prepend = scheme_of(value, source), .split = split.is_null() || split == true};
}

bool Metaspace::prepends_to(std::string_view text, bool first) const {
  if (prepend == Prepend::never || (prepend == Prepend::first && !first)) return false;
  return !text.starts_with(' ') && !text.starts_with(kSpaceMarker);
}

std::string Metaspace::describe() const {
  if (!marks_spaces) return "none";
  const char* where = prepend == Prepend::never ? "never" : prepend == Prepend::first ? "first" : "always";
  return std::string("spaces marked, a marker put before a text: ") + where + (split ? ", split at markers" : "");
}

}  // namespace prism

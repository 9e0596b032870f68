// Reads typed members of a config.json in other programs' names.
#pragma once

#include <string>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/json.h"

namespace prism {

/// Errors name the file and the member that is missing or of the wrong type. `json` must outlive the reader.
class MemberReader {
 public:
  /// @throws InputError if `json` is not an object.
  MemberReader(const Json& json, std::string source) : json_(json), source_(std::move(source)) {
    PRISM_CHECK(json.is_object(), "config.json", "expected an object in {}; found {}; name a model's config.json.",
                source_, json.type_name());
  }

  const std::string& source() const { return source_; }
  bool mentions(const char* name) const { return json_.contains(name); }
  /// Whether there is a value other than null.
  bool has(const char* name) const { return mentions(name) && !json_[name].is_null(); }

  template <class T>
  T get(const char* name) const {
    PRISM_CHECK(has(name), "config.json", "expected \"{}\" in {}; found none; add it.", name, source_);
    T value{};
    read_fields(value, json_[name], fmt::format("{}: {}", source_, name));
    return value;
  }

  template <class T>
  T get(const char* name, T otherwise) const {
    return has(name) ? get<T>(name) : otherwise;
  }

  /// The members of a member.
  MemberReader within(const char* name) const { return {json_[name], source_ + ": " + name}; }

  /// Checks a member of which prism supports a single value.
  template <class T>
  void expect(const char* name, T only) const {
    const T found = get<T>(name, only);
    PRISM_CHECK(found == only, "config.json",
                "{}: expected {} = {}; found {}; prism supports no other yet; choose another model.", source_, name,
                only, found);
  }

 private:
  const Json& json_;
  std::string source_;
};

}  // namespace prism

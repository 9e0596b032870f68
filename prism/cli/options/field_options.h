// Makes the flags of a command from the visit() list of its options struct.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "prism/core/fields.h"

namespace prism {

/// Names of flags that differ from their field's name. "": the field has no flag.
using FlagNames = std::map<std::string, std::string>;

namespace detail {

class FlagAdder {
 public:
  FlagAdder(CLI::App& app, const FlagNames& names) : app_(app), names_(names) {}

  template <class T>
  void operator()(const char* name, T& value, const char* help) {
    const auto renamed = names_.find(name);
    std::string flag = "--" + (renamed == names_.end() ? std::string(name) : renamed->second);
    if (flag == "--") return;
    std::replace(flag.begin(), flag.end(), '_', '-');
    if constexpr (HasFields<T>) {
      value.visit(*this);
    } else if constexpr (std::is_same_v<T, bool>) {
      app_.add_flag(flag, value, help);
    } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
      const auto set = [&value, flag](const std::vector<std::string>& texts) {
        value.clear();
        for (const auto& text : texts) set_value(value.emplace_back(), "", text, flag);
      };
      app_.add_option_function<std::vector<std::string>>(flag, set, help)
          ->type_name("N ...")
          ->default_str(fmt::format("{}", fmt::join(value, " ")));
    } else if constexpr (IsVector<T>::value) {
      app_.add_option(flag, value, help)->type_name("TEXT")->allow_extra_args(false)->capture_default_str();
    } else {
      const auto set = [&value, flag](const std::string& text) { set_value(value, "", text, flag); };
      auto* option = app_.add_option_function<std::string>(flag, set, help);
      option->type_name(std::is_same_v<T, std::string> ? "TEXT" : "N");
      if constexpr (std::is_same_v<T, std::string>) {
        option->default_str(value);
      } else {
        option->default_str(to_text(Json(value)));
      }
    }
  }

 private:
  CLI::App& app_;
  const FlagNames& names_;
};

}  // namespace detail

/// Adds a flag for each field of `options`, with the description from visit(): max_new_tokens becomes --max-new-tokens.
/// Fields of nested structs become flags without a prefix. Numbers may end in k, M or G, as in recipes.
template <class Options>
void add_fields(CLI::App& app, Options& options, const FlagNames& names = {}) {
  detail::FlagAdder adder(app, names);
  options.visit(adder);
}

}  // namespace prism

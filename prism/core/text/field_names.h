// Puts the full name of a field before what is wrong with its value.
//
//   naming_field("model.schedule", [&] { return parse_head_schedule(config.schedule); });
//   // [head_schedule] model.schedule: expected heads x layers ...
#pragma once

#include <string_view>

#include "prism/core/error.h"

namespace prism {

/// Returns work(). @throws InputError  what `work` throws, with the field's name before its sentence.
template <class Work>
decltype(auto) naming_field(std::string_view field, Work&& work) {
  try {
    return work();
  } catch (const InputError& error) {
    const std::string_view all = error.what(), sentence = error.sentence();
    // "[operation] sentence"
    const std::string_view operation = all.substr(1, all.size() - sentence.size() - 3);
    throw InputError(operation, fmt::format("{}: {}", field, sentence));
  }
}

}  // namespace prism

// Chat templates and conversations, for tests of conversations as data.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "prism/core/json.h"

namespace prism {

/// Writes turns as <role>content| and marks what the assistant writes, with its end.
constexpr const char* kMarkingTemplate =
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}|"
    "{% endgeneration %}{% else %}{{ m.content }}|{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

/// Writes the same without marks.
constexpr const char* kPlainTemplate =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}|{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

inline Json turn(const std::string& role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

/// A conversation with two answers.
inline Json two_answers() {
  return Json::array({turn("user", "Hi"), turn("assistant", "Yes"), turn("user", "Why"), turn("assistant", "No")});
}

}  // namespace prism

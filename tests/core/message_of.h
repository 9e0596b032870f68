// The messages of failing calls, for tests of errors.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "prism/core/error.h"

namespace prism {

/// The message of the `Failure` that `call` throws; empty if it throws none.
template <class Failure = InputError>
std::string message_of(auto&& call) {
  try {
    call();
  } catch (const Failure& error) {
    return error.what();
  }
  return "";
}

/// Returns true for a message with a way out: "[operation] expected ...; found ...; way out." or "[operation] what is
/// wrong; way out.".
inline bool has_way_out(const std::string& sentence) {
  const size_t last = sentence.rfind("; ");
  return last != std::string::npos && !sentence.substr(last).starts_with("; found");
}

}  // namespace prism

#define EXPECT_CONTAINS(text, words)                                                                      \
  do {                                                                                                    \
    const std::string found = text; /* no reference: text may be part of a temporary */                   \
    EXPECT_NE(found.find(words), std::string::npos) << "expected " << words << " in \"" << found << "\""; \
  } while (false)

/// Expects `call` to throw an InputError whose message contains `words` and ends in a way out.
#define EXPECT_REFUSED(call, words)                                                            \
  do {                                                                                         \
    const std::string refusal_sentence = ::prism::message_of([&] { call; });                   \
    EXPECT_NE(refusal_sentence.find(words), std::string::npos)                                 \
        << "expected " << words << " in \"" << refusal_sentence << "\"";                       \
    EXPECT_TRUE(::prism::has_way_out(refusal_sentence)) << "no way out: " << refusal_sentence; \
  } while (false)

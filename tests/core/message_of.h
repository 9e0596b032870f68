// What a call says when it fails, for tests of refusals.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "prism/core/error.h"

namespace prism {

/// The sentence of the `Failure` that `call` throws; empty without one.
template <class Failure = InputError>
std::string message_of(auto&& call) {
  try {
    call();
  } catch (const Failure& error) {
    return error.what();
  }
  return "";
}

}  // namespace prism

#define EXPECT_CONTAINS(text, words)                                                                      \
  do {                                                                                                    \
    const std::string found = text; /* no reference: text may be part of a temporary */                   \
    EXPECT_NE(found.find(words), std::string::npos) << "expected " << words << " in \"" << found << "\""; \
  } while (false)

/// `call` throws an InputError whose sentence holds `words`.
#define EXPECT_REFUSED(call, words) EXPECT_CONTAINS(::prism::message_of([&] { call; }), words)

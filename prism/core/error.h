// The kinds of failure, and the two checks that raise them.
//
//   PRISM_CHECK(d_model % heads == 0, "head_schedule",
//               "expected a divisor of {}; found {}; try {}", d_model, heads, near);
//
// The library throws; only cli/ prints the sentence and turns the kind into an exit status.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace prism {

/// Base of all prism failures: a message that starts with the operation in brackets.
class Error : public std::runtime_error {
 public:
  Error(std::string_view operation, std::string_view message)
      : std::runtime_error(fmt::format("[{}] {}", operation, message)), start_(operation.size() + 3) {}

  /// The message without its operation, for use at the end of another message.
  const char* sentence() const { return what() + start_; }
  /// sentence() without its full stop, for use inside another message.
  std::string reason() const {
    std::string text = sentence();
    if (text.ends_with('.')) text.pop_back();
    return text;
  }

 private:
  size_t start_;
};

/// Wrong input: a file, a field, a shape. Exit status 2.
class InputError : public Error {
 public:
  using Error::Error;
};

/// The environment failed: disk full, folder not writable, loss not finite. Exit status 1.
class FailedError : public Error {
 public:
  using Error::Error;
};

/// A file could not be written, because the disk is full or for another reason of the system's. Exit status 1.
class WriteError : public FailedError {
 public:
  using FailedError::FailedError;
};

/// A bug in prism. Exit status 1.
class InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace prism

/// Throws InputError unless `condition` holds. The message reads "expected ...; found ...; way out".
#define PRISM_CHECK(condition, operation, ...)                                          \
  do {                                                                                  \
    if (!(condition)) throw ::prism::InputError(operation, ::fmt::format(__VA_ARGS__)); \
  } while (false)

/// Throws InternalError unless `condition` holds. For conditions that only a bug in prism can violate.
#define PRISM_ASSERT(condition, operation, ...)                                            \
  do {                                                                                     \
    if (!(condition)) throw ::prism::InternalError(operation, ::fmt::format(__VA_ARGS__)); \
  } while (false)

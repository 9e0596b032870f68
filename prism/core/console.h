// Messages to people, on standard error. No program depends on their text.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "prism/core/text/printable.h"

namespace prism {

/// Writes to standard error and flushes. If it is closed, full or a pipe without a reader, the text is dropped and the
/// program continues.
void print_error_stream(std::string_view text) noexcept;

/// Formats a message, passes it through message_text() and prints it with print_error_stream().
template <class... Values>
void say(fmt::format_string<Values...> format, Values&&... values) {
  print_error_stream(message_text(fmt::format(format, std::forward<Values>(values)...)));
}

/// From now on prints failures only: no progress, no notes.
void be_quiet() noexcept;
bool is_quiet() noexcept;

/// say() for messages that are not failures, such as notes and speeds. Silent after be_quiet().
template <class... Values>
void tell(fmt::format_string<Values...> format, Values&&... values) {
  if (!is_quiet()) say(format, std::forward<Values>(values)...);
}

/// Opens /dev/null for each standard stream that is closed. Otherwise a file opened later could get its number and
/// receive its output. Call it first in main().
void open_standard_streams() noexcept;

/// Flushes standard output. @throws FailedError if it is closed or full.
void flush_output();
/// Throws the error of flush_output().
[[noreturn]] void fail_output();

}  // namespace prism

// What is said to people beside a command's results: lines on standard error that nothing depends on.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "prism/core/printable.h"

namespace prism {

/// Writes to standard error and flushes. Where that is closed, full or a pipe that nobody reads, the text is lost and
/// the work goes on.
void print_error_stream(std::string_view text) noexcept;

/// print_error_stream() of the message_text() of a formatted text.
template <class... Values>
void say(fmt::format_string<Values...> format, Values&&... values) {
  print_error_stream(message_text(fmt::format(format, std::forward<Values>(values)...)));
}

/// From now on only failures are said: no progress, no notes.
void be_quiet() noexcept;
bool is_quiet() noexcept;

/// say() of what helps but is no failure, such as notes and speeds; silent after be_quiet().
template <class... Values>
void tell(fmt::format_string<Values...> format, Values&&... values) {
  if (!is_quiet()) say(format, std::forward<Values>(values)...);
}

/// Opens /dev/null in the place of standard streams that are closed, so that no file of ours gets their numbers and
/// their text. Call it first in main().
void open_standard_streams() noexcept;

/// Sends on what was printed to standard output. @throws FailedError if it is closed or full.
void flush_output();
/// Throws what flush_output() throws.
[[noreturn]] void fail_output();

}  // namespace prism

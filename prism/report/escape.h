// Text of unknown origin (run names, samples, folder names) made safe for a page, a Markdown file and a terminal.
//
//   page += "<td>" + escape_html(run.name) + "</td>";
#pragma once

#include <string>
#include <string_view>

namespace prism {

/// For HTML text and quoted attribute values: & < > " ' become entities; control characters (line feed and tab apart),
/// those that turn the direction of text, and ill-formed UTF-8 become U+FFFD.
std::string escape_html(std::string_view text);

/// JSON for a `<script>` element: < > & become \u escapes, which only strings can hold, so that nothing in it ends the
/// element or begins a comment.
std::string escape_script_json(std::string_view json);

/// For a line of Markdown, table cells included: no character of it starts markup, HTML or a new cell; line breaks
/// become spaces.
std::string escape_markdown(std::string_view text);

/// A Markdown code block that shows `text` as it is: its fence is longer than any run of backticks inside.
std::string markdown_code_block(std::string_view text);

/// For one line on a terminal: white space becomes a space, what escape_html() replaces becomes U+FFFD.
std::string plain_line(std::string_view text);

/// Characters of well-formed UTF-8, which is the width of most scripts on a terminal.
size_t display_width(std::string_view text);

/// plain_line(), of at most so many columns: what is longer is cut and ends in an ellipsis.
std::string short_line(std::string_view text, size_t most);

}  // namespace prism

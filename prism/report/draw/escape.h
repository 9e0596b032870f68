// Escapes text of unknown origin (run names, samples, folder names) for a page and a Markdown file.
//
//   page += "<td>" + escape_html(run.name) + "</td>";
#pragma once

#include <string>
#include <string_view>

namespace prism {

/// For HTML text and quoted attribute values: & < > " ' become entities; printable() replaces unsafe characters by
/// U+FFFD.
std::string escape_html(std::string_view text);

/// JSON for a `<script>` element: < > & become \u escapes, so that nothing in it ends the element or begins a comment.
/// These characters can occur only inside strings.
std::string escape_script_json(std::string_view json);

/// For a line of Markdown, including table cells: no character starts markup, HTML or a new cell. Line breaks become
/// spaces.
std::string escape_markdown(std::string_view text);

/// A Markdown code block that shows `text` unchanged. Its fence is longer than any run of backticks inside.
std::string markdown_code_block(std::string_view text);

}  // namespace prism

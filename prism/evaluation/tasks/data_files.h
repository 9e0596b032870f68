// Files of data sets, plain or packed.
//
//   if (const auto path = find_packed(folder / "valid.jsonl")) use(text_of_file(*path));
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace prism {

/// The path itself, or with .gz, .xz or .zst at its end, if there is such a file.
std::optional<std::filesystem::path> find_packed(const std::filesystem::path& path);

/// The unpacked text of a file. @throws InputError for text that is not UTF-8, and for a file that cannot be read.
std::string text_of_file(const std::filesystem::path& path);
/// Its lines, without white space at their ends.
std::vector<std::string> lines_of_file(const std::filesystem::path& path);

}  // namespace prism

#include "prism/data/text_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "prism/core/error.h"
#include "prism/core/text/names.h"
#include "prism/data/byte_stream.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

enum class Ending { text, rows, unknown };

Ending ending_of(const std::string& path, const TextOptions& options) {
  if (options.format == "txt" || (options.format == "auto" && path == "-")) return Ending::text;
  if (options.format == "jsonl") return Ending::rows;
  const std::string ending = fs::path(without_packed_ending(path)).extension().string();
  if (ending == ".txt" && !options.whole_rows) return Ending::text;
  if (ending == ".jsonl" || ending == ".ndjson") return Ending::rows;
  return Ending::unknown;
}

TextFile describe_file(const std::string& path, Ending ending) {
  TextFile file{path, ending == Ending::rows, 0};
  if (path == "-") return file;
  PRISM_CHECK(::access(path.c_str(), R_OK) == 0, "text",
              "expected a readable file at {}; found: {}; name another, or change its permissions.", path,
              std::strerror(errno));
  if (fs::is_regular_file(path)) file.bytes = static_cast<int64_t>(fs::file_size(path));
  return file;
}

std::vector<TextFile> list_folder(const std::string& folder, const TextOptions& options, int64_t* skipped) {
  std::vector<std::string> paths;
  int64_t odd = 0;  // pipes, links to nothing
  std::error_code code;
  fs::path listed = folder;
  fs::recursive_directory_iterator walk(folder, code);
  while (!code && walk != fs::recursive_directory_iterator()) {
    const bool hidden = walk->path().filename().string().starts_with(".");
    std::error_code dangling;  // a link to nothing, or to itself, is not a file
    const bool is_folder = walk->is_directory(dangling);
    if (hidden && is_folder) walk.disable_recursion_pending();
    if (!hidden && walk->is_regular_file(dangling))
      paths.push_back(walk->path().string());
    else if (!hidden && !is_folder)
      ++odd;
    listed = walk->path();
    walk.increment(code);
  }
  PRISM_CHECK(!code, "text", "expected to list the folder {}; found: {}; name another, or change its permissions.",
              listed.string(), code.message());
  std::sort(paths.begin(), paths.end());
  std::vector<TextFile> files;
  for (const std::string& path : paths) {
    const Ending ending = ending_of(path, options);
    if (ending != Ending::unknown) files.push_back(describe_file(path, ending));
  }
  PRISM_CHECK(!files.empty(), "text",
              "expected text files ({}.jsonl, plain or packed as .gz, .xz, .zst) in {}; found {}; {}.",
              options.whole_rows ? "" : ".txt or ", folder,
              paths.empty() ? "none" : fmt::format("{} of other kinds", paths.size()),
              options.has_flags ? "name the files, or pass --format txt or jsonl" : "name a file");
  if (skipped != nullptr) *skipped += static_cast<int64_t>(paths.size() - files.size()) + odd;
  return files;
}

void check_choice(const std::string& value, const char* flag, const std::vector<std::string>& known) {
  PRISM_CHECK(std::find(known.begin(), known.end(), value) != known.end(), "text",
              "expected --{} to be one of {}; found \"{}\"; choose one of them.", flag, join_names(known), value);
}

int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const char lower = static_cast<char>(digit | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

std::vector<TextFile> list_text_files(const std::vector<std::string>& inputs, const TextOptions& options,
                                      int64_t* skipped) {
  check_choice(options.format, "format", {"auto", "txt", "jsonl"});
  check_choice(options.invalid_utf8, "invalid-utf8", {"error", "keep", "replace"});
  PRISM_CHECK(options.piece_bytes >= 16 && options.piece_bytes <= (int64_t{1} << 30), "text",
              "expected pieces of 16 to {} bytes; found {}; choose another size.", int64_t{1} << 30,
              options.piece_bytes);
  if (skipped != nullptr) *skipped = 0;
  std::vector<TextFile> files;
  for (const std::string& input : inputs) {
    PRISM_CHECK(input == "-" || fs::exists(input), "text", "expected a file or folder at {}; found none; name another.",
                input);
    if (input != "-" && fs::is_directory(input)) {
      const auto inside = list_folder(input, options, skipped);
      files.insert(files.end(), inside.begin(), inside.end());
      continue;
    }
    Ending ending = ending_of(input, options);
    if (options.whole_rows) ending = Ending::rows;
    if (ending == Ending::unknown && !options.has_flags) ending = Ending::text;
    PRISM_CHECK(ending != Ending::unknown, "text",
                "{}: expected an ending .txt or .jsonl, plain or with .gz, .xz or .zst; found another; say what it is "
                "with --format txt or jsonl.",
                input);
    files.push_back(describe_file(input, ending));
  }
  return files;
}

std::string parse_separator(std::string_view typed) {
  std::string separator;
  for (size_t i = 0; i < typed.size(); ++i) {
    if (typed[i] != '\\') {
      separator += typed[i];
      continue;
    }
    const char kind = ++i < typed.size() ? typed[i] : ' ';
    const int high = i + 2 < typed.size() ? hex_digit(typed[i + 1]) : -1;
    const int low = i + 2 < typed.size() ? hex_digit(typed[i + 2]) : -1;
    if (kind == 'n') {
      separator += '\n';
    } else if (kind == 'r') {
      separator += '\r';
    } else if (kind == 't') {
      separator += '\t';
    } else if (kind == '\\') {
      separator += '\\';
    } else if (kind == 'x' && high >= 0 && low >= 0) {
      separator += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      throw InputError(
          "text",
          fmt::format("expected the escapes \\n, \\r, \\t, \\\\ or \\xHH; found \"{}\"; write \\\\ for a backslash.",
                      typed));
    }
  }
  return separator;
}

}  // namespace prism

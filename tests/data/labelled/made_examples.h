// Labelled texts whose class is easy to learn.
#pragma once

#include <filesystem>
#include <string>

#include "prism/core/files.h"
#include "prism/core/random.h"
#include "prism/data/labelled/tokenize_labelled.h"
#include "tests/data/byte_tokenizer.h"

namespace prism {

/// Rows "class,text" of `count` texts of 3 to 18 letters. Class 0 has many a, class 1 many b, class 2 many c.
inline std::string made_rows(int64_t count, int64_t seed) {
  Random random(static_cast<uint64_t>(seed));
  std::string rows;
  for (int64_t i = 0; i < count; ++i) {
    const auto label = static_cast<char>(random.below(3));
    std::string text;
    for (size_t n = 3 + random.below(16); n > 0; --n)
      text += random.below(3) < 2 ? static_cast<char>('a' + label) : static_cast<char>('a' + random.below(8));
    rows += fmt::format("{},{}\n", static_cast<int>(label), text);
  }
  return rows;
}

/// Writes a folder of these texts as tokens: `train` for training, 64 for validation and 50 for the test.
inline void make_examples(const std::filesystem::path& folder, int64_t train) {
  const auto file = [&](const char* name, int64_t count, int64_t seed) {
    const auto path = folder.parent_path() / (folder.filename().string() + name);
    write_file(path, made_rows(count, seed));
    return path.string();
  };
  tokenize_labelled({{file("_train.csv", train, 1)}, {file("_valid.csv", 64, 2)}, {file("_test.csv", 50, 3)}},
                    byte_tokenizer(), folder, {.examples = {.label = "1"}, .classes = {"a", "b", "c"}});
}

}  // namespace prism

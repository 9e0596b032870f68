// The bytes of llama2.c's files, for tests that write them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace prism {

template <class Number>
void append_number(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// A tokenizer.bin of <unk>, <s>, </s>, the bytes, and a few pieces.
inline std::string llama2c_vocabulary() {
  std::string bytes;
  append_number(bytes, int32_t{12});
  const auto put = [&](const std::string& text, float score) {
    append_number(bytes, score);
    append_number(bytes, static_cast<int32_t>(text.size()));
    bytes += text;
  };
  for (const char* name : {"<unk>", "\n<s>\n", "\n</s>\n"}) put(name, 0);
  for (int byte = 0; byte < 256; ++byte) put(fmt::format("<0x{:02X}>", byte), 0);
  put(" ", -3);
  put("a", -4);
  put(" a", -1);
  return bytes;
}

}  // namespace prism

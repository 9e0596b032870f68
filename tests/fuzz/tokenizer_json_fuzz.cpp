// libFuzzer entry: tokenizer.json. What is accepted must be written and read again as the same tokenizer.
//
//   clang++-14 -fsanitize=fuzzer,address ...; build/fuzz/tokenizer_json tests/fuzz/corpus/tokenizer_json
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "prism/core/error.h"
#include "prism/tokenizer/tokenizer.h"
#include "prism/tokenizer/tokenizer_file.h"

namespace {

constexpr std::string_view kText = "the lamp <s> \xE2\x96\x81\xFF\xC3\xA9te\xCC\x81  aaaa</s>ab 123's";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const prism::TokenizerFile file = prism::parse_tokenizer_file(bytes, "fuzz");
    const prism::Tokenizer tokenizer = prism::Tokenizer::from_file(file, "fuzz");
    const auto ids = tokenizer.encode(kText);
    tokenizer.decode(ids);
    tokenizer.word_starts();
    const prism::Tokenizer again = prism::Tokenizer::from_json(prism::write_tokenizer_file(file), "again");
    if (again.fingerprint() != tokenizer.fingerprint() || again.encode(kText) != ids) std::abort();
  } catch (const prism::InputError&) {
    // Wrong input is refused with a sentence. Every other exception is a fault.
  }
  return 0;
}

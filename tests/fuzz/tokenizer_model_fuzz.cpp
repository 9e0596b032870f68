// libFuzzer entry: SentencePiece's tokenizer.model, and llama2.c's tokenizer.bin if the first byte is 'b'.
//
//   clang++-14 -fsanitize=fuzzer,address ...; build/fuzz/tokenizer_model tests/fuzz/corpus/tokenizer_model
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "prism/core/error.h"
#include "prism/tokenizer/sources/llama2c_file.h"
#include "prism/tokenizer/sources/sentencepiece_file.h"
#include "prism/tokenizer/tokenizer.h"

namespace {

constexpr std::string_view kModelText = "the lamp <s> \xE2\x96\x81\xFF\xC3\xA9te\xCC\x81  aaaa</s>ab";

void fuzz_tokenizer(const prism::Tokenizer& tokenizer) {
  for (const auto special : {prism::SpecialTokens::parse, prism::SpecialTokens::as_text})
    tokenizer.decode(tokenizer.encode(kModelText, special));
  tokenizer.word_starts();
  tokenizer.fingerprint();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    if (bytes.starts_with('b')) {
      fuzz_tokenizer(prism::Tokenizer::from_file(prism::parse_llama2c_file(bytes.substr(1), "fuzz"), "fuzz"));
    } else {
      fuzz_tokenizer(prism::Tokenizer::from_file(prism::parse_sentencepiece_file(bytes, "fuzz"), "fuzz"));
    }
  } catch (const prism::InputError&) {
    // Wrong input is refused with a sentence. Every other exception is a fault.
  }
  return 0;
}

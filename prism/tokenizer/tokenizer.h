// Byte-level BPE tokenizers in Hugging Face's `tokenizer.json`: load, save, encode, decode, word starts.
//
// Supported: model BPE (`ignore_merges` too), pre-tokenizers ByteLevel, Split and Digits in sequence, the ByteLevel
// decoder, added tokens with all their flags. Refused by name: normalizers (so Qwen's NFC), other models and decoders,
// `add_prefix_space`, dropout, a vocabulary without all 256 bytes. Regular expressions other than those of GPT-2, Llama
// 3 and Qwen 2 run on PCRE2 and its Unicode version.
//
//   const Tokenizer tokenizer = Tokenizer::load("models/gpt2");        // a folder or the file itself
//   std::vector<int32_t> ids = tokenizer.encode("Hello world");
//   std::string text = tokenizer.decode(ids);
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prism {

/// Whether text that spells a special token (`<|endoftext|>`) becomes that token or stays text.
enum class SpecialTokens { parse, as_text };

class Tokenizer {
 public:
  /// @param path  a `tokenizer.json`, or a folder that holds one.
  /// @throws InputError naming the part of the file that is wrong or of an unsupported kind.
  static Tokenizer load(const std::filesystem::path& path);
  /// The same from the text of a `tokenizer.json`. @param source  what messages call it.
  static Tokenizer from_json(std::string_view json, const std::string& source);

  /// Writes `tokenizer.json` so that Hugging Face `tokenizers` reads it and encodes alike; atomic.
  void save(const std::filesystem::path& file) const;

  /// Token ids of any byte string, as Hugging Face `tokenizers` gives them with add_special_tokens=False: nothing is
  /// put before or after the text, whatever the file's post_processor says; its truncation and padding are not applied.
  ///
  /// Bytes that are not UTF-8 survive encode + decode: each byte outside a well-formed character becomes that byte's
  /// own token, and the well-formed text on either side of it is encoded as if it stood alone.
  ///
  /// May be called from any number of threads at once; each keeps a cache of the pieces it met (3 MB) for the next
  /// call.
  /// @throws InputError if the file's own regular expression cannot be matched within PCRE2's limits.
  std::vector<int32_t> encode(std::string_view text, SpecialTokens special = SpecialTokens::parse) const;
  /// Bytes of the ids, concatenated. @throws InputError for an id outside the vocabulary.
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;

  /// Number of ids, added tokens included: 1 + the largest id.
  int64_t vocab_size() const;
  /// The id whose text is exactly `content` (special and added tokens by their spelling), if any.
  std::optional<int32_t> find(std::string_view content) const;
  /// The bytes one id stands for; a special token's are its spelling.
  std::string_view bytes(int32_t id) const;
  bool is_special(int32_t id) const;
  /// The id that separates documents: `<|endoftext|>`, `</s>`, `<|end_of_text|>`, `<eos>`, the first that exists.
  std::optional<int32_t> end_of_text() const;

  /// [vocab_size] 1 where a token starts a word under the `marker` rule: its bytes begin with a space or other white
  /// space, or it is special; 0 for everything that continues a word (glued punctuation and byte fallback included).
  std::vector<uint8_t> word_starts() const;

  /// Equal for tokenizers that give every text the same ids: a hash over vocabulary, merges, pattern, added tokens.
  uint64_t fingerprint() const;
  /// The same in hexadecimal, as files and messages hold it.
  std::string fingerprint_text() const;

  /// Number of merge rules.
  int64_t merge_count() const;
  /// The pre-tokenizer in words: its regular expression, or its steps in turn.
  std::string pattern() const;

  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

 private:
  class Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace prism

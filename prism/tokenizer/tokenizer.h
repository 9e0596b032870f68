// BPE tokenizers: load, save, encode, decode, word starts.
//
// Sources: Hugging Face's `tokenizer.json`, SentencePiece's `tokenizer.model`, the metadata of GGUF files, llama2.c's
// `tokenizer.bin`. Vocabularies: byte-level, as in GPT-2 (also with `ignore_merges`; pre-tokenizers ByteLevel, Split
// and Digits in sequence), and text with byte fallback, as in Llama 2 (pre-tokenizer Metaspace or none; merged by
// score). Normalizers: NFC, Prepend and Replace in sequence. Added tokens with all their flags. Rejected with a
// message: other models (Unigram, WordPiece, word and char models), normalizers and decoders, dropout, a vocabulary
// without all 256 bytes. The regular expressions of GPT-2, Llama 3 and Qwen 2 have hand-written scanners; all others
// run on PCRE2 with its Unicode version.
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

#include "prism/tokenizer/text_settings.h"

namespace prism {

/// Whether text that spells a special token (`<|endoftext|>`) is parsed as that token or kept as text.
enum class SpecialTokens { parse, as_text };

struct TokenizerFile;

class Tokenizer {
 public:
  /// @param path  a `tokenizer.json`; a SentencePiece model if it ends in `.model`, a file of llama2.c if it ends in
  ///              `.bin`; or a folder that contains `tokenizer.json` or else `tokenizer.model`, whose other files
  ///              give the settings().
  /// @throws InputError naming the part of the file that is wrong or unsupported.
  static Tokenizer load(const std::filesystem::path& path);
  /// Like load(), from the text of a `tokenizer.json`. @param source  name of the text in messages.
  static Tokenizer from_json(std::string_view json, const std::string& source);
  /// From the vocabulary of a GGUF file. @param source  name of the file in messages.
  static Tokenizer from_ggml(const GgmlVocabulary& vocabulary, const std::string& source);
  /// From a parsed file of any format. @param source  name of the file in messages.
  static Tokenizer from_file(TokenizerFile file, const std::string& source);

  /// Writes `tokenizer.json` atomically. Hugging Face `tokenizers` reads it and encodes identically.
  void save(const std::filesystem::path& file) const;
  /// The vocabulary of a GGUF file that gives texts the same ids (see ggml_vocabulary_of()), without special ids.
  /// @throws InputError naming what GGUF cannot express.
  GgmlVocabulary ggml_vocabulary() const;

  /// Token ids of any byte string, the same as Hugging Face `tokenizers` gives with add_special_tokens=False, and for a
  /// SentencePiece model the same as SentencePiece gives. No special token is added before or after the text, whatever
  /// the file's post_processor says (see special_ids()); truncation and padding are not applied.
  ///
  /// Bytes that are not UTF-8 survive encode + decode. Each byte outside a well-formed character becomes that byte's
  /// token, and the well-formed text on either side is encoded separately.
  ///
  /// Thread-safe. Each thread keeps a cache of pieces (3 MB) for its next call.
  /// @throws InputError if the file's own regular expression cannot be matched within PCRE2's limits.
  std::vector<int32_t> encode(std::string_view text, SpecialTokens special = SpecialTokens::parse) const;
  /// The concatenated bytes of the ids, without the space at the beginning that strips_first_space() speaks of. Unlike
  /// in `tokenizers` and SentencePiece, bytes that form no character are kept as they are.
  /// @throws InputError for an id outside the vocabulary.
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;

  /// Whether encode() puts a space before a text, as Llama 2 does. decode() then drops one at the beginning. Who
  /// decodes token by token has to drop it from the bytes() of the first.
  bool strips_first_space() const;

  /// Number of ids including added tokens: 1 + the largest id.
  int64_t vocab_size() const;
  /// The id whose text is exactly `content`, if any. Special and added tokens are found by their spelling.
  std::optional<int32_t> find(std::string_view content) const;
  /// The bytes of one id. For a special token these are its spelling, for other added tokens what is searched for.
  std::string_view bytes(int32_t id) const;
  bool is_special(int32_t id) const;
  /// Whether the id is one of the file's added tokens.
  bool is_added(int32_t id) const;

  /// What the files beside the vocabulary say: those in the folder that load() was given, or the metadata of the GGUF
  /// file; llama2c_settings() for a file of llama2.c. Otherwise default_settings().
  const TextSettings& settings() const;
  const SpecialIds& special_ids() const { return settings().special_ids; }
  const std::optional<std::string>& chat_template() const { return settings().chat_template; }
  /// Takes the place of both templates, for conversations with and without tools.
  void set_chat_template(std::string text);
  /// The id that the file's post_processor (TemplateProcessing) puts before a text, if any.
  std::optional<int32_t> template_opening() const;

  /// [vocab_size] 1 where a token starts a word under the `marker` rule: its bytes begin with a space or other white
  /// space, or it is special. 0 for tokens that continue a word, including attached punctuation and byte fallback.
  std::vector<uint8_t> word_starts() const;

  /// Hash over vocabulary, merges, pattern and added tokens. Equal for tokenizers that give every text the same ids.
  uint64_t fingerprint() const;
  /// fingerprint() in hexadecimal, as written in files and messages.
  std::string fingerprint_text() const;

  /// Number of merge rules.
  int64_t merge_count() const;
  /// Describes the normalizer and the pre-tokenizer: their steps in order, or the regular expression alone.
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

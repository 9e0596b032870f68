#include "prism/tokenizer/tokenizer.h"

#include <algorithm>
#include <mutex>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/random.h"
#include "prism/core/text/utf8.h"
#include "prism/tokenizer/bpe/piece_cache.h"
#include "prism/tokenizer/normalize/normalizer.h"
#include "prism/tokenizer/sources/ggml_export.h"
#include "prism/tokenizer/sources/ggml_vocabulary.h"
#include "prism/tokenizer/sources/llama2c_file.h"
#include "prism/tokenizer/sources/sentencepiece_file.h"
#include "prism/tokenizer/space_marker.h"
#include "prism/tokenizer/split/metaspace.h"
#include "prism/tokenizer/split/pretokenizer.h"
#include "prism/tokenizer/split/unicode_classes.h"
#include "prism/tokenizer/tokenizer_file.h"
#include "prism/tokenizer/vocabulary.h"

namespace prism {
namespace {

using Kind = TokenizerFile::Kind;

/// Working memory of one call of encode(), kept for later calls because of its cache.
struct Workspace {
  PieceCache cache;
  BpeScratch bpe;
  RegexMatcher matcher;
  std::vector<size_t> ends;
  std::vector<int32_t> symbols;
  std::string opening;  // the first piece of a text with a marker before it
};

/// What is before a part of the text: nothing, an added token, or a byte that is part of no character.
enum class Before { nothing, token, byte };

/// FNV-1a within a text. The lengths are mixed in between texts, so that "ab","c" and "a","bc" differ.
class Hash {
 public:
  void add(uint64_t value) { state_ = mix64(state_ ^ value) + 0x9E3779B97F4A7C15u; }
  void add(std::string_view text) {
    add(text.size());
    for (const char byte : text) state_ = (state_ ^ static_cast<uint8_t>(byte)) * 0x100000001B3u;
  }
  uint64_t value() const { return mix64(state_); }

 private:
  uint64_t state_ = 0xCBF29CE484222325u;
};

}  // namespace

class Tokenizer::Impl {
 public:
  Impl(TokenizerFile parsed, const std::string& source)
      : file(std::move(parsed)),
        normalizer(Normalizer::from_json(file.normalizer, source)),
        pretokenizer(file.kind == Kind::byte_level ? Pretokenizer::from_json(file.pre_tokenizer, source)
                                                   : Pretokenizer()),
        metaspace(file.kind == Kind::byte_fallback
                      ? Metaspace::from_json(file.pre_tokenizer, normalizer.marks_spaces(), source)
                      : Metaspace()),
        vocabulary(file, normalizer, metaspace, source),
        as_it_is_(vocabulary.in_normalized.empty() &&
                  (normalizer.empty() || (file.kind == Kind::byte_fallback && normalizer.only_marks_spaces()))) {}

  /// Appends the ids of any bytes.
  void encode(std::string_view text, SpecialTokens special_tokens, Workspace& work, std::vector<int32_t>& ids) const;
  /// How the text is split, as text.
  std::string describe_split() const {
    return file.kind == Kind::byte_level ? pretokenizer.describe() : metaspace.describe();
  }

  std::unique_ptr<Workspace> take_workspace() const;
  void give_back(std::unique_ptr<Workspace> work) const;

  const TokenizerFile file;  // the vocabulary points into it
  const Normalizer normalizer;
  const Pretokenizer pretokenizer;  // for byte_level
  const Metaspace metaspace;        // for byte_fallback
  const Vocabulary vocabulary;
  TextSettings settings;

 private:
  void encode_well_formed(std::string_view text, SpecialTokens special_tokens, Before before, Workspace& work,
                          std::vector<int32_t>& ids) const;
  void encode_part(std::string_view text, SpecialTokens special_tokens, Before before, Workspace& work,
                   std::vector<int32_t>& ids) const;
  void encode_normalized(std::string_view text, Before before, Workspace& work, std::vector<int32_t>& ids) const;
  void encode_pieces(std::string_view text, Workspace& work, std::vector<int32_t>& ids) const;
  void encode_characters(std::string_view text, bool prepend, Workspace& work, std::vector<int32_t>& ids) const;
  void encode_piece(std::string_view piece, Workspace& work, std::vector<int32_t>& ids) const;

  const bool as_it_is_;  // the text need not be rewritten before it is split
  mutable std::mutex workspaces_mutex_;
  mutable std::vector<std::unique_ptr<Workspace>> workspaces_;  // one per thread that encoded at the same time
};

std::unique_ptr<Workspace> Tokenizer::Impl::take_workspace() const {
  const std::lock_guard lock(workspaces_mutex_);
  if (workspaces_.empty()) return std::make_unique<Workspace>();
  auto work = std::move(workspaces_.back());
  workspaces_.pop_back();
  return work;
}

void Tokenizer::Impl::give_back(std::unique_ptr<Workspace> work) const {
  const std::lock_guard lock(workspaces_mutex_);
  workspaces_.push_back(std::move(work));
}

void Tokenizer::Impl::encode(std::string_view text, SpecialTokens special_tokens, Workspace& work,
                             std::vector<int32_t>& ids) const {
  for (Before before = Before::nothing; !text.empty(); before = Before::byte) {
    const size_t well_formed = std::min(find_invalid_utf8(text), text.size());
    encode_well_formed(text.substr(0, well_formed), special_tokens, before, work, ids);
    text.remove_prefix(well_formed);
    if (text.empty()) break;
    if (const int32_t id = vocabulary.symbols.byte_id(static_cast<uint8_t>(text[0])); id >= 0) ids.push_back(id);
    text.remove_prefix(1);
  }
}

void Tokenizer::Impl::encode_well_formed(std::string_view text, SpecialTokens special_tokens, Before before,
                                         Workspace& work, std::vector<int32_t>& ids) const {
  vocabulary.in_text.split(text, special_tokens, [&](std::string_view part, const AddedToken* token) {
    if (token != nullptr) {
      ids.push_back(token->id);
      before = Before::token;
    } else {
      encode_part(part, special_tokens, before, work, ids);
    }
  });
}

void Tokenizer::Impl::encode_part(std::string_view text, SpecialTokens special_tokens, Before before, Workspace& work,
                                  std::vector<int32_t>& ids) const {
  if (as_it_is_) return encode_normalized(text, before, work, ids);
  std::string normalized;
  if (!normalizer.empty()) text = normalized = normalizer.apply(text, before != Before::byte, work.matcher);
  vocabulary.in_normalized.split(text, special_tokens, [&](std::string_view part, const AddedToken* token) {
    if (token != nullptr) {
      ids.push_back(token->id);
      before = Before::token;
    } else {
      encode_normalized(part, before, work, ids);
    }
  });
}

void Tokenizer::Impl::encode_normalized(std::string_view text, Before before, Workspace& work,
                                        std::vector<int32_t>& ids) const {
  if (file.kind == Kind::byte_level) return encode_pieces(text, work, ids);
  const bool open = before != Before::byte;
  const bool prepend =
      open && ((as_it_is_ && normalizer.prepends()) || metaspace.prepends_to(text, before == Before::nothing));
  encode_characters(text, prepend, work, ids);
}

void Tokenizer::Impl::encode_pieces(std::string_view text, Workspace& work, std::vector<int32_t>& ids) const {
  PieceCursor cursor(pretokenizer, text, work.matcher);
  size_t begin = 0;
  while (cursor.next(work.ends)) {
    for (const size_t end : work.ends) {
      const std::string_view piece = text.substr(begin, end - begin);
      if (!work.cache.append(piece, text.size() - begin, ids)) encode_piece(piece, work, ids);
      begin = end;
    }
  }
}

void Tokenizer::Impl::encode_characters(std::string_view text, bool prepend, Workspace& work,
                                        std::vector<int32_t>& ids) const {
  const SymbolTable& symbols = vocabulary.symbols;
  size_t begin = 0;
  if (prepend) {
    work.opening = kSpaceMarker;
    if (symbols.joins_marker(text)) work.opening += text.substr(0, begin = symbols.piece_end(text, 0));
    encode_piece(work.opening, work, ids);
  }
  while (begin < text.size()) {
    const size_t end = symbols.piece_end(text, begin);
    const std::string_view piece = text.substr(begin, end - begin);
    if (!work.cache.append(piece, text.size() - begin, ids)) encode_piece(piece, work, ids);
    begin = end;
  }
}

void Tokenizer::Impl::encode_piece(std::string_view piece, Workspace& work, std::vector<int32_t>& ids) const {
  const size_t start = ids.size();
  const auto whole = file.ignore_merges ? vocabulary.model_ids.find(piece) : vocabulary.model_ids.end();
  if (whole != vocabulary.model_ids.end()) {
    ids.push_back(whole->second);
  } else {
    work.symbols.clear();
    vocabulary.symbols.append(piece, work.symbols);
    vocabulary.model.encode(work.symbols, work.bpe, ids);
  }
  work.cache.insert(piece, ids.data() + start, ids.size() - start);
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  auto file = path;
  if (std::filesystem::is_directory(path))
    file = is_there(path / "tokenizer.json") || !is_there(path / "tokenizer.model") ? path / "tokenizer.json"
                                                                                    : path / "tokenizer.model";
  const std::string text = read_file(file), source = file.string();
  if (file.extension() == ".bin") {
    Tokenizer tokenizer = from_file(parse_llama2c_file(text, source), source);
    tokenizer.impl_->settings = llama2c_settings();
    return tokenizer;
  }
  Tokenizer tokenizer = file.extension() == ".model" ? from_file(parse_sentencepiece_file(text, source), source)
                                                     : from_json(text, source);
  if (file != path) tokenizer.impl_->settings = read_settings(tokenizer, path);
  return tokenizer;
}

Tokenizer Tokenizer::from_file(TokenizerFile file, const std::string& source) {
  Tokenizer tokenizer(std::make_unique<Impl>(std::move(file), source));
  tokenizer.impl_->settings = default_settings(tokenizer);
  return tokenizer;
}

Tokenizer Tokenizer::from_ggml(const GgmlVocabulary& vocabulary, const std::string& source) {
  Tokenizer tokenizer = from_file(tokenizer_file_of(vocabulary, source), source);
  tokenizer.impl_->settings = settings_of(vocabulary, source);
  return tokenizer;
}

Tokenizer Tokenizer::from_json(std::string_view json, const std::string& source) {
  return from_file(parse_tokenizer_file(json, source), source);
}

void Tokenizer::save(const std::filesystem::path& file) const {
  const auto& ids = special_ids();
  if (ids.opens_prompts == template_opening().has_value()) {
    write_file(file, write_tokenizer_file(impl_->file));
    return;
  }
  // Newer releases of transformers do not read add_bos_token.
  auto changed = impl_->file;
  set_opening(changed, ids.opens_prompts ? ids.opening : std::nullopt);
  write_file(file, write_tokenizer_file(changed));
}

GgmlVocabulary Tokenizer::ggml_vocabulary() const {
  return ggml_vocabulary_of(impl_->file);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4 + 8);  // roughly right for English; grows if necessary
  auto work = impl_->take_workspace();
  impl_->encode(text, special, *work, ids);
  impl_->give_back(std::move(work));
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string text;
  for (const int32_t id : ids) {
    const std::string_view token = bytes(id);
    if (!skip_special || impl_->vocabulary.special[static_cast<size_t>(id)] == 0) text += token;
  }
  if (impl_->file.strips_space && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

bool Tokenizer::strips_first_space() const {
  return impl_->file.strips_space;
}

int64_t Tokenizer::vocab_size() const {
  return static_cast<int64_t>(impl_->vocabulary.bytes.size());
}

std::optional<int32_t> Tokenizer::find(std::string_view content) const {
  for (const IdByText* table : {&impl_->vocabulary.added_ids, &impl_->vocabulary.model_ids}) {
    if (const auto row = table->find(content); row != table->end()) return row->second;
  }
  return std::nullopt;
}

std::string_view Tokenizer::bytes(int32_t id) const {
  PRISM_CHECK(id >= 0 && id < vocab_size(), "tokenizer",
              "expected token ids from 0 to {}; found {}; use those of this tokenizer.", vocab_size() - 1, id);
  return impl_->vocabulary.bytes[static_cast<size_t>(id)];
}

bool Tokenizer::is_special(int32_t id) const {
  return !bytes(id).empty() && impl_->vocabulary.special[static_cast<size_t>(id)] != 0;
}

bool Tokenizer::is_added(int32_t id) const {
  const auto row = impl_->vocabulary.added_ids.find(bytes(id));
  return row != impl_->vocabulary.added_ids.end() && row->second == id;
}

const TextSettings& Tokenizer::settings() const {
  return impl_->settings;
}

void Tokenizer::set_chat_template(std::string text) {
  impl_->settings.chat_template = std::move(text);
  impl_->settings.tool_template.reset();
}

std::vector<uint8_t> Tokenizer::word_starts() const {
  std::vector<uint8_t> starts(impl_->vocabulary.bytes.size());
  for (size_t id = 0; id < starts.size(); ++id) {
    const std::string& token = impl_->vocabulary.bytes[id];
    // Tokens may begin or end inside a character. Only a complete first character can be white space.
    const std::string_view head = std::string_view(token).substr(0, 4);
    const size_t whole = std::min(find_invalid_utf8(head), head.size());
    const bool space = whole > 0 && (character_classes()[decode_character(head, 0).code] & kSpace) != 0;
    starts[id] = space || impl_->vocabulary.special[id] != 0;
  }
  return starts;
}

uint64_t Tokenizer::fingerprint() const {
  Hash hash;
  const TokenizerFile& file = impl_->file;
  for (const auto& token : impl_->vocabulary.bytes) hash.add(token);
  hash.add(file.merges.size());
  std::vector<const std::string*> spellings(impl_->vocabulary.bytes.size());
  for (const auto& entry : file.vocab) spellings[static_cast<size_t>(entry.id)] = &entry.spelling;
  for (const Merge& merge : file.merges) {
    hash.add(*spellings[static_cast<size_t>(merge.left)]);
    hash.add(*spellings[static_cast<size_t>(merge.right)]);
  }
  hash.add(file.ignore_merges ? 1 : 0);
  hash.add(impl_->describe_split());
  for (const auto& token : file.added) {
    hash.add(static_cast<uint64_t>(token.id));
    hash.add(static_cast<uint64_t>(token.special) | static_cast<uint64_t>(token.single_word) << 1 |
             static_cast<uint64_t>(token.lstrip) << 2 | static_cast<uint64_t>(token.rstrip) << 3 |
             static_cast<uint64_t>(token.normalized) << 4);
  }
  // Only what a tokenizer has beyond byte-level BPE, so that fingerprints of older files stay the same.
  if (!impl_->normalizer.empty()) hash.add(impl_->normalizer.describe());
  for (const uint32_t rank : file.ranks) hash.add(rank);
  if (file.kind == Kind::byte_fallback)
    hash.add(1 | uint64_t{file.strips_space} << 1 | uint64_t{file.spells_spaces} << 2);
  return hash.value();
}

std::string Tokenizer::fingerprint_text() const {
  return fmt::format("{:016x}", fingerprint());
}

int64_t Tokenizer::merge_count() const {
  return static_cast<int64_t>(impl_->file.merges.size());
}

std::string Tokenizer::pattern() const {
  const std::string before = impl_->normalizer.describe();
  std::string split = impl_->describe_split();
  if (before.empty()) return split;
  return split == "none" ? before : before + " then " + split;
}

std::optional<int32_t> Tokenizer::template_opening() const {
  return opening_of_template(impl_->file);
}

}  // namespace prism

#include "prism/tokenizer/tokenizer.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/random.h"
#include "prism/core/text/utf8.h"
#include "prism/tokenizer/added_tokens.h"
#include "prism/tokenizer/bpe/bpe_model.h"
#include "prism/tokenizer/bpe/piece_cache.h"
#include "prism/tokenizer/byte_alphabet.h"
#include "prism/tokenizer/split/pretokenizer.h"
#include "prism/tokenizer/split/unicode_classes.h"
#include "prism/tokenizer/tokenizer_file.h"

namespace prism {
namespace {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using IdByText = std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>>;

/// Working memory of one call of encode(), kept for later calls because of its cache.
struct Workspace {
  PieceCache cache;
  BpeScratch bpe;
  RegexMatcher matcher;
  std::vector<size_t> ends;
};

std::string in_quotes(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

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
      : file(std::move(parsed)), pretokenizer(Pretokenizer::from_json(file.pre_tokenizer, source)) {
    read_tokens(source);
    read_added(source);
    read_merges(source);
  }

  /// Appends the ids of any bytes.
  void encode(std::string_view text, SpecialTokens special_tokens, Workspace& work, std::vector<int32_t>& ids) const;

  std::unique_ptr<Workspace> take_workspace() const;
  void give_back(std::unique_ptr<Workspace> work) const;

  TokenizerFile file;
  Pretokenizer pretokenizer;
  std::vector<std::string> bytes;  // by id; empty if no token has the id
  std::vector<uint8_t> special;    // by id
  IdByText model_ids, added_ids;   // by bytes; by spelling

 private:
  void read_tokens(const std::string& source);
  void read_added(const std::string& source);
  void read_merges(const std::string& source);
  const TokenizerFile::VocabEntry* find_spelling(const std::string& spelling) const;

  void encode_well_formed(std::string_view text, SpecialTokens special_tokens, Workspace& work,
                          std::vector<int32_t>& ids) const;
  void encode_pieces(std::string_view text, Workspace& work, std::vector<int32_t>& ids) const;
  void encode_piece(std::string_view piece, Workspace& work, std::vector<int32_t>& ids) const;

  BpeModel model_;
  AddedTokenMatcher added_first_, added_second_;
  mutable std::mutex workspaces_mutex_;
  mutable std::vector<std::unique_ptr<Workspace>> workspaces_;  // one per thread that encoded at the same time
};

void Tokenizer::Impl::read_tokens(const std::string& source) {
  int64_t largest = -1;
  for (const auto& entry : file.vocab) largest = std::max<int64_t>(largest, entry.id);
  for (const auto& token : file.added) largest = std::max<int64_t>(largest, token.id);
  bytes.resize(static_cast<size_t>(largest + 1));
  special.resize(bytes.size());
  model_ids.reserve(file.vocab.size());
  for (const auto& entry : file.vocab) {
    const auto spelled = bytes_of_spelling(entry.spelling);
    // A spelling outside the byte alphabet can only be an added token, whose spelling is its bytes.
    bytes[static_cast<size_t>(entry.id)] = spelled ? *spelled : entry.spelling;
    if (spelled) model_ids.emplace(*spelled, entry.id);
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char letter = static_cast<char>(byte);
    PRISM_CHECK(model_ids.contains(std::string_view(&letter, 1)), "tokenizer",
                "{}: expected a token for each of the 256 bytes, so that every text can be encoded; found none for "
                "byte 0x{:02X} ({}); add it to the vocabulary.",
                source, byte, in_quotes(byte_character(static_cast<uint8_t>(byte))));
  }
}

const TokenizerFile::VocabEntry* Tokenizer::Impl::find_spelling(const std::string& spelling) const {
  const auto by_id = [&](int32_t id) {
    return std::lower_bound(file.vocab.begin(), file.vocab.end(), id,
                            [](auto& entry, int32_t i) { return entry.id < i; });
  };
  if (const auto spelled = bytes_of_spelling(spelling)) {
    const auto found = model_ids.find(*spelled);
    return found == model_ids.end() ? nullptr : &*by_id(found->second);
  }
  const auto found =
      std::find_if(file.vocab.begin(), file.vocab.end(), [&](auto& entry) { return entry.spelling == spelling; });
  return found == file.vocab.end() ? nullptr : &*found;
}

void Tokenizer::Impl::read_added(const std::string& source) {
  std::vector<uint8_t> taken(bytes.size());
  for (const auto& entry : file.vocab) taken[static_cast<size_t>(entry.id)] = 1;
  std::vector<const AddedToken*> first, second;
  for (const auto& token : file.added) {
    const auto id = static_cast<size_t>(token.id);
    const auto* in_model = find_spelling(token.content);
    PRISM_CHECK(
        in_model == nullptr || in_model->id == token.id, "tokenizer",
        "{}: expected the added token {} to have the id it has in the vocabulary, {}; found {}; change it to that.",
        source, in_quotes(token.content), in_model->id, token.id);
    PRISM_CHECK(in_model != nullptr || taken[id] == 0, "tokenizer",
                "{}: expected the added token {} to have a unique id; found {}, which {} also has; change one of them.",
                source, in_quotes(token.content), token.id, in_quotes(bytes[id]));
    PRISM_CHECK(added_ids.emplace(token.content, token.id).second, "tokenizer",
                "{}: expected every added token once; found {} twice; remove one.", source, in_quotes(token.content));
    taken[id] = 1;
    special[id] = token.special;
    bytes[id] = token.content;
    (token.normalized ? second : first).push_back(&token);
  }
  added_first_ = AddedTokenMatcher(first);
  added_second_ = AddedTokenMatcher(second);
}

void Tokenizer::Impl::read_merges(const std::string& source) {
  std::vector<Merge> merges;
  merges.reserve(file.merges.size());
  const auto id_of = [&](const std::optional<std::string>& part, size_t rank) {
    const auto found = part ? model_ids.find(*part) : model_ids.end();
    PRISM_CHECK(found != model_ids.end(), "tokenizer",
                "{}: expected merge {} ({} {}) to join tokens of the vocabulary into one; found one that is not in it; "
                "add it to the vocabulary, or remove the merge.",
                source, rank, file.merges[rank].first, file.merges[rank].second);
    return found->second;
  };
  for (size_t rank = 0; rank < file.merges.size(); ++rank) {
    auto left = bytes_of_spelling(file.merges[rank].first);
    const auto right = bytes_of_spelling(file.merges[rank].second);
    const int32_t left_id = id_of(left, rank), right_id = id_of(right, rank);
    *left += *right;
    merges.push_back({left_id, right_id, id_of(left, rank)});
  }
  std::array<int32_t, 256> byte_ids{};
  for (size_t byte = 0; byte < 256; ++byte) {
    const char letter = static_cast<char>(byte);
    byte_ids[byte] = model_ids.find(std::string_view(&letter, 1))->second;
  }
  model_ = BpeModel(byte_ids, merges);
}

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
  while (!text.empty()) {
    const size_t well_formed = std::min(find_invalid_utf8(text), text.size());
    encode_well_formed(text.substr(0, well_formed), special_tokens, work, ids);
    text.remove_prefix(well_formed);
    if (text.empty()) break;
    ids.push_back(model_.byte_id(static_cast<uint8_t>(text[0])));
    text.remove_prefix(1);
  }
}

void Tokenizer::Impl::encode_well_formed(std::string_view text, SpecialTokens special_tokens, Workspace& work,
                                         std::vector<int32_t>& ids) const {
  added_first_.split(text, special_tokens, [&](std::string_view part, const AddedToken* token) {
    if (token != nullptr) return ids.push_back(token->id);
    added_second_.split(part, special_tokens, [&](std::string_view rest, const AddedToken* second) {
      if (second != nullptr) return ids.push_back(second->id);
      encode_pieces(rest, work, ids);
    });
  });
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

void Tokenizer::Impl::encode_piece(std::string_view piece, Workspace& work, std::vector<int32_t>& ids) const {
  const size_t start = ids.size();
  const auto whole = file.ignore_merges ? model_ids.find(piece) : model_ids.end();
  if (whole != model_ids.end()) {
    ids.push_back(whole->second);
  } else {
    model_.encode(piece, work.bpe, ids);
  }
  work.cache.insert(piece, ids.data() + start, ids.size() - start);
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  const auto file = std::filesystem::is_directory(path) ? path / "tokenizer.json" : path;
  return from_json(read_file(file), file.string());
}

Tokenizer Tokenizer::from_json(std::string_view json, const std::string& source) {
  return Tokenizer(std::make_unique<Impl>(parse_tokenizer_file(json, source), source));
}

void Tokenizer::save(const std::filesystem::path& file) const {
  write_file(file, write_tokenizer_file(impl_->file));
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
    if (!skip_special || impl_->special[static_cast<size_t>(id)] == 0) text += token;
  }
  return text;
}

int64_t Tokenizer::vocab_size() const {
  return static_cast<int64_t>(impl_->bytes.size());
}

std::optional<int32_t> Tokenizer::find(std::string_view content) const {
  for (const IdByText* table : {&impl_->added_ids, &impl_->model_ids}) {
    if (const auto row = table->find(content); row != table->end()) return row->second;
  }
  return std::nullopt;
}

std::string_view Tokenizer::bytes(int32_t id) const {
  PRISM_CHECK(id >= 0 && id < vocab_size(), "tokenizer",
              "expected token ids from 0 to {}; found {}; use those of this tokenizer.", vocab_size() - 1, id);
  return impl_->bytes[static_cast<size_t>(id)];
}

bool Tokenizer::is_special(int32_t id) const {
  return !bytes(id).empty() && impl_->special[static_cast<size_t>(id)] != 0;
}

std::optional<int32_t> Tokenizer::end_of_text() const {
  for (const char* name : {"<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>"}) {
    if (const auto row = impl_->added_ids.find(std::string_view(name)); row != impl_->added_ids.end())
      return row->second;
  }
  return std::nullopt;
}

std::vector<uint8_t> Tokenizer::word_starts() const {
  std::vector<uint8_t> starts(impl_->bytes.size());
  for (size_t id = 0; id < starts.size(); ++id) {
    const std::string& token = impl_->bytes[id];
    // Tokens may begin or end inside a character. Only a complete first character can be white space.
    const std::string_view head = std::string_view(token).substr(0, 4);
    const size_t whole = std::min(find_invalid_utf8(head), head.size());
    const bool space = whole > 0 && (character_classes()[decode_character(head, 0).code] & kSpace) != 0;
    starts[id] = space || impl_->special[id] != 0;
  }
  return starts;
}

uint64_t Tokenizer::fingerprint() const {
  Hash hash;
  for (const auto& token : impl_->bytes) hash.add(token);
  hash.add(impl_->file.merges.size());
  for (const auto& [left, right] : impl_->file.merges) {
    hash.add(left);
    hash.add(right);
  }
  hash.add(impl_->file.ignore_merges ? 1 : 0);
  hash.add(impl_->pretokenizer.describe());
  for (const auto& token : impl_->file.added) {
    hash.add(static_cast<uint64_t>(token.id));
    hash.add(static_cast<uint64_t>(token.special) | static_cast<uint64_t>(token.single_word) << 1 |
             static_cast<uint64_t>(token.lstrip) << 2 | static_cast<uint64_t>(token.rstrip) << 3 |
             static_cast<uint64_t>(token.normalized) << 4);
  }
  return hash.value();
}

std::string Tokenizer::fingerprint_text() const {
  return fmt::format("{:016x}", fingerprint());
}

int64_t Tokenizer::merge_count() const {
  return static_cast<int64_t>(impl_->file.merges.size());
}

std::string Tokenizer::pattern() const {
  return impl_->pretokenizer.describe();
}

}  // namespace prism

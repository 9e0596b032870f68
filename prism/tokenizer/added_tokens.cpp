#include "prism/tokenizer/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "prism/tokenizer/split/unicode_classes.h"

namespace prism {
namespace {

bool is_class(std::string_view text, size_t at, CharacterClass wanted) {
  return (character_classes()[decode_character(text, at).code] & wanted) != 0;
}

bool touches_word(std::string_view text, size_t begin, size_t end) {
  return (begin > 0 && is_class(text, previous_character(text, begin), kWordCharacter)) ||
         (end < text.size() && is_class(text, end, kWordCharacter));
}

size_t spaces_begin(std::string_view text, size_t end, size_t floor) {
  while (end > floor) {
    const size_t before = previous_character(text, end);
    if (before < floor || !is_class(text, before, kSpace)) break;
    end = before;
  }
  return end;
}

size_t spaces_end(std::string_view text, size_t begin) {
  while (begin < text.size() && is_class(text, begin, kSpace)) begin += decode_character(text, begin).length;
  return begin;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(const std::vector<Row>& rows) {
  nodes_.resize(1);  // index 0 means "no node"
  for (const auto& [content, token] : rows) {
    if (content.empty()) continue;
    uint32_t* link = &roots_[static_cast<uint8_t>(content[0])];
    if (*link == 0) {
      *link = static_cast<uint32_t>(nodes_.size());
      nodes_.emplace_back();
    }
    uint32_t node = *link;
    for (size_t i = 1; i < content.size(); ++i) {
      auto& children = nodes_[node].children;
      const char next = content[i];
      const auto child = std::find_if(children.begin(), children.end(), [next](auto& c) { return c.first == next; });
      if (child != children.end()) {
        node = child->second;
        continue;
      }
      const auto added = static_cast<uint32_t>(nodes_.size());
      children.emplace_back(next, added);
      nodes_.emplace_back();
      node = added;
    }
    nodes_[node].token = token;
    nodes_[node].depth = content.size();
  }
  const auto used = std::count_if(roots_.begin(), roots_.end(), [](uint32_t node) { return node != 0; });
  if (used == 1)
    only_first_ =
        static_cast<int>(std::find_if(roots_.begin(), roots_.end(), [](auto n) { return n != 0; }) - roots_.begin());
}

size_t AddedTokenMatcher::find_start(std::string_view text, size_t from) const {
  if (from >= text.size() || nodes_.size() <= 1) return text.size();
  if (only_first_ >= 0) {
    const void* found = std::memchr(text.data() + from, only_first_, text.size() - from);
    return found == nullptr ? text.size() : static_cast<size_t>(static_cast<const char*>(found) - text.data());
  }
  while (from < text.size() && roots_[static_cast<uint8_t>(text[from])] == 0) ++from;
  return from;
}

const AddedTokenMatcher::Node* AddedTokenMatcher::longest_at(std::string_view text, size_t at) const {
  const Node* longest = nullptr;
  uint32_t node = roots_[static_cast<uint8_t>(text[at])];
  while (node != 0) {
    if (nodes_[node].token != nullptr) longest = &nodes_[node];
    if (++at == text.size()) break;
    const auto& children = nodes_[node].children;
    const auto child = std::find_if(children.begin(), children.end(), [&](auto& c) { return c.first == text[at]; });
    node = child == children.end() ? 0 : child->second;
  }
  return longest;
}

void AddedTokenMatcher::split(std::string_view text, SpecialTokens special, const Visit& visit) const {
  size_t done = 0;  // end of the text visited so far
  for (size_t at = find_start(text, 0); at < text.size(); at = find_start(text, at)) {
    const Node* found = longest_at(text, at);
    if (found == nullptr) {
      ++at;
      continue;
    }
    const AddedToken* token = found->token;
    size_t begin = at, end = at + found->depth;
    at = end;  // even a rejected token hides those that start inside it
    if (special == SpecialTokens::as_text && token->special) continue;
    if (token->single_word && touches_word(text, begin, end)) continue;
    if (token->lstrip) begin = std::max(spaces_begin(text, begin, 0), done);
    if (token->rstrip) end = spaces_end(text, end);
    if (begin > done) visit(text.substr(done, begin - done), nullptr);
    // The previous token may have consumed white space at the start of this one. Only the rest counts.
    const size_t from = std::max(begin, done);
    visit(text.substr(from, end > from ? end - from : 0), token);
    done = std::max(done, end);
  }
  if (done < text.size()) visit(text.substr(done), nullptr);
}

}  // namespace prism

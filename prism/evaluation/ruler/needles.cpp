#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "prism/evaluation/ruler/prompts.h"
#include "prism/evaluation/ruler/words.h"

namespace prism {
namespace {

constexpr int64_t kDepths = 40;  ///< places for needles in essays, from 0 to 100%

std::string word_pair(Random& random) {
  const auto& adjectives = ruler_adjectives();
  const auto& nouns = ruler_nouns();
  const auto adjective = adjectives[random.below(adjectives.size())];
  return fmt::format("{}-{}", adjective, nouns[random.below(nouns.size())]);
}

std::string seven_digits(Random& random) {
  return std::to_string(1'000'000 + random.below(9'000'000));
}

/// A random UUID of version 4 (RFC 9562).
std::string uuid(Random& random) {
  const uint64_t high = (random.next() & ~uint64_t{0xF000}) | 0x4000;
  const uint64_t low = (random.next() & ~(uint64_t{3} << 62)) | uint64_t{2} << 62;
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, high >> 16 & 0xFFFF, high & 0xFFFF, low >> 48,
                     low & 0xFFFFFFFFFFFF);
}

class NeedleMaker {
 public:
  NeedleMaker(const NeedleOptions& options, Random& random) : options_(options), random_(random) {}

  std::string key() { return options_.uuid_keys ? uuid(random_) : word_pair(random_); }
  std::string value() { return options_.uuid_values ? uuid(random_) : seven_digits(random_); }
  const char* kind() const { return options_.uuid_values ? "uuids" : "numbers"; }
  std::string needle(const std::string& key, const std::string& value) const {
    return fmt::format("One of the special magic {} for {} is: {}.", kind(), key, value);
  }

 private:
  const NeedleOptions& options_;
  Random& random_;
};

/// Puts the needles between the sentences of essays. @param percents  of the sentences that stand before each of them.
std::string in_essays(const std::vector<std::string>& needles, const std::vector<std::string>& words,
                      const std::vector<int64_t>& percents, int64_t units) {
  const auto sentences = sentences_of(words, units);
  const auto count = static_cast<double>(sentences.size());
  std::vector<int64_t> places;
  for (const int64_t percent : percents)
    places.push_back(static_cast<int64_t>(count * (static_cast<double>(percent) / 100)));
  std::ranges::sort(places);
  places.push_back(std::ssize(sentences));
  // Where no sentence stands between two needles, or before or after them, there are two blanks, as in RULER.
  std::vector<std::string> parts;
  int64_t first = 0;
  for (size_t i = 0; i < places.size(); first = places[i++]) {
    parts.push_back(fmt::format("{}", fmt::join(sentences.begin() + first, sentences.begin() + places[i], " ")));
    if (i < needles.size()) parts.push_back(needles[i]);
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

/// Puts the needles between lines.
std::string in_lines(const std::vector<std::string>& needles, std::vector<std::string> lines, Random& random) {
  auto places = draw_distinct(random, std::ssize(needles), std::ssize(lines));
  std::ranges::sort(places, std::greater());
  for (size_t i = 0; i < places.size(); ++i) lines.insert(lines.begin() + places[i], needles[i]);
  return fmt::format("{}", fmt::join(lines, "\n"));
}

/// Depths of their own.
std::vector<int64_t> drawn_percents(int64_t count, Random& random) {
  std::vector<int64_t> percents;
  for (const int64_t depth : draw_distinct(random, count, kDepths))
    percents.push_back(static_cast<int64_t>(std::nearbyint(static_cast<double>(depth) * 100 / (kDepths - 1))));
  return percents;
}

/// "a", "a, and b", "a, b, and c"
std::string joined_keys(const std::vector<std::string>& keys) {
  if (keys.size() == 1) return keys[0];
  return fmt::format("{}, and {}", fmt::join(keys.begin(), keys.end() - 1, ", "), keys.back());
}

/// The question about needles in a context. With one answer, everything is in the singular.
RulerPrompt question_about(const NeedleMaker& make, const NeedleOptions& options, const std::string& context,
                           const std::vector<std::string>& asked, const std::vector<std::string>& targets) {
  const bool is_one = targets.size() == 1;
  const std::string kind = is_one ? (options.uuid_values ? "uuid" : "number") : make.kind();
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"context", context}, {"query", joined_keys(asked)}, {"kind", kind}};
  const char* text =
      is_one ? "A special magic {kind} is hidden within the following text. Make sure to memorize it. I will "
               "quiz you about the {kind} afterwards.\n{context}\nWhat is the special magic {kind} for "
               "{query} mentioned in the provided text?"
             : "Some special magic {kind} are hidden within the following text. Make sure to memorize it. I "
               "will quiz you about the {kind} afterwards.\n{context}\nWhat are all the special magic {kind} "
               "for {query} mentioned in the provided text?";
  const char* prefix = is_one ? " The special magic {kind} for {query} mentioned in the provided text is"
                              : " The special magic {kind} for {query} mentioned in the provided text are";
  return {filled(text, texts), filled(prefix, texts), targets};
}

}  // namespace

RulerPrompt needle_prompt(const NeedleOptions& options, const RulerSetting& setting, Random& random, int64_t units) {
  NeedleMaker make(options, random);
  std::vector<std::string> keys, needles;
  std::vector<std::vector<std::string>> values;
  const auto new_key = [&] {
    auto key = make.key();
    while (std::ranges::find(keys, key) != keys.end()) key = make.key();
    return key;
  };
  for (int64_t i = 0; i < options.keys; ++i) {
    keys.push_back(new_key());
    auto& of_key = values.emplace_back();
    for (int64_t v = 0; v < options.values; ++v) {
      of_key.push_back(make.value());
      needles.push_back(make.needle(keys.back(), of_key.back()));
    }
  }
  shuffle(needles, random);
  std::string context;
  if (options.haystack == Haystack::essay) {
    context = in_essays(needles, setting.sources.essay_words(), drawn_percents(std::ssize(needles), random), units);
  } else {
    std::vector<std::string> lines;
    for (int64_t i = 0; i < units; ++i) {
      if (options.haystack == Haystack::noise) {
        lines.emplace_back(kNoiseLine);
      } else {
        const auto key = new_key();  // not one that is asked for
        lines.push_back(make.needle(key, make.value()));
      }
    }
    context = in_lines(needles, std::move(lines), random);
  }
  std::vector<std::string> asked, targets;
  for (const int64_t i : draw_distinct(random, options.queries, options.keys)) {
    asked.push_back(keys[static_cast<size_t>(i)]);
    for (const auto& value : values[static_cast<size_t>(i)]) targets.push_back(value);
  }
  return question_about(make, options, context, asked, targets);
}

RulerPrompt needle_at(int64_t depth_percent, const RulerSetting& setting, Random& random, int64_t units) {
  const NeedleOptions options{.haystack = Haystack::essay};
  NeedleMaker make(options, random);
  const auto key = make.key(), value = make.value();
  return question_about(make, options,
                        in_essays({make.needle(key, value)}, setting.sources.essay_words(), {depth_percent}, units),
                        {key}, {value});
}

}  // namespace prism

#include "prism/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <thread>

#include "prism/core/error.h"
#include "tests/core/temporary_folder.h"
#include "tests/tokenizer/tokenizer_helpers.h"

namespace prism {
namespace {

using nlohmann::json;

Tokenizer load_fixture(const std::string& name) {
  return Tokenizer::load(fixture_path(name + ".json"));
}

TEST(Tokenizer, GivesHuggingFacesIdsForHostileStrings) {
  const json expected = fixture_json("expected.json");
  ASSERT_GT(expected.size(), 800u);
  for (const char* name : {"gpt2", "llama3", "digits"}) {
    const Tokenizer tokenizer = load_fixture(name);
    for (const auto& row : expected) {
      if (row["tokenizer"] != name) continue;
      const auto text = row["text"].get<std::string>();
      const auto special = row["parse_special"].get<bool>() ? SpecialTokens::parse : SpecialTokens::as_text;
      EXPECT_EQ(tokenizer.encode(text, special), row["ids"].get<std::vector<int32_t>>()) << name << ": " << row.dump();
    }
  }
}

TEST(Tokenizer, GivesTheSameIdsOnASecondPassThroughItsCache) {
  const Tokenizer tokenizer = load_fixture("gpt2");
  std::string text;
  Random random(1);
  for (int i = 0; i < 20000; ++i) text += " lamp" + std::to_string(random.below(100000)) + "ship";
  const auto cold = tokenizer.encode(text);
  EXPECT_EQ(tokenizer.encode(text), cold);
  // Encodes each piece with a new tokenizer, whose cache is empty.
  EXPECT_EQ(load_fixture("gpt2").encode(text), cold);
}

TEST(Tokenizer, DecodesWhatItEncodedForAnyBytes) {
  const Tokenizer tokenizer = load_fixture("llama3");
  Random random(2);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (uint64_t i = random.below(200); i > 0; --i) {
      // Half random bytes, half text, so that ill-formed bytes occur next to well-formed characters.
      text += random.below(2) == 0 ? std::string(1, static_cast<char>(random.below(256))) : " lamp été灯";
    }
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, SpecialTokens::as_text)), text);
  }
}

TEST(Tokenizer, MakesEveryIllFormedByteATokenOfItsOwn) {
  const Tokenizer tokenizer = load_fixture("gpt2");
  const auto byte = [&](const char* bytes) { return tokenizer.find(bytes).value(); };
  // A cut character, a lone continuation byte, an overlong form, a surrogate, a byte that never occurs.
  EXPECT_EQ(tokenizer.encode("\xE7\x81"), (std::vector{byte("\xE7"), byte("\x81")}));
  EXPECT_EQ(tokenizer.encode("\x80"), (std::vector{byte("\x80")}));
  EXPECT_EQ(tokenizer.encode("\xC0\xAF"), (std::vector{byte("\xC0"), byte("\xAF")}));
  EXPECT_EQ(tokenizer.encode("\xED\xA0\x80"), (std::vector{byte("\xED"), byte("\xA0"), byte("\x80")}));
  EXPECT_EQ(tokenizer.encode("\xFF"), (std::vector{byte("\xFF")}));
}

TEST(Tokenizer, EncodesTextBesideIllFormedBytesAsIfItStoodAlone) {
  const Tokenizer tokenizer = load_fixture("gpt2");
  auto expected = tokenizer.encode("the lamp  ");
  expected.push_back(tokenizer.find("\xFF").value());
  const auto rest = tokenizer.encode(" the<|endoftext|>");
  expected.insert(expected.end(), rest.begin(), rest.end());
  EXPECT_EQ(tokenizer.encode("the lamp  \xFF the<|endoftext|>"), expected);
}

TEST(Tokenizer, EncodesAMegabyteWithoutASpaceInAboutLinearTime) {
  // Quadratic time would take hours here; the test's time-out is the limit.
  const Tokenizer tokenizer = load_fixture("gpt2");
  for (const char* unit : {"a", "ab", " ", "\n", "灯", "!?", "1", "\xFF"}) {
    std::string text;
    while (text.size() < (size_t{1} << 20)) text += unit;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST(Tokenizer, LeavesSpecialTokensAsTextWhenAsked) {
  const Tokenizer tokenizer = load_fixture("gpt2");
  const int32_t end = tokenizer.special_ids().opening.value();
  EXPECT_EQ(tokenizer.encode("<|endoftext|>"), std::vector{end});
  const auto as_text = tokenizer.encode("<|endoftext|>", SpecialTokens::as_text);
  EXPECT_GT(as_text.size(), 1u);
  EXPECT_EQ(std::count(as_text.begin(), as_text.end(), end), 0);
  EXPECT_EQ(tokenizer.decode(as_text), "<|endoftext|>");
}

TEST(Tokenizer, SkipsSpecialTokensWhenDecodingIfAsked) {
  const Tokenizer tokenizer = load_fixture("gpt2");
  const auto ids = tokenizer.encode("the<|endoftext|>lamp<|pad|>zq");
  EXPECT_EQ(tokenizer.decode(ids), "the<|endoftext|>lamp<|pad|>zq");
  EXPECT_EQ(tokenizer.decode(ids, /*skip_special=*/true), "thelampzq");
}

TEST(Tokenizer, RefusesIdsOutsideTheVocabulary) {
  const Tokenizer tokenizer = load_fixture("gpt2");
  const auto size = static_cast<int32_t>(tokenizer.vocab_size());
  EXPECT_NO_THROW(tokenizer.decode(std::vector{size - 1}));
  EXPECT_THROW(tokenizer.decode(std::vector{size}), InputError);
  EXPECT_THROW(tokenizer.decode(std::vector{-1}), InputError);
  EXPECT_THROW(tokenizer.bytes(size), InputError);
  EXPECT_THROW(tokenizer.is_special(-1), InputError);
}

TEST(Tokenizer, FindsTokensByTheirBytesAndAddedOnesByTheirSpelling) {
  const Tokenizer tokenizer = load_fixture("gpt2");
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) EXPECT_EQ(tokenizer.find(tokenizer.bytes(id)), id);
  EXPECT_EQ(tokenizer.find(" lamp"), tokenizer.encode(" lamp")[0]);
  EXPECT_EQ(tokenizer.find("no such token"), std::nullopt);
  EXPECT_TRUE(tokenizer.is_special(tokenizer.find("<|pad|>").value()));
  EXPECT_FALSE(tokenizer.is_special(tokenizer.find("lighthouse").value()));
}

TEST(Tokenizer, TakesTheEndOfTextFromTheAddedTokensAlone) {
  json file = fixture_json("gpt2.json");
  file["added_tokens"] = json::array();
  EXPECT_EQ(Tokenizer::from_json(file.dump(), "test").special_ids().opening, std::nullopt);
  const auto id = file["model"]["vocab"].size();
  file["added_tokens"] = {{{"id", id + 5}, {"content", "</s>"}, {"special", true}},
                          {{"id", id + 1}, {"content", "<|end_of_text|>"}, {"special", true}}};
  const Tokenizer tokenizer = Tokenizer::from_json(file.dump(), "test");
  EXPECT_EQ(tokenizer.special_ids().opening, static_cast<int32_t>(id + 5));
  EXPECT_EQ(tokenizer.vocab_size(), static_cast<int64_t>(id + 6));
  EXPECT_EQ(tokenizer.bytes(static_cast<int32_t>(id + 3)), "");  // no token has this id
}

TEST(Tokenizer, StartsWordsAtWhiteSpaceAndSpecialTokensOnly) {
  json file = fixture_json("gpt2.json");
  auto& vocab = file["model"]["vocab"];
  const auto base = static_cast<int32_t>(vocab.size()) + 10;
  vocab["ãĢĢ"] = base;       // U+3000, white space
  vocab["ãĢ"] = base + 1;    // the first two bytes of it
  vocab["ÂłÃ©"] = base + 2;  // U+00A0 before a letter
  vocab["xĠ"] = base + 3;    // a space that does not come first
  const Tokenizer tokenizer = Tokenizer::from_json(file.dump(), "test");
  const auto starts = tokenizer.word_starts();
  ASSERT_EQ(static_cast<int64_t>(starts.size()), tokenizer.vocab_size());
  const auto starts_word = [&](std::string_view token) {
    return starts[static_cast<size_t>(tokenizer.find(token).value())];
  };
  for (const char* token : {" ", "\n", "\t", " lamp", "<|endoftext|>", "<|pad|>", "\n\n\n", "\u3000", "\u00a0é"})
    EXPECT_EQ(starts_word(token), 1) << token;
  for (const char* token : {"a", "lighthouse", "zq", "'", ".", "\xE3\x80", "\xC2", "x "})
    EXPECT_EQ(starts_word(token), 0) << token;
}

TEST(Tokenizer, SavesAFileThatEncodesAlikeAndKeepsWhatItDoesNotUse) {
  json file = fixture_json("gpt2.json");
  file["post_processor"] = {
      {"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}, {"use_regex", true}};
  file["version"] = "1.1";
  file["model"]["unk_token"] = "<|endoftext|>";
  const Tokenizer tokenizer = Tokenizer::from_json(file.dump(), "test");
  const TemporaryFolder folder;
  tokenizer.save(folder.path() / "tokenizer.json");
  const json saved = json::parse(read_file(folder.path() / "tokenizer.json"));
  for (const auto& [name, value] : file.items()) {
    if (name != "model") {
      EXPECT_EQ(saved[name], value) << name;
    }
  }
  for (const auto& [name, value] : file["model"].items()) {
    if (name != "merges") {
      EXPECT_EQ(saved["model"][name], value) << name;
    }
  }
  const Tokenizer again = Tokenizer::load(folder.path());
  EXPECT_EQ(again.fingerprint(), tokenizer.fingerprint());
  for (const auto& text : fixture_documents()) EXPECT_EQ(again.encode(text), tokenizer.encode(text));
}

TEST(Tokenizer, ReadsMergesAsPairsAndAsStrings) {
  json file = fixture_json("gpt2.json");
  ASSERT_TRUE(file["model"]["merges"][0].is_array());
  const auto pairs = Tokenizer::from_json(file.dump(), "test").fingerprint();
  for (auto& merge : file["model"]["merges"]) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  EXPECT_EQ(Tokenizer::from_json(file.dump(), "test").fingerprint(), pairs);
}

TEST(Tokenizer, HasAFingerprintThatSeesWhateverChangesIds) {
  const json file = fixture_json("gpt2.json");
  const auto fingerprint = [](const json& changed) {
    return Tokenizer::from_json(changed.dump(), "test").fingerprint();
  };
  const auto original = fingerprint(file);
  const auto differs = [&](const std::string& pointer, const json& value) {
    json changed = file;
    changed[json::json_pointer(pointer)] = value;
    return fingerprint(changed) != original;
  };
  EXPECT_TRUE(differs("/added_tokens/1/lstrip", false));
  EXPECT_TRUE(differs("/added_tokens/1/content", "<|fill|>"));
  EXPECT_TRUE(differs("/added_tokens/0/special", false));
  EXPECT_TRUE(differs("/model/ignore_merges", true));
  EXPECT_TRUE(differs("/pre_tokenizer/use_regex", false));
  json swapped = file;
  std::swap(swapped["model"]["merges"][3], swapped["model"]["merges"][4]);
  EXPECT_NE(fingerprint(swapped), original);
  EXPECT_FALSE(differs("/post_processor", {{"type", "ByteLevel"}}));
  EXPECT_FALSE(differs("/pre_tokenizer/trim_offsets", false));
}

TEST(Tokenizer, EncodesFromManyThreadsAtOnce) {
  const Tokenizer tokenizer = load_fixture("gpt2");
  std::string text;
  for (int i = 0; i < 200; ++i) {
    for (const auto& document : fixture_documents()) text += document + std::to_string(i);
  }
  const auto expected = tokenizer.encode(text);
  std::vector<std::vector<int32_t>> ids(4);
  {
    std::vector<std::jthread> team;
    for (auto& mine : ids) {
      team.emplace_back([&] {
        for (int round = 0; round < 3; ++round) mine = tokenizer.encode(text);
      });
    }
  }
  for (const auto& mine : ids) EXPECT_EQ(mine, expected);
}

TEST(Tokenizer, NamesTheFileThatIsMissing) {
  try {
    Tokenizer::load("/no/such/tokenizer.json");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("/no/such/tokenizer.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace prism

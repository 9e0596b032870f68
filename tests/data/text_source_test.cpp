#include "prism/data/text_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/iostreams/copy.hpp>
#include <boost/iostreams/device/array.hpp>
#include <boost/iostreams/device/back_inserter.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filter/lzma.hpp>
#include <boost/iostreams/filter/zstd.hpp>
#include <boost/iostreams/filtering_streambuf.hpp>
#include <fstream>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/random.h"
#include "prism/core/text/utf8.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

namespace fs = std::filesystem;
namespace io = boost::iostreams;

std::string pack(const std::string& text, const std::string& ending) {
  std::string packed;
  io::filtering_streambuf<io::input> stream;
  if (ending == ".gz") stream.push(io::gzip_compressor());
  if (ending == ".xz") stream.push(io::lzma_compressor());
  if (ending == ".zst") stream.push(io::zstd_compressor());
  stream.push(io::array_source(text.data(), text.size()));
  io::copy(stream, io::back_inserter(packed));
  return packed;
}

const std::vector<std::string> kEndings = {".gz", ".xz", ".zst"};

/// Lines of words of 1 to 9 letters with a little punctuation.
std::string prose(size_t bytes, uint64_t seed = 1) {
  Random random(seed);
  std::string text;
  while (text.size() < bytes) {
    for (uint64_t letters = 1 + random.below(9); letters > 0; --letters)
      text += static_cast<char>('a' + random.below(26));
    const uint64_t kind = random.below(20);
    text += kind == 0 ? ".\n" : kind == 1 ? ", " : kind == 2 ? "\n\n" : " ";
  }
  text.resize(bytes);
  return text;
}

class Texts : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& bytes) {
    fs::create_directories((folder_.path() / name).parent_path());
    fs::remove(folder_.path() / name);  // overwriting a file waits for the disk on ext4
    std::ofstream(folder_.path() / name, std::ios::binary) << bytes;
    return (folder_.path() / name).string();
  }

  /// Complete documents, with pieces concatenated.
  static std::vector<std::string> read(const std::vector<std::string>& inputs, TextOptions options = {}) {
    TextSource source(inputs, std::move(options));
    std::vector<std::string> documents;
    bool open = false;
    while (std::optional<Document> piece = source.next()) {
      EXPECT_EQ(piece->first, !open);
      EXPECT_FALSE(piece->text.empty());
      if (piece->first) documents.emplace_back();
      documents.back() += piece->text;
      open = !piece->last;
    }
    EXPECT_FALSE(open);
    return documents;
  }

  static std::string refusal(const std::vector<std::string>& inputs, TextOptions options = {}) {
    return message_of([&] { read(inputs, options); });
  }

  TemporaryFolder folder_;
};

using Documents = std::vector<std::string>;

TEST_F(Texts, TakeAPlainFileAsOneDocument) {
  EXPECT_EQ(read({put("a.txt", "one\n\n\n\ntwo\n")}), Documents{"one\n\n\n\ntwo\n"});
}

TEST_F(Texts, AreSplitAtTheSeparatorWithoutEmptyDocuments) {
  TextOptions options;
  options.separator = R"(\n\n\n\n)";
  EXPECT_EQ(read({put("a.txt", "\n\n\n\none\n\n\n\ntwo\n\n\nstill two\n\n\n\n\n\n\n\n\nthree\n\n\n\n")}, options),
            (Documents{"one", "two\n\n\nstill two", "\nthree"}));
  options.separator = "<|endoftext|>";
  EXPECT_EQ(read({put("b.txt", "a<|endoftext|>b<|endoftext|")}, options), (Documents{"a", "b<|endoftext|"}));
}

TEST_F(Texts, KnowTheEscapesOfASeparator) {
  EXPECT_EQ(parse_separator(R"(\n\t\r\\\x41\x0a-)"), "\n\t\r\\A\n-");
  for (const char* bad : {"\\", "\\q", "\\x4", "\\xg0"})
    EXPECT_CONTAINS(message_of([&] { parse_separator(bad); }), "escapes");
}

TEST_F(Texts, TakeARowOfJsonlAsOneDocument) {
  const std::string rows =
      "{\"text\": \"one\\n\\u00e9\"}\n\n  \r\n{\"id\": [1, {}], \"text\": "
      "\"two\"}\r\n{\"text\":\"\"}\n{\"text\":\"3\"}";
  TextSource source({put("rows.jsonl", rows)});
  EXPECT_EQ(read({put("rows.jsonl", rows)}), (Documents{"one\n\xC3\xA9", "two", "3"}));
  while (source.next()) {
  }
  EXPECT_EQ(source.empty_documents(), 1);
  TextOptions options;
  options.field = "body";
  EXPECT_EQ(read({put("b.ndjson", "{\"body\": \"x\"}")}, options), Documents{"x"});
}

TEST_F(Texts, AreUnpackedByTheirFirstBytes) {
  const std::string text = prose(1'000'000);
  for (const std::string& ending : kEndings) {
    const std::string packed = pack(text, ending);
    EXPECT_EQ(read({put("a.txt" + ending, packed)}), Documents{text}) << ending;
    EXPECT_EQ(read({put("unnamed.txt", packed)}), Documents{text}) << ending;
    EXPECT_EQ(read({put("two.txt" + ending, packed + pack("more", ending))}), Documents{text + "more"}) << ending;
    EXPECT_EQ(read({put("rows.jsonl" + ending, pack("{\"text\": \"x\"}", ending))}), Documents{"x"}) << ending;
  }
}

TEST_F(Texts, RefusePackedStreamsThatAreCutShortOrDamaged) {
  const std::string text = prose(300'000);
  for (const std::string& ending : kEndings) {
    SCOPED_TRACE(ending);
    const std::string packed = pack(text, ending);
    for (const size_t cut : {packed.size() - 1, packed.size() - 3, packed.size() / 2, size_t{20}, size_t{7}})
      EXPECT_CONTAINS(refusal({put("cut.txt" + ending, packed.substr(0, cut))}), "damaged or cut short");
    EXPECT_CONTAINS(refusal({put("long.txt" + ending, packed + "more than there should be")}), "damaged or cut short");
    EXPECT_CONTAINS(refusal({put("plain.txt" + ending, "no packed bytes")}), "as its name says");
  }
}

TEST_F(Texts, NeverCrashOnMutatedPackedBytes) {
  const std::string text = prose(20'000);
  Random random(3);
  for (const std::string& ending : kEndings) {
    const std::string packed = pack(text, ending);
    int refused = 0;
    for (int round = 0; round < 150; ++round) {
      std::string mutated = packed;
      mutated[random.below(mutated.size())] = static_cast<char>(random.below(256));
      if (random.below(3) == 0) mutated.resize(random.below(mutated.size()));
      refused += !refusal({put("a.txt", mutated)}).empty();
    }
    EXPECT_GT(refused, 30) << ending;  // every third fault is a truncation; frames without a checksum miss other faults
  }
}

TEST_F(Texts, FollowZstdFramesOfEveryKind) {
  // Written by hand according to RFC 8878: skippable, then raw and repeated-byte blocks with and without a checksum.
  using namespace std::string_literals;
  const std::string skippable = "\x50\x2A\x4D\x18\x03\x00\x00\x00xyz"s;
  const std::string magic = "\x28\xB5\x2F\xFD"s;
  const std::string raw = magic + "\x20\x05\x29\x00\x00hello"s;   // one segment of 5 bytes, last block
  const std::string repeated = magic + "\x20\x04\x23\x00\x00z"s;  // 4 times z
  const std::string whole = skippable + raw + skippable + repeated;
  EXPECT_EQ(read({put("a.txt.zst", whole)}), Documents{"hellozzzz"});
  for (size_t cut = 7; cut < whole.size(); ++cut) {
    const bool between =
        cut == skippable.size() || cut == skippable.size() + raw.size() || cut == 2 * skippable.size() + raw.size();
    EXPECT_EQ(refusal({put("a.txt.zst", whole.substr(0, cut))}).empty(), between) << cut;
  }
}

TEST_F(Texts, ComeFromFoldersSortedByPath) {
  put("d/b.txt", "2");
  put("d/a/z.txt", "1");
  put("d/c.jsonl", "{\"text\": \"3\"}");
  put("d/d.txt.gz", pack("4", ".gz"));
  put("d/notes.csv", "no text");
  put("d/.hidden.txt", "no text");
  put("d/.git/x.txt", "no text");
  const std::string folder = (folder_.path() / "d").string();
  EXPECT_EQ(read({folder}), (Documents{"1", "2", "3", "4"}));
  int64_t skipped = 0;
  EXPECT_EQ(list_text_files({folder}, {}, &skipped).size(), 4u);
  EXPECT_EQ(skipped, 1);
  EXPECT_EQ(read({put("z.txt", "first"), folder}).front(), "first");
}

TEST_F(Texts, PassOverLinksThatLeadNowhereOrInCircles) {
  put("folder/a.txt", "a");
  fs::create_symlink("nowhere.txt", folder_.path() / "folder/dangling.txt");
  fs::create_symlink("self.txt", folder_.path() / "folder/self.txt");
  fs::create_directory_symlink("..", folder_.path() / "folder/up");
  EXPECT_EQ(read({(folder_.path() / "folder").string()}), Documents{"a"});
}

TEST_F(Texts, CountBytesForProgress) {
  const std::string packed = pack(prose(100'000), ".xz");
  TextSource source({put("a.txt.xz", packed), put("b.txt", "12345")});
  EXPECT_EQ(source.bytes_total(), static_cast<int64_t>(packed.size()) + 5);
  while (source.next()) {
  }
  EXPECT_EQ(source.bytes_read(), source.bytes_total());
}

TEST_F(Texts, RefuseWhatCannotBeRead) {
  EXPECT_CONTAINS(refusal({(folder_.path() / "absent.txt").string()}), "found none");
  EXPECT_CONTAINS(refusal({put("table.csv", "a,b")}), "--format txt or jsonl");
  EXPECT_CONTAINS(refusal({put("table.csv.gz", pack("a,b", ".gz"))}), "expected an ending");
  EXPECT_CONTAINS(refusal({folder_.path().string()}), "found 2 of other kinds");
  TextOptions options;
  options.format = "txt";
  EXPECT_EQ(read({put("table.csv", "a,b")}, options), Documents{"a,b"});
  options.format = "xml";
  EXPECT_CONTAINS(refusal({put("a.txt", "x")}, options), "expected --format to be one of");
  options = {};
  options.invalid_utf8 = "ignore";
  EXPECT_CONTAINS(refusal({put("a.txt", "x")}, options), "expected --invalid-utf8 to be one of");
  const std::string secret = put("secret.txt", "x");
  fs::permissions(secret, fs::perms::none);
  if (::geteuid() != 0) EXPECT_CONTAINS(refusal({secret}), "expected a readable file");
}

TEST_F(Texts, OfACommandWithoutFlagsAreTextUnlessTheirNamesSayOtherwise) {
  TextOptions options;
  options.has_flags = false;
  EXPECT_EQ(read({put("notes.md", "a,b")}, options), Documents{"a,b"});
  EXPECT_EQ(read({put("notes.gz", pack("a,b", ".gz"))}, options), Documents{"a,b"});
  EXPECT_EQ(read({put("rows.jsonl", R"({"text": "a"})")}, options), Documents{"a"});
  fs::create_directory(folder_.path() / "empty");
  for (const auto& refused : {refusal({(folder_.path() / "empty").string()}, options),
                              refusal({put("other.jsonl", R"({"body": "a"})")}, options),
                              refusal({put("number.jsonl", R"({"text": 1})")}, options)}) {
    EXPECT_CONTAINS(refused, "; name a");
    EXPECT_EQ(refused.find("--"), std::string::npos) << refused;
  }
}

TEST_F(Texts, LeaveOutAndCountEmptyFiles) {
  TextSource source(
      {put("a.txt", ""), put("b.txt", "\xEF\xBB\xBF"), put("c.txt.gz", pack("", ".gz")), put("d.jsonl", "")});
  EXPECT_FALSE(source.next());
  EXPECT_EQ(source.empty_documents(), 3);
}

TEST_F(Texts, LoseTheByteOrderMark) {
  EXPECT_EQ(read({put("a.txt", "\xEF\xBB\xBFtext\xEF\xBB\xBF")}), Documents{"text\xEF\xBB\xBF"});
  EXPECT_EQ(read({put("a.jsonl", "\xEF\xBB\xBF{\"text\": \"x\"}")}), Documents{"x"});
}

TEST_F(Texts, NameFileAndOffsetOfBytesThatAreNotUtf8) {
  const std::string text = prose(3'000'000);
  const std::string path = put("bad.txt", text + "\xC3(" + text);
  EXPECT_CONTAINS(refusal({path}), "bad.txt: expected text in UTF-8; found byte 0xC3 at byte offset 3000000;");
  EXPECT_CONTAINS(refusal({path}), "--invalid-utf8 keep or replace");
  TextOptions options;
  options.invalid_utf8 = "keep";
  EXPECT_EQ(read({path}, options), Documents{text + "\xC3(" + text});
  options.invalid_utf8 = "replace";
  EXPECT_EQ(read({path}, options), Documents{text + "\xEF\xBF\xBD(" + text});
  EXPECT_CONTAINS(refusal({put("wide.txt", std::string("\xFF\xFEh\0i\0", 6))}), "UTF-16");
}

TEST_F(Texts, NameTheLineOfABadRow) {
  const std::string good = "{\"text\": \"x\"}\n";
  EXPECT_CONTAINS(refusal({put("a.jsonl", good + "\n{\"text\": \"x\"\n")}), "a.jsonl:3: expected a JSON object");
  EXPECT_CONTAINS(refusal({put("a.jsonl", good + "[1]\n")}), "a.jsonl:2: expected a JSON object; found array");
  EXPECT_CONTAINS(refusal({put("a.jsonl", good + "{\"txt\": 1, \"id\": 2}\n")}),
                  "a.jsonl:2: expected a field \"text\"; found id and txt");
  EXPECT_CONTAINS(refusal({put("a.jsonl", good + "{}\n")}), "found none");
  EXPECT_CONTAINS(refusal({put("a.jsonl", good + "{\"text\": null}\n")}),
                  "a.jsonl:2: expected the field \"text\" to be text; found null");
  EXPECT_CONTAINS(refusal({put("a.jsonl", good + "{\"text\": \"\xFF\"}\n")}), "at byte offset 24 (line 2)");
  EXPECT_CONTAINS(refusal({put("a.jsonl", good + std::string(100'000, '['))}), "a.jsonl:2: expected a JSON object");
  TextOptions options;
  options.invalid_utf8 = "keep";
  EXPECT_CONTAINS(refusal({put("a.jsonl", "{\"text\": \"\xFF\"}\n")}, options), "cannot keep such bytes");
  options.invalid_utf8 = "replace";
  EXPECT_EQ(read({put("a.jsonl", "{\"text\": \"\xFF\"}\n")}, options), Documents{"\xEF\xBF\xBD"});
}

TEST_F(Texts, ComeInTheSamePiecesHoweverTheyAreStored) {
  const std::string text = prose(3'000'000) + "\n\n\n\n" + prose(900'000, 2) + "\n\n\n\n" + prose(50, 3);
  TextOptions options;
  options.separator = R"(\n\n\n\n)";
  options.piece_bytes = 1 << 17;
  std::vector<std::vector<std::string>> all;
  for (const auto& path :
       {put("a.txt", text), put("a.txt.gz", pack(text, ".gz")), put("a.txt.zst", pack(text, ".zst"))}) {
    TextSource source({path}, options);
    all.emplace_back();
    while (auto piece = source.next()) {
      EXPECT_LE(piece->text.size(), size_t{1} << 17);
      all.back().push_back(piece->text);
    }
  }
  EXPECT_GT(all[0].size(), 30u);
  EXPECT_EQ(all[0], all[1]);
  EXPECT_EQ(all[0], all[2]);
  EXPECT_EQ(read({put("a.txt", text)}, options).size(), 3u);
}

TEST_F(Texts, FindASeparatorWhereverItLies) {
  TextOptions options;
  options.separator = "=====";
  options.piece_bytes = 16;
  for (size_t length = 1; length < 200; ++length) {
    const std::string before = prose(length), after = prose(70, length);
    EXPECT_EQ(read({put("a.txt", before + "=====" + after)}, options), (Documents{before, after})) << length;
  }
}

TEST_F(Texts, AreBoundedInMemoryWhateverTheDocument) {
  // No position to cut at, so the pieces have four times the size and end between characters.
  std::string text;
  while (text.size() < 100'000) text += "\xE4\xB8\xAD";
  TextOptions options;
  options.piece_bytes = 1000;
  TextSource source({put("a.txt", text)}, options);
  std::string joined;
  while (auto piece = source.next()) {
    EXPECT_LE(piece->text.size(), 4000u);
    EXPECT_EQ(find_invalid_utf8(piece->text), std::string::npos);
    joined += piece->text;
  }
  EXPECT_EQ(joined, text);
  EXPECT_EQ(read({put("rows.jsonl", "{\"text\": \"" + text + "\"}\n")}, options), Documents{text});
}

TEST(PieceLength, CutsInFrontOfASpaceOrBehindALoneNewline) {
  const auto cut = [](const std::string& text, size_t piece) { return text.substr(0, piece_length(text, piece)); };
  EXPECT_EQ(cut("short", 16), "short");
  EXPECT_EQ(cut("one two three four five", 16), "one two three");
  EXPECT_EQ(cut("one two three  four five", 16), "one two three");
  EXPECT_EQ(cut("abcdefgh\nijklmnopqrs", 16), "abcdefgh\n");
  // After two newlines, GPT-2's pattern on the whole text would have seen the second one too. The next position is
  // later.
  EXPECT_EQ(cut("abcdefgh\n\nijklmnopqrs uv", 16), "abcdefgh\n\nijklmnopqrs");
  EXPECT_EQ(cut("abcdefgh\xC2\xA0 ijklmnopqrs uv", 16), "abcdefgh\xC2\xA0 ijklmnopqrs");
  EXPECT_EQ(cut("abcdefghijklmnopqrstuvwxyz", 16), "abcdefghijklmnopqrstuvwxyz");
  EXPECT_EQ(cut(std::string(100, 'x'), 16), std::string(64, 'x'));
}

TEST_F(Texts, ThatShrinkWhileTheyAreReadFail) {
  for (const std::string ending : {"", ".gz"}) {
    const std::string text = prose(4 << 20);
    const std::string path = put("a.txt" + ending, ending.empty() ? text : pack(text, ending));
    TextOptions options;
    options.piece_bytes = 4096;
    TextSource source({path}, options);
    ASSERT_TRUE(source.next());
    fs::resize_file(path, 100);
    EXPECT_CONTAINS(message_of<FailedError>([&] {
                      while (source.next()) {
                      }
                    }),
                    "another program made the file shorter while it was read");
  }
}

}  // namespace
}  // namespace prism

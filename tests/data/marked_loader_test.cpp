// Batches from shards with marks.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "prism/core/fields.h"
#include "prism/data/loader.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

/// Writes tokens 1, 2, 3, ... over shards of ten, with these marks; none if `marks` is empty.
void put_shards(const std::filesystem::path& folder, int32_t tokens, const std::vector<uint8_t>& marks) {
  constexpr size_t kShard = 10;
  std::vector<int32_t> ids(static_cast<size_t>(tokens));
  std::iota(ids.begin(), ids.end(), 1);
  for (size_t first = 0; first < ids.size(); first += kShard) {
    const auto path = folder / fmt::format("train_{:06}.bin", first / kShard);
    const size_t count = std::min(kShard, ids.size() - first);
    TokenShardWriter writer(path, 1000);
    writer.write(std::span(ids).subspan(first, count));
    writer.commit();
    if (marks.empty()) continue;
    TokenMarksWriter marks_writer(marks_file(path));
    marks_writer.write(std::span(marks).subspan(first, count));
    marks_writer.commit();
  }
}

/// Every third token is the assistant's, every seventh opens a document.
std::vector<uint8_t> made_marks(size_t tokens) {
  std::vector<uint8_t> marks(tokens);
  for (size_t i = 0; i < tokens; ++i)
    marks[i] = static_cast<uint8_t>((i % 3 == 0 ? kAssistantMark : 0) | (i % 7 == 0 ? kOpeningMark : 0));
  return marks;
}

void put_info(const std::filesystem::path& folder, int64_t tokens, std::optional<int64_t> assistant_tokens) {
  DatasetInfo info;
  info.vocab_size = 1000;
  info.train_tokens = tokens;
  info.train_assistant_tokens = assistant_tokens;
  if (assistant_tokens) info.valid_assistant_tokens = 0;
  write_file(folder / kDatasetInfoName, to_text(fields_to_json(info)));
}

TEST(MarkedLoader, HidesLabelsThatAreNotTheAssistantsAndBeginsDocumentsAtMarks) {
  const TemporaryFolder folder;
  const auto marks = made_marks(41);
  put_shards(folder.path(), 41, marks);
  const TokenDataset data(folder.path(), "train");
  ASSERT_TRUE(data.has_marks());
  WindowLoader loader(data, {.context = 8, .rows = 2, .seed = 3, .document_mask = true}, -1);
  for (int i = 0; i < 6; ++i) {
    const Batch batch = loader.next();
    int32_t document = 0;
    for (size_t t = 0; t < batch.tokens.size(); ++t) {
      const auto token =
          static_cast<size_t>(batch.tokens[t]);  // the token at `token` - 1, so its label's place is `token`
      const bool is_label = (marks[token] & kAssistantMark) != 0;
      EXPECT_EQ(batch.labels[t], is_label ? batch.tokens[t] + 1 : -1);
      document = t % 8 == 0 ? 0 : document + ((marks[token - 1] & kOpeningMark) != 0 ? 1 : 0);
      EXPECT_EQ(batch.documents[t], document);
    }
  }
}

TEST(MarkedLoader, GivesTheTokensAndTheOrderOfDataWithoutMarksAndResumesAlike) {
  const TemporaryFolder plain_folder, marked_folder;
  put_shards(plain_folder.path(), 41, {});
  put_shards(marked_folder.path(), 41, made_marks(41));
  const TokenDataset plain_data(plain_folder.path(), "train"), marked_data(marked_folder.path(), "train");
  EXPECT_FALSE(plain_data.has_marks());
  const WindowOptions options{.context = 4, .rows = 3, .seed = 5};
  WindowLoader plain(plain_data, options, -1), marked(marked_data, options, -1), resumed(marked_data, options, -1);
  for (int i = 0; i < 9; ++i) {
    resumed.seek(marked.position());
    const Batch a = plain.next(), b = marked.next(), c = resumed.next();
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(b.tokens, c.tokens);
    EXPECT_EQ(b.labels, c.labels);
    for (size_t t = 0; t < a.tokens.size(); ++t) EXPECT_EQ(a.labels[t], a.tokens[t] + 1);
  }
}

TEST(MarkedLoader, MixesDataWithAndWithoutMarks) {
  const TemporaryFolder plain_folder, marked_folder;
  put_shards(plain_folder.path(), 41, {});
  put_shards(marked_folder.path(), 37, std::vector<uint8_t>(37));  // nothing is the assistant's
  const TokenDataset plain(plain_folder.path(), "train"), marked(marked_folder.path(), "train");
  WindowLoader loader({{&plain, 1.0}, {&marked, 1.0}}, {.context = 4, .rows = 1, .seed = 1}, -1);
  int hidden = 0;
  for (int i = 0; i < 64; ++i) {
    const Batch batch = loader.next();
    const bool is_hidden = batch.labels[0] == -1;
    for (size_t t = 0; t < 4; ++t) EXPECT_EQ(batch.labels[t], is_hidden ? -1 : batch.tokens[t] + 1);
    hidden += is_hidden ? 1 : 0;
  }
  EXPECT_GT(hidden, 10);
  EXPECT_LT(hidden, 54);
}

TEST(MarkedLoader, KnowsOtherMarksByTheFingerprint) {
  const TemporaryFolder folder;
  auto marks = made_marks(41);
  put_shards(folder.path(), 41, marks);
  const uint64_t first = TokenDataset(folder.path(), "train").fingerprint();
  marks[20] ^= kAssistantMark;
  put_shards(folder.path(), 41, marks);
  EXPECT_NE(TokenDataset(folder.path(), "train").fingerprint(), first);
}

TEST(MarkedLoader, RefusesMarksThatContradictTheShardsOrDataJson) {
  const TemporaryFolder folder;
  put_shards(folder.path(), 20, made_marks(20));
  put_info(folder.path(), 20, 7);
  EXPECT_EQ(TokenDataset(folder.path(), "train").info()->train_assistant_tokens, 7);
  put_info(folder.path(), 20, 21);
  EXPECT_REFUSED(TokenDataset(folder.path(), "train"), "expected tokens of the assistant for both splits");
  put_info(folder.path(), 20, std::nullopt);
  EXPECT_FALSE(TokenDataset(folder.path(), "train").has_marks());
  put_info(folder.path(), 20, 7);
  std::filesystem::remove(folder.path() / "train_000001.marks");
  EXPECT_REFUSED(TokenDataset(folder.path(), "train"), "train_000001.marks; found none");
}

}  // namespace
}  // namespace prism

#include "prism/data/labelled/tokenize_labelled.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/data/loader.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/data/byte_tokenizer.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

class LabelledData : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    write_file(folder_.path() / name, text);
    return (folder_.path() / name).string();
  }
  fs::path out() const { return folder_.path() / "out"; }

  LabelledInfo tokenize(const LabelledFiles& files, LabelledOptions options, bool end_of_text = true) const {
    options.force = true;
    return tokenize_labelled(files, byte_tokenizer(end_of_text), out(), options);
  }

  /// Texts of a split with their labels, "label: text", in which | stands for the opening token.
  std::vector<std::string> texts(const std::string& split) const {
    const auto tokenizer = byte_tokenizer();
    const LabelledDataset data(out(), split);
    std::vector<std::string> all;
    for (int64_t i = 0; i < data.size(); ++i) {
      std::string text = data.info().scheme.classes[static_cast<size_t>(data.label(i))] + ": ";
      for (const int32_t token : data.tokens(i)) text += token == kEnd ? "|" : std::string(tokenizer.bytes(token));
      all.push_back(text);
    }
    return all;
  }

  TemporaryFolder folder_;
};

using Texts = std::vector<std::string>;

TEST_F(LabelledData, OpensTextsAndDividesTheirFieldsByEndOfText) {
  const auto train = file("t.jsonl", R"({"premise": "A b.", "hypothesis": "C", "label": "no"}
{"label": "yes", "hypothesis": "E", "premise": "D"}
)");
  const auto info = tokenize(
      {{train}, {}, {}}, {.examples = {.label = "label", .text_fields = {"premise", "hypothesis"}}, .valid_share = 0});
  EXPECT_EQ(texts("train"), (Texts{"no: |A b.|C", "yes: |D|E"}));
  EXPECT_EQ(info.scheme.classes, (Texts{"no", "yes"}));
  EXPECT_EQ(info.scheme.text_fields, (Texts{"premise", "hypothesis"}));
  EXPECT_EQ(info.train_examples, 2);
  EXPECT_EQ(info.train_tokens, 11);
  EXPECT_TRUE(equal_fields(LabelledDataset(out(), "train").info(), info));
  tokenize({{train}, {}, {}}, {.examples = {.label = "label", .text_fields = {"premise"}}, .valid_share = 0}, false);
  EXPECT_EQ(texts("train"), (Texts{"no: A b.", "yes: D"}));
}

TEST_F(LabelledData, ReadsColumnsByNumberAndByName) {
  const auto numbered = file("n.csv", "\"2\",\"Title\",\"One\\nTwo\"\n\"1\",\"\",\"Rest\"\n");
  tokenize({{numbered}, {}, {}}, {.examples = {.label = "1"}, .classes = {"World", "Sports"}, .valid_share = 0});
  EXPECT_EQ(texts("train"), (Texts{"Sports: |Title|One\nTwo", "World: ||Rest"})) << "a written \\n is a line end";
  const auto named = file("m.csv", "text,label\nx,pos\ny,neg\n");
  const auto info = tokenize({{named, named}, {}, {}}, {.examples = {.label = "label"}, .valid_share = 0});
  EXPECT_EQ(texts("train"), (Texts{"pos: |x", "neg: |y", "pos: |x", "neg: |y"})) << "each file has its row of names";
  EXPECT_EQ(info.scheme.text_fields, Texts{"text"});
}

TEST_F(LabelledData, RefusesARowOfNamesAsAnExample) {
  const auto named = file("h.csv", "label,text\n1,a\n2,b\n1,c\n2,d\n");
  const LabelledOptions options{.examples = {.label = "1"}, .valid_share = 0};
  EXPECT_REFUSED(tokenize({{named}, {}, {}}, options), "h.csv, line 1: expected the label of a row; found \"label\"");
  const auto test = file("t.csv", "label,text\n2,e\n");
  EXPECT_REFUSED(tokenize({{named}, {}, {test}}, options), "t.csv, line 1: expected the label of a row");
  const auto rare = file("r.csv", "c,x\na,y\nb,z\n");
  EXPECT_EQ(tokenize({{rare}, {}, {}}, options).train_examples, 3) << "classes of one row each";
  const auto first = file("f.csv", "c,x\na,y\na,z\n");
  EXPECT_REFUSED(tokenize({{first}, {}, {}}, options), "or name all classes with --classes");
  const LabelledOptions all{.examples = {.label = "1"}, .classes = {"a", "c"}, .valid_share = 0};
  EXPECT_EQ(tokenize({{first}, {}, {}}, all).train_examples, 3);
}

TEST_F(LabelledData, ReadsTheSameColumnsEverywhere) {
  const auto rows = file("t.jsonl", R"({"a": "1", "b": "2", "l": "x"}
{"l": "y", "b": "4", "id": "9", "a": "3"}
)");
  const LabelledOptions options{.examples = {.label = "l"}, .valid_share = 0};
  EXPECT_EQ(tokenize({{rows}, {}, {}}, options).scheme.text_fields, (Texts{"a", "b"}));
  EXPECT_EQ(texts("train"), (Texts{"x: |1|2", "y: |3|4"})) << "whatever the order and the other members";
  const auto more = file("u.jsonl", "{\"a\": \"5\", \"l\": \"x\"}\n");
  EXPECT_REFUSED(tokenize({{rows, more}, {}, {}}, options), "u.jsonl, line 1: expected a column \"b\"");
  EXPECT_REFUSED(tokenize({{rows}, {}, {more}}, options), "found a in the test files and a and b in the others");
  const auto twice = file("v.csv", "l,l,a\nx,y,1\n");
  EXPECT_REFUSED(tokenize({{twice}, {}, {}}, options), "expected one column \"l\"; found two");
}

TEST_F(LabelledData, KeepsCopiesOfATextOnOneSide) {
  std::string rows;
  for (int i = 0; i < 1000; ++i) rows += (i % 2 == 0 ? "a,t" : "b,t") + std::to_string(i % 500) + "\n";
  tokenize({{file("t.csv", rows)}, {}, {}}, {.examples = {.label = "1"}, .valid_share = 0.3});
  std::set<std::string> train;
  for (const auto& text : texts("train")) train.insert(text);
  EXPECT_GT(texts("valid").size(), 200u);
  for (const auto& text : texts("valid")) EXPECT_FALSE(train.contains(text)) << text;
}

TEST_F(LabelledData, LeavesOutTrainingTextsOfTheTest) {
  const auto train = file("train.csv", "a,Same text!\nb,other\na,third\n"), test = file("test.csv", "b,same text !\n");
  const auto kept = tokenize({{train}, {}, {test}}, {.examples = {.label = "1"}, .valid_share = 0});
  EXPECT_EQ(kept.dropped_examples, 0);
  const auto dropped = tokenize({{train}, {}, {test}}, {.examples = {.label = "1", .words = true}, .valid_share = 0});
  EXPECT_EQ(dropped.dropped_examples, 1);
  EXPECT_EQ(texts("train"), (Texts{"b: |other", "a: |third"}));
  EXPECT_EQ(texts("test"), (Texts{"b: |same text !"}));
  EXPECT_REFUSED(tokenize({{train}, {}, {train}}, {.examples = {.label = "1"}}), "found 3, all with texts of the test");
}

TEST_F(LabelledData, CountsValidationTextsOfTheTest) {
  const auto train = file("train.csv", "a,one\nb,two\n"), test = file("test.csv", "a,five\nb,six\nb,six\n"),
             valid = file("valid.csv", "b,six\na,seven\na,seven\n");
  EXPECT_EQ(tokenize({{train}, {valid}, {test}}, {.examples = {.label = "1"}}).shared_examples, 1);
  EXPECT_EQ(tokenize({{train}, {valid}, {}}, {.examples = {.label = "1"}}).shared_examples, 0);
}

TEST_F(LabelledData, SaysWhenValidationTookAll) {
  const auto train = file("train.csv", "a,one\nb,two\n");
  EXPECT_REFUSED(tokenize({{train}, {}, {}}, {.examples = {.label = "1"}, .valid_share = 0.9999}),
                 "all were drawn for validation; lower --valid-share");
}

TEST_F(LabelledData, RefusesADamagedDescription) {
  const auto train = file("train.csv", "a,one\nb,two\n");
  tokenize({{train}, {}, {}}, {.examples = {.label = "1"}, .valid_share = 0});
  const Json whole = read_json((out() / kDatasetInfoName).string());
  for (const auto& [field, value, words] : {std::tuple{"vocab_size", Json(-1), "expected a vocabulary"},
                                            {"end_of_text", Json(1000000), "expected a vocabulary"},
                                            {"classes", Json::array({"a"}), "expected at least 2 classes"},
                                            {"train_tokens", Json(-3), "found -3"}}) {
    Json damaged = whole;
    damaged[field] = value;
    write_file(out() / kDatasetInfoName, to_text(damaged));
    EXPECT_REFUSED(LabelledDataset(out(), "train"), words);
  }
  write_file(out() / kDatasetInfoName, "null");
  EXPECT_REFUSED(LabelledDataset(out(), "train"), "expected an object; found null");
}

TEST_F(LabelledData, TakesValidationFromFilesOrByShare) {
  std::string rows;
  for (int i = 0; i < 1000; ++i) rows += (i % 2 == 0 ? "a,t" : "b,t") + std::to_string(i) + "\n";
  const auto train = file("train.csv", rows), valid = file("valid.csv", "a,v\nb,t0\n");
  const LabelledOptions options{.examples = {.label = "1"}, .valid_share = 0.2};
  const auto shared = tokenize({{train}, {}, {}}, options);
  EXPECT_EQ(shared.train_examples + shared.valid_examples, 1000);
  EXPECT_NEAR(static_cast<double>(shared.valid_examples), 200, 40);  // 3 deviations of 12.6
  const auto first = texts("valid");
  auto single = options;
  single.threads = 1;
  tokenize({{train}, {}, {}}, single);
  EXPECT_EQ(texts("valid"), first) << "whatever the number of threads";
  const auto named = tokenize({{train}, {valid}, {}}, options);
  EXPECT_EQ(named.valid_examples, 2);
  EXPECT_EQ(named.dropped_examples, 1) << "t0 is in the validation file";
  EXPECT_EQ(named.train_examples, 999);
}

TEST_F(LabelledData, IsReplacedAsAWhole) {
  const auto train = file("train.csv", "a,x\nb,y\n"), test = file("test.csv", "a,z\n");
  tokenize({{train}, {}, {test}}, {.examples = {.label = "1"}, .valid_share = 0});
  EXPECT_REFUSED(tokenize_labelled({{train}, {}, {}}, byte_tokenizer(), out(), {.examples = {.label = "1"}}),
                 "expected a folder without a dataset");
  EXPECT_REFUSED(tokenize({{train}, {}, {}}, {.examples = {.label = "9"}}), "expected a column 9");
  EXPECT_EQ(texts("test").size(), 1u) << "a refused run leaves the old data";
  tokenize({{train}, {}, {}}, {.examples = {.label = "1"}, .valid_share = 0});
  EXPECT_REFUSED(texts("test"), "expected a split \"test\"");
  EXPECT_REFUSED(TokenDataset(out(), "train"), "found labelled examples");
  EXPECT_REFUSED(read_dataset_info(out()), "found labelled examples");
}

TEST_F(LabelledData, LeavesFilesOfOthersAlone) {
  fs::create_directory(out());
  write_file(out() / "test.safetensors", "mine");
  tokenize({{file("t.csv", "a,x\nb,y\n")}, {}, {}}, {.examples = {.label = "1"}, .valid_share = 0});
  EXPECT_EQ(read_file(out() / "test.safetensors"), "mine");
}

TEST_F(LabelledData, ThatIsWrongIsNamedByFileAndLine) {
  const auto refused = [&](const std::string& text, ExampleOptions options) {
    const auto path = file("rows.csv", text);
    return message_of([&] { tokenize({{path}, {}, {}}, {.examples = std::move(options)}); });
  };
  EXPECT_CONTAINS(refused("a,x\nb,\n", {.label = "1"}), "rows.csv, line 2: expected a text; found none");
  EXPECT_CONTAINS(refused("a,x\nb, \\n\n", {.label = "1"}), "line 2: expected a text");
  EXPECT_CONTAINS(refused("a,x\n,y\n", {.label = "1"}), "line 2: expected a label; found none");
  EXPECT_CONTAINS(refused("a,x\n", {.label = "3"}), "line 1: expected a column 3; found 2 columns");
  EXPECT_CONTAINS(refused("a,x\n", {.label = "kind"}), "line 1: expected a column \"kind\"; found a and x");
  EXPECT_CONTAINS(refused("a,x\n", {.label = "1", .text_fields = {"name"}}), "all by name or all by number");
  EXPECT_CONTAINS(refused("a,x\n", {.label = "1", .text_fields = {"1"}}), "found 1 as both");
  EXPECT_CONTAINS(refused("a,x\n", {.label = "1", .text_fields = {"2", "2"}}), "found 2 twice");
  EXPECT_CONTAINS(refused("", {.label = "1"}), "expected examples to train on; found none");
  EXPECT_CONTAINS(refused("a\n", {.label = "1"}), "expected columns beside the label; found one column");
  EXPECT_CONTAINS(refused("a,x\n", {.label = "0"}), "expected numbers of columns from 1; found 0");
  EXPECT_CONTAINS(refused("a,x\n", {.label = "1", .text_fields = {"01"}}), "found 01 as both");
  EXPECT_CONTAINS(refused("a,x\n", {.label = "1", .text_fields = {"2", " 02"}}), "found 02 twice");
  const auto empty = file("empty.csv", "\n"), good = file("good.csv", "a,x\nb,y\n");
  EXPECT_CONTAINS(message_of([&] {
                    tokenize({{good}, {empty}, {}}, {.examples = {.label = "1"}});
                  }),
                  "expected validation examples in");
  EXPECT_CONTAINS(message_of([&] {
                    tokenize({{good}, {}, {empty}}, {.examples = {.label = "1"}});
                  }),
                  "expected test examples in");
  EXPECT_CONTAINS(message_of([&] { tokenize({{"-"}, {"-"}, {}}, {.examples = {.label = "1"}}); }), "found - 2 times");
  EXPECT_CONTAINS(message_of([&] {
                    tokenize({{file("r.jsonl", "{}\n")}, {}, {}}, {.examples = {.label = "1"}});
                  }),
                  "expected names of members");
  EXPECT_CONTAINS(message_of([&] {
                    tokenize({{folder_.path().string()}, {}, {}}, {.examples = {.label = "1"}});
                  }),
                  "found the folder");
  EXPECT_CONTAINS(message_of([&] { tokenize({{"no.csv"}, {}, {}}, {.examples = {.label = "1"}}); }), "found no file");
  EXPECT_FALSE(fs::exists(out())) << "nothing is left behind";
}

TEST_F(LabelledData, ThatIsDamagedIsRefused) {
  const auto write = [&](std::vector<int32_t> tokens, std::vector<int64_t> offsets, std::vector<int32_t> labels) {
    tokenize({{file("t.csv", "a,xy\nb,z\n")}, {}, {}}, {.examples = {.label = "1"}, .valid_share = 0});
    const auto size = [](const auto& list) { return std::vector{static_cast<int64_t>(list.size())}; };
    SafetensorsWriter writer(labelled_file(out(), "train"), {{"tokens", ElementType::i32, size(tokens), {}},
                                                             {"offsets", ElementType::i64, size(offsets), {}},
                                                             {"labels", ElementType::i32, size(labels), {}}});
    writer.write(std::as_bytes(std::span(tokens)));
    writer.write(std::as_bytes(std::span(offsets)));
    writer.write(std::as_bytes(std::span(labels)));
    writer.commit();
    return message_of([&] { LabelledDataset(out(), "train"); });
  };
  EXPECT_EQ(write({256, 1, 2, 256, 3}, {0, 3, 5}, {0, 1}), "");
  EXPECT_CONTAINS(write({256, 1, 2, 256, 3}, {0, 3, 4}, {0, 1}), "rising offsets");
  EXPECT_CONTAINS(write({256, 1, 2, 256, 3}, {0, 6, 5}, {0, 1}), "rising offsets");
  EXPECT_CONTAINS(write({256, 1, 2, 256, 3}, {0, 0, 5}, {0, 1}), "rising offsets");
  EXPECT_CONTAINS(write({256, 1, 2, 256, 3}, {1, 3, 5}, {0, 1}), "rising offsets");
  EXPECT_CONTAINS(write({256, 1, 2, 256, 3}, {0, 5}, {0, 1}), "rising offsets");
  EXPECT_CONTAINS(write({}, {}, {}), "rising offsets");
  EXPECT_CONTAINS(write({256, 1, 2, 256, 3}, {0, 3, 5}, {0, 2}), "labels of the classes");
  EXPECT_CONTAINS(write({256, 1, 2, 256, 3}, {0, 3, 5}, {-1, 0}), "labels of the classes");
  EXPECT_CONTAINS(write({256, 1, 2, 257, 3}, {0, 3, 5}, {0, 1}), "tokens of the vocabulary");
  EXPECT_CONTAINS(write({256, 1, 2}, {0, 3}, {0}), "as many examples as in data.json");
}

TEST_F(LabelledData, FromElsewhereIsRefused) {
  EXPECT_REFUSED(LabelledDataset(folder_.path(), "train"), "found no data.json");
  write_file(folder_.path() / kDatasetInfoName, to_text(fields_to_json(DatasetInfo())));
  EXPECT_REFUSED(LabelledDataset(folder_.path(), "train"), "found token shards");
}

}  // namespace
}  // namespace prism

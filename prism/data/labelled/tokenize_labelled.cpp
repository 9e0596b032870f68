#include "prism/data/labelled/tokenize_labelled.h"

#include <array>
#include <unordered_map>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/core/machine.h"
#include "prism/core/random.h"
#include "prism/core/stop.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/data/labelled/classes.h"
#include "prism/data/ordered_pipeline.h"
#include "prism/data/staged_folder.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

/// Texts are encoded in portions of about this size, to make passing them between threads cheap.
constexpr size_t kPortionBytes = 1 << 18;

enum Split : size_t { kTest, kValid, kTrain, kSplits };
constexpr std::array<const char*, kSplits> kSplitNames = {"test", "valid", "train"};

struct Encoded {
  Example example;
  Split split = kTrain;
  std::vector<int32_t> tokens;
};

struct Portion {
  std::vector<Encoded> examples;
  int64_t bytes_read = 0;
};

/// Reads the test files, then those for validation, then those to train on, so that texts to leave out are known first.
class SplitsReader {
 public:
  SplitsReader(const LabelledFiles& files, const ExampleOptions& options)
      : sources_{ExampleSource(files.test, options), ExampleSource(files.valid, options),
                 ExampleSource(files.train, options)} {}

  std::optional<Portion> next() {
    Portion portion;
    for (size_t bytes = 0; bytes < kPortionBytes && split_ < kSplits;) {
      auto example = sources_[split_].next();
      if (!example) {
        ++split_;
        continue;
      }
      for (const auto& text : example->texts) bytes += text.size();
      portion.examples.push_back({std::move(*example), static_cast<Split>(split_), {}});
    }
    for (const auto& source : sources_) portion.bytes_read += source.consumed();
    if (portion.examples.empty()) return std::nullopt;
    return portion;
  }

  /// The columns of the texts, which are the same in all splits.
  const std::vector<std::string>& text_fields() const {
    const auto& fields = sources_[kTrain].text_fields();
    for (const size_t split : {kTest, kValid}) {
      const auto& others = sources_[split].text_fields();
      PRISM_CHECK(others.empty() || fields.empty() || others == fields, "tokenize",
                  "expected the same columns in all files; found {} in the {} files and {} in the others; give "
                  "--text-fields.",
                  short_line(join_names(others), 100), kSplitNames[split], short_line(join_names(fields), 100));
    }
    return fields;
  }

 private:
  std::array<ExampleSource, kSplits> sources_;
  size_t split_ = 0;
};

/// Collects the examples of all splits in memory; their labels become classes when all are known.
class Collector {
 public:
  /// @param draws  whether training examples are drawn for validation.
  Collector(const LabelledOptions& options, bool draws) : options_(options), draws_(draws) {}

  void add(const Encoded& encoded) {
    Split split = encoded.split;
    std::string text;
    for (const auto& part : encoded.example.texts) text.append(part).push_back('\0');
    if (split != kTrain) {
      const auto [held_out, is_new] = held_out_.try_emplace(std::move(text), split);
      shared_ += static_cast<int64_t>(!is_new && split == kValid && held_out->second == kTest);
    } else if (held_out_.contains(text)) {
      ++dropped_;
      return;
    } else if (draws_ && goes_to_valid(text)) {
      split = kValid;
    }
    auto& examples = splits_[split];
    examples.labels.push_back(label_id(encoded.example, encoded.split == kTrain));
    examples.tokens.insert(examples.tokens.end(), encoded.tokens.begin(), encoded.tokens.end());
    examples.offsets.push_back(static_cast<int64_t>(examples.tokens.size()));
  }

  int64_t examples() const {
    int64_t count = 0;
    for (const auto& split : splits_) count += static_cast<int64_t>(split.labels.size());
    return count;
  }
  int64_t tokens() const {
    int64_t count = 0;
    for (const auto& split : splits_) count += static_cast<int64_t>(split.tokens.size());
    return count;
  }

  /// Writes the files of all splits that have examples. @param info  receives the classes and counts.
  void write(const fs::path& folder, LabelledInfo& info) {
    PRISM_CHECK(
        !splits_[kTrain].labels.empty() || splits_[kValid].labels.empty() || !draws_, "tokenize",
        "expected examples to train on; found none, because all were drawn for validation; lower --valid-share.");
    PRISM_CHECK(!splits_[kTrain].labels.empty(), "tokenize", "expected examples to train on; found {}; give others.",
                dropped_ == 0 ? "none" : fmt::format("{}, all with texts of the test or validation files", dropped_));
    const auto map = map_classes(labels_, options_.classes);
    info.scheme.classes = map.names;
    info.dropped_examples = dropped_;
    info.shared_examples = shared_;
    const std::array<std::pair<int64_t*, int64_t*>, kSplits> counts = {
        std::pair{&info.test_examples, &info.test_tokens},
        {&info.valid_examples, &info.valid_tokens},
        {&info.train_examples, &info.train_tokens}};
    for (const size_t split : {kTest, kValid, kTrain}) {
      auto& examples = splits_[split];
      *counts[split].first = static_cast<int64_t>(examples.labels.size());
      *counts[split].second = static_cast<int64_t>(examples.tokens.size());
      if (examples.labels.empty()) continue;
      for (auto& label : examples.labels) label = map.class_of_label[static_cast<size_t>(label)];
      write_split(labelled_file(folder, kSplitNames[split]), examples);
    }
  }

 private:
  struct Examples {
    std::vector<int32_t> tokens, labels;  ///< labels are indices into labels_ until they are mapped
    std::vector<int64_t> offsets = {0};
  };

  bool goes_to_valid(const std::string& text) const {
    const uint64_t hash = hash_bytes(std::as_bytes(std::span(text)));
    return Random(static_cast<uint64_t>(options_.seed), hash).uniform() < options_.valid_share;
  }

  int32_t label_id(const Example& example, bool in_training) {
    const auto [found, is_new] = label_ids_.try_emplace(example.label, static_cast<int32_t>(labels_.size()));
    if (is_new) labels_.push_back({.text = example.label, .place = example.place, .rows = 0});
    auto& label = labels_[static_cast<size_t>(found->second)];
    label.rows += static_cast<int64_t>(!example.may_be_header);
    label.in_training = label.in_training || in_training;
    return found->second;
  }

  static void write_split(const fs::path& file, const Examples& examples) {
    const auto size = [](const auto& list) { return std::vector{static_cast<int64_t>(list.size())}; };
    SafetensorsWriter writer(file, {{kTokensName, ElementType::i32, size(examples.tokens), {}},
                                    {kOffsetsName, ElementType::i64, size(examples.offsets), {}},
                                    {kLabelsName, ElementType::i32, size(examples.labels), {}}});
    writer.write(std::as_bytes(std::span(examples.tokens)));
    writer.write(std::as_bytes(std::span(examples.offsets)));
    writer.write(std::as_bytes(std::span(examples.labels)));
    writer.commit();
  }

  const LabelledOptions& options_;
  bool draws_;
  std::array<Examples, kSplits> splits_;
  std::vector<FoundLabel> labels_;
  std::unordered_map<std::string, int32_t> label_ids_;
  std::unordered_map<std::string, Split> held_out_;  ///< texts of the test and validation files, with the first split
  int64_t dropped_ = 0, shared_ = 0;
};

/// Total size on disk; 0 if standard input is one of the files.
int64_t bytes_of(const LabelledFiles& files) {
  int64_t bytes = 0, inputs = 0;
  for (const auto* list : {&files.train, &files.valid, &files.test})
    for (const auto& file : *list) {
      inputs += static_cast<int64_t>(file == "-");
      if (file == "-") continue;
      PRISM_CHECK(is_there(file) && !fs::is_directory(file), "tokenize",
                  "expected files of labelled rows; found {} {}; name .csv or .jsonl files.",
                  is_there(file) ? "the folder" : "no file", plain_line(file));
      std::error_code unknown;
      const auto size = fs::file_size(file, unknown);
      if (!unknown) bytes += static_cast<int64_t>(size);
    }
  PRISM_CHECK(inputs <= 1, "tokenize", "expected standard input once; found - {} times; name files.", inputs);
  return inputs > 0 ? 0 : bytes;
}

/// Refuses files from which no example came.
void check_files(const std::vector<std::string>& files, const char* split, int64_t examples) {
  PRISM_CHECK(files.empty() || examples > 0, "tokenize",
              "expected {} examples in {}; found none; name files with rows.", split,
              short_line(join_names(files), 100));
}

}  // namespace

std::vector<int32_t> encode_texts(const std::vector<std::string>& texts, const Tokenizer& tokenizer) {
  std::vector<int32_t> tokens;
  for (const auto& text : texts) {
    if (const auto opening = tokenizer.special_ids().opening) tokens.push_back(*opening);
    const auto ids = tokenizer.encode(text, SpecialTokens::as_text);
    tokens.insert(tokens.end(), ids.begin(), ids.end());
  }
  return tokens;
}

LabelledInfo tokenize_labelled(const LabelledFiles& files, const Tokenizer& tokenizer, const fs::path& out,
                               const LabelledOptions& options,
                               const std::function<void(const TokenizeProgress&)>& on_progress) {
  PRISM_CHECK(!files.train.empty(), "tokenize", "expected at least one file of labelled rows; found none; name one.");
  PRISM_CHECK(options.valid_share >= 0 && options.valid_share < 1, "tokenize",
              "expected a validation share from 0 to below 1; found {}; change it.", options.valid_share);
  PRISM_CHECK(!options.examples.label.empty(), "tokenize", "expected a column for --label; found none; name one.");
  PRISM_CHECK(options.examples.format != "txt", "tokenize",
              "expected the format csv, jsonl or auto with a label; found \"txt\"; choose one of them.");
  const int64_t bytes_total = bytes_of(files);
  SplitsReader reader(files, options.examples);
  check_tokenizer_there(out, tokenizer, options.force);
  StagedFolder folder(out, options.force);
  LabelledInfo info;
  info.vocab_size = tokenizer.vocab_size();
  info.end_of_text = tokenizer.special_ids().opening.value_or(-1);
  info.tokenizer_fingerprint = tokenizer.fingerprint_text();
  info.scheme.words = options.examples.words;
  info.seed = options.seed;
  info.valid_share = files.valid.empty() ? options.valid_share : 0;
  Collector collector(options, files.valid.empty());
  {
    const auto encode = [&](Portion& portion) {
      for (auto& encoded : portion.examples) encoded.tokens = encode_texts(encoded.example.texts, tokenizer);
    };
    OrderedPipeline<Portion> pipeline([&] { return reader.next(); }, encode, thread_limit(options.threads).threads);
    while (const std::optional<Portion> portion = pipeline.next()) {
      if (stop_signal() != 0) throw FailedError("tokenize", "stopped by a signal; nothing was written.");
      for (const auto& encoded : portion->examples) collector.add(encoded);
      if (on_progress) on_progress({portion->bytes_read, bytes_total, collector.examples(), collector.tokens()});
    }
  }
  info.scheme.text_fields = reader.text_fields();
  collector.write(folder.staging(), info);
  check_files(files.valid, "validation", info.valid_examples);
  check_files(files.test, "test", info.test_examples);
  save_tokenizer(tokenizer, folder.staging());
  write_file(folder.staging() / kDatasetInfoName, to_text(fields_to_json(info), 2) + "\n");
  folder.publish();
  return info;
}

}  // namespace prism

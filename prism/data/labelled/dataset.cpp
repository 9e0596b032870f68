#include "prism/data/labelled/dataset.h"

#include <algorithm>
#include <cstring>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/core/random.h"
#include "prism/core/text/printable.h"
#include "prism/data/loader.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

/// A copy of a list in a file, since data in the file may be unaligned.
template <class T>
std::vector<T> read_list(const SafetensorsReader& reader, const char* name, ElementType type) {
  const auto& entry = reader.find(name);
  PRISM_CHECK(entry.type == type && entry.shape.size() == 1, "dataset",
              "{}: expected {} as a list in {}; found {} with {} dimensions; make the data again.",
              reader.path().string(), name, element_type_name(type), element_type_name(entry.type), entry.shape.size());
  std::vector<T> values(entry.data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), entry.data.data(), entry.data.size());
  return values;
}

template <class T>
uint64_t hash_of(const std::vector<T>& values) {
  return hash_bytes(std::as_bytes(std::span(values)));
}

}  // namespace

void check(const LabelScheme& scheme, const fs::path& file) {
  for (const auto* names : {&scheme.classes, &scheme.text_fields})
    for (auto name = names->begin(); name != names->end(); ++name) {
      PRISM_CHECK(!name->empty(), "dataset",
                  "{}: expected names of classes and columns; found an empty one; restore the file.", file.string());
      PRISM_CHECK(std::find(names->begin(), name, *name) == name, "dataset",
                  "{}: expected each class and column once; found \"{}\" twice; restore the file.", file.string(),
                  plain_line(*name));
    }
}

LabelledInfo read_labelled_info(const fs::path& folder) {
  const fs::path file = folder / kDatasetInfoName;
  PRISM_CHECK(!fs::exists(folder / kUnfinishedName), "dataset",
              "expected a complete dataset in {}; found one whose files were not all moved to their places; run prism "
              "tokenize again with --force.",
              folder.string());
  PRISM_CHECK(is_there(file), "dataset",
              "expected labelled examples in {}; found no {}; make them with prism tokenize --label.", folder.string(),
              kDatasetInfoName);
  const Json json = read_json(file.string());
  PRISM_CHECK(json.is_object(), "dataset", "{}: expected an object; found {}; make the data again.", file.string(),
              json.type_name());
  PRISM_CHECK(json.contains("classes"), "dataset",
              "expected labelled examples in {}; found token shards; make examples with prism tokenize --label.",
              folder.string());
  auto info = fields_from_json<LabelledInfo>(json, file.string());
  PRISM_CHECK(info.prism_format == 1, "dataset", "{}: expected prism_format 1; found {}; use the prism that wrote it.",
              file.string(), info.prism_format);
  check(info.scheme, file);
  PRISM_CHECK(info.scheme.classes.size() >= 2, "dataset",
              "{}: expected at least 2 classes; found {}; make the data again.", file.string(),
              info.scheme.classes.size());
  check_numbers(file, info.vocab_size, info.end_of_text,
                {info.train_examples, info.valid_examples, info.test_examples, info.train_tokens, info.valid_tokens,
                 info.test_tokens, info.dropped_examples, info.shared_examples});
  return info;
}

fs::path labelled_file(const fs::path& folder, const std::string& split) {
  return folder / (split + ".safetensors");
}

bool is_labelled(const fs::path& folder) {
  const fs::path file = folder / kDatasetInfoName;
  try {
    return is_there(file) && read_json(file.string()).contains("classes");
  } catch (const Error&) {
    return false;
  }
}

LabelledDataset::LabelledDataset(const fs::path& folder, const std::string& split)
    : folder_(folder), info_(read_labelled_info(folder)) {
  PRISM_CHECK(split == "train" || split == "valid" || split == "test", "dataset",
              "expected the split train, valid or test; found \"{}\"; choose one of them.", plain_line(split));
  const fs::path file = labelled_file(folder, split);
  PRISM_CHECK(is_there(file), "dataset",
              "expected a split \"{}\" in {}; found none; name another, or make the data again with its files.", split,
              folder.string());
  const SafetensorsReader reader(file);
  tokens_ = read_list<int32_t>(reader, kTokensName, ElementType::i32);
  offsets_ = read_list<int64_t>(reader, kOffsetsName, ElementType::i64);
  labels_ = read_list<int32_t>(reader, kLabelsName, ElementType::i32);
  reader.check_whole();
  const auto check = [&](bool is_right, const char* what) {
    PRISM_CHECK(is_right, "dataset",
                "{}: expected {}; found other values; make the data again, because the file is damaged.", file.string(),
                what);
  };
  const auto is_below = [](int64_t most) { return [most](int32_t value) { return value >= 0 && value < most; }; };
  check(offsets_.size() == labels_.size() + 1 && offsets_.front() == 0 &&
            offsets_.back() == static_cast<int64_t>(tokens_.size()) &&
            std::adjacent_find(offsets_.begin(), offsets_.end(), std::greater_equal<>()) == offsets_.end(),
        "rising offsets that span all tokens, one more than labels");
  check(std::all_of(labels_.begin(), labels_.end(), is_below(static_cast<int64_t>(info_.scheme.classes.size()))),
        "labels of the classes in data.json");
  check(std::all_of(tokens_.begin(), tokens_.end(), is_below(info_.vocab_size)), "tokens of the vocabulary");
  const int64_t expected = split == "train"   ? info_.train_examples
                           : split == "valid" ? info_.valid_examples
                                              : info_.test_examples;
  check(size() == expected, "as many examples as in data.json");
}

uint64_t LabelledDataset::fingerprint() const {
  uint64_t hash = mix64(hash_of(tokens_) ^ mix64(hash_of(offsets_) ^ mix64(hash_of(labels_))));
  for (const auto& name : info_.scheme.classes) hash = mix64(hash ^ hash_bytes(std::as_bytes(std::span(name))));
  return hash;
}

}  // namespace prism

#include "prism/cli/labelled_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/progress.h"
#include "prism/core/statistics.h"
#include "prism/core/text/blanks.h"
#include "prism/core/text/counted.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/core/text/utf8.h"
#include "prism/data/labelled/examples.h"

namespace prism {
namespace {

/// Returns true if a model without classes.json would have these names: 0, 1, ...
bool are_numbers(const std::vector<std::string>& classes) {
  for (size_t i = 0; i < classes.size(); ++i)
    if (classes[i] != std::to_string(i)) return false;
  return true;
}

/// Checks that a model was made for such data.
void check_fits(const ClassifierFolder& model, const LabelledDataset& data, const std::string& operation) {
  const auto& classes = data.info().scheme.classes;
  const auto described = [](const std::vector<std::string>& names) {
    return fmt::format("{} ({})", names.size(), short_line(join_names(names), 100));
  };
  const bool knows_fields = !model.scheme.text_fields.empty();
  const bool is_named = knows_fields || !are_numbers(model.scheme.classes);
  PRISM_CHECK(is_named ? classes == model.scheme.classes : classes.size() == model.scheme.classes.size(), operation,
              "expected examples of the model's classes, {}; found {} in {}; tokenize the texts with --classes.",
              described(model.scheme.classes), described(classes), data.folder().string());
  PRISM_CHECK(!model.tokenizer || model.tokenizer->fingerprint_text() == data.info().tokenizer_fingerprint, operation,
              "expected examples made with the model's tokenizer, {}; found {} in {}; tokenize the texts with it.",
              model.tokenizer->fingerprint_text(), data.info().tokenizer_fingerprint, data.folder().string());
  PRISM_CHECK(data.info().vocab_size <= model.classifier->config().vocab_size, operation,
              "expected tokens of the model's vocabulary, {}; found a vocabulary of {} in {}; tokenize the texts with "
              "the model's tokenizer.",
              model.classifier->config().vocab_size, data.info().vocab_size, data.folder().string());
  if (!knows_fields) return;
  PRISM_CHECK(
      data.info().scheme.text_fields.size() == model.scheme.text_fields.size(), operation,
      "expected texts of {} fields, as in the model's training ({}); found {} ({}) in {}; tokenize the texts with "
      "--text-fields.",
      model.scheme.text_fields.size(), join_names(model.scheme.text_fields), data.info().scheme.text_fields.size(),
      join_names(data.info().scheme.text_fields), data.folder().string());
  PRISM_CHECK(
      data.info().scheme.words == model.scheme.words, operation,
      "expected texts read like the model's training texts; found data made {} --words in {}; tokenize the texts "
      "{} it.",
      data.info().scheme.words ? "with" : "without", data.folder().string(), model.scheme.words ? "with" : "without");
}

}  // namespace

ClassifierFolder load_classifier_for(const LabelledDataset& data, const std::string& name,
                                     const ComputeOptions& compute, const std::string& operation) {
  ClassifierFolder model = load_classifier(name, compute);
  check_fits(model, data, operation);
  return model;
}

void check_has_tokenizer(const ClassifierFolder& model, const std::string& operation) {
  PRISM_CHECK(
      model.tokenizer.has_value(), operation,
      "expected a tokenizer.json in {}; found none; copy the tokenizer.json that the model was trained with there.",
      model.folder.string());
}

LabelledExamples label_all(const ClassifierFolder& model, const LabelledDataset& data, const LabelOptions& options,
                           const std::string& operation) {
  std::optional<Progress> progress;
  auto labelled = label_examples(model.classifier, data, options, [&](int64_t done, int64_t total) {
    if (!progress) progress.emplace(operation, total, " examples");
    progress->update(done, "");
  });
  progress.reset();
  if (!labelled) throw FailedError(operation, "expected to label all examples; stopped by a signal; run it again.");
  if (!std::isfinite(mean_of(labelled->nats)))
    throw FailedError(operation,
                      fmt::format("expected a finite loss of {}; found NaN or infinity; name an earlier checkpoint.",
                                  model.folder.string()));
  return std::move(*labelled);
}

void tell_cut(int64_t cut, int64_t texts, const ClassifierFolder& model) {
  if (cut == 0) return;
  const bool one = cut == 1;
  tell("note: {} of {} {} longer than the model's context, {} tokens, and lost {} end\n", cut, counted(texts, "text"),
       one ? "is" : "are", model.classifier->config().context, one ? "its" : "their");
}

size_t text_fields_of(const LabelScheme& scheme) {
  return std::max<size_t>(1, scheme.text_fields.size());
}

void check_utf8(const std::string& text, const std::string& operation) {
  const size_t fault = find_invalid_utf8(text);
  PRISM_CHECK(fault == std::string::npos, operation,
              "--text: expected text in UTF-8; found byte 0x{:02X} at byte offset {}; correct it.",
              static_cast<uint8_t>(text[fault]), fault);
}

std::vector<std::string> read_text_fields(const std::vector<std::string>& given, const LabelScheme& scheme,
                                          const std::string& operation) {
  const size_t expected = text_fields_of(scheme);
  PRISM_CHECK(given.size() == expected || !scheme.text_fields.empty(), operation,
              "expected one --text, because the model's folder does not say that its texts have several fields; found "
              "{}; put the words in one.",
              given.size());
  PRISM_CHECK(given.size() == expected, operation,
              "expected {} --text, one for each field of the model's texts ({}); found {}; give as many.", expected,
              join_names(scheme.text_fields), given.size());
  std::vector<std::string> texts;
  const WordText as_words;
  bool all_blank = true;
  for (const auto& text : given) {
    check_utf8(text, operation);
    all_blank = all_blank && is_blank(text);
    const std::string read = with_line_ends(text);
    texts.push_back(scheme.words ? as_words(read) : read);
  }
  PRISM_CHECK(!all_blank, operation, "--text: expected a text; found only blanks; give one.");
  return texts;
}

}  // namespace prism

#include "prism/cli/analysis/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "prism/analysis/activations.h"
#include "prism/cli/command.h"
#include "prism/cli/labelled_reading.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/progress.h"
#include "prism/core/stop.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/data/labelled/tokenize_labelled.h"
#include "prism/data/text_source.h"
#include "prism/report/draw/number_text.h"
#include "prism/training/recipe.h"

namespace prism {
namespace {

/// The token that opens every document, if the tokenizer has one.
std::vector<int64_t> opening_of(const Tokenizer& tokenizer) {
  const auto opening = tokenizer.special_ids().opening;
  return opening ? std::vector<int64_t>{*opening} : std::vector<int64_t>();
}

void append_tokens(std::vector<int64_t>& ids, const Tokenizer& tokenizer, const std::string& text) {
  const auto more = tokenizer.encode(text, SpecialTokens::as_text);
  ids.insert(ids.end(), more.begin(), more.end());
}

/// Returns true if the model belongs to a run that was trained with data.document_mask. Other model folders do not
/// record it.
bool trained_with_document_mask(const std::string& model) {
  const auto recipe = find_run_recipe(find_model_folder(model));
  return recipe && recipe->data.document_mask;
}

/// The given one of --document-mask and --no-document-mask; empty if none is.
std::string mask_option(const ReadingWords& words) {
  if (!words.document_mask) return "";
  return *words.document_mask ? "--document-mask" : "--no-document-mask";
}

/// The first given option that applies to --data alone; empty if none is.
std::string option_of_data(const ReadingWords& words) {
  return words.split ? "--split" : words.sequences ? "--sequences" : mask_option(words);
}

/// The first `most` tokens of a text, with the token that opens it.
std::vector<int64_t> first_tokens(TextSource& source, const Tokenizer& tokenizer, int64_t most) {
  std::vector<int64_t> ids = opening_of(tokenizer);
  const auto opening = ids.size();
  while (static_cast<int64_t>(ids.size()) < most) {
    const auto piece = source.next();
    if (!piece) break;
    append_tokens(ids, tokenizer, piece->text);
  }
  if (ids.size() == opening) ids.clear();
  ids.resize(std::min(ids.size(), static_cast<size_t>(most)));
  return ids;
}

}  // namespace

void add_invalid_utf8_option(CLI::App& app, std::string& invalid_utf8) {
  app.add_option("--invalid-utf8", invalid_utf8,
                 "what to do with text that is not UTF-8: error, keep (its bytes) or replace (by U+FFFD)")
      ->capture_default_str();
}

void add_document_mask_option(CLI::App& app, std::optional<bool>& document_mask) {
  app.add_flag_function(
      "--document-mask,!--no-document-mask", [&](int64_t count) { document_mask = count > 0; },
      "whether attention in --data stops at document boundaries; default: as the run was trained");
}

void add_reading_options(CLI::App& app, ReadingWords& words, bool with_data, bool with_weights) {
  words.takes_data = with_data;
  app.add_option("MODEL", words.model, kModelHelp)->required();
  app.add_option(
      "FILE", words.file,
      "a text file, whose beginning is read; language models only (.jsonl: the field named text in each row; any "
      "other ending: plain text)");
  app.add_option("--text", words.texts,
                 "the text itself; the model reads all of it; for classifiers, one --text for each field")
      ->allow_extra_args(false)
      ->type_name("TEXT");
  if (with_data) {
    app.add_option(
           "--data", words.data,
           "token shards made by prism tokenize, or for classifiers labelled examples; the model reads the first "
           "windows or examples")
        ->type_name("FOLDER");
    app.add_option("--split", words.split, "which part of --data: valid, train, or for classifiers test")
        ->default_str("valid");
    app.add_option("--sequences", words.sequences, "number of windows or examples of --data; all if there are fewer")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
        ->default_str("16");
    add_document_mask_option(app, words.document_mask);
  }
  app.add_option("--tokens", words.tokens,
                 with_data ? "with FILE: tokens of it to read; with --data: tokens per window; 0: the model's context"
                           : "tokens of FILE to read; 0: the model's context")
      ->capture_default_str();
  add_invalid_utf8_option(app, words.invalid_utf8);
  if (with_weights) add_weights_option(app, words.compute);
  add_compute_options(app, words.compute);
}

void check_tokenizer(const TokenDataset& data, const std::string& model, const std::string& fingerprint) {
  const bool has_tokenizer = is_there(data.folder() / kTokenizerName);
  if (!data.info() && !has_tokenizer) return;  // shards of another program: nothing is known of their tokenizer
  const std::string found =
      data.info() ? data.info()->tokenizer_fingerprint : Tokenizer::load(data.folder()).fingerprint_text();
  PRISM_CHECK(
      found == fingerprint, "analyse",
      "expected shards made with the tokenizer of {} ({}); found those of another tokenizer ({}) in {}; make them with "
      "prism tokenize --tokenizer {}.",
      model, fingerprint, found, data.folder().string(), shell_word(find_model_folder(model).string()));
}

std::unique_ptr<TokenDataset> open_shards(const std::string& folder, const std::string& split) {
  const bool is_usual = split == "valid" || split == "train";
  PRISM_CHECK(
      is_usual || !std::filesystem::is_directory(folder) || is_labelled(folder) || !find_shards(folder, split).empty(),
      "analyse", "--split: expected valid or train for a language model; found \"{}\"; choose one of them.", split);
  return std::make_unique<TokenDataset>(folder, split);
}

std::string describe_shards(const std::string& folder, const std::string& split, bool document_mask) {
  return fmt::format("{} ({}){}", folder, split, document_mask ? ", attention within documents" : "");
}

std::string describe_reading(const std::string& source, int64_t sequences, int64_t tokens) {
  return fmt::format("{}, {} sequence{} of {} tokens", source, grouped(sequences), sequences == 1 ? "" : "s",
                     grouped(tokens));
}

std::string describe_examples(const std::string& folder, const std::string& split, int64_t examples) {
  return fmt::format("{} ({}), {} example{}", folder, split, grouped(examples), examples == 1 ? "" : "s");
}

Reading::Reading(const ReadingWords& words) {
  const int given = static_cast<int>(!words.file.empty()) + static_cast<int>(!words.texts.empty()) +
                    static_cast<int>(!words.data.empty());
  PRISM_CHECK(given == 1, "analyse", "expected one text for the model to read: {}; found {}; {}.",
              words.takes_data ? "FILE, --text or --data" : "FILE or --text", given == 0 ? "none" : "several",
              given == 0 ? "name one" : "keep one of them");
  const std::string data_option = option_of_data(words);
  PRISM_CHECK(!words.data.empty() || data_option.empty(), "analyse",
              "expected {} only with --data; found it with {}; leave it out.", data_option,
              words.texts.empty() ? "FILE" : "--text");
  start_compute(words.compute.threads, words.compute.device);
  catch_stop_signals();
  load_config(words.model).classes > 0 ? open_classifier(words) : open_language_model(words);
  check_finite();
}

Trunk& Reading::model() const {
  return classifier_ ? static_cast<Trunk&>(*classifier_->classifier) : *language_model_->decoder;
}

void Reading::open_language_model(const ReadingWords& words) {
  language_model_ = load_model_with_tokenizer(words.model, words.compute, "analyse");
  const int64_t context = config().context;
  tokens_ = words.tokens == 0 ? context : words.tokens;
  PRISM_CHECK(tokens_ >= 1 && tokens_ <= context, "analyse",
              "--tokens: expected 1 to {}, the model's context; found {}; change it.", context, tokens_);
  PRISM_CHECK(words.texts.size() <= 1, "analyse",
              "expected one --text for a language model; found {}; put the words in one.", words.texts.size());
  words.data.empty() ? read_text(words) : open_data(words);
}

void Reading::open_classifier(const ReadingWords& words) {
  PRISM_CHECK(words.file.empty(), "analyse",
              "expected {} for a classifier; found the text file {}; leave it out, or give its words with --text.",
              words.takes_data ? "--text or --data" : "--text", words.file);
  PRISM_CHECK(words.tokens == 0 && !words.document_mask, "analyse",
              "{} applies to language models; found a classifier in {}; leave it out.",
              words.tokens != 0 ? "--tokens" : mask_option(words), words.model);
  if (words.data.empty()) {
    classifier_ = load_classifier(words.model, words.compute);
    check_has_tokenizer(*classifier_, "analyse");
    const auto texts = read_text_fields(words.texts, classifier_->scheme, "analyse");
    source_ = fmt::format("\"{}\"", plain_line(join_names(texts)));
    for (const int32_t id : encode_texts(texts, *classifier_->tokenizer)) ids_.push_back(id);
    ids_.resize(std::min(ids_.size(), static_cast<size_t>(config().context)));
    tokens_ = static_cast<int64_t>(ids_.size());
    return;
  }
  source_ = words.data;
  split_ = words.split.value_or("valid");
  examples_ = std::make_unique<LabelledDataset>(source_, split_);
  classifier_ = load_classifier_for(*examples_, words.model, words.compute, "analyse");
  check_has_tokenizer(*classifier_, "analyse");
  sequences_ = std::min(words.sequences.value_or(16), examples_->size());
}

void Reading::check_finite() {
  constexpr int64_t kMostLookedAt = 512;  // a few tokens are enough to find damaged weights
  std::string place;
  const auto look = [&](Pass& pass) {
    if (!place.empty()) return;
    place = place_in_forward(config().layers.size(), [&](Probe& probe) {
      pass.context.probe = &probe;
      const auto hidden = model().forward(pass.tokens_BT, pass.context);
      if (!classifier_) return language_model_->decoder->head.logits(hidden).mean();
      return classifier_->classifier->head.logits(hidden, pass.context.lengths_B).sum();
    });
  };
  if (classifier_) {
    const int64_t all = std::exchange(sequences_, 1);
    show(look);
    sequences_ = all;
  } else {
    Batch batch = text_batch();
    if (windows_) {
      windows_->seek(0);
      batch = windows_->next();
    }
    batch.rows = 1;
    batch.context = std::min(batch.context, kMostLookedAt);
    auto pass = pass_of(batch);
    look(pass);
  }
  PRISM_CHECK(
      place.empty(), "analyse",
      "expected a model with finite activations; found NaN or infinity, first in {}; name an earlier checkpoint.",
      place);
}

void Reading::read_text(const ReadingWords& words) {
  const bool is_file = words.texts.empty();
  const std::string text = is_file ? "" : words.texts.front();
  source_ = is_file ? words.file : fmt::format("\"{}\"", plain_line(text));
  if (is_file) {
    TextOptions options;
    options.invalid_utf8 = words.invalid_utf8;
    options.has_flags = false;
    TextSource source({words.file}, options);
    ids_ = first_tokens(source, tokenizer(), tokens_);
  } else {
    check_utf8(text, "analyse");
    PRISM_CHECK(!text.empty(), "analyse", "--text: expected a text; found nothing; give one.");
    ids_ = opening_of(tokenizer());
    append_tokens(ids_, tokenizer(), text);
    PRISM_CHECK(static_cast<int64_t>(ids_.size()) <= tokens_, "analyse",
                "--text: expected at most {} tokens (--tokens, or the model's context); found {}; shorten it.",
                grouped(tokens_), grouped(static_cast<int64_t>(ids_.size())));
  }
  PRISM_CHECK(!ids_.empty() || tokens_ != 1 || !tokenizer().special_ids().opening, "analyse",
              "expected --tokens of at least 2, because the first token opens the text; found 1; raise it.");
  PRISM_CHECK(!ids_.empty(), "analyse", "expected text in {}; found none; name another file.", source_);
  tokens_ = static_cast<int64_t>(ids_.size());
}

void Reading::open_data(const ReadingWords& words) {
  const std::string split = words.split.value_or("valid");
  const bool document_mask = words.document_mask ? *words.document_mask : trained_with_document_mask(words.model);
  source_ = describe_shards(words.data, split, document_mask);
  data_ = open_shards(words.data, split);
  check_tokenizer(*data_, words.model, tokenizer().fingerprint_text());
  const WindowOptions options{.context = tokens_,
                              .rows = std::max<int64_t>(1, kReadingBatchTokens / tokens_),
                              .document_mask = document_mask,
                              .word_starts = model().word_starts(),
                              .shuffle = false};
  windows_.emplace(*data_, options, tokenizer().special_ids().opening.value_or(-1));
  sequences_ = std::min(words.sequences.value_or(16), windows_->windows_per_epoch());
}

std::string Reading::description() const {
  if (examples_) return describe_examples(source_, split_, sequences_);
  return describe_reading(source_, sequences_, tokens_);
}

Batch Reading::text_batch() const {
  return {.rows = 1, .context = tokens_, .tokens = ids_, .labels = ids_, .documents = {}};
}

Pass Reading::pass_of(Batch& batch) const {
  BatchTensors tensors(batch);
  if (layers_with_budgets(config()) > 0) tensors.predict_second_halves();
  return {tensors.tokens_BT, tensors.labels_BT, tensors.context};
}

void Reading::show(const std::function<void(Pass&)>& run, bool labelled) {
  if (windows_) return show_windows(run);
  examples_ || classifier_ ? show_examples(run, labelled) : show_text(run, labelled);
}

void Reading::show_text(const std::function<void(Pass&)>& run, bool labelled) const {
  Batch batch = text_batch();
  if (labelled) {
    PRISM_CHECK(tokens_ > 1, "analyse",
                "expected at least two tokens, so that there is one to predict; found one; give more text.");
    batch.tokens.pop_back();
    batch.labels.erase(batch.labels.begin());
    --batch.context;
  }
  auto pass = pass_of(batch);
  run(pass);
}

void Reading::show_examples(const std::function<void(Pass&)>& run, bool labelled) {
  if (!examples_) {
    PRISM_CHECK(!labelled, "analyse", "expected --data, whose examples have labels; found --text; name a data folder.");
    const std::vector<int32_t> ids(ids_.begin(), ids_.end());
    auto batch = pad_texts({ids}, config().context);
    const ExampleTensors tensors(batch);
    Pass pass{tensors.tokens_BT, {}, tensors.context};
    return run(pass);
  }
  ExampleLoader loader(*examples_, {.context = config().context, .first = sequences_, .shuffle = false});
  Progress progress("analyse", sequences_, " examples");
  int64_t done = 0;
  for (int64_t n = 0; n < loader.batches_per_epoch(); ++n) {
    if (stop_signal() != 0) throw FailedError("analyse", "stopped by a signal; nothing was computed.");
    auto batch = loader.batch(n);
    const ExampleTensors tensors(batch);
    Pass pass{tensors.tokens_BT, tensors.labels_B, tensors.context};
    run(pass);
    progress.update(done += batch.rows);
  }
}

void Reading::show_windows(const std::function<void(Pass&)>& run) {
  windows_->seek(0);
  Progress progress("analyse", sequences_, " sequences");
  for (int64_t done = 0; done < sequences_;) {
    if (stop_signal() != 0) throw FailedError("analyse", "stopped by a signal; nothing was computed.");
    Batch batch = windows_->next();
    const int64_t rows = std::min(batch.rows, sequences_ - done);
    batch.rows = rows;
    auto pass = pass_of(batch);
    run(pass);
    done += rows;
    progress.update(done);
  }
}

void Reading::show_to(Probe& probe) {
  show([&](Pass& pass) {
    pass.context.probe = &probe;
    model().forward(pass.tokens_BT, pass.context);
  });
}

std::pair<torch::Tensor, int64_t> Reading::loss(Pass& pass) const {
  const auto hidden = model().forward(pass.tokens_BT, pass.context);
  if (!classifier_)
    return {language_model_->decoder->head.loss(hidden, pass.labels), pass.labels.ge(0).sum().item<int64_t>()};
  const auto logits = classifier_->classifier->head.logits(hidden, pass.context.lengths_B);
  return {ClassificationHead::loss(logits, pass.labels), pass.labels.numel()};
}

torch::Tensor Reading::logits(const Pass& pass, const torch::Tensor& hidden_BTD) const {
  const auto found = classifier_ ? classifier_->classifier->head.logits(hidden_BTD, pass.context.lengths_B)
                                 : language_model_->decoder->head.logits(hidden_BTD);
  return found.to(torch::kCPU, torch::kFloat).contiguous();
}

std::vector<int64_t> parse_numbers(const std::optional<std::string>& given, int64_t count, const std::string& what) {
  std::vector<int64_t> numbers;
  if (!given) {
    for (int64_t i = 0; i < count; ++i) numbers.push_back(i);
    return numbers;
  }
  const std::string& list = *given;
  const auto fail = [&](const std::string& found) {
    throw InputError("analyse", fmt::format("{}: expected a list of numbers from 0 to {}, with commas between them "
                                            "and a dash for a range; found {}; change it.",
                                            what, count - 1, found));
  };
  const auto number = [&](std::string_view word) {
    int64_t value = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) fail(fmt::format("\"{}\"", list));
    if (value < 0 || value >= count) fail(std::to_string(value));
    return value;
  };
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    const std::string_view word = std::string_view(list).substr(at, end - at);
    const size_t dash = word.find('-', 1);
    const int64_t first = number(word.substr(0, dash));
    const int64_t last = dash == std::string_view::npos ? first : number(word.substr(dash + 1));
    if (last < first) fail(fmt::format("\"{}\"", list));
    for (int64_t i = first; i <= last; ++i)
      if (std::find(numbers.begin(), numbers.end(), i) == numbers.end()) numbers.push_back(i);
    at = end + 1;
  }
  return numbers;
}

}  // namespace prism

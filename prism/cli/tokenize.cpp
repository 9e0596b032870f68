// prism tokenize: converts text files or conversations to token shards, or labelled texts to tokens and labels.
#include "prism/data/tokenize.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "prism/checkpoint/model_folder.h"
#include "prism/cli/command.h"
#include "prism/cli/options/chat_flags.h"
#include "prism/cli/options/field_options.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/progress.h"
#include "prism/core/stop.h"
#include "prism/core/text/counted.h"
#include "prism/core/text/names.h"
#include "prism/core/timer.h"
#include "prism/data/chat/model_template.h"
#include "prism/data/chat/tokenize_chat.h"
#include "prism/data/labelled/classes.h"
#include "prism/data/labelled/tokenize_labelled.h"

namespace prism {
namespace {

constexpr const char* kTokenizeExamples = R"(
A .txt file is one document unless --separator splits it; each row of a .jsonl file is a document. Folders are read
recursively. Files may be compressed as .gz, .xz or .zst; - is standard input. Every document starts with the
tokenizer's opening token: <|endoftext|> in tokenizers that prism trains, <s> in Llama's.

  prism tokenize train.txt.xz --valid valid.txt.xz --separator '\n\n\n\n' --tokenizer runs/tokenizer --out data/novels
  zcat web.jsonl.gz | prism tokenize - --format jsonl --tokenizer runs/tokenizer --out data/web

The output holds train_000000.bin, valid_000000.bin, ... (llm.c's format), data.json and tokenizer.json.

With --label, each row of a .csv or .jsonl file is a text with a class. The opening token also stands between the
fields of a text, such as premise and hypothesis. In CSV, the two characters \n stand for a line break. Training rows
whose text is also in the --test or --valid files are left out. With --label, --format is csv, jsonl or auto.

  prism tokenize train.csv --label 1 --text-fields 2,3 --classes classes.txt --test test.csv --valid-share 0.05 \
    --tokenizer runs/tokenizer --out data/news
  prism tokenize snli.jsonl --label label --text-fields premise,hypothesis --tokenizer runs/tokenizer --out data/snli

The output then holds data.json, tokenizer.json and one file for each split that has examples: train.safetensors,
valid.safetensors, test.safetensors.

With --chat, each row of a .jsonl file is a conversation: {"messages": [{"role": "user", "content": "Hi"}, {"role":
"assistant", "content": "Hello"}]}, which may have "tools", or the list of messages alone. The chat template writes its
text; nothing is put before it. Marks beside the shards (train_000000.marks, ...) say which tokens are the assistant's,
and prism train computes the loss over those alone. They are what {% generation %} blocks of the template write; if it
has none, what it writes for each message of the role "assistant".

  prism tokenize chats.jsonl --chat --chat-template chat_template.jinja --tokenizer models/chat --out data/chats
)";

struct TokenizeWords {
  std::vector<std::string> inputs, valid;
  std::string tokenizer, out;
  bool json = false;
  // With --label.
  std::string label, classes;
  std::vector<std::string> text_fields, test;
  bool as_words = false;
  // With --chat.
  bool chat = false;
  std::string chat_template;
};

double ratio(int64_t a, int64_t b) {
  return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
}

/// @param assistant_tokens  of conversations.
Json split_json(int64_t documents, int64_t tokens, int64_t bytes, int64_t shards,
                std::optional<int64_t> assistant_tokens) {
  Json json = {{"documents", documents},
               {"tokens", tokens},
               {"bytes", bytes},
               {"bytes_per_token", ratio(bytes, tokens)},
               {"shards", shards}};
  if (assistant_tokens) json["assistant_tokens"] = *assistant_tokens;
  return json;
}

void print_json(const TokenizeSummary& summary, const TokenizeWords& words, double seconds) {
  const DatasetInfo& info = summary.info;
  const Json json = {{"out", words.out},
                     {"vocab_size", info.vocab_size},
                     {"train", split_json(info.train_documents, info.train_tokens, info.train_bytes,
                                          summary.train_shards, info.train_assistant_tokens)},
                     {"valid", split_json(info.valid_documents, info.valid_tokens, info.valid_bytes,
                                          summary.valid_shards, info.valid_assistant_tokens)},
                     {"empty_documents", summary.empty_documents},
                     {"skipped_files", summary.skipped_files},
                     {"seconds", seconds}};
  fmt::print("{}\n", to_text(json));
}

void print_split(const char* name, int64_t documents, int64_t tokens, int64_t bytes, int64_t shards) {
  fmt::print("{:<6}{:>12}{:>15}{:>17}{:>13.3f}{:>8}\n", name, documents, tokens, bytes, ratio(bytes, tokens), shards);
}

void print_table(const TokenizeSummary& summary, const TokenizeWords& words, double seconds) {
  const DatasetInfo& info = summary.info;
  fmt::print("split    documents         tokens            bytes  bytes/token  shards\n");
  print_split("train", info.train_documents, info.train_tokens, info.train_bytes, summary.train_shards);
  print_split("valid", info.valid_documents, info.valid_tokens, info.valid_bytes, summary.valid_shards);
  if (info.has_marks()) {
    const int64_t tokens = info.train_tokens + info.valid_tokens;
    const int64_t assistant = *info.train_assistant_tokens + *info.valid_assistant_tokens;
    fmt::print("{} of {} tokens ({:.1f}%) are the assistant's\n", assistant, tokens, 100 * ratio(assistant, tokens));
  }
  fmt::print("{} in {}\n", plain_line(words.out), short_duration(seconds));
}

/// Prints what a user should know before training on the shards.
void print_notes(const TokenizeSummary& summary, const TokenizeOptions& options) {
  const DatasetInfo& info = summary.info;
  if (info.end_of_text < 0 && !info.has_marks())
    tell("note: the tokenizer has no opening token, so document boundaries are not marked.\n");
  if (summary.empty_documents > 0) tell("note: {} empty documents left out.\n", summary.empty_documents);
  if (summary.skipped_files > 0)
    tell("note: {} files in folders left out: pipes, links to nothing, or names without a known ending.\n",
         summary.skipped_files);
  if (info.valid_documents == 0 && options.valid_share > 0 && info.has_marks())
    tell("note: one conversation gives no validation split; name a file with --valid.\n");
  else if (info.valid_documents == 0 && options.valid_share > 0)
    tell("note: {}one document gives no validation split; name a file with --valid, or {}.\n",
         options.text.separator.empty() ? "" : "the separator occurs nowhere, and ",
         options.text.separator.empty() ? "split this one with --separator" : "try another separator");
  if (info.valid_tokens > info.train_tokens)
    tell("note: validation is larger than training; name its files with --valid.\n");
}

void print_labelled_json(const LabelledInfo& info, const TokenizeWords& words, double seconds) {
  const auto split = [](int64_t examples, int64_t tokens) {
    return Json{{"examples", examples}, {"tokens", tokens}, {"tokens_per_example", ratio(tokens, examples)}};
  };
  fmt::print("{}\n", to_text({{"out", words.out},
                              {"vocab_size", info.vocab_size},
                              {"classes", info.scheme.classes},
                              {"text_fields", info.scheme.text_fields},
                              {"train", split(info.train_examples, info.train_tokens)},
                              {"valid", split(info.valid_examples, info.valid_tokens)},
                              {"test", split(info.test_examples, info.test_tokens)},
                              {"dropped_examples", info.dropped_examples},
                              {"shared_examples", info.shared_examples},
                              {"seconds", seconds}}));
}

void print_labelled_table(const LabelledInfo& info, const TokenizeWords& words, double seconds) {
  const auto row = [](const char* name, int64_t examples, int64_t tokens) {
    fmt::print("{:<6}{:>12}{:>15}{:>16.1f}\n", name, examples, tokens, ratio(tokens, examples));
  };
  fmt::print("split     examples         tokens  tokens/example\n");
  row("train", info.train_examples, info.train_tokens);
  row("valid", info.valid_examples, info.valid_tokens);
  row("test", info.test_examples, info.test_tokens);
  fmt::print("{} classes: {}\n", info.scheme.classes.size(), short_line(join_names(info.scheme.classes), 100));
  fmt::print("text from column{} {}; {} in {}\n", info.scheme.text_fields.size() == 1 ? "" : "s",
             short_line(join_names(info.scheme.text_fields), 100), plain_line(words.out), short_duration(seconds));
}

void print_labelled_notes(const LabelledInfo& info) {
  if (info.dropped_examples > 0)
    tell("note: {} training examples left out, because their texts are also in the test or validation files.\n",
         info.dropped_examples);
  if (info.shared_examples > 0)
    tell(
        "note: {} for validation also in the test files; remove such texts from either, so that no model is chosen by "
        "the test.\n",
        counted(info.shared_examples, "text"));
  if (info.end_of_text < 0)
    tell("note: the tokenizer has no opening token, so nothing stands between the fields of a text.\n");
  if (info.valid_examples == 0)
    tell("note: no examples for validation; name files with --valid, or raise --valid-share.\n");
}

/// Options that only texts without labels have, and those that --label needs.
void add_label_options(CLI::App& app, TokenizeWords& words) {
  auto* label = app.add_option("--label", words.label,
                               "the column that holds the class: its name (in CSV, the first row then holds the "
                               "names) or its number, counted from 1; classes are words, or consecutive "
                               "numbers that start at 0 or 1");
  label->type_name("COLUMN");
  for (const char* name : {"--separator", "--field", "--invalid-utf8", "--shard-tokens"})
    app.get_option(name)->excludes(label);
  app.add_option("--text-fields", words.text_fields, "columns of the text; default: all but the label")
      ->type_name("COLUMN,...")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->needs(label);
  app.add_option("--classes", words.classes,
                 "file with the names of the classes, one a line, in the order of their numbers; default: from the "
                 "labels")
      ->type_name("FILE")
      ->needs(label);
  app.add_option("--test", words.test, "files for the test; put INPUT before this option")
      ->type_name("FILE")
      ->needs(label);
  app.add_flag("--words", words.as_words, "convert texts to lower case, with spaces around punctuation")->needs(label);
}

void add_chat_options(CLI::App& app, TokenizeWords& words) {
  auto* chat = app.add_flag("--chat", words.chat, "read a conversation from each row of .jsonl files");
  for (const char* name : {"--format", "--field", "--separator", "--label"}) app.get_option(name)->excludes(chat);
  add_template_flag(app, words.chat_template, chat);
}

void add_options(CLI::App& app, TokenizeWords& words, TokenizeOptions& options) {
  app.add_option("INPUT", words.inputs, "text files, folders, or - for standard input")->required();
  app.add_option("--tokenizer", words.tokenizer,
                 "tokenizer.json or another tokenizer file, a folder that holds one, or a .gguf file")
      ->required();
  app.add_option("--out", words.out, "folder for the output")->required();
  auto* valid = app.add_option(
      "--valid", words.valid,
      "validation files or (without --label) folders, instead of --valid-share; put INPUT before this option");
  add_fields(app, options, {{"piece_bytes", ""}});
  app.get_option("--valid-share")->excludes(valid);
  add_threads_option(app, options.threads, "threads that encode");
  app.add_flag("--json", words.json, "print the summary as one JSON object");
  add_label_options(app, words);
  add_chat_options(app, words);
}

void run_labelled(const TokenizeWords& words, const TokenizeOptions& options,
                  const std::function<void(const TokenizeProgress&)>& show, std::optional<Progress>& progress) {
  const Timer timer;
  LabelledOptions labelled{.examples = {.label = words.label,
                                        .text_fields = words.text_fields,
                                        .format = options.text.format,
                                        .words = words.as_words},
                           .classes = {},
                           .valid_share = options.valid_share,
                           .seed = options.seed,
                           .threads = options.threads,
                           .force = options.force};
  if (!words.classes.empty()) labelled.classes = read_class_names(words.classes);
  const auto info = tokenize_labelled({words.inputs, words.valid, words.test}, open_tokenizer(words.tokenizer),
                                      words.out, labelled, show);
  progress.reset();  // clears its line
  (words.json ? print_labelled_json : print_labelled_table)(info, words, timer.seconds());
  print_labelled_notes(info);
}

}  // namespace

int run_tokenize(const Arguments& arguments) {
  CLI::App app(
      std::string("Convert text files or conversations to token shards, or labelled texts to tokens and labels.\n") +
          kTokenizeExamples,
      "prism tokenize");
  TokenizeWords words;
  TokenizeOptions options;
  add_options(app, words, options);
  if (!parse(app, arguments)) return 0;

  catch_stop_signals();
  std::optional<Progress> progress;
  const auto show = [&](const TokenizeProgress& state) {
    if (!progress) progress.emplace("tokenize", state.bytes_total, "B");
    progress->update(state.bytes_read,
                     fmt::format("{} {}, {} tokens", state.documents, words.label.empty() ? "documents" : "examples",
                                 short_number(static_cast<double>(state.tokens))));
  };
  if (!words.label.empty()) {
    run_labelled(words, options, show, progress);
    return 0;
  }
  const Timer timer;
  Tokenizer tokenizer = open_tokenizer(words.tokenizer);
  use_template(words.chat_template, tokenizer);
  const TokenizeSummary summary =
      words.chat ? tokenize_chat(words.inputs, words.valid, tokenizer, chat_template_of(tokenizer, words.tokenizer),
                                 words.out, options, show)
                 : tokenize(words.inputs, words.valid, tokenizer, words.out, options, show);
  progress.reset();  // clears its line
  if (words.json) {
    print_json(summary, words, timer.seconds());
  } else {
    print_table(summary, words, timer.seconds());
  }
  print_notes(summary, options);
  return 0;
}

}  // namespace prism

// prism tokenize: converts text files to token shards.
#include "prism/data/tokenize.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "prism/cli/command.h"
#include "prism/cli/options/field_options.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/progress.h"
#include "prism/core/stop.h"
#include "prism/core/timer.h"

namespace prism {
namespace {

constexpr const char* kTokenizeExamples = R"(
A .txt file is one document unless --separator splits it; each row of a .jsonl file is a document. Folders are read
recursively. Files may be compressed as .gz, .xz or .zst; - is standard input. Every document starts with the
end-of-text token.

  prism tokenize train.txt.xz --valid valid.txt.xz --separator '\n\n\n\n' --tokenizer tokenizers/gpt2 --out data/novels
  zcat web.jsonl.gz | prism tokenize - --format jsonl --tokenizer tokenizers/gpt2 --out data/web

The output holds train_000000.bin, valid_000000.bin, ... (llm.c's format), data.json and tokenizer.json.
)";

struct TokenizeWords {
  std::vector<std::string> inputs, valid;
  std::string tokenizer, out;
  bool json = false;
};

double ratio(int64_t a, int64_t b) {
  return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
}

Json split_json(int64_t documents, int64_t tokens, int64_t bytes, int64_t shards) {
  return {{"documents", documents},
          {"tokens", tokens},
          {"bytes", bytes},
          {"bytes_per_token", ratio(bytes, tokens)},
          {"shards", shards}};
}

void print_json(const TokenizeSummary& summary, const TokenizeWords& words, double seconds) {
  const DatasetInfo& info = summary.info;
  const Json json = {
      {"out", words.out},
      {"vocab_size", info.vocab_size},
      {"train", split_json(info.train_documents, info.train_tokens, info.train_bytes, summary.train_shards)},
      {"valid", split_json(info.valid_documents, info.valid_tokens, info.valid_bytes, summary.valid_shards)},
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
  fmt::print("{} in {}\n", plain_line(words.out), short_duration(seconds));
}

/// Prints what a user should know before training on the shards.
void print_notes(const TokenizeSummary& summary, const TokenizeOptions& options) {
  const DatasetInfo& info = summary.info;
  if (info.end_of_text < 0)
    tell("note: the tokenizer has no end-of-text token, so document boundaries are not marked.\n");
  if (summary.empty_documents > 0) tell("note: {} empty documents left out.\n", summary.empty_documents);
  if (summary.skipped_files > 0)
    tell("note: {} files in folders left out: pipes, links to nothing, or names without a known ending.\n",
         summary.skipped_files);
  if (info.valid_documents == 0 && options.valid_share > 0)
    tell("note: {}one document gives no validation split; name a file with --valid, or {}.\n",
         options.text.separator.empty() ? "" : "the separator occurs nowhere, and ",
         options.text.separator.empty() ? "split this one with --separator" : "try another separator");
  if (info.valid_tokens > info.train_tokens)
    tell("note: validation is larger than training; name its files with --valid.\n");
}

void add_options(CLI::App& app, TokenizeWords& words, TokenizeOptions& options) {
  app.add_option("INPUT", words.inputs, "text files, folders, or - for standard input")->required();
  app.add_option("--tokenizer", words.tokenizer, "tokenizer.json, or a folder that holds one")->required();
  app.add_option("--out", words.out, "folder for the shards")->required();
  auto* valid = app.add_option("--valid", words.valid, "validation files or folders, instead of --valid-share");
  add_fields(app, options, {{"piece_bytes", ""}});
  app.get_option("--valid-share")->excludes(valid);
  add_threads_option(app, options.threads, "threads that encode");
  app.add_flag("--json", words.json, "print the summary as one JSON object");
}

}  // namespace

int run_tokenize(const Arguments& arguments) {
  CLI::App app(std::string("Convert text files to token shards.\n") + kTokenizeExamples, "prism tokenize");
  TokenizeWords words;
  TokenizeOptions options;
  add_options(app, words, options);
  if (!parse(app, arguments)) return 0;

  catch_stop_signals();
  const Timer timer;
  const Tokenizer tokenizer = Tokenizer::load(words.tokenizer);
  std::optional<Progress> progress;
  const auto show = [&](const TokenizeProgress& state) {
    if (!progress) progress.emplace("tokenize", state.bytes_total, "B");
    progress->update(state.bytes_read, fmt::format("{} documents, {} tokens", state.documents,
                                                   short_number(static_cast<double>(state.tokens))));
  };
  const TokenizeSummary summary = tokenize(words.inputs, words.valid, tokenizer, words.out, options, show);
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

// prism tokenizer: trains, inspects and applies byte-level BPE tokenizers.
#include "prism/tokenizer/tokenizer.h"

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "prism/checkpoint/model_folder.h"
#include "prism/cli/command.h"
#include "prism/cli/options/field_options.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/machine.h"
#include "prism/core/progress.h"
#include "prism/core/stop.h"
#include "prism/core/text/names.h"
#include "prism/core/text/utf8.h"
#include "prism/core/timer.h"
#include "prism/data/text_source.h"
#include "prism/tokenizer/bpe/train.h"

namespace prism {
namespace {

constexpr size_t kBatchBytes = size_t{32} << 20;

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_output();
}

/// A token in double quotes, with control characters and invalid bytes made visible.
std::string shown(std::string_view bytes) {
  return to_text(Json(bytes));
}

// train

struct TrainCommand {
  BpeTrainOptions options;
  TextOptions text;
  std::vector<std::string> files;
  std::string out;
  int threads = 0;
  bool force = false, json = false;
};

/// The file to write: --out itself if it ends in .json, else tokenizer.json in the folder --out.
std::filesystem::path output_file(const TrainCommand& command) {
  std::filesystem::path path = command.out;
  if (path.extension() != ".json" || std::filesystem::is_directory(path)) path /= "tokenizer.json";
  PRISM_CHECK(command.force || !std::filesystem::exists(path), "tokenizer train",
              "expected a new file; found {}; give --force to replace it.", path.string());
  return path;
}

/// Shows the two phases of training on one progress line each.
class TrainReport {
 public:
  explicit TrainReport(const TextSource& source) : source_(source) {
    progress_.emplace("read", source.bytes_total(), "B");
  }
  /// @throws FailedError if a stop signal came.
  void operator()(const TrainProgress& now) {
    if (stop_signal() != 0) throw FailedError("tokenizer", "stopped by a signal; nothing was written.");
    if (now.phase == TrainProgress::Phase::read) return progress_->update(source_.bytes_read());
    if (!merging_) {
      progress_->finish(fmt::format("read: {}B of text", short_number(static_cast<double>(text_bytes_))));
      progress_.emplace("merge", now.total, " tokens");
      merging_ = true;
    }
    progress_->update(now.done);
  }
  void finish(std::string_view line) { progress_->finish(line); }
  /// Counts the bytes of text after decompression, as prism tokenize does. The progress line counts bytes of the files.
  void add_text(size_t bytes) { text_bytes_ += static_cast<int64_t>(bytes); }

 private:
  const TextSource& source_;
  std::atomic<int64_t> text_bytes_ = 0;  ///< other threads may read
  std::optional<Progress> progress_;
  bool merging_ = false;
};

void print_trained(const Tokenizer& tokenizer, const TrainCommand& command, const std::string& path, double seconds) {
  if (tokenizer.vocab_size() < command.options.vocab_size) {
    tell("note: the vocabulary has {} of {} tokens; no further pair occurs {} times in this text.\n",
         tokenizer.vocab_size(), command.options.vocab_size, std::max<int64_t>(command.options.min_frequency, 1));
  }
  if (command.json) {
    const Json result = {{"path", path},
                         {"vocab_size", tokenizer.vocab_size()},
                         {"merges", tokenizer.merge_count()},
                         {"fingerprint", tokenizer.fingerprint_text()},
                         {"seconds", seconds}};
    print(to_text(result) + "\n");
  } else {
    print(fmt::format("{}: {} tokens, {} merges\n", path, tokenizer.vocab_size(), tokenizer.merge_count()));
  }
}

int run_train_tokenizer(const Arguments& arguments) {
  TrainCommand command;
  CLI::App app("Train a byte-level BPE tokenizer on text.", "prism tokenizer train");
  app.add_option("FILES", command.files,
                 "text files (.txt, .jsonl, also .gz, .xz, .zst), folders, or - for standard input")
      ->required();
  app.add_option("--out", command.out, "file to write, ending in .json, or the folder for tokenizer.json")->required();
  add_fields(app, command.options, {{"special_tokens", "special"}});
  add_fields(app, command.text, {{"piece_bytes", ""}});
  add_threads_option(app, command.threads, "threads that count words");
  app.add_flag("--force", command.force, "replace an existing file");
  app.add_flag("--json", command.json, "print the result as JSON");
  if (!parse(app, arguments)) return 0;

  const auto path = output_file(command);
  catch_stop_signals();  // after a signal, a folder made for the file is removed
  TextSource source(command.files, command.text);
  const MadeFolder folder(std::filesystem::absolute(path).parent_path());
  { const AtomicFile probe(path); }  // reports an unwritable folder before the work
  TrainReport report(source);
  const Timer timer;
  const auto next_text = [&](std::string& text) {
    auto document = source.next();
    if (document) text = std::move(document->text);
    if (document) report.add_text(text.size());
    return document.has_value();
  };
  const int threads = thread_limit(command.threads).threads;
  const Tokenizer tokenizer = train_bpe(next_text, command.options, threads, std::ref(report));
  tokenizer.save(path);
  report.finish(fmt::format("merge: {} tokens in {} with {} thread{}", tokenizer.vocab_size(),
                            short_duration(timer.seconds()), threads, threads == 1 ? "" : "s"));
  print_trained(tokenizer, command, path.string(), timer.seconds());
  return 0;
}

// encode

struct EncodeCommand {
  std::string tokenizer, text, file;
  TextOptions source;
  int threads = 0;
  bool ids = false, tokens = false, json = false, no_special = false, time = false;
};

/// Encodes all texts, several at a time.
std::vector<std::vector<int32_t>> encode_all(const Tokenizer& tokenizer, const std::vector<Document>& documents,
                                             SpecialTokens special, int threads) {
  std::vector<std::vector<int32_t>> ids(documents.size());
  std::atomic<size_t> next = 0;
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto work = [&] {
    try {
      for (size_t i = next++; i < documents.size(); i = next++) ids[i] = tokenizer.encode(documents[i].text, special);
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> team;
    try {
      for (int i = 1; i < threads && static_cast<size_t>(i) < documents.size(); ++i) team.emplace_back(work);
    } catch (const std::system_error& error) {
      next = documents.size();
      fail_to_start_threads(threads, error);
    }
    work();
  }
  if (failure) std::rethrow_exception(failure);
  return ids;
}

/// Prints ids as they arrive, one document per line. A document may arrive in several pieces.
class EncodeOutput {
 public:
  EncodeOutput(const Tokenizer& tokenizer, const EncodeCommand& command) : tokenizer_(tokenizer), command_(command) {}

  void write(const std::vector<int32_t>& ids, bool first, bool last) {
    std::string out;
    if (first && command_.json) out += R"({"ids":[)";
    for (const int32_t id : ids) {
      if (command_.tokens && !command_.json) {
        fmt::format_to(std::back_inserter(out), "{}\t{}\n", id, shown(tokenizer_.bytes(id)));
      } else {
        fmt::format_to(std::back_inserter(out), "{}{}", at_start_ ? "" : command_.json ? "," : " ", id);
      }
      at_start_ = false;
      if (command_.json && command_.tokens) tokens_.push_back(shown(tokenizer_.bytes(id)));
    }
    if (last) out += end_of_document();
    print(out);
  }

 private:
  std::string end_of_document() {
    at_start_ = true;
    if (!command_.json) return "\n";
    return (command_.tokens ? fmt::format(R"(],"tokens":[{}])", fmt::join(std::exchange(tokens_, {}), ",")) : "]") +
           "}\n";
  }

  const Tokenizer& tokenizer_;
  const EncodeCommand& command_;
  bool at_start_ = true;
  std::vector<std::string> tokens_;
};

/// Fills `batch` with the next documents, up to kBatchBytes of text.
bool next_batch(TextSource& source, std::vector<Document>& batch) {
  batch.clear();
  for (size_t bytes = 0; bytes < kBatchBytes;) {
    auto document = source.next();
    if (!document) break;
    bytes += document->text.size();
    batch.push_back(std::move(*document));
  }
  return !batch.empty();
}

void encode_source(const Tokenizer& tokenizer, const EncodeCommand& command, SpecialTokens special) {
  TextSource source({command.file.empty() ? "-" : command.file}, command.source);
  EncodeOutput output(tokenizer, command);
  const int threads = thread_limit(command.threads).threads;
  int64_t bytes = 0, tokens = 0;
  double seconds = 0;
  for (std::vector<Document> batch; next_batch(source, batch);) {
    const Timer timer;
    const auto ids = encode_all(tokenizer, batch, special, threads);
    seconds += timer.seconds();
    for (size_t i = 0; i < batch.size(); ++i) {
      bytes += static_cast<int64_t>(batch[i].text.size());
      tokens += static_cast<int64_t>(ids[i].size());
      output.write(ids[i], batch[i].first, batch[i].last);
    }
  }
  PRISM_CHECK(bytes > 0, "tokenizer encode", "expected text; found none in {}; name a file that holds some.",
              command.file.empty() ? "standard input" : command.file);
  if (command.time) {
    tell("encoded {} bytes to {} tokens in {:.6f} s with {} thread{}, without reading and printing\n", bytes, tokens,
         seconds, threads, threads == 1 ? "" : "s");
  }
}

int run_encode(const Arguments& arguments) {
  EncodeCommand command;
  command.source.invalid_utf8 = "keep";
  command.source.raw = true;
  CLI::App app("Encode text to token ids, one document per line.", "prism tokenizer encode");
  app.add_option("--tokenizer", command.tokenizer,
                 "tokenizer.json or another tokenizer file, a folder that holds one, or a .gguf file")
      ->required();
  auto* text = app.add_option("TEXT", command.text, "the text itself; without TEXT and --file, standard input is read");
  app.add_option("--file", command.file, "text file (.txt or .jsonl, also .gz, .xz, .zst); - for standard input")
      ->excludes(text);
  add_fields(app, command.source, {{"piece_bytes", ""}});
  // TEXT is encoded byte by byte as it is given.
  for (auto* option : app.get_options())
    if (option != text && option->get_name() != "--tokenizer" && option != app.get_help_ptr()) option->excludes(text);
  auto* ids = app.add_flag("--ids", command.ids, "print ids (the default)");
  app.add_flag("--tokens", command.tokens,
               "print one token per line, its id and its bytes; with --json, add the text of each token to the objects")
      ->excludes(ids);
  app.add_flag("--json", command.json, "print one JSON object per document");
  app.add_flag("--no-special", command.no_special, "encode text that spells a special token as ordinary text");
  add_threads_option(app, command.threads, "documents encoded at the same time");
  app.add_flag("--time", command.time, "print to standard error how long the encoding alone took");
  if (!parse(app, arguments)) return 0;

  const Tokenizer tokenizer = open_tokenizer(command.tokenizer);
  const auto special = command.no_special ? SpecialTokens::as_text : SpecialTokens::parse;
  if (text->count() == 0) {
    encode_source(tokenizer, command, special);
    return 0;
  }
  std::error_code not_a_path;  // e.g. too long for one
  if (std::filesystem::exists(command.text, not_a_path))
    tell("note: this encodes the text \"{0}\" itself; use --file {0} to encode that file.\n", command.text);
  EncodeOutput(tokenizer, command).write(tokenizer.encode(command.text, special), /*first=*/true, /*last=*/true);
  return 0;
}

// decode

void append_ids(std::string_view text, std::vector<int32_t>& ids) {
  constexpr std::string_view kBetween = " \t\r\n,[]";
  for (size_t at = text.find_first_not_of(kBetween); at != std::string_view::npos;
       at = text.find_first_not_of(kBetween, at)) {
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    int32_t id = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    PRISM_CHECK(error == std::errc() && stop == word.data() + word.size(), "tokenizer decode",
                "expected token ids, as whole numbers; found {}; leave it out.", shown(word));
    ids.push_back(id);
    at = end;
  }
}

int run_decode(const Arguments& arguments) {
  std::string path;
  std::vector<std::string> words;
  bool skip_special = false;
  CLI::App app("Decode token ids to bytes.", "prism tokenizer decode");
  app.add_option("--tokenizer", path,
                 "tokenizer.json or another tokenizer file, a folder that holds one, or a .gguf file")
      ->required();
  app.add_option("IDS", words, "ids, separated by spaces or commas; without them: standard input");
  app.add_flag("--skip-special", skip_special, "leave special tokens out");
  if (!parse(app, arguments)) return 0;

  const Tokenizer tokenizer = open_tokenizer(path);
  std::vector<int32_t> ids;
  for (const auto& word : words) append_ids(word, ids);
  if (words.empty()) append_ids(read_standard_input(), ids);
  PRISM_CHECK(!ids.empty(), "tokenizer decode", "expected token ids; found none; write some, e.g. 12 7 3.");
  print(tokenizer.decode(ids, skip_special));
  if (isatty(STDOUT_FILENO) != 0)
    print("\n");  // on a terminal the shell's prompt starts on a new line; programs get the exact bytes
  return 0;
}

// info

struct Summary {
  std::vector<int32_t> special;
  int64_t word_starts = 0;
  int32_t longest = 0;  ///< longest token that is not special
};

Summary summarize(const Tokenizer& tokenizer) {
  Summary summary;
  for (const uint8_t start : tokenizer.word_starts()) summary.word_starts += start;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.is_special(id)) {
      summary.special.push_back(id);
    } else if (tokenizer.is_special(summary.longest) ||
               tokenizer.bytes(id).size() > tokenizer.bytes(summary.longest).size()) {
      summary.longest = id;
    }
  }
  return summary;
}

Json info_json(const Tokenizer& tokenizer, const std::string& path, const Summary& summary) {
  Json special = Json::array();
  for (const int32_t id : summary.special) special.push_back({{"id", id}, {"content", tokenizer.bytes(id)}});
  const auto& [opening, ends, opens_prompts] = tokenizer.special_ids();
  return {{"path", path},
          {"vocab_size", tokenizer.vocab_size()},
          {"merges", tokenizer.merge_count()},
          {"pattern", tokenizer.pattern()},
          {"special_tokens", special},
          {"opening", opening ? Json(*opening) : Json()},
          {"ends", ends},
          {"opens_prompts", opens_prompts},
          {"has_chat_template", tokenizer.chat_template().has_value()},
          {"word_start_share", static_cast<double>(summary.word_starts) / static_cast<double>(tokenizer.vocab_size())},
          {"longest_token",
           {{"id", summary.longest},
            {"bytes", tokenizer.bytes(summary.longest).size()},
            {"text", replace_invalid_utf8(tokenizer.bytes(summary.longest))}}},
          {"fingerprint", tokenizer.fingerprint_text()}};
}

void print_info(const Tokenizer& tokenizer, const Summary& summary) {
  constexpr size_t kShown = 8;
  const auto& [opening, ends, opens_prompts] = tokenizer.special_ids();
  const auto token = [&](int32_t id) { return fmt::format("{} ({})", tokenizer.bytes(id), id); };
  std::string special;
  for (size_t i = 0; i < summary.special.size() && i < kShown; ++i)
    special += fmt::format("{}{}", i == 0 ? "" : ", ", token(summary.special[i]));
  if (summary.special.size() > kShown) special += fmt::format(" and {} more", summary.special.size() - kShown);
  print(fmt::format("vocabulary      {} tokens, {} merges\n", tokenizer.vocab_size(), tokenizer.merge_count()));
  print(fmt::format("special tokens  {}\n", special.empty() ? "none" : special));
  print(fmt::format("BOS token       {}{}\n", opening ? token(*opening) : "none",
                    opens_prompts ? ", put before prompts" : ""));
  std::vector<std::string> ending;
  for (const int32_t id : ends) ending.push_back(token(id));
  print(fmt::format("EOS tokens      {}\n", ending.empty() ? "none" : join_names(ending)));
  print(fmt::format("chat template   {}\n", tokenizer.chat_template() ? "yes" : "none"));
  print(fmt::format("pattern         {}\n", tokenizer.pattern()));
  print(fmt::format("begin a word    {:.1f}% of the tokens\n",
                    100.0 * static_cast<double>(summary.word_starts) / static_cast<double>(tokenizer.vocab_size())));
  print(fmt::format("longest token   {} bytes, {} ({})\n", tokenizer.bytes(summary.longest).size(),
                    shown(tokenizer.bytes(summary.longest)), summary.longest));
  print(fmt::format("fingerprint     {}\n", tokenizer.fingerprint_text()));
}

int run_tokenizer_info(const Arguments& arguments) {
  std::string path;
  bool json = false;
  CLI::App app("Show the contents of a tokenizer.", "prism tokenizer info");
  app.add_option("PATH", path, "tokenizer.json or another tokenizer file, a folder that holds one, or a .gguf file")
      ->required();
  app.add_flag("--json", json, "print one JSON object");
  if (!parse(app, arguments)) return 0;

  const Tokenizer tokenizer = open_tokenizer(path);
  const Summary summary = summarize(tokenizer);
  if (json) {
    print(to_text(info_json(tokenizer, path, summary)) + "\n");
  } else {
    print_info(tokenizer, summary);
  }
  return 0;
}

}  // namespace

int run_tokenizer(const Arguments& arguments) {
  static const std::map<std::string, int (*)(const Arguments&)> commands = {
      {"train", run_train_tokenizer}, {"encode", run_encode}, {"decode", run_decode}, {"info", run_tokenizer_info}};
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    print(
        "Usage: prism tokenizer train|encode|decode|info [options]\n\n"
        "  train   train a byte-level BPE tokenizer on text\n"
        "  encode  encode text to token ids\n"
        "  decode  decode token ids to bytes\n"
        "  info    show vocabulary, special tokens, pattern and fingerprint\n\n"
        "`prism tokenizer train --help` explains a command's options. Exit status: 0 done, 1 failed, 2 wrong input.\n");
    return arguments.empty() ? 2 : 0;
  }
  const auto run = find_by_name(commands, arguments[0], "tokenizer", "command");
  return run(Arguments(arguments.begin() + 1, arguments.end()));
}

}  // namespace prism

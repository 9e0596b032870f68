// prism chat: talks with a model, turn by turn.
#include "prism/generation/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <utility>

#include "prism/checkpoint/model_folder.h"
#include "prism/cli/command.h"
#include "prism/cli/generation/generation_output.h"
#include "prism/cli/options/chat_flags.h"
#include "prism/cli/options/compute_options.h"
#include "prism/cli/options/generation_options.h"
#include "prism/cli/options/prefill_options.h"
#include "prism/cli/options/prompt_cache_option.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/stop.h"
#include "prism/core/text/counted.h"
#include "prism/core/text/printable.h"

namespace prism {
namespace {

constexpr const char* kChatHelp = R"(
Each line of standard input is a message; a line that ends in a backslash continues on the next. Answers go to standard
output while they are generated. Earlier turns are not computed again, unless the model has head budgets or --prefill
names a selector. A line that begins with a slash is a command:

  /reset         forget the conversation, but not the system message
  /system TEXT   start over with this system message; without TEXT, with none
  /speed         print how fast the last answer was
  /help          list these commands
  /exit          quit; so does the end of the input (Ctrl-D)

Ctrl-C stops the answer, not the conversation; at the prompt it quits. The whole conversation must fit the model's
context, unless --truncate-prompt is given, which leaves out its beginning; --slide lets an answer run on when the
context is full. The model needs a chat template: chat_template.jinja or tokenizer_config.json in its folder, the
metadata of a .gguf file, or --chat-template.

  prism chat models/SmolLM2-135M-Instruct
  prism chat model.gguf --system 'Answer in one sentence.' --temperature 0.7 --top-p 0.9
  prism chat model.gguf --prompt-cache talk.cache        # a later chat that begins the same way starts faster
  printf 'Who wrote Emma?\nAnd when?\n' | prism chat model.gguf --temperature 0
)";

constexpr const char* kCommandList = "/reset, /system TEXT, /speed, /help, /exit";

struct ChatWords {
  std::string model, prompt_cache, cache_type = "auto";
  ChatFlags chat_flags;
  PrefillFlags prefill;
  ComputeOptions compute;
};

/// The lines of standard input. Waiting for one ends at a signal (core/stop.h).
class InputLines {
 public:
  /// The next line, or std::nullopt at the end of the input or after a signal.
  std::optional<std::string> next() {
    size_t end = 0;
    while ((end = read_.find('\n')) == std::string::npos)
      if (!read_more()) return rest();
    std::string line = read_.substr(0, end);
    read_.erase(0, end + 1);
    return line;
  }

 private:
  /// @return  false at the end of the input and after a signal.
  bool read_more() {
    if (stop_signal() != 0 || !wait_to_read(STDIN_FILENO)) return false;
    char bytes[4096];
    const auto count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) return true;
    if (count <= 0) return false;
    read_.append(bytes, static_cast<size_t>(count));
    return true;
  }
  /// A last line that no newline ends.
  std::optional<std::string> rest() {
    if (read_.empty() || stop_signal() != 0) return std::nullopt;
    return std::exchange(read_, "");
  }

  std::string read_;
};

/// The next message, or std::nullopt at the end of the input or after a signal.
std::optional<std::string> read_message(InputLines& lines) {
  const bool is_terminal = ::isatty(STDIN_FILENO) != 0;
  std::string message;
  for (bool goes_on = true; goes_on;) {
    if (is_terminal) print_error_stream(message.empty() ? "> " : "... ");
    auto line = lines.next();
    if (!line) {
      if (is_terminal) print_error_stream("\n");
      return message.empty() || stop_signal() != 0 ? std::nullopt : std::optional(message);
    }
    goes_on = line->ends_with('\\');
    if (goes_on) line->back() = '\n';
    message += *line;
  }
  return message;
}

class ChatLoop {
 public:
  ChatLoop(Chat& chat, const ChatWords& words, GenerateOptions options, const PrefillMeter& meter)
      : chat_(chat), words_(words), options_(std::move(options)), meter_(meter) {}

  /// @return  the exit status.
  int run() {
    catch_stop_signals();
    const int status = answer_all();
    release_stop_signals();
    return status;
  }
  /// Returns true if the context slid, so that the cache does not hold the conversation as it was.
  bool slid() const { return slid_; }

 private:
  int answer_all() {
    InputLines lines;
    while (const auto message = read_message(lines)) {
      if (message->empty()) continue;
      if (message->front() == '/') {
        if (!follow(*message)) return 0;
        continue;
      }
      if (!answer(*message)) return 1;
    }
    if (stop_signal() != 0 && stop_signal() != SIGINT) return 1;
    return failed_ && ::isatty(STDIN_FILENO) == 0 ? 2 : 0;
  }

  /// @return  false: the conversation ends.
  bool follow(const std::string& line) {
    const auto space = line.find(' ');
    const std::string command = line.substr(0, space), rest = space == std::string::npos ? "" : line.substr(space + 1);
    if (command == "/exit") return false;
    if (command == "/reset") {
      chat_.reset(chat_.system());
    } else if (command == "/system") {
      chat_.reset(rest);
    } else if (command == "/speed") {
      last_ ? print_speeds(words_.prefill, *last_, meter_) : say("no answer yet\n");
    } else if (command == "/help") {
      say("commands: {}\n", kCommandList);
    } else {
      refuse(fmt::format("expected one of {}; found {}; put a space before a message that begins with a slash.",
                         kCommandList, short_line(command, 40)));
    }
    return true;
  }

  /// @return  false: a signal other than Ctrl-C asks the program to end.
  bool answer(const std::string& message) {
    try {
      last_ = chat_.answer(message, options_, print_now);
      slid_ = slid_ || last_->slides > 0;
      print_now("\n");
      print_notes(*last_);
      note_cut(*last_);
      ++options_.sampler.seed;
    } catch (const InputError& error) {
      refuse(error.sentence());
    }
    const int signal = take_stop_signal();
    return signal == 0 || signal == SIGINT;
  }

  /// Says why an answer ended before the model ended it.
  void note_cut(const Generation& result) const {
    if (result.finish != FinishReason::length) return;
    const int64_t read = std::ssize(result.prompt_ids) - result.unread, made = std::ssize(result.ids);
    if (result.slides == 0 && read + made == chat_.context())
      tell("note: the answer was cut at {}, because the context is full; /reset makes room\n", counted(made, "token"));
    else
      tell("note: the answer was cut at {}; --max-new-tokens N allows more\n", counted(made, "token"));
  }

  void refuse(const std::string& sentence) {
    failed_ = true;
    say("[chat] {}\n", sentence);
  }

  Chat& chat_;
  const ChatWords& words_;
  GenerateOptions options_;
  const PrefillMeter& meter_;
  std::optional<Generation> last_;
  bool failed_ = false;  ///< a message or command was refused
  bool slid_ = false;
};

}  // namespace

int run_chat(const Arguments& arguments) {
  CLI::App app(std::string("Talk with a model, turn by turn.\n") + kChatHelp, "prism chat");
  ChatWords words;
  GenerateOptions options;
  app.add_option("MODEL", words.model, kModelHelp)->required();
  add_chat_flags(app, words.chat_flags);
  add_generation_options(app, options);
  add_prefill_flags(app, words.prefill);
  add_prompt_cache_option(app, words.prompt_cache);
  add_cache_type_option(app, words.cache_type);
  add_weights_option(app, words.compute);
  add_compute_options(app, words.compute);
  if (!parse(app, arguments)) return 0;
  start_compute(words.compute.threads, words.compute.device);
  complete_generation(options);
  complete_prefill(words.prefill);

  ModelFolder model = load_model_with_tokenizer(words.model, words.compute, "chat");
  const auto costs = costs_on_this_machine(cost_shapes(words.prefill.options, model.decoder));
  PrefillMeter meter(words.prefill.meter);
  Prefill prefill(words.prefill.options, costs, words.prefill.options.selector == "dense" ? nullptr : &meter);
  const EngineOptions engine{.prefill = &prefill, .cache_type = find_cache_type(words.cache_type)};
  Chat chat = open_chat(words.chat_flags, model, words.model, engine);
  PromptCacheOption file(words.prompt_cache, model, engine);
  file.restore(chat.session());
  ChatLoop loop(chat, words, options, meter);
  const int status = loop.run();
  if (!loop.slid())
    file.save(chat.session(), chat.session().cached().size());
  else if (!words.prompt_cache.empty())
    tell("note: {} is not written, because the conversation was not kept whole\n", words.prompt_cache);
  return status;
}

}  // namespace prism

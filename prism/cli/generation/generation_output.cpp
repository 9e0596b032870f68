#include "prism/cli/generation/generation_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include "prism/core/console.h"
#include "prism/core/text/counted.h"
#include "prism/core/text/printable.h"

namespace prism {
namespace {

const char* finish_words(FinishReason reason) {
  switch (reason) {
    case FinishReason::length:
      return "ended by --max-new-tokens";
    case FinishReason::end_of_text:
      return "the model ended the text";
    case FinishReason::stop_string:
      return "ended by --stop";
    case FinishReason::interrupted:
      return "interrupted";
  }
  return "";
}

}  // namespace

void print_now(std::string_view text) {
  static const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;
  fmt::print("{}", is_terminal ? printable(text) : std::string(text));
  flush_output();
}

Json generation_to_json(const std::string& prompt, const Generation& result) {
  return {{"prompt", prompt},
          {"text", result.text},
          {"finish", finish_name(result.finish)},
          {"prompt_tokens", result.prompt_ids.size()},
          {"unread", result.unread},
          {"cached_tokens", result.reused},
          {"new_tokens", result.ids.size()},
          {"slides", result.slides}};
}

void print_notes(const Generation& result) {
  if (result.unread > 0)
    tell("note: left out {} at the start of the prompt, which was too long\n", counted(result.unread, "token"));
  if (result.slides > 0)
    tell("note: the context was full {}; its last half was then recomputed\n",
         result.slides == 1 ? "once" : counted(result.slides, "time"));
}

void print_speeds(const PrefillFlags& prefill, const Generation& result, const PrefillMeter& meter) {
  const auto cached = result.reused > 0 ? fmt::format(" and {} cached before", result.reused) : "";
  const auto decoding =
      result.decode_steps > 0 ? fmt::format(", {:.1f} tokens/s", result.decode_tokens_per_second()) : "";
  const auto reading =
      result.prompt_seconds > 0 ? fmt::format(", {:.0f} tokens/s", result.prompt_tokens_per_second()) : "";
  tell("prompt: {}{}{}; new: {}{}; {}.\n", counted(result.prompt_tokens_read(), "token"), cached, reading,
       counted(std::ssize(result.ids), "token"), decoding, finish_words(result.finish));
  print_notes(result);
  if (prefill.options.selector != "dense") tell("prefill: {}.\n", prefill_text(prefill.options, meter.layers()));
}

}  // namespace prism

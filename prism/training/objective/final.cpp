#include "prism/training/objective/final.h"

#include <set>

#include "prism/analysis/attention/attention_distance.h"
#include "prism/core/error.h"
#include "prism/core/stop.h"
#include "prism/evaluation/perplexity.h"

namespace prism {
namespace {

TextOptions text_options(const FinalText& text) {
  TextOptions options;
  options.separator = text.separator;
  return options;
}

TextLossRecord text_loss(Decoder decoder, const Tokenizer& tokenizer, const FinalText& text) {
  TextSource source(text.files, text_options(text));
  const auto result = evaluate_perplexity(decoder, tokenizer, source, {});
  TextLossRecord record{text.name, result.nats, result.tokens, result.bytes, {}};
  for (const auto& document : result.documents) record.documents.emplace_back(document.nats, document.tokens);
  return record;
}

/// Reads a text once, so that errors in it show before training and not after.
void check_readable(const FinalText& text) {
  TextSource source(text.files, text_options(text));
  bool any = false;
  while (source.next()) any = true;
  PRISM_CHECK(any, "final", "final.texts: expected text in the files of \"{}\"; found none; name others.", text.name);
}

}  // namespace

void check_final(const FinalOptions& options, const Tokenizer* tokenizer, const WindowLoader* valid_windows) {
  PRISM_CHECK(options.distance_sequences >= 0, "final",
              "final.distance_sequences: expected at least 0; found {}; raise it.", options.distance_sequences);
  PRISM_CHECK(options.distance_sequences == 0 || valid_windows != nullptr, "final",
              "expected a validation split for final.distance_sequences; found none; give prism tokenize --valid-share "
              "or --valid.");
  PRISM_CHECK(options.texts.empty() || tokenizer != nullptr, "final",
              "expected data with a tokenizer.json for final.texts; found none; put it beside the shards.");
  std::set<std::string> names;
  for (const auto& text : options.texts) {
    PRISM_CHECK(!text.name.empty() && names.insert(text.name).second, "final",
                "final.texts: expected names, each once; found \"{}\"; choose another.", text.name);
    PRISM_CHECK(!text.files.empty(), "final", "final.texts: expected files of \"{}\"; found none; name one.",
                text.name);
    for (const auto& file : text.files)
      PRISM_CHECK(file != "-", "final", "final.texts: expected files of \"{}\"; found standard input; name a file.",
                  text.name);
    check_readable(text);
  }
}

std::optional<std::vector<RunRecord>> final_records(Decoder decoder, const Tokenizer* tokenizer,
                                                    const WindowLoader* valid_windows, const FinalOptions& options) {
  std::vector<RunRecord> records;
  try {
    for (const auto& text : options.texts) records.push_back(text_loss(decoder, *tokenizer, text));
  } catch (const FailedError&) {
    if (stop_signal() != 0) return std::nullopt;  // the signal caused the failure
    throw;
  }
  if (options.distance_sequences == 0) return records;
  const auto distance = measure_attention_distance(decoder, *valid_windows, options.distance_sequences);
  if (!distance) return std::nullopt;
  records.push_back(*distance);
  return records;
}

}  // namespace prism

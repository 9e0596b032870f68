// Final measurements of a run, made when training ends, so that runs can later be compared by their records alone.
//
//   check_final(recipe.final, tokenizer, valid_windows);                        // before the first step
//   const auto records = final_records(decoder, tokenizer, valid_windows, recipe.final);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prism/data/loader.h"
#include "prism/models/decoder.h"
#include "prism/records/run_event.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

struct FinalText {
  std::string name, separator;
  std::vector<std::string> files;
  template <class Visitor>
  void visit(Visitor& v) {
    v("name", name, "name, in records and reports, of a text whose loss is measured after training");
    v("separator", separator, "text between documents of a .txt file; empty: each file is one document");
    v("files", files, "files or folders, as prism eval takes them");
  }
};

struct FinalOptions {
  bool test = false;
  int64_t distance_sequences = 0;
  std::vector<FinalText> texts;
  template <class Visitor>
  void visit(Visitor& v) {
    v("test", test, "classifiers: after training, label the examples of the test split");
    v("distance_sequences", distance_sequences,
      "after training, measure each layer's attention distance on this many validation windows; 0: do not measure it");
    v("texts", texts, "texts whose losses are measured after training, document by document");
  }
};

/// Checks that the final measurements can be made.
///
/// @param tokenizer      null if the data has no tokenizer.
/// @param valid_windows  null if the data has no validation split.
/// @throws InputError for texts that do not exist, texts without a name or with the same name, texts without a
///         tokenizer, and distances without validation windows.
void check_final(const FinalOptions& options, const Tokenizer* tokenizer, const WindowLoader* valid_windows);

/// A TextLossRecord for each text, computed by evaluate_perplexity() with windows of the model's context, and the
/// attention distance (analysis/attention_distance.h) if the options ask for it.
///
/// @return  std::nullopt if a stop signal arrived (core/stop.h).
std::optional<std::vector<RunRecord>> final_records(Decoder decoder, const Tokenizer* tokenizer,
                                                    const WindowLoader* valid_windows, const FinalOptions& options);

}  // namespace prism

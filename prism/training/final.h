// What a run measures of its model when training ends, so that its records alone can be compared later.
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
    v("name", name, "name of the text in records and reports");
    v("separator", separator, "text between documents of a .txt file; empty: each file is one document");
    v("files", files, "files or folders, as prism eval takes them");
  }
};

struct FinalOptions {
  int64_t distance_sequences = 0;
  std::vector<FinalText> texts;
  template <class Visitor>
  void visit(Visitor& v) {
    v("distance_sequences", distance_sequences,
      "validation windows on which each layer's attention distance is measured; 0: none");
    v("texts", texts, "texts whose losses are recorded document by document");
  }
};

/// @param tokenizer      null: the data has none.
/// @param valid_windows  null: the data has no validation split.
/// @throws InputError for texts that are not there, have no name or one name twice, or that no tokenizer can read;
///         distances without validation windows.
void check_final(const FinalOptions& options, const Tokenizer* tokenizer, const WindowLoader* valid_windows);

/// A TextLossRecord for each text, as evaluate_perplexity() with windows of the model's context sees it, and the
/// attention distance (analysis/attention_distance.h).
///
/// @return  nothing if a stop signal came (core/stop.h).
std::optional<std::vector<RunRecord>> final_records(Decoder decoder, const Tokenizer* tokenizer,
                                                    const WindowLoader* valid_windows, const FinalOptions& options);

}  // namespace prism

// What a run measures of its model when training ends, so that its records alone can be compared later.
//
//   check_final(recipe.final, tokenizer);                        // before the first step
//   const auto records = final_records(decoder, *tokenizer, recipe.final);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prism/core/fields.h"
#include "prism/models/decoder.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

struct FinalText {
  std::string name, separator;
  std::vector<std::string> files;
  template <class Visitor>
  void visit(Visitor& v) {
    v("name", name, "of the text, in records and reports");
    v("separator", separator, "what stands between documents of a .txt; empty: a file is one");
    v("files", files, "files or folders, as prism eval takes them");
  }
};

struct FinalOptions {
  std::vector<FinalText> texts;
  template <class Visitor>
  void visit(Visitor& v) {
    v("texts", texts, "texts whose losses are recorded document by document");
  }
};

/// @param tokenizer  null: the data has none.
/// @throws InputError for texts that are not there, have no name or one name twice, or that no tokenizer can read.
void check_final(const FinalOptions& options, const Tokenizer* tokenizer);

/// A record for each text, as evaluate_perplexity() with windows of the model's context sees it:
///
///   {"kind": "text_loss", "text": NAME, "nats": sum, "tokens": predicted, "bytes": of the text,
///    "documents": [[nats, tokens], ...]}
///
/// @return  nothing if a stop signal came (core/stop.h).
std::optional<std::vector<Json>> final_records(Decoder decoder, const Tokenizer& tokenizer,
                                               const FinalOptions& options);

}  // namespace prism

#include "prism/training/objective/vocabulary.h"

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/data/loader.h"

namespace prism {

std::optional<Tokenizer> load_data_tokenizer(const std::filesystem::path& folder, const std::filesystem::path& data,
                                             const char* what, const std::string& made_by) {
  if (!is_there(folder / kTokenizerName)) return std::nullopt;
  auto tokenizer = Tokenizer::load(folder);
  PRISM_CHECK(made_by.empty() || made_by == tokenizer.fingerprint_text(), "train",
              "expected the tokenizer that made the {} of {} ({}); found another tokenizer.json ({}) in {}; restore "
              "it, or run prism tokenize again.",
              what, data.string(), made_by, tokenizer.fingerprint_text(), folder.string());
  return tokenizer;
}

void take_vocab_size(ModelConfig& model, int64_t of_data) {
  if (model.vocab_size == 0) model.vocab_size = of_data;
  PRISM_CHECK(model.vocab_size >= of_data, "train",
              "expected model.vocab_size of at least {}, the size of the data's tokenizer; found {}; leave it out.",
              of_data, model.vocab_size);
}

}  // namespace prism

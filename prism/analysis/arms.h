// The arms of an experiment: models that differ in one thing, each trained with several seeds. Checks which models can
// be compared, pairs their seeds, and measures them one after another.
//
//   const Arms arms = pair_arms(models, against);
//   const ArmDistances measured = measure_distances(arms, load, windows_of(shared_context(arms, 0)), 64);
//   compare_distances(measured.models, measured.against);
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "prism/analysis/attention/attention_distance.h"
#include "prism/models/model_config.h"

namespace prism {

/// What is known about a model before its weights are read.
struct ArmModel {
  std::string name;
  ModelConfig config;
  std::string tokenizer;             ///< its fingerprint
  int64_t end_of_text = -1;          ///< token id; -1: none
  std::optional<int64_t> seed = {};  ///< of the run, if known
  bool document_mask = false;        ///< true if the run was trained with it
};

/// The models of an experiment; `against` may be empty.
struct Arms {
  std::vector<ArmModel> models, against;

  /// All models, those of the first arm first.
  std::vector<const ArmModel*> all() const;
};

/// Checks that the models can be compared. If both arms have equally many models and all seeds are known, sorts
/// `against` so that its seeds are in the order of those of `models`.
/// @throws InputError for models of different depths or tokenizers, for arms with two head schedules, and for seeds of
///         one arm only.
Arms pair_arms(std::vector<ArmModel> models, std::vector<ArmModel> against);

/// Tokens per window: `wanted`, or if that is 0 the context that all models share.
/// @throws InputError if they share none, or if a model's context is shorter than `wanted`.
int64_t shared_context(const Arms& arms, int64_t wanted);

/// Whether the models were trained with a document mask. @throws InputError if only some of them were.
bool shared_document_mask(const Arms& arms);

struct ArmDistances {
  std::vector<AttentionDistance> models, against;
};

/// Measures all models on the same windows, and shows one progress line.
/// @param load       loads the model with this name. Only one model is in memory at a time.
/// @param windows    see measure_attention_distance().
/// @param sequences  number of windows, at least 1; all if there are fewer.
/// @throws FailedError when stopped by a signal.
ArmDistances measure_distances(const Arms& arms, const std::function<Decoder(const std::string&)>& load,
                               const WindowLoader& windows, int64_t sequences);

}  // namespace prism

// The unit in which training is counted.
#pragma once

namespace prism {

enum class TrainingUnit {
  tokens,   ///< of a language model
  examples  ///< of a classifier
};

/// "tokens" or "examples".
constexpr const char* noun_of(TrainingUnit unit) {
  return unit == TrainingUnit::tokens ? "tokens" : "examples";
}

}  // namespace prism

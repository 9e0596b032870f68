#include "prism/generation/sampler.h"

#include <algorithm>
#include <cmath>

#include "prism/core/error.h"

namespace prism {
namespace {

/// Number of the likeliest tokens sorted first for top_p; peaked distributions need no more.
constexpr size_t kFirstSorted = 128;

/// The first index of the highest logit.
size_t find_highest(std::span<const float> logits) {
  PRISM_CHECK(!logits.empty(), "sampler",
              "expected the logits of at least one token; found none; pass those of the last position.");
  size_t highest = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]))
      throw FailedError(
          "sampler",
          fmt::format("expected finite logits; found NaN for token {}; the weights are damaged; name another model.",
                      i));
    if (logits[i] > logits[highest]) highest = i;
  }
  if (!std::isfinite(logits[highest]))
    throw FailedError(
        "sampler",
        fmt::format("expected finite logits; found {} as the highest; the weights are damaged; name another model.",
                    logits[highest]));
  return highest;
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options) : options_(options), random_(static_cast<uint64_t>(options.seed)) {
  PRISM_CHECK(std::isfinite(options.temperature) && options.temperature >= 0, "sampler",
              "expected a temperature of at least 0 (0: always the likeliest token); found {}; raise it.",
              options.temperature);
  PRISM_CHECK(options.top_k >= 0, "sampler", "expected a top_k of at least 1, or 0 for all tokens; found {}; raise it.",
              options.top_k);
  PRISM_CHECK(options.top_p > 0 && options.top_p <= 1, "sampler",
              "expected a top_p above 0 and up to 1 (1: all tokens); found {}; change it.", options.top_p);
}

bool Sampler::likelier(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

int32_t Sampler::pick(std::span<const float> logits) {
  const size_t highest = find_highest(logits);
  if (options_.temperature == 0) return static_cast<int32_t>(highest);
  candidates_.clear();
  candidates_.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) candidates_.push_back({logits[i], static_cast<int32_t>(i), 0.0});
  if (options_.top_k > 0) keep_top_k();
  weigh(logits[highest]);
  if (options_.top_p < 1) keep_top_p();
  return draw();
}

void Sampler::keep_top_k() {
  const auto count = static_cast<size_t>(options_.top_k);
  if (count >= candidates_.size()) return;
  const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(candidates_.begin(), end, candidates_.end(), likelier);
  candidates_.erase(end, candidates_.end());
  // The order after nth_element depends on the library, but a seed must give the same draw everywhere.
  std::sort(candidates_.begin(), candidates_.end(), likelier);
}

void Sampler::weigh(float highest) {
  for (auto& candidate : candidates_)
    candidate.weight = std::exp((static_cast<double>(candidate.logit) - highest) / options_.temperature);
}

void Sampler::keep_top_p() {
  double total = 0;
  for (const auto& candidate : candidates_) total += candidate.weight;
  const double enough = options_.top_p * total;
  double mass = 0;
  size_t kept = 0;
  // Sorts portions that grow fourfold: the whole vocabulary is sorted only when top_p needs nearly all of it.
  for (size_t end = kFirstSorted; mass < enough && kept < candidates_.size(); end *= 4) {
    end = std::min(end, candidates_.size());
    const auto at = [&](size_t i) { return candidates_.begin() + static_cast<std::ptrdiff_t>(i); };
    std::nth_element(at(kept), at(end), candidates_.end(), likelier);
    std::sort(at(kept), at(end), likelier);
    while (mass < enough && kept < end) mass += candidates_[kept++].weight;
  }
  candidates_.resize(kept);
}

int32_t Sampler::draw() {
  double total = 0;
  for (const auto& candidate : candidates_) total += candidate.weight;
  const double chosen = random_.uniform() * total;
  double passed = 0;
  for (const auto& candidate : candidates_) {
    passed += candidate.weight;
    if (chosen < passed) return candidate.id;
  }
  // `passed` ends as exactly `total`, summed in the same order, and `chosen` is below it because uniform() < 1.
  throw InternalError("sampler", "drew beyond the last candidate.");
}

}  // namespace prism

// What models answer to the items of a task.
//
//   TaskModel model(folder.decoder, *folder.tokenizer);
//   for (std::span<const TaskItem> rest(items); !rest.empty();) {
//     const auto batch = next_items(rest);
//     for (auto& each : model.answer(task, batch)) answers.push_back(std::move(each));
//     rest = rest.subspan(batch.size());
//   }
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "prism/attention/prefill_meter.h"
#include "prism/evaluation/tasks/task.h"
#include "prism/generation/scorer.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// To one query.
struct Answer {
  double log_likelihood = 0;  ///< of the continuation, or of the whole text; nats
  bool is_greedy = false;     ///< no token of the continuation is less likely than another one
  std::string text;           ///< generation: what the model wrote

  bool operator==(const Answer&) const = default;
};

/// What a selector kept.
struct KeptCounts {
  int64_t kept_blocks = 0, visible_blocks = 0;  ///< key blocks that it kept, and could have kept
  double recall_sum = 0;                        ///< of the measured queries: shares of the exact attention
  int64_t recall_queries = 0;

  /// The share of key blocks that was kept; 1 without a selector.
  double density() const;
  /// The mean share of the exact attention; NaN if no query was measured.
  double recall() const { return recall_sum / static_cast<double>(recall_queries); }
  KeptCounts& operator+=(const KeptCounts& other);
  bool operator==(const KeptCounts&) const = default;
};

struct ItemAnswers {
  std::vector<Answer> answers;  ///< to the queries of the item
  int64_t cut = 0;              ///< queries whose beginning the context had no room for
  int64_t tokens = 0;           ///< that were scored or written
  KeptCounts kept;              ///< for all items that were computed together; their first item has them

  bool operator==(const ItemAnswers&) const = default;
};

/// The sum over all items.
KeptCounts kept_of(std::span<const ItemAnswers> answers);

/// The items at the beginning of `rest` that are answered together: some thousand tokens. It depends on the items
/// alone, so that an evaluation that is continued computes the same batches as one that was not interrupted.
std::span<const TaskItem> next_items(std::span<const TaskItem> rest);

/// A language model that answers.
class TaskModel {
 public:
  /// @param tokenizer  must outlive this. @param engine  as Scorer.
  /// @param meter      that of the engine's prefill, for the density of the answers; null: none.
  /// @throws InputError as Engine.
  TaskModel(Decoder decoder, const Tokenizer& tokenizer, const EngineOptions& engine = {},
            const PrefillMeter* meter = nullptr);

  /// Prompts of generation that leave no room for their answer lose their beginning.
  /// @param on_step  called with the number of tokens that a step has computed; for generation, with those of a prompt
  ///                 and its answer.
  /// @throws InputError as encode_query(); FailedError at SIGINT or SIGTERM (core/stop.h), and for log-likelihoods that
  ///         are not finite.
  std::vector<ItemAnswers> answer(const Task& task, std::span<const TaskItem> items,
                                  const Scorer::OnStep& on_step = {});

  /// Tokens that answer() reads of each of these texts.
  std::vector<int64_t> count_tokens(const Task& task, std::span<const TaskItem> items) const;

  /// @throws InputError for a task whose windows the context has no room for.
  void check(const Task& task) const;

  const Decoder& decoder() const { return decoder_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }

 private:
  friend class TaskPair;
  std::vector<ItemAnswers> answer(const Task& task, std::span<const TaskItem> items, int64_t context,
                                  const Scorer::OnStep& on_step);
  std::vector<ItemAnswers> generate(std::span<const TaskItem> items, int64_t context, const Scorer::OnStep& on_step);
  std::vector<int64_t> count_tokens(const Task& task, std::span<const TaskItem> items, int64_t context) const;
  /// Adds what was kept since the last call to the first of these items.
  void count_kept(std::vector<ItemAnswers>& answers);

  Decoder decoder_;
  const Tokenizer& tokenizer_;
  EngineOptions options_;
  const PrefillMeter* meter_;
  KeptCounts counted_;                  ///< so far; without recall
  std::vector<size_t> counted_shares_;  ///< of each head of each layer
  Scorer scorer_;
};

/// Two models that answer the same questions.
class TaskPair {
 public:
  /// @param a, b  must outlive this.
  TaskPair(TaskModel& a, TaskModel& b);

  /// @throws InputError for tokenizers that differ, unless all figures of the task count words and bytes of texts.
  void check(const Task& task) const;

  struct Answers {
    std::vector<ItemAnswers> a, b;
    /// KL(b || a) in nats for each token that was scored: how far a is from b. Empty for generation, for vocabularies
    /// of different sizes, and for tokenizers that differ.
    std::vector<double> divergences;
    double seconds_a = 0, seconds_b = 0;  ///< without those of the divergences
  };
  /// The smaller one of both, in tokens.
  int64_t context() const;
  /// Tokens that both models read of each of these texts, together.
  std::vector<int64_t> count_tokens(const Task& task, std::span<const TaskItem> items) const;
  /// As TaskModel::answer(), with context(). @throws InputError also as check().
  Answers answer(const Task& task, std::span<const TaskItem> items, const Scorer::OnStep& on_step = {});

 private:
  /// KL(b || a) of the tokens that are predicted from these hidden states, [N, d_model] of either model.
  void add_divergences(const torch::Tensor& hidden_a, const torch::Tensor& hidden_b,
                       std::vector<double>& divergences) const;

  TaskModel& a_;
  TaskModel& b_;
  bool same_tokens_;  ///< the tokenizers give every text the same ids
};

}  // namespace prism

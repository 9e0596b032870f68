#include "prism/evaluation/tasks/answers.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/stop.h"
#include "prism/evaluation/divergence.h"
#include "prism/evaluation/tasks/encode.h"
#include "prism/evaluation/tasks/row_values.h"
#include "prism/evaluation/text_windows.h"
#include "prism/generation/generate.h"

namespace prism {
namespace {

/// Bytes of texts that are answered together, some four of them a token. A token to write takes longer than one to
/// read.
constexpr size_t kBatchBytes = size_t{1} << 14, kBytesPerNewToken = 8;
/// Tokens whose hidden states are in memory together.
constexpr int64_t kMostPredictions = 32768;
/// Rows of logits that are compared together.
constexpr int64_t kComparedRows = 256;

/// The queries of some items as tokens.
struct ItemRequests {
  std::vector<ScoreRequest> requests;
  struct Place {
    size_t item = 0, query = 0;
  };
  std::vector<Place> places;         ///< of each request
  std::vector<ItemAnswers> answers;  ///< without what is to be computed
};

/// @param context  in tokens.
EncodedQuery encode(const Task& task, const TaskQuery& query, const TaskModel& model, int64_t context) {
  const auto& tokenizer = model.tokenizer();
  switch (task.kind) {
    case TaskKind::rolling:
      return encode_rolling(tokenizer, query.continuation, context);
    case TaskKind::halves:
      return encode_halves(tokenizer, query.continuation);
    case TaskKind::windows:
      return encode_windows(tokenizer, query.continuation, task.window, task.stride, model.decoder()->word_starts());
    default:
      return encode_query(tokenizer, query, context);
  }
}

ItemRequests encode_items(const Task& task, std::span<const TaskItem> items, const TaskModel& model, int64_t context) {
  ItemRequests made;
  for (size_t i = 0; i < items.size(); ++i) {
    auto& answers = made.answers.emplace_back();
    for (size_t q = 0; q < items[i].queries.size(); ++q) {
      auto encoded = encode(task, items[i].queries[q], model, context);
      answers.answers.push_back({.is_greedy = true, .text = {}});
      answers.cut += encoded.cut > 0;
      for (auto& each : encoded.requests) {
        each.budget_tokens = each.scored_from - each.unread;
        answers.tokens += each.predictions();
        made.requests.push_back(std::move(each));
        made.places.push_back({i, q});
      }
    }
  }
  return made;
}

std::vector<ItemAnswers> scored_answers(const ItemRequests& asked, std::span<const Score> scores) {
  auto answers = asked.answers;
  for (size_t i = 0; i < scores.size(); ++i) {
    auto& answer = answers[asked.places[i].item].answers[asked.places[i].query];
    answer.log_likelihood += scores[i].log_likelihood;
    answer.is_greedy = answer.is_greedy && scores[i].is_greedy;
    if (!std::isfinite(answer.log_likelihood))
      throw FailedError(kEvaluation, fmt::format("expected finite log-likelihoods; found {}; the weights are damaged; "
                                                 "name another model.",
                                                 answer.log_likelihood));
  }
  return answers;
}

/// The requests at the beginning of `rest` whose hidden states are in memory together: of a book, some windows.
std::span<const ScoreRequest> next_requests(std::span<const ScoreRequest> rest) {
  size_t count = 0;
  for (int64_t predictions = 0; count < rest.size(); ++count) {
    predictions += rest[count].predictions();
    if (count > 0 && predictions > kMostPredictions) break;
  }
  return rest.first(count);
}

/// `on_step` with a look at the signals that stop an evaluation.
Scorer::OnStep stoppable(const Scorer::OnStep& on_step) {
  return [&on_step](int64_t tokens) {
    check_not_stopped(kEvaluation);
    if (on_step) on_step(tokens);
  };
}

}  // namespace

std::span<const TaskItem> next_items(std::span<const TaskItem> rest) {
  size_t count = 0;
  for (size_t bytes = 0; count < rest.size(); ++count) {
    for (const auto& query : rest[count].queries) bytes += query.context.size() + query.continuation.size();
    if (!rest[count].targets.empty())
      bytes += static_cast<size_t>(rest[count].new_tokens > 0 ? rest[count].new_tokens : kDefaultNewTokens) *
               kBytesPerNewToken;
    if (count > 0 && bytes > kBatchBytes) break;
  }
  return rest.first(count);
}

double KeptCounts::density() const {
  return visible_blocks == 0 ? 1 : static_cast<double>(kept_blocks) / static_cast<double>(visible_blocks);
}

KeptCounts& KeptCounts::operator+=(const KeptCounts& other) {
  kept_blocks += other.kept_blocks;
  visible_blocks += other.visible_blocks;
  recall_sum += other.recall_sum;
  recall_queries += other.recall_queries;
  return *this;
}

KeptCounts kept_of(std::span<const ItemAnswers> answers) {
  KeptCounts sum;
  for (const auto& each : answers) sum += each.kept;
  return sum;
}

TaskModel::TaskModel(Decoder decoder, const Tokenizer& tokenizer, const EngineOptions& engine,
                     const PrefillMeter* meter)
    : decoder_(decoder), tokenizer_(tokenizer), options_(engine), meter_(meter), scorer_(decoder, engine) {}

void TaskModel::count_kept(std::vector<ItemAnswers>& answers) {
  if (meter_ == nullptr || answers.empty()) return;
  KeptCounts now, found;
  size_t number = 0;
  for (const auto& layer : meter_->layers())
    for (const auto& head : layer.heads) {
      now += {.kept_blocks = head.kept, .visible_blocks = head.visible};
      if (number == counted_shares_.size()) counted_shares_.push_back(0);
      // The new shares alone, so that their sum does not depend on what was computed before.
      const auto shares = std::span(head.shares).subspan(counted_shares_[number]);
      found += {.recall_sum = std::accumulate(shares.begin(), shares.end(), 0.0), .recall_queries = std::ssize(shares)};
      counted_shares_[number++] = head.shares.size();
    }
  found.kept_blocks = now.kept_blocks - counted_.kept_blocks;
  found.visible_blocks = now.visible_blocks - counted_.visible_blocks;
  counted_ = now;
  answers.front().kept = found;
}

std::vector<int64_t> TaskModel::count_tokens(const Task& task, std::span<const TaskItem> items) const {
  std::vector<int64_t> counts;
  for (const auto& item : items) {
    check_not_stopped(kEvaluation);
    auto& count = counts.emplace_back(0);
    for (const auto& query : item.queries)
      for (const auto& each : encode(task, query, *this, decoder_->config().context).requests)
        count += std::ssize(each.tokens) - each.unread - 1;
  }
  return counts;
}

std::vector<ItemAnswers> TaskModel::answer(const Task& task, std::span<const TaskItem> items,
                                           const Scorer::OnStep& on_step) {
  return answer(task, items, decoder_->config().context, on_step);
}

std::vector<ItemAnswers> TaskModel::answer(const Task& task, std::span<const TaskItem> items, int64_t context,
                                           const Scorer::OnStep& on_step) {
  std::vector<ItemAnswers> answers;
  if (task.kind == TaskKind::generation) {
    answers = generate(items, on_step);
  } else {
    const auto asked = encode_items(task, items, *this, context);
    std::vector<Score> scores;
    for (std::span<const ScoreRequest> rest(asked.requests); !rest.empty();) {
      const auto part = next_requests(rest);
      std::ranges::move(scorer_.score(part, stoppable(on_step)), std::back_inserter(scores));
      rest = rest.subspan(part.size());
    }
    answers = scored_answers(asked, scores);
  }
  count_kept(answers);
  return answers;
}

std::vector<ItemAnswers> TaskModel::generate(std::span<const TaskItem> items, const Scorer::OnStep& on_step) {
  std::vector<Prompt> prompts;
  for (const auto& item : items) {
    GenerateOptions options;
    options.sampler.temperature = 0;
    options.stop = item.stops;
    options.max_new_tokens = item.new_tokens;
    options.truncate_prompt = true;
    prompts.push_back({encode_prompt(tokenizer_, item.queries.at(0).context, options.bos), options});
  }
  std::vector<ItemAnswers> answers(items.size());
  generate_all(decoder_, tokenizer_, prompts, options_, [&](size_t i, Generation& written) {
    if (on_step) on_step(std::ssize(written.prompt_ids) + std::ssize(written.ids));
    answers[i].answers = {{.text = std::move(written.text)}};
    answers[i].cut = written.unread > 0 ? 1 : 0;
    answers[i].tokens = std::ssize(written.ids);
  });
  check_not_stopped(kEvaluation);  // a signal also cuts the texts that are being written
  return answers;
}

TaskPair::TaskPair(TaskModel& a, TaskModel& b)
    : a_(a), b_(b), same_tokens_(a.tokenizer().fingerprint() == b.tokenizer().fingerprint()) {}

void TaskPair::check(const Task& task) const {
  PRISM_CHECK(same_tokens_ || task.kind == TaskKind::rolling, kEvaluation,
              "expected two models with one tokenizer, so that they score the same tokens, for the task {}; found two "
              "tokenizers; name models with one, or compare them on wikitext or books, by words and bytes.",
              task.name);
}

void TaskPair::add_divergences(const torch::Tensor& hidden_a, const torch::Tensor& hidden_b,
                               std::vector<double>& divergences) const {
  if (a_.decoder_->config().vocab_size != b_.decoder_->config().vocab_size) return;
  for (int64_t first = 0; first < hidden_a.size(0); first += kComparedRows) {
    const int64_t rows = std::min(kComparedRows, hidden_a.size(0) - first);
    const auto nats = row_divergences(b_.decoder_->head.scored_logits(hidden_b.narrow(0, first, rows)),
                                      a_.decoder_->head.scored_logits(hidden_a.narrow(0, first, rows)))
                          .nats_N;
    divergences.insert(divergences.end(), nats.const_data_ptr<double>(), nats.const_data_ptr<double>() + rows);
  }
}

TaskPair::Answers TaskPair::answer(const Task& task, std::span<const TaskItem> items, const Scorer::OnStep& on_step) {
  check(task);
  const int64_t context = std::min(a_.decoder_->config().context, b_.decoder_->config().context);
  if (task.kind == TaskKind::generation || !same_tokens_)
    return {a_.answer(task, items, context, on_step), b_.answer(task, items, context, on_step), {}};
  const torch::NoGradGuard no_gradients;
  const auto asked_a = encode_items(task, items, a_, context), asked_b = encode_items(task, items, b_, context);
  Answers found;
  std::vector<Score> scores_a, scores_b;
  for (size_t first = 0; first < asked_a.requests.size();) {
    const auto part_a = next_requests(std::span(asked_a.requests).subspan(first));
    const auto part_b = std::span(asked_b.requests).subspan(first, part_a.size());
    const auto hidden_a = a_.scorer_.hidden(part_a, stoppable(on_step));
    const auto hidden_b = b_.scorer_.hidden(part_b, stoppable(on_step));
    std::ranges::move(a_.scorer_.scores_of(part_a, hidden_a), std::back_inserter(scores_a));
    std::ranges::move(b_.scorer_.scores_of(part_b, hidden_b), std::back_inserter(scores_b));
    add_divergences(hidden_a, hidden_b, found.divergences);
    first += part_a.size();
  }
  found.a = scored_answers(asked_a, scores_a);
  found.b = scored_answers(asked_b, scores_b);
  a_.count_kept(found.a);
  b_.count_kept(found.b);
  return found;
}

}  // namespace prism

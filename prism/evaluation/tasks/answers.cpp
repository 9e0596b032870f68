#include "prism/evaluation/tasks/answers.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/stop.h"
#include "prism/core/timer.h"
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
/// Tokens whose hidden states are in memory together, and tokens of requests.
constexpr int64_t kMostPredictions = 8192, kMostTokens = int64_t{1} << 18;
/// Rows of logits that are compared together.
constexpr int64_t kComparedRows = 256;

/// The queries of some items as tokens.
struct EncodedItems {
  std::vector<EncodedQuery> queries;
  /// What is asked at a time.
  struct Place {
    size_t item = 0, answer = 0;   ///< of that item
    size_t query = 0, window = 0;  ///< of that query
  };
  std::vector<Place> places;
  std::vector<ItemAnswers> answers;  ///< without what is to be computed

  const Window& window(const Place& place) const { return queries[place.query].windows[place.window]; }
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
      return encode_windows(tokenizer, query.continuation, task.window, task.stride);
    default:
      return encode_query(tokenizer, query, context);
  }
}

EncodedItems encode_items(const Task& task, std::span<const TaskItem> items, const TaskModel& model, int64_t context) {
  EncodedItems made;
  for (size_t i = 0; i < items.size(); ++i) {
    auto& answers = made.answers.emplace_back();
    for (size_t q = 0; q < items[i].queries.size(); ++q) {
      const auto& encoded = made.queries.emplace_back(encode(task, items[i].queries[q], model, context));
      answers.answers.push_back({.is_greedy = true, .text = {}});
      answers.cut += encoded.cut > 0;
      for (size_t w = 0; w < encoded.windows.size(); ++w) {
        answers.tokens += encoded.windows[w].predictions();
        made.places.push_back({.item = i, .answer = q, .query = made.queries.size() - 1, .window = w});
      }
    }
  }
  return made;
}

/// The places from `first` on that are in memory together: of a book, some windows.
std::span<const EncodedItems::Place> next_places(const EncodedItems& asked, size_t first) {
  const auto rest = std::span(asked.places).subspan(first);
  size_t count = 0;
  for (int64_t predictions = 0, tokens = 0; count < rest.size(); ++count) {
    const auto& window = asked.window(rest[count]);
    predictions += window.predictions();
    tokens += window.length;
    if (count > 0 && (predictions > kMostPredictions || tokens > kMostTokens)) break;
  }
  return rest.first(count);
}

std::vector<ScoreRequest> requests_of(const EncodedItems& asked, std::span<const EncodedItems::Place> places,
                                      const TaskModel& model) {
  std::vector<ScoreRequest> requests;
  for (const auto& place : places)
    requests.push_back(asked.queries[place.query].request(place.window, model.decoder()->word_starts()));
  return requests;
}

/// Adds scores of these places to the answers.
void add_scores(EncodedItems& asked, std::span<const EncodedItems::Place> places, std::span<const Score> scores) {
  for (size_t i = 0; i < scores.size(); ++i) {
    auto& answer = asked.answers[places[i].item].answers[places[i].answer];
    answer.log_likelihood += scores[i].log_likelihood;
    answer.is_greedy = answer.is_greedy && scores[i].is_greedy;
    if (!std::isfinite(answer.log_likelihood))
      throw FailedError(kEvaluation, fmt::format("expected finite log-likelihoods; found {}; the weights are damaged; "
                                                 "name another model.",
                                                 answer.log_likelihood));
  }
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

void TaskModel::check(const Task& task) const {
  PRISM_CHECK(task.kind != TaskKind::halves || decoder_->config().context >= kHalvesWindow, kEvaluation,
              "expected a model with a context of at least {} tokens for the task {}; found {}; lengthen it with "
              "--context, or leave the task out.",
              kHalvesWindow, task.name, decoder_->config().context);
}

std::vector<int64_t> TaskModel::count_tokens(const Task& task, std::span<const TaskItem> items) const {
  return count_tokens(task, items, decoder_->config().context);
}

std::vector<int64_t> TaskModel::count_tokens(const Task& task, std::span<const TaskItem> items, int64_t context) const {
  std::vector<int64_t> counts;
  for (const auto& item : items) {
    check_not_stopped(kEvaluation);
    auto& count = counts.emplace_back(0);
    for (const auto& query : item.queries)
      for (const auto& window : encode(task, query, *this, context).windows) count += window.length;
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
    answers = generate(items, context, on_step);
  } else {
    auto asked = encode_items(task, items, *this, context);
    for (size_t first = 0; first < asked.places.size();) {
      const auto places = next_places(asked, first);
      add_scores(asked, places, scorer_.score(requests_of(asked, places, *this), stoppable(on_step)));
      first += places.size();
    }
    answers = std::move(asked.answers);
  }
  count_kept(answers);
  return answers;
}

std::vector<ItemAnswers> TaskModel::generate(std::span<const TaskItem> items, int64_t context,
                                             const Scorer::OnStep& on_step) {
  std::vector<Prompt> prompts;
  std::vector<ItemAnswers> answers(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    GenerateOptions options;
    options.sampler.temperature = 0;
    options.stop = items[i].stops;
    options.max_new_tokens =
        items[i].new_tokens > 0 ? items[i].new_tokens : std::min(kDefaultNewTokens, std::max<int64_t>(1, context / 2));
    auto ids = encode_prompt(tokenizer_, items[i].queries.at(0).context, options.bos);
    const int64_t cut = std::ssize(ids) - std::max<int64_t>(1, context - options.max_new_tokens);
    if (cut > 0) {
      ids.erase(ids.begin(), ids.begin() + cut);
      answers[i].cut = 1;
    }
    prompts.push_back({std::move(ids), options});
  }
  generate_all(decoder_, tokenizer_, prompts, options_, [&](size_t i, Generation& written) {
    if (on_step) on_step(std::ssize(written.prompt_ids) + std::ssize(written.ids));
    answers[i].answers = {{.text = std::move(written.text)}};
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
              "tokenizers; name models with one, or {}.",
              task.name,
              task.kind == TaskKind::windows ? "evaluate each by itself and compare the perplexities per word or byte"
                                             : "compare them on wikitext or books, by words and bytes");
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

int64_t TaskPair::context() const {
  return std::min(a_.decoder_->config().context, b_.decoder_->config().context);
}

std::vector<int64_t> TaskPair::count_tokens(const Task& task, std::span<const TaskItem> items) const {
  auto counts = a_.count_tokens(task, items, context());
  const auto more = b_.count_tokens(task, items, context());
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += more[i];
  return counts;
}

TaskPair::Answers TaskPair::answer(const Task& task, std::span<const TaskItem> items, const Scorer::OnStep& on_step) {
  check(task);
  Answers found;
  const auto timed = [](double& seconds, const auto& compute) {
    const Timer timer;
    auto result = compute();
    seconds += timer.seconds();
    return result;
  };
  if (task.kind == TaskKind::generation || !same_tokens_) {
    found.a = timed(found.seconds_a, [&] { return a_.answer(task, items, context(), on_step); });
    found.b = timed(found.seconds_b, [&] { return b_.answer(task, items, context(), on_step); });
    return found;
  }
  const torch::NoGradGuard no_gradients;
  auto asked_a = timed(found.seconds_a, [&] { return encode_items(task, items, a_, context()); });
  auto asked_b = timed(found.seconds_b, [&] { return encode_items(task, items, b_, context()); });
  for (size_t i = 0; i < items.size(); ++i)
    PRISM_CHECK(asked_a.answers[i].tokens == asked_b.answers[i].tokens, kEvaluation,
                "expected two models that score the same tokens; found {} and {} in item {} of {}, because their "
                "tokenizers do not open texts alike; name models with one tokenizer.",
                asked_a.answers[i].tokens, asked_b.answers[i].tokens, i, task.name);
  for (size_t first = 0; first < asked_a.places.size();) {
    const auto places = next_places(asked_a, first);  // those of asked_b
    const auto requests_a = requests_of(asked_a, places, a_), requests_b = requests_of(asked_b, places, b_);
    const auto score = [&](TaskModel& model, const auto& requests, auto& asked) {
      auto hidden = model.scorer_.hidden(requests, stoppable(on_step));
      add_scores(asked, places, model.scorer_.scores_of(requests, hidden));
      return hidden;
    };
    const auto hidden_a = timed(found.seconds_a, [&] { return score(a_, requests_a, asked_a); });
    const auto hidden_b = timed(found.seconds_b, [&] { return score(b_, requests_b, asked_b); });
    add_divergences(hidden_a, hidden_b, found.divergences);
    first += places.size();
  }
  found.a = std::move(asked_a.answers);
  found.b = std::move(asked_b.answers);
  a_.count_kept(found.a);
  b_.count_kept(found.b);
  return found;
}

}  // namespace prism

#include "prism/data/loader.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/core/random.h"
#include "prism/data/labelled/dataset.h"
#include "prism/tokenizer/word_opening.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

/// Returns true if a word of the name (between underscores) is the split: train_000000.bin, fineweb_val_000001.bin.
bool belongs_to(const fs::path& path, const std::string& split) {
  if (path.extension() != ".bin") return false;
  const std::string words = fmt::format("_{}_", path.stem().string());
  if (words.find(fmt::format("_{}_", split)) != std::string::npos) return true;
  return split == "valid" && words.find("_val_") != std::string::npos;
}

/// The n-th value of a seeded permutation of [0, size): a Feistel network over the next power of four, repeated until
/// the value is below size (at most four times on average). Needs no memory, even for a billion windows.
uint64_t permuted(uint64_t n, uint64_t size, uint64_t key) {
  constexpr uint64_t kRounds = 6;
  const int bits = std::max(1, (static_cast<int>(std::bit_width(size - 1)) + 1) / 2);
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  do {
    uint64_t left = n >> bits, right = n & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t mixed = left ^ (mix64(key + mix64(right | round << 32)) & mask);
      left = right;
      right = mixed;
    }
    n = left << bits | right;
  } while (n >= size);
  return n;
}

uint64_t epoch_key(uint64_t seed, int64_t epoch) {
  return Random(seed, static_cast<uint64_t>(epoch)).next();
}

/// The number of windows per cycle for each part: proportional to weight, rounded by largest remainders to fill the
/// cycle.
std::vector<int64_t> slots_of(const std::vector<WeightedData>& mixture) {
  double sum = 0;
  for (const auto& part : mixture) {
    PRISM_CHECK(part.weight > 0 && std::isfinite(part.weight), "dataset",
                "expected positive weights of a mixture; found {} for {}; raise it or leave the folder out.",
                part.weight, part.data->folder().string());
    sum += part.weight;
  }
  std::vector<int64_t> slots;
  std::vector<std::pair<double, size_t>> remainders;
  int64_t left = WindowLoader::kCycle;
  for (size_t i = 0; i < mixture.size(); ++i) {
    const double share = mixture[i].weight / sum * static_cast<double>(WindowLoader::kCycle);
    PRISM_CHECK(share >= 1, "dataset",
                "expected weights of at least 1/{} of their sum; found {} of {} for {}; raise it.",
                WindowLoader::kCycle, mixture[i].weight, sum, mixture[i].data->folder().string());
    slots.push_back(static_cast<int64_t>(share));
    remainders.emplace_back(static_cast<double>(slots.back()) - share, i);
    left -= slots.back();
  }
  std::sort(remainders.begin(), remainders.end());
  for (int64_t i = 0; i < left; ++i) ++slots[remainders[static_cast<size_t>(i)].second];
  return slots;
}

void check_folder(const fs::path& folder) {
  std::error_code unreachable;
  const fs::file_status status = fs::status(folder, unreachable);
  PRISM_CHECK(fs::is_directory(status), "dataset",
              "expected a folder of token shards at {}; found {}; name one that prism tokenize made.", folder.string(),
              fs::exists(status)                          ? "a file"
              : status.type() == fs::file_type::not_found ? "nothing"
                                                          : unreachable.message());
}

void check_not_labelled(const fs::path& folder) {
  PRISM_CHECK(!is_labelled(folder), "dataset",
              "expected token shards in {}; found labelled examples; make shards with prism tokenize without --label.",
              folder.string());
}

}  // namespace

void check_numbers(const fs::path& file, int64_t vocab_size, int64_t end_of_text,
                   std::initializer_list<int64_t> counts) {
  PRISM_CHECK(vocab_size >= 1 && vocab_size <= INT32_MAX && end_of_text >= -1 && end_of_text < vocab_size, "dataset",
              "{}: expected a vocabulary that holds the opening token; found {} tokens and id {}; run prism tokenize "
              "again.",
              file.string(), vocab_size, end_of_text);
  for (const int64_t count : counts)
    PRISM_CHECK(count >= 0, "dataset", "{}: expected counts of at least 0; found {}; run prism tokenize again.",
                file.string(), count);
}

std::optional<DatasetInfo> read_dataset_info(const fs::path& folder) {
  const fs::path path = folder / kDatasetInfoName;
  if (!is_there(path)) return std::nullopt;
  check_not_labelled(folder);
  const auto info = fields_from_json<DatasetInfo>(read_json(path.string()), path.string());
  PRISM_CHECK(info.prism_format == 1, "dataset", "{}: expected prism_format 1; found {}; use a newer prism.",
              path.string(), info.prism_format);
  check_numbers(path, info.vocab_size, info.end_of_text,
                {info.train_tokens, info.train_documents, info.train_bytes, info.valid_tokens, info.valid_documents,
                 info.valid_bytes});
  const std::optional<int64_t> train = info.train_assistant_tokens, valid = info.valid_assistant_tokens;
  PRISM_CHECK(
      train.has_value() == valid.has_value() && train.value_or(0) >= 0 && valid.value_or(0) >= 0 &&
          train.value_or(0) <= info.train_tokens && valid.value_or(0) <= info.valid_tokens,
      "dataset",
      "{}: expected tokens of the assistant for both splits, from 0 to all of their tokens; found {} and {}; run "
      "prism tokenize --chat again.",
      path.string(), train ? std::to_string(*train) : "none", valid ? std::to_string(*valid) : "none");
  return info;
}

std::vector<fs::path> find_shards(const fs::path& folder, const std::string& split) {
  check_folder(folder);
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (belongs_to(entry.path(), split)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TokenDataset::TokenDataset(const fs::path& folder, const std::string& split) : folder_(folder), starts_{0} {
  check_folder(folder);
  check_not_labelled(folder);
  PRISM_CHECK(
      !is_there(folder / kUnfinishedName), "dataset",
      "expected a finished dataset in {}; found one whose writing was interrupted; run prism tokenize --force again.",
      folder.string());
  for (const fs::path& path : find_shards(folder, split)) {
    shards_.emplace_back(path);
    starts_.push_back(starts_.back() + shards_.back().size());
  }
  PRISM_CHECK(!shards_.empty(), "dataset",
              "expected shards named {}_*.bin in {}; found none; make them with prism tokenize{}.", split,
              folder.string(), split == "valid" ? " --valid-share or --valid" : "");
  info_ = read_dataset_info(folder);
  open_marks();
  if (!info_ || (split != "train" && split != "valid")) return;
  const int64_t expected = split == "train" ? info_->train_tokens : info_->valid_tokens;
  PRISM_CHECK(size() == expected, "dataset",
              "{}: expected {} {} tokens, as {} says; found {} in {} shards; one is missing or foreign, run prism "
              "tokenize again.",
              folder.string(), expected, split, kDatasetInfoName, size(), shards_.size());
}

void TokenDataset::open_marks() {
  if (!(info_ ? info_->has_marks() : is_there(marks_file(shards_.front().path())))) return;
  for (const TokenShard& shard : shards_) marks_.emplace_back(marks_file(shard.path()), shard.size());
}

template <class Use>
void TokenDataset::visit_shards(int64_t first, int64_t count, const Use& use) const {
  PRISM_ASSERT(first >= 0 && first <= size() && count <= size() - first, "dataset", "read of {} tokens at {} out of {}",
               count, first, size());
  auto shard = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin()) - 1;
  for (int64_t done = 0; done < count; ++shard) {
    const int64_t begin = first + done - starts_[shard];
    const int64_t end = std::min(shards_[shard].size(), begin + count - done);
    use(shard, begin, end);
    done += end - begin;
  }
}

void TokenDataset::read(int64_t first, std::span<int64_t> out) const {
  const int64_t limit = info_ ? info_->vocab_size : int64_t{INT32_MAX} + 1;
  size_t done = 0;
  visit_shards(first, std::ssize(out), [&](size_t shard, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t token = shards_[shard][i];
      PRISM_CHECK(token >= 0 && token < limit, "dataset",
                  "{}: expected tokens from 0 to {}; found {} at position {}; the shard is damaged or foreign, run "
                  "prism tokenize again.",
                  shards_[shard].path().string(), limit - 1, token, i);
      out[done++] = token;
    }
    shards_[shard].check_whole();
  });
}

void TokenDataset::read_marks(int64_t first, std::span<uint8_t> out) const {
  PRISM_ASSERT(has_marks(), "dataset", "read of marks in data without any");
  size_t done = 0;
  visit_shards(first, std::ssize(out), [&](size_t shard, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[done++] = marks_[shard][i];
    marks_[shard].check_whole();
  });
}

int64_t TokenDataset::word_opening(int64_t first, const std::vector<uint8_t>& starts) const {
  constexpr int64_t kAtOnce = 64;  // most words begin within a few tokens
  std::vector<int64_t> tokens;
  for (int64_t end = first; end > 0; end -= std::ssize(tokens)) {
    tokens.resize(static_cast<size_t>(std::min(kAtOnce, end)));
    read(end - std::ssize(tokens), tokens);
    if (const auto since = tokens_since_start(std::span<const int64_t>(tokens), starts)) return first - end + *since;
  }
  return first;
}

uint64_t TokenDataset::fingerprint() const {
  constexpr int64_t kStretches = 64, kLength = 512;
  uint64_t hash = mix64(static_cast<uint64_t>(size()));
  std::vector<int64_t> tokens(static_cast<size_t>(std::min(kLength, size())));
  std::vector<uint8_t> marks(has_marks() ? tokens.size() : 0);
  for (int64_t i = 0; i < kStretches; ++i) {
    const int64_t first = (size() - static_cast<int64_t>(tokens.size())) / (kStretches - 1) * i;
    read(first, tokens);
    for (const int64_t token : tokens) hash = mix64(hash + static_cast<uint64_t>(token));
    if (has_marks()) read_marks(first, marks);
    for (const uint8_t mark : marks) hash = mix64(hash + mark);
  }
  return hash;
}

WindowLoader::WindowLoader(const TokenDataset& data, WindowOptions options, int64_t end_of_text)
    : WindowLoader({{&data, 1.0}}, std::move(options), end_of_text) {}

WindowLoader::WindowLoader(const std::vector<WeightedData>& mixture, WindowOptions options, int64_t end_of_text)
    : options_(std::move(options)), end_of_text_(end_of_text) {
  PRISM_CHECK(options_.context >= 1 && options_.rows >= 1, "dataset",
              "expected a context and a number of rows of at least 1; found {} and {}; raise them.", options_.context,
              options_.rows);
  PRISM_CHECK(options_.stride >= 0, "dataset",
              "expected a stride of at least 1, or 0 for the context; found {}; change it.", options_.stride);
  if (options_.stride == 0) options_.stride = options_.context;
  PRISM_CHECK(!mixture.empty(), "dataset", "expected data; found an empty mixture; name a folder.");
  PRISM_ASSERT(options_.shuffle || mixture.size() == 1, "dataset", "a mixture in order");
  const auto slots = slots_of(mixture);
  for (size_t i = 0; i < mixture.size(); ++i) {
    const TokenDataset& data = *mixture[i].data;
    PRISM_CHECK(
        !options_.document_mask || end_of_text_ >= 0 || data.has_marks(), "dataset",
        "expected to know the opening token of documents for document_mask; found none in {}; add data.json with "
        "prism tokenize or set document_mask off.",
        data.folder().string());
    PRISM_CHECK(data.size() > options_.context, "dataset",
                "expected at least context + 1 = {} tokens in {}; found {}; use more text or a shorter context.",
                options_.context + 1, data.folder().string(), data.size());
    const int64_t windows = (data.size() - 1 - options_.context) / options_.stride + 1;
    parts_.push_back({&data, windows, slots[i]});
  }
}

int64_t WindowLoader::windows_per_epoch() const {
  int64_t sum = 0;
  for (const auto& part : parts_) sum += part.windows;
  return sum;
}

void WindowLoader::seek(int64_t position) {
  PRISM_CHECK(position >= 0, "dataset", "expected a position of at least 0; found {}; restore the checkpoint.",
              position);
  position_ = position;
}

void WindowLoader::lay_out_cycle(int64_t number) {
  const uint64_t key = Random(mix64(static_cast<uint64_t>(options_.seed)), static_cast<uint64_t>(number)).next();
  std::vector<int64_t> seen(parts_.size(), 0);
  cycle_ = {number, {}};
  for (uint64_t i = 0; i < kCycle; ++i) {
    auto slot = static_cast<int64_t>(permuted(i, kCycle, key));
    size_t part = 0;
    for (; slot >= parts_[part].slots; ++part) slot -= parts_[part].slots;
    cycle_.places.push_back({part, seen[part]++});
  }
}

WindowLoader::Place WindowLoader::place_of(int64_t n) {
  Place place{0, n};
  if (parts_.size() > 1) {
    if (n / kCycle != cycle_.number) lay_out_cycle(n / kCycle);
    place = cycle_.places[static_cast<size_t>(n % kCycle)];
    place.window += n / kCycle * parts_[place.part].slots;
  }
  if (!options_.shuffle) return place;
  const auto seed = static_cast<uint64_t>(options_.seed);
  const int64_t windows = parts_[place.part].windows, epoch = place.window / windows;
  const uint64_t key = epoch_key(place.part == 0 ? seed : mix64(seed + place.part), epoch);
  place.window = static_cast<int64_t>(
      permuted(static_cast<uint64_t>(place.window % windows), static_cast<uint64_t>(windows), key));
  return place;
}

Batch WindowLoader::next() {
  Batch batch;
  batch.context = options_.context;
  batch.rows = options_.shuffle ? options_.rows : std::clamp<int64_t>(parts_[0].windows - position_, 0, options_.rows);
  for (int64_t row = 0; row < batch.rows; ++row) {
    const Place place = place_of(position_ + row);
    add_row(batch, *parts_[place.part].data, place.window * options_.stride);
  }
  position_ += batch.rows;
  return batch;
}

void WindowLoader::add_row(Batch& batch, const TokenDataset& data, int64_t first) const {
  const auto context = static_cast<size_t>(options_.context);
  std::vector<int64_t> window(context + 1);
  data.read(first, window);
  std::vector<uint8_t> marks(data.has_marks() ? context + 1 : 0);
  if (data.has_marks()) data.read_marks(first, marks);
  if (!options_.word_starts.empty()) batch.word_openings.push_back(data.word_opening(first, options_.word_starts));
  batch.tokens.insert(batch.tokens.end(), window.begin(), window.end() - 1);
  for (size_t t = 1; t <= context; ++t) {
    const bool is_label = marks.empty() || (marks[t] & kAssistantMark) != 0;
    batch.labels.push_back(is_label ? window[t] : -1);
  }
  if (!options_.document_mask) return;
  int32_t document = 0;
  for (size_t t = 0; t < context; ++t) {
    const bool opens = marks.empty() ? window[t] == end_of_text_ : (marks[t] & kOpeningMark) != 0;
    if (t > 0 && opens) ++document;
    batch.documents.push_back(document);
  }
}

}  // namespace prism

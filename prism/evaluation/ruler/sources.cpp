#include "prism/evaluation/ruler/sources.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/data/lines.h"
#include "prism/evaluation/tasks/data_files.h"
#include "prism/evaluation/tasks/row_values.h"
#include "prism/template/library/text_pieces.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSystemWords = "/usr/share/dict/words";

fs::path find_source(const std::string& folder, const std::vector<std::string>& names, const std::string& what) {
  PRISM_CHECK(!folder.empty(), kEvaluation, "expected {}, as {}; found no folder; name one with --data.", what,
              join_names(names, "or"));
  for (const auto& name : names)
    if (const auto found = find_packed(fs::path(folder) / name)) return *found;
  throw InputError(kEvaluation,
                   fmt::format("expected {} in {}, as {}; found none; put the file there, or leave out the "
                               "tasks that need it.",
                               what, plain_line(folder), join_names(names, "or")));
}

bool is_common(std::string_view word) {
  return word.size() >= 3 && word.size() <= 10 &&
         std::ranges::all_of(word, [](char letter) { return letter >= 'a' && letter <= 'z'; });
}

Json json_of(const fs::path& path) {
  return parse_json(text_of_file(path), plain_line(path.string()));
}

/// Documents by their text, numbered in its order.
class DocumentList {
 public:
  void add(const std::string& text) { numbers_[text]; }
  std::vector<std::string> list() {
    std::vector<std::string> all;
    for (auto& [text, number] : numbers_) {
      number = all.size();
      all.push_back(text);
    }
    return all;
  }
  size_t number(const std::string& text) const { return numbers_.at(text); }

 private:
  std::map<std::string, size_t> numbers_;
};

RulerQuestions read_squad(const Json& json) {
  DocumentList documents;
  for (const auto& article : member_of(json, "data"))
    for (const auto& paragraph : member_of(article, "paragraphs")) documents.add(text_of(paragraph, "context"));
  RulerQuestions all{.documents = documents.list(), .questions = {}};
  for (const auto& article : json["data"]) {
    std::vector<size_t> of_article;
    for (const auto& paragraph : article["paragraphs"]) of_article.push_back(documents.number(paragraph["context"]));
    for (const auto& paragraph : article["paragraphs"]) {
      const size_t own = documents.number(paragraph["context"]);
      for (const auto& asked : member_of(paragraph, "qas")) {
        if (truth_of(asked, "is_impossible")) continue;
        RulerQuestion question{.query = text_of(asked, "question"), .answers = {}, .documents = {own}, .related = {}};
        for (const auto& answer : member_of(asked, "answers")) question.answers.push_back(text_of(answer, "text"));
        PRISM_CHECK(!question.answers.empty(), kEvaluation,
                    "expected answers to \"{}\", or is_impossible; found none; correct the file.",
                    short_line(question.query, 60));
        std::ranges::copy_if(of_article, std::back_inserter(question.related),
                             [&](size_t each) { return each != own; });
        all.questions.push_back(std::move(question));
      }
    }
  }
  return all;
}

RulerQuestions read_hotpot(const Json& json) {
  const auto text_of_document = [](const Json& document) {
    std::string text = document.at(0).get<std::string>() + "\n";
    for (const auto& sentence : document.at(1)) text += sentence.get<std::string>();
    return text;
  };
  DocumentList documents;
  for (const auto& row : json)
    for (const auto& document : member_of(row, "context")) documents.add(text_of_document(document));
  RulerQuestions all{.documents = documents.list(), .questions = {}};
  for (const auto& row : json) {
    RulerQuestion question{
        .query = text_of(row, "question"), .answers = {text_of(row, "answer")}, .documents = {}, .related = {}};
    for (const auto& document : row["context"])
      question.documents.push_back(documents.number(text_of_document(document)));
    all.questions.push_back(std::move(question));
  }
  return all;
}

/// Reads questions, and names the file if they are not as they should be.
RulerQuestions read_questions(const fs::path& path, RulerQuestions (*read)(const Json&)) {
  const auto json = json_of(path);
  try {
    auto questions = read(json);
    PRISM_CHECK(!questions.questions.empty(), kEvaluation, "expected questions; found none; name another file.");
    return questions;
  } catch (const InputError& error) {
    throw InputError(kEvaluation, fmt::format("{}: {}", plain_line(path.string()), error.sentence()));
  } catch (const nlohmann::json::exception&) {
    throw InputError(kEvaluation, fmt::format("{}: expected the layout of the published file; found another one; name "
                                              "the published file.",
                                              plain_line(path.string())));
  }
}

}  // namespace

RulerSources::RulerSources(std::string folder, std::string words)
    : folder_(std::move(folder)), words_(std::move(words)) {}

const std::vector<std::string>& RulerSources::essay_words() {
  if (!essay_words_.empty()) return essay_words_;
  const auto path = find_source(
      folder_, {"paul_graham_essays.jsonl", "long_context/paul_graham_essays.jsonl", "essays.txt"}, "essays");
  std::string text;
  if (path.string().find(".jsonl") == std::string::npos) {
    text = text_of_file(path);
  } else {
    JsonLines rows(path.string(), kEvaluation);
    while (const auto row = rows.next()) {
      PRISM_CHECK(row->contains("text") && (*row)["text"].is_string(), kEvaluation,
                  "{}: expected a row with the member text, a text; found another one; correct it.", rows.place());
      text += (*row)["text"].get<std::string>() + " ";
    }
  }
  for (const auto word : jinja::split_words(text)) essay_words_.emplace_back(word);
  PRISM_CHECK(!essay_words_.empty(), kEvaluation, "expected words in {}; found none; name another file.",
              plain_line(path.string()));
  return essay_words_;
}

const std::vector<std::string>& RulerSources::common_words() {
  if (!common_words_.empty()) return common_words_;
  std::optional<fs::path> path;
  if (!words_.empty()) {
    path = find_packed(words_);
  } else {
    if (!folder_.empty()) path = find_packed(fs::path(folder_) / "words.txt");
    if (!path && is_there(kSystemWords)) path = kSystemWords;
  }
  PRISM_CHECK(path, kEvaluation,
              "expected a list of words, {}; found none; install Debian's package wamerican, or name a list with "
              "--words.",
              words_.empty() ? fmt::format("words.txt in the folder --data or {}", kSystemWords) : plain_line(words_));
  std::set<std::string> words;
  for (auto& word : lines_of_file(*path))
    if (is_common(word)) words.insert(std::move(word));
  common_words_.assign(words.begin(), words.end());
  PRISM_CHECK(common_words_.size() >= 100, kEvaluation,
              "expected at least 100 words of 3 to 10 lower-case letters in {}; found {}; name another list with "
              "--words.",
              plain_line(path->string()), common_words_.size());
  return common_words_;
}

const RulerQuestions& RulerSources::squad() {
  if (squad_.questions.empty())
    squad_ = read_questions(find_source(folder_, {"dev-v2.0.json", "squad.json"}, "SQuAD 2"), read_squad);
  return squad_;
}

const RulerQuestions& RulerSources::hotpot() {
  if (hotpot_.questions.empty())
    hotpot_ = read_questions(find_source(folder_, {"hotpot_dev_distractor_v1.json", "hotpotqa.json"}, "HotpotQA"),
                             read_hotpot);
  return hotpot_;
}

}  // namespace prism

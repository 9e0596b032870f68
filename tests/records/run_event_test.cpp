#include "prism/records/run_event.h"

#include <gtest/gtest.h>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/core/random.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

const RecordHead kHead = {7, {TrainingUnit::tokens, 28672}, 1.5};

/// One record of every kind and the line it must be written as.
const std::vector<std::pair<RunRecord, std::string>>& examples() {
  static const std::vector<std::pair<RunRecord, std::string>> all = {
      {StartRecord{.name = "novels",
                   .schedule = "1x1,2x1",
                   .parameters = 100,
                   .flops_per_token = 200,
                   .vocab_size = 8,
                   .d_model = 16,
                   .context = 4,
                   .layers = {{1, 1, 16, 24}, {2, 1, 8, 24}},
                   .seed = 3,
                   .total = {TrainingUnit::tokens, 4096},
                   .dtype = "float32",
                   .metric = {},
                   .tokenizer = "abc",
                   .validation = "def, 64 tokens",
                   .machine = {"0.1.0", "avx2", 2, "CPU", "cpu", 500.5}},
       R"({"kind":"run","step":7,"tokens":28672,"seconds":1.5,"prism_format":1,"name":"novels","schedule":"1x1,2x1",)"
       R"("parameters":100,"flops_per_token":200,"vocab_size":8,"d_model":16,"context":4,"layers":[{"heads":1,)"
       R"("kv_heads":1,"head_dim":16,"ffn_width":24},{"heads":2,"kv_heads":1,"head_dim":8,"ffn_width":24}],"seed":3,)"
       R"("total_tokens":4096,"dtype":"float32","tokenizer":"abc","validation":"def, 64 tokens","version":"0.1.0",)"
       R"("isa":"avx2","threads":2,"cpu":"CPU","device":"cpu","peak_gflops":500.5})"},
      {ResumeRecord{{"0.1.0", "avx2", 2, "CPU", "cuda:0", {}}},
       R"({"kind":"resume","step":7,"tokens":28672,"seconds":1.5,"version":"0.1.0","isa":"avx2","threads":2,)"
       R"("cpu":"CPU","device":"cuda:0"})"},
      {TrainRecord{4.25, 0.5, 1.0, {TrainingUnit::tokens, 4096.0}, 0.75, 0.125},
       R"({"kind":"train","step":7,"tokens":28672,"seconds":1.5,"loss":4.25,"learning_rate":0.5,"grad_norm":1.0,)"
       R"("tokens_per_s":4096.0,"peak_share":0.75,"wait_share":0.125})"},
      {EvalRecord{"val_loss", 4.5, {TrainingUnit::tokens, 64}, {}},
       R"({"kind":"eval","step":7,"tokens":28672,"seconds":1.5,"val_loss":4.5,"val_tokens":64})"},
      {DiagnosticsRecord{
           4.25, 20.5, 3.5, {{{0, 1, 0.5, {0.5}}}, {{0, 1.5, {0.25}}, {1, NAN, {}}}, {{"a.weight", 1.0, 2.0, 0.5}}}},
       R"({"kind":"diagnostics","step":7,"tokens":28672,"seconds":1.5,"loss":4.25,"step_ms":20.5,"looked_ms":3.5,)"
       R"("entropy":[{"layer":0,"heads":1,"entropy":0.5,"head_entropies":[0.5]}],"activations":[{"layer":0,)"
       R"("residual_rms":1.5,"dead_units":[0.25]},{"layer":1,"residual_rms":null,"dead_units":[]}],)"
       R"("parameters":[{"name":"a.weight","gradient":1.0,"weight":2.0,"update":0.5}]})"},
      {WarningRecord{"entropy 1", "almost one-hot"},
       R"({"kind":"warning","step":7,"tokens":28672,"seconds":1.5,"sign":"entropy 1","text":"almost one-hot"})"},
      {SampleRecord{"Once", 0.5, " upon"},
       R"({"kind":"sample","step":7,"tokens":28672,"seconds":1.5,"prompt":"Once","temperature":0.5,"text":" upon"})"},
      {DivergedRecord{"the queries of layer 1"},
       R"({"kind":"diverged","step":7,"tokens":28672,"seconds":1.5,"place":"the queries of layer 1"})"},
      {TextLossRecord{"A", 400.5, 100, 500, {{400.5, 100}}},
       R"({"kind":"text_loss","step":7,"tokens":100,"seconds":1.5,"text":"A","nats":400.5,"bytes":500,)"
       R"("documents":[[400.5,100]]})"},
      {AttentionDistance{{{0, 2, 8, 57.5, 1.5, {56.0, 59.0}}}, 64, 256, 8192},
       R"({"kind":"attention_distance","step":7,"tokens":28672,"seconds":1.5,"layers":[{"layer":0,"heads":2,)"
       R"("head_dim":8,"distance":57.5,"distance_sd":1.5,"head_distances":[56.0,59.0]}],"sequences":64,"context":256,)"
       R"("queries":8192})"},
      {ClassificationRecord{"test", 3, 0.5, 0.25, 0.75, 1.5, {{1, 1}, {0, 1}}, {{1, 0, 1}}, {0.5}, {0.25}},
       R"({"kind":"classification","step":7,"tokens":28672,"seconds":1.5,"split":"test","labelled":3,"accuracy":0.5,)"
       R"("balanced_accuracy":0.25,"macro_f1":0.75,"loss":1.5,"confusion":[[1,1],[0,1]],"head_share":[0.5],)"
       R"("kept_share":[0.25],"wrong":[[1,0,1]]})"},
      {EndRecord{"val_loss", 4.5, 4.25, {TrainingUnit::tokens, 1000.5}, 1048576},
       R"({"kind":"end","step":7,"tokens":28672,"seconds":1.5,"val_loss":4.5,"best_val_loss":4.25,)"
       R"("tokens_per_s":1000.5,"peak_memory_bytes":1048576})"}};
  return all;
}

RunEvent read(const std::string& line, const std::string& metric = "val_loss") {
  return read_run_event(parse_json(line, "line"), "r, record 2", metric);
}

TEST(RunEvent, OfEveryKindIsWrittenAsItAlwaysWasAndReadAgain) {
  EXPECT_EQ(examples().size(), std::variant_size_v<RunRecord> - 1) << "an example a kind";
  for (const auto& [record, line] : examples()) {
    EXPECT_EQ(to_text(run_event_to_json({kHead, record})), line);
    const auto event = read(line);
    EXPECT_EQ(event.record.index(), record.index()) << line;
    EXPECT_EQ(to_text(run_event_to_json(event)), line);
  }
}

TEST(RunEvent, LeavesOutWhatThereIsNotAndKeepsTheHeadOfTheStep) {
  EXPECT_EQ(to_text(run_event_to_json({kHead, EndRecord{"val_loss", {}, {}, {TrainingUnit::tokens, 2}, 1}})),
            R"({"kind":"end","step":7,"tokens":28672,"seconds":1.5,"tokens_per_s":2.0,"peak_memory_bytes":1})");
  const auto event = read(R"({"kind":"train","tokens":5,"loss":null,"loose":"x"})");
  EXPECT_EQ(event.head.trained.tokens, 5);
  EXPECT_FALSE(event.head.step || event.head.seconds);
  const auto& train = std::get<TrainRecord>(event.record);
  EXPECT_TRUE(std::isnan(train.loss) && std::isnan(train.rate.value()) && !train.peak_share);
}

TEST(RunEvent, OfAClassifierCountsExamples) {
  const RecordHead head = {7, {TrainingUnit::examples, 224}, 1.5};
  const std::string eval =
      to_text(run_event_to_json({head, EvalRecord{"val_accuracy", 0.75, {TrainingUnit::examples, 64}, 0.5}}));
  EXPECT_EQ(eval, R"({"kind":"eval","step":7,"examples":224,"seconds":1.5,"val_accuracy":0.75,"val_examples":64,)"
                  R"("val_loss":0.5})");
  const auto read_back = read(eval, "val_accuracy");
  EXPECT_EQ(read_back.head.trained.value(), 224);
  EXPECT_EQ(std::get<EvalRecord>(read_back.record).val_loss, 0.5);
  const auto train = read(R"({"kind":"train","examples":5,"examples_per_s":12.5})");
  EXPECT_EQ(std::get<TrainRecord>(train.record).rate.value(), 12.5);
  EXPECT_FALSE(train.head.trained.tokens);
}

TEST(RunEvent, OfAnotherMetricHasItsName) {
  const EvalRecord eval{"accuracy", 0.75, {TrainingUnit::tokens, 64}, {}};
  const std::string line = to_text(run_event_to_json({kHead, eval}));
  EXPECT_EQ(line, R"({"kind":"eval","step":7,"tokens":28672,"seconds":1.5,"accuracy":0.75,"val_tokens":64})");
  EXPECT_EQ(std::get<EvalRecord>(read(line, "accuracy").record).value, 0.75);
  EXPECT_TRUE(std::isnan(std::get<EvalRecord>(read(line).record).value));
  EXPECT_EQ(std::get<EndRecord>(read(R"({"kind":"end","accuracy":0.5,"best_accuracy":0.75})", "accuracy").record).best,
            0.75);
  RunEventReader reader("r");
  reader.read(parse_json(R"({"kind":"run","metric":{"name":"accuracy","less_is_better":false}})", "line"));
  EXPECT_EQ(std::get<EvalRecord>(reader.read(parse_json(line, "line")).record).value, 0.75);
}

TEST(RunEvent, OfAnUnknownKindIsPassedOver) {
  EXPECT_TRUE(std::holds_alternative<UnknownRecord>(read(R"({"kind":"entropy","loss":"high"})").record));
  EXPECT_TRUE(std::holds_alternative<UnknownRecord>(read("{}").record));
}

TEST(RunEvent, NamesAFieldOfTheWrongType) {
  const auto refusal = [](const std::string& line) { return message_of([&] { read(line); }); };
  EXPECT_NE(refusal(R"({"kind":"train","loss":"low"})").find("r, record 2: expected a number as loss; found \"low\""),
            std::string::npos);
  EXPECT_NE(refusal(R"({"kind":7})").find("text as kind"), std::string::npos);
  EXPECT_NE(refusal(R"({"kind":"run","seed":1e300})").find("a whole number as seed"), std::string::npos);
  EXPECT_NE(refusal(R"({"kind":"run","layers":[3]})").find("a list of objects as layers"), std::string::npos);
  EXPECT_NE(refusal(R"({"kind":"run","metric":3})").find("an object as metric"), std::string::npos);
  EXPECT_NE(refusal(R"({"kind":"text_loss","documents":[[1]]})").find("pairs of numbers as documents"),
            std::string::npos);
  EXPECT_NE(
      refusal(R"({"kind":"diagnostics","entropy":[{"head_entropies":["x"]}]})").find("a list of numbers as head_entr"),
      std::string::npos);
}

TEST(RunEvents, BeginWithTheOnlyRecordThatNamesTheMetric) {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& text, std::optional<int64_t> bytes = {}) {
    write_file(folder.path() / kRunRecordsName, text);
    return read_run_events(folder.path(), bytes);
  };
  const std::string run = "{\"kind\":\"run\",\"prism_format\":1}\n", eval = "{\"kind\":\"eval\",\"val_loss\":5}\n",
                    other = "{\"kind\":\"run\",\"metric\":{\"name\":\"accuracy\"}}\n";
  EXPECT_EQ(read(run + eval).size(), 2u);
  EXPECT_REFUSED(read(run + eval + other), "record 3: expected a record of kind \"run\" at the beginning only");
  EXPECT_REFUSED(read("{\"kind\":\"run\",\"prism_format\":9}\n"), "expected prism_format 1; found 9");
  const auto length = static_cast<int64_t>(run.size());
  EXPECT_EQ(read(run + "no JSON", length).size(), 1u) << "what comes after the checkpoint's records is not read";
  EXPECT_EQ(read(run, 0).size(), 0u);
  EXPECT_REFUSED(read(run + eval, length + 3), "a line to end at byte");
  EXPECT_REFUSED(read(run, length + 1), "expected at least");
}

TEST(RunEvent, SurvivesAnyChangeOfALine) {
  Random random(1);
  const std::string values[] = {"null", "true", "-1",   "1e308",  "\"x\"",
                                "[]",   "{}",   "[[]]", "[null]", "18446744073709551615"};
  int64_t read_whole = 0, refused = 0;
  for (int round = 0; round < 200; ++round)
    for (const auto& [record, line] : examples()) {
      Json json = parse_json(line, "line");
      auto* place = &json;
      while (!place->empty() && (place->is_object() || place->is_array()) && (place == &json || random.below(2) == 0))
        place = &*std::next(place->begin(), static_cast<std::ptrdiff_t>(random.below(place->size())));
      *place = parse_json(values[random.below(std::size(values))], "value");
      try {
        const RunEvent event = read_run_event(json, "r", "val_loss");
        if (!std::holds_alternative<UnknownRecord>(event.record)) run_event_to_json(event);
        ++read_whole;
      } catch (const InputError&) {
        ++refused;
      }
    }
  EXPECT_GT(read_whole, 100);
  EXPECT_GT(refused, 100);
}

TEST(MetricName, IsSmallLettersAndNoOtherFieldOfItsRecords) {
  for (const char* name : {"val_loss", "accuracy", "f1", "top_5"}) EXPECT_TRUE(is_metric_name(name)) << name;
  for (const char* name : {"", "F1", "a b", "tokens", "step", "kind", "seconds", "val_tokens", "tokens_per_s",
                           "peak_memory_bytes", "examples", "val_examples", "examples_per_s"})
    EXPECT_FALSE(is_metric_name(name)) << name;
  EXPECT_FALSE(is_metric_name(std::string(41, 'a')));
}

}  // namespace
}  // namespace prism

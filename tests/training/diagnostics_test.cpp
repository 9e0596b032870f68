// Step diagnostics and divergence warnings.
#include "prism/training/diagnostics.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>

#include "prism/checkpoint/weight_map.h"
#include "prism/layers/linear.h"
#include "prism/models/batch.h"
#include "prism/training/optimizer/optimizer.h"
#include "tests/generation/tiny_model.h"

namespace prism {
namespace {

Batch batch_of(int64_t rows, int64_t context) {
  torch::manual_seed(4);
  Batch batch;
  batch.rows = rows;
  batch.context = context;
  const auto tokens = torch::randint(kTinyVocab, {rows * context}, torch::kLong);
  batch.tokens.assign(tokens.data_ptr<int64_t>(), tokens.data_ptr<int64_t>() + tokens.numel());
  batch.labels = batch.tokens;
  return batch;
}

/// Language modelling on given batches.
class GivenBatches : public Objective {
 public:
  GivenBatches(Decoder decoder, std::vector<Batch> batches)
      : decoder_(std::move(decoder)), batches_(std::move(batches)) {}
  void open(Recipe&) override {}
  void make_model(const Recipe&, torch::ScalarType) override {}
  std::vector<WeightEntry> weights() const override { return decoder_->weights(); }
  torch::Tensor forward(int64_t batch, const BatchView& view) override {
    BatchTensors tensors(batches_.at(static_cast<size_t>(batch)));
    tensors.context.probe = view.probe;
    return decoder_(tensors.tokens_BT, tensors.context);
  }
  torch::Tensor loss(int64_t batch, const torch::Tensor& hidden) override {
    return decoder_->head.loss(hidden, BatchTensors(batches_.at(static_cast<size_t>(batch))).labels_BT);
  }
  bool has_validation() const override { return false; }
  std::optional<Validation> validate() override { return std::nullopt; }
  std::string fingerprint() const override { return ""; }

 private:
  Decoder decoder_;
  std::vector<Batch> batches_;
};

void backward(Decoder& decoder, const Batch& batch) {
  GivenBatches objective(decoder, {batch});
  objective.loss(0, objective.forward(0, {})).backward();
}

std::string place_of(Decoder& decoder, const std::vector<Batch>& batches) {
  GivenBatches objective(decoder, batches);
  return place_of_divergence(objective, decoder->config(), 0, static_cast<int64_t>(batches.size()));
}

/// Compares every row with norms in float64, and every update with the change of the weights.
TEST(StepDiagnostics, GivesGradientsWeightsAndTheTrueUpdate) {
  for (const std::string kind : {"sgd", "adamw", "muon"}) {
    auto decoder = tiny_decoder();
    auto optimizer = make_optimizer(decoder->weights(), {.kind = kind, .clip = 0.5}, torch::kFloat);
    for (int step = 0; step < 2; ++step) {  // the second step has momentum
      backward(decoder, batch_of(2, 20));
      const auto rows = file_tensors(decoder->weights());
      std::vector<torch::Tensor> before;
      for (const auto& row : rows) before.push_back(row.tensor.detach().to(torch::kDouble).clone());
      const auto head = decoder->blocks[1]->attention.qkv.weight.tensor().grad().clone();
      GivenBatches objective(decoder, {batch_of(2, 20)});
      StepDiagnostics diagnostics(objective, decoder->config(), 0);
      optimizer.step(0.01, optimizer.gradient_norm());
      const auto report = diagnostics.finish();
      ASSERT_EQ(report.parameters.size(), rows.size());
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto& parameter = report.parameters[i];
        const double weight = before[i].norm().item<double>();
        const double change = (rows[i].tensor.to(torch::kDouble) - before[i]).norm().item<double>();
        EXPECT_EQ(parameter.name, rows[i].name);
        EXPECT_NEAR(parameter.weight, weight, 1e-5 * weight) << parameter.name;
        EXPECT_NEAR(parameter.update, change / weight, 1e-5 * change / weight) << kind << " " << parameter.name;
        EXPECT_GT(parameter.update, 0) << parameter.name;
        if (parameter.name != "model.layers.1.self_attn.k_proj.weight") continue;
        const auto& layer = decoder->config().layers[1];
        const auto keys = head.narrow(0, layer.heads * layer.head_dim, layer.kv_heads * layer.head_dim);
        const double gradient = keys.to(torch::kDouble).norm().item<double>();
        EXPECT_NEAR(parameter.gradient, gradient, 1e-5 * gradient);
      }
      ASSERT_EQ(report.entropy.size(), 3u);
      EXPECT_GT(report.entropy[0].entropy, 0);
      ASSERT_EQ(report.activations.size(), 4u);
      EXPECT_GT(report.activations[3].residual_rms, 0);
    }
  }
}

TEST(PlaceOfDivergence, IsInTheForwardPassOrInTheGradientNearestToTheHead) {
  auto decoder = tiny_decoder();
  backward(decoder, batch_of(1, 8));
  EXPECT_EQ(place_of(decoder, {batch_of(1, 8)}), "");
  {
    torch::NoGradGuard no_gradients;
    decoder->blocks[0]->attention.out.weight.tensor().mutable_grad()[0][0] = INFINITY;
    decoder->blocks[2]->attention.out.weight.tensor().mutable_grad()[0][0] = INFINITY;
  }
  EXPECT_EQ(place_of(decoder, {batch_of(1, 8)}), "the gradient of model.layers.2.self_attn.o_proj.weight");
  {
    torch::NoGradGuard no_gradients;
    decoder->blocks[1]->attention.qkv.weight.tensor()[0][0] = NAN;
  }
  EXPECT_EQ(place_of(decoder, {batch_of(1, 8)}), "the queries of layer 1");
}

TEST(PlaceOfDivergence, IsLookedForInAllBatchesOfAStep) {
  auto config = tiny_decoder()->config();
  config.tied = false;
  auto decoder = make_decoder(config);
  Batch good = batch_of(1, 8), bad = batch_of(1, 8);
  std::fill(good.tokens.begin(), good.tokens.end(), 1);
  bad.tokens.back() = 2;
  torch::NoGradGuard no_gradients;
  decoder->embedding.weight.tensor()[2].fill_(INFINITY);
  EXPECT_EQ(place_of(decoder, {good}), "");
  EXPECT_EQ(place_of(decoder, {good, bad}), "the residual stream before layer 0");
}

StepReport report_of(double rms, double update, double entropy) {
  StepReport report;
  report.activations = {{.layer = 0, .residual_rms = 1, .dead_units = {}},
                        {.layer = 1, .residual_rms = rms, .dead_units = {}}};
  report.entropy = {{.layer = 0, .heads = 1, .entropy = entropy, .head_entropies = {entropy}}};
  report.parameters = {{"w", 1, 1, update}};
  return report;
}

TEST(DivergenceWatch, WarnsOnceOfEachSignOfALook) {
  const Linear linear({.in = 2, .out = {{{"b"}, 2}}, .bias = true});
  DivergenceWatch watch(weights_of(linear));
  EXPECT_TRUE(watch.look(report_of(600, 0.1, 1)).empty()) << "large, but from the start";
  EXPECT_TRUE(watch.look(report_of(1100, 0.1, 1)).empty()) << "larger, but not doubled";
  auto warnings = watch.look(report_of(3000, 0.1, 1));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].sign, "residual");
  EXPECT_NE(warnings[0].text.find("before the LM head grows"), std::string::npos) << warnings[0].text;
  EXPECT_TRUE(watch.look(report_of(9000, 0.1, 0.15)).empty()) << "said already";
  auto of_bias = report_of(9000, 1.5, 1);
  of_bias.parameters[0].name = "b.bias";
  EXPECT_TRUE(watch.look(of_bias).empty()) << "biases begin small";
  warnings = watch.look(report_of(9000, 1.5, 0.01));
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[0].text.find("w by 1.5 times"), std::string::npos) << warnings[0].text;
  EXPECT_NE(warnings[1].text.find("layer 0 has become almost one-hot"), std::string::npos) << warnings[1].text;
  DivergenceWatch of_sharp_heads;
  EXPECT_TRUE(of_sharp_heads.look(report_of(1, 0.1, 0.01)).empty()) << "low from the start";
  EXPECT_TRUE(of_sharp_heads.look(report_of(1, 0.1, 0.009)).empty());
  DivergenceWatch resumed;
  resumed.look(report_of(600, 0.1, 1));
  resumed.recall("residual");
  EXPECT_TRUE(resumed.look(report_of(3000, 0.1, 1)).empty()) << "said before it was resumed";
}

TEST(DivergenceWatch, WarnsOfALossThatRisesAtAnyStep) {
  DivergenceWatch watch;
  EXPECT_TRUE(watch.look(16.1).empty());
  EXPECT_TRUE(watch.look(18.0).empty());
  const auto warnings = watch.look(25.2);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].text.find("the loss is 25.2, up from 16.1 at its lowest"), std::string::npos)
      << warnings[0].text;
  EXPECT_TRUE(watch.look(1e9).empty()) << "said already";
  DivergenceWatch of_low_losses;
  EXPECT_TRUE(of_low_losses.look(0.1).empty());
  EXPECT_TRUE(of_low_losses.look(0.9).empty()) << "nine times, but less than a nat";
  DivergenceWatch of_noise;
  torch::manual_seed(1);
  for (int step = 0; step < 2000; ++step) {
    const double noise = torch::randn({}, torch::kDouble).item<double>();
    EXPECT_TRUE(of_noise.look(3.5 + 4 * std::exp(-step / 100.0) + 0.5 * noise).empty()) << "step " << step;
  }
}

}  // namespace
}  // namespace prism

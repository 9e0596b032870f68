#include "prism/report/tables/measured_tables.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/report/made_runs.h"

namespace prism {
namespace {

TEST(TextLossTable, HasPairedDifferencesWithTheirIntervals) {
  // Differences -0.10 and -0.08: mean -0.09, deviation 0.0141421, t(0.975; 1) = 12.7062, half width 0.127062.
  EXPECT_EQ(table_text(text_loss_table(measured_runs())),
            "run      text     loss per token             Δ loss        95% interval\n"
            "uniform  a text  4.0500 ± 0.0707  baseline                            –\n"
            "prism    a text  3.9600 ± 0.0849   -0.0900 ± 0.0141  -0.2171 to +0.0371\n"
            "Nats per token over the whole text. Δ loss: minus that of uniform, paired by seed if seeds are shared; "
            "negative is better. ± is the sample standard deviation over seeds.\n");
}

TEST(TestTable, PairsTheAccuraciesOfTheSeeds) {
  auto comparison = compare_groups({{"uniform", {0.5, 0.5}}, {"budget", {0.5, 0.5}}});
  const auto add = [&](size_t group, size_t seed, double accuracy, std::vector<double> kept) {
    ClassificationRecord record;
    record.split = "test";
    record.accuracy = record.balanced_accuracy = record.macro_f1 = accuracy;
    record.loss = 1 - accuracy;
    record.kept_share = std::move(kept);
    comparison.groups[group].runs[seed].classifications = {record};
  };
  add(0, 0, 0.80, {});
  add(0, 1, 0.82, {});
  add(1, 0, 0.81, {0.5, NAN, 0.25});
  add(1, 1, 0.83, {0.5, NAN, 0.25});
  const std::string text = table_text(test_table(comparison));
  EXPECT_NE(text.find("uniform  0.8100 ± 0.0141  baseline"), std::string::npos) << text;
  EXPECT_NE(text.find("budget   0.8200 ± 0.0141   +0.0100 ± 0.0000  +0.0100 to +0.0100"), std::string::npos) << text;
  EXPECT_NE(text.find("0.3750 ± 0.0000\n"), std::string::npos) << "over the layers with a budget: " << text;
}

TEST(DistanceTable, HasARowForEachLayerAndAColumnForEachGroup) {
  EXPECT_EQ(table_text(distance_table(measured_runs())),
            "layer     uniform       prism\n"
            "    0  11.0 ± 1.4  16.5 ± 2.1\n"
            "    1  22.0 ± 2.8  23.0 ± 4.2\n"
            "    2  30.0 ± 0.0  30.0 ± 1.4\n");
}

TEST(DistanceDifferenceTable, HasTheDifferencesSeedBySeed) {
  EXPECT_EQ(table_text(distance_difference_table(measured_runs())),
            "layer       prism\n"
            "    0  +5.5 ± 0.7\n"
            "    1  +1.0 ± 1.4\n"
            "    2   0.0 ± 1.4\n");
}

TEST(DistanceStretchTable, PairsTheMeansOverTheLayersWithOtherHeadsAndOverTheRest) {
  // Layers 0 and 1: 17.5 - 15 and 22 - 18, mean 3.25, deviation 1.06066, t(0.975; 1) = 12.7062, half width 9.52966.
  EXPECT_EQ(table_text(distance_stretch_table(measured_runs())),
            "run    heads    layers  Δ distance    95% interval\n"
            "prism  others   0 to 1  +3.2 ± 1.1   -6.3 to +12.8\n"
            "prism  as many  2        0.0 ± 1.4  -12.7 to +12.7\n"
            "In tokens; mean over the layers, paired by seed. ± is the sample standard deviation over seeds.\n");
}

TEST(MeasuredTables, HaveNoRowsWhereNothingWasMeasured) {
  const Comparison comparison = compare_groups({{"a", {4.0}}, {"b", {3.0}}});
  EXPECT_TRUE(text_loss_table(comparison).rows.empty());
  EXPECT_TRUE(test_table(comparison).rows.empty());
  EXPECT_TRUE(distance_table(comparison).rows.empty());
  EXPECT_TRUE(distance_difference_table(comparison).rows.empty());
  EXPECT_TRUE(distance_stretch_table(comparison).rows.empty());
}

}  // namespace
}  // namespace prism

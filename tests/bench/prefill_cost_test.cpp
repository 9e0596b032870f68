// The file that keeps a machine's costs, which every run uses.
#include "prism/bench/prefill_cost.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/core/stop.h"
#include "prism/kernels/simd/isa.h"
#include "tests/core/child_process.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

const PrefillShape kNarrow{.type = torch::kFloat, .head_dim = 16, .query_block = 64, .key_block = 64};
const PrefillShape kWide{.type = torch::kFloat, .head_dim = 24, .query_block = 64, .key_block = 64};

class MachineCostsTest : public testing::Test {
 protected:
  MachineCostsTest() { use(folder_.path()); }
  ~MachineCostsTest() override { ::unsetenv("PRISM_CACHE"); }
  void SetUp() override {
    if (current_isa() == Isa::portable) GTEST_SKIP() << "no attention that leaves blocks out";
  }

  static void use(const fs::path& folder) { ::setenv("PRISM_CACHE", folder.c_str(), 1); }
  fs::path file() const { return folder_.path() / "prefill_cost.json"; }

  /// Costs that differ at each call, as on a noisy machine.
  MachineCosts costs_of(const std::vector<PrefillShape>& shapes) {
    return machine_prefill_costs(shapes, [this](const PrefillShape&) {
      const double seconds = ++measured_ / 3.0;
      return PrefillCost{.dense_pair = seconds, .dense_row = 1, .sparse_pair = seconds, .select_call = 5};
    });
  }

  TemporaryFolder folder_;
  int measured_ = 0;
};

TEST_F(MachineCostsTest, AreMeasuredOnceAndTheSameEverAfter) {
  EXPECT_EQ(prefill_cost_folder(), folder_.path());
  use(folder_.path() / "made" / "when needed");
  const auto first = costs_of({kNarrow, kWide, kNarrow});
  EXPECT_EQ(first.note, "");
  EXPECT_EQ(first.costs.size(), 2u);
  EXPECT_EQ(measured_, 2);
  const auto later = costs_of({kWide, kNarrow});
  EXPECT_EQ(measured_, 2);
  for (const auto& shape : {kNarrow, kWide})
    EXPECT_TRUE(equal_fields(later.costs.at(shape), first.costs.at(shape))) << "to the last bit";
  EXPECT_NE(first.costs.at(kNarrow).dense_pair, first.costs.at(kWide).dense_pair);
}

TEST_F(MachineCostsTest, ReplaceAFileThatIsDamaged) {
  const auto whole = [&] {
    costs_of({kNarrow});
    return read_file(file());
  }();
  Json senseless = parse_json(whole, "kept");
  for (auto& cost : senseless) cost["sparse_pair"] = -1;
  Json incomplete = parse_json(whole, "kept");
  for (auto& cost : incomplete) cost.erase("select_call");
  for (const std::string& damaged :
       {whole.substr(0, whole.size() / 2), std::string(), std::string("[1]"), senseless.dump(), incomplete.dump()}) {
    write_file(file(), damaged);
    measured_ = 0;
    const auto found = costs_of({kNarrow});
    EXPECT_EQ(measured_, 1) << damaged;
    EXPECT_EQ(found.note, "");
    EXPECT_TRUE(equal_fields(costs_of({kNarrow}).costs.at(kNarrow), found.costs.at(kNarrow))) << damaged;
    EXPECT_EQ(measured_, 1) << damaged;
  }
}

TEST_F(MachineCostsTest, ThatCannotBeKeptAreReported) {
  write_file(folder_.path() / "file", "in the way");
  use(folder_.path() / "file");
  const auto machine = costs_of({kNarrow, kWide});
  EXPECT_EQ(machine.costs.size(), 2u);
  EXPECT_CONTAINS(machine.note, "cannot be kept");
  EXPECT_CONTAINS(machine.note, (folder_.path() / "file").string());
}

TEST_F(MachineCostsTest, OfAnotherProcessThatWasFasterCount) {
  const auto found = machine_prefill_costs({kNarrow}, [&](const PrefillShape&) {
    costs_of({kNarrow});
    return PrefillCost{.dense_pair = 7, .sparse_pair = 7, .select_call = 7};
  });
  EXPECT_TRUE(equal_fields(found.costs.at(kNarrow), costs_of({kNarrow}).costs.at(kNarrow)));
  EXPECT_EQ(measured_, 1);
}

TEST_F(MachineCostsTest, AreOnlyOfShapesWhoseBlocksCanBeLeftOut) {
  EXPECT_TRUE(costs_of({{.type = torch::kFloat, .head_dim = 12}, {.type = torch::kDouble}}).costs.empty());
  EXPECT_EQ(measured_, 0);
  EXPECT_TRUE(costs_of({}).costs.empty());
  EXPECT_FALSE(fs::exists(file()));
}

TEST_F(MachineCostsTest, AreNotKeptOfAMeasurementThatWasStopped) {
  ChildProcess child([&](const auto&) {
    at::set_num_threads(1);  // other threads are lost in a fork
    catch_stop_signals();
    std::raise(SIGINT);
    const std::string sentence = message_of<FailedError>([] { machine_prefill_costs({kNarrow}); });
    ::_exit(sentence.find("stopped by a signal; nothing was measured") == std::string::npos ? 1 : 0);
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_FALSE(fs::exists(file()));
}

TEST_F(MachineCostsTest, MakeSense) {
  const PrefillShape shape{.type = torch::kFloat, .head_dim = 8, .query_block = 64, .key_block = 64};
  const auto cost = machine_prefill_costs({shape}).costs.at(shape);
  EXPECT_GT(cost.dense_pair, 0);
  EXPECT_GE(cost.sparse_pair, cost.dense_pair);
  EXPECT_GE(cost.sparse_run, 0);
  EXPECT_GE(cost.sparse_row, cost.dense_row);
  EXPECT_GT(cost.select_call, 0);
  EXPECT_TRUE(equal_fields(costs_of({shape}).costs.at(shape), cost)) << "kept, however noisy the measurement";
}

}  // namespace
}  // namespace prism

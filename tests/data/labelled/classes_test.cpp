#include "prism/data/labelled/classes.h"

#include <gtest/gtest.h>

#include "prism/core/files.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

/// Labels of training rows, numbered as lines.
std::vector<FoundLabel> found_labels(const std::vector<std::string>& texts) {
  std::vector<FoundLabel> labels;
  for (const auto& text : texts) labels.push_back({text, "t.csv, line " + std::to_string(labels.size() + 1), true});
  return labels;
}

using Names = std::vector<std::string>;
using Classes = std::vector<int32_t>;

TEST(ClassMap, NumbersCountFromZeroOrOne) {
  const auto from_one = map_classes(found_labels({"2", "1", "3"}), {});
  EXPECT_EQ(from_one.names, (Names{"1", "2", "3"}));
  EXPECT_EQ(from_one.class_of_label, (Classes{1, 0, 2}));
  const auto from_zero = map_classes(found_labels({"1", "0"}), {});
  EXPECT_EQ(from_zero.names, (Names{"0", "1"}));
  EXPECT_EQ(from_zero.class_of_label, (Classes{1, 0}));
}

TEST(ClassMap, NumbersCountNamesInTheirOrder) {
  const Names names = {"World", "Sports", "Business"};
  EXPECT_EQ(map_classes(found_labels({"3", "1"}), names).class_of_label, (Classes{2, 0}));
  EXPECT_EQ(map_classes(found_labels({"0", "2"}), names).class_of_label, (Classes{0, 2}));
  EXPECT_EQ(map_classes(found_labels({"0", "2"}), names).names, names);
  EXPECT_REFUSED(map_classes(found_labels({"1", "4"}), names),
                 "t.csv, line 2: expected one of the classes World, Sports and Business; found the label \"4\"");
  EXPECT_REFUSED(map_classes(found_labels({"0", "3"}), names), "found the label \"3\"");
  EXPECT_EQ(map_classes(found_labels({"5", "3"}), {"3", "4", "5"}).class_of_label, (Classes{2, 0}))
      << "numbers that are names";
}

TEST(ClassMap, NumbersShowWhereTheyBeginAndHaveNoGaps) {
  EXPECT_REFUSED(map_classes(found_labels({"1", "2"}), {"a", "b", "c"}), "found 1 to 2");
  EXPECT_REFUSED(map_classes(found_labels({"1", "4", "2"}), {}), "found none of 3");
  EXPECT_REFUSED(map_classes(found_labels({"0", "-1", "1"}), {}),
                 "t.csv, line 2: expected classes numbered from 0 or 1");
  auto labels = found_labels({"1", "2", "0"});
  labels[2].in_training = false;
  EXPECT_REFUSED(map_classes(labels, {}), "found the label \"0\"");  // the training decides where numbers begin
}

TEST(ClassMap, RefusesNumbersAmongOtherLabels) {
  EXPECT_REFUSED(map_classes(found_labels({"1", "2", "3a"}), {}),
                 "t.csv, line 3: expected a number as the label, such as 1 at t.csv, line 1; found \"3a\"");
  EXPECT_REFUSED(map_classes(found_labels({"0.5", "1"}), {}), "t.csv, line 1: expected a number");
  auto labels = found_labels({"1", "2", "other"});
  labels[2].rows = 2;
  EXPECT_EQ(map_classes(labels, {}).names, (Names{"1", "2", "other"})) << "a class of its own";
  EXPECT_EQ(map_classes(found_labels({"5", "more"}), {"5", "more"}).class_of_label, (Classes{0, 1}));
}

TEST(ClassMap, DoesNotTakeARowOfNamesForAClass) {
  auto labels = found_labels({"label", "2", "1", "3"});
  labels[0].rows = 0;
  EXPECT_REFUSED(map_classes(labels, {}), "t.csv, line 1: expected the label of a row; found \"label\"");
  labels.push_back({"Label", "other.csv, line 1", true});
  labels.back().rows = 0;
  EXPECT_REFUSED(map_classes(labels, {}), "t.csv, line 1: expected the label of a row");
  labels = found_labels({"1", "2", "3"});
  labels[0].rows = 0;
  EXPECT_EQ(map_classes(labels, {}).names, (Names{"1", "2", "3"}));
}

TEST(ClassMap, OfManyLabelsTakesNoTime) {
  std::vector<std::string> many;
  for (int i = 0; i < 200'000; ++i) many.push_back("label " + std::to_string(i));
  EXPECT_REFUSED(map_classes(found_labels(many), {}), "found 200000");
  many.resize(60'000);
  EXPECT_EQ(map_classes(found_labels(many), many).names.size(), 60'000u);
}

TEST(ClassMap, WordsAreNames) {
  const auto map = map_classes(found_labels({"neutral", "entailment", "contradiction"}), {});
  EXPECT_EQ(map.names, (Names{"contradiction", "entailment", "neutral"}));
  EXPECT_EQ(map.class_of_label, (Classes{2, 1, 0}));
  EXPECT_EQ(map_classes(found_labels({"b", "a"}), {"b", "a", "c"}).class_of_label, (Classes{0, 1}));
  EXPECT_REFUSED(map_classes(found_labels({"b", "d"}), {"b", "a", "c"}), "line 2: expected one of the classes");
}

TEST(ClassMap, KnowsOnlyClassesOfTheTraining) {
  for (const auto& [train, test] : {std::pair{"a", "c"}, {"2", "3"}}) {
    auto labels = found_labels({train, train[0] == 'a' ? "b" : "1", test});
    labels[2].in_training = false;
    EXPECT_REFUSED(map_classes(labels, {}), "t.csv, line 3: expected one of the classes");
  }
}

TEST(ClassMap, HasTwoClassesAndEachOnce) {
  EXPECT_REFUSED(map_classes(found_labels({"a"}), {}), "found 1");
  EXPECT_REFUSED(map_classes(found_labels({"a", "b"}), {"a", "b", "a"}), "found \"a\" twice");
  EXPECT_REFUSED(map_classes(found_labels({"1", "99999999"}), {}), "found none of 2");
}

TEST(ClassNames, AreLines) {
  const TemporaryFolder folder;
  write_file(folder.path() / "classes.txt", "\xEF\xBB\xBFWorld\r\n Sci/Tech \n\nLast one");
  EXPECT_EQ(read_class_names(folder.path() / "classes.txt"), (Names{"World", "Sci/Tech", "Last one"}));
  write_file(folder.path() / "classes.txt", "\n");
  EXPECT_REFUSED(read_class_names(folder.path() / "classes.txt"), "expected names of classes");
  write_file(folder.path() / "classes.txt", "\xFF\n");
  EXPECT_REFUSED(read_class_names(folder.path() / "classes.txt"), "expected UTF-8");
}

}  // namespace
}  // namespace prism

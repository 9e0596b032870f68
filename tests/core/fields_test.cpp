#include "prism/core/fields.h"

#include <gtest/gtest.h>

#include "tests/core/message_of.h"

namespace prism {
namespace {

struct Inner {
  int64_t heads = 4;
  double base = 1e4;
  template <class Visitor>
  void visit(Visitor& v) {
    v("heads", heads, "attention heads");
    v("base", base, "rotary base");
  }
};

struct Outer {
  std::string name = "x";
  bool tied = true;
  std::vector<Inner> layers = {{}, {}, {}};
  Inner one;
  std::vector<int64_t> steps;
  template <class Visitor>
  void visit(Visitor& v) {
    v("name", name, "a name");
    v("tied", tied, "shared");
    v("layers", layers, "all layers");
    v("one", one, "a nested struct");
    v("steps", steps, "a list of numbers");
  }
};

TEST(Fields, SurviveARoundTripThroughJson) {
  Outer a;
  a.layers[1].heads = 7;
  a.steps = {1, 2, 3};
  a.name = "quoted \"text\"";
  EXPECT_TRUE(equal_fields(a, fields_from_json<Outer>(fields_to_json(a), "")));
  EXPECT_FALSE(equal_fields(a, Outer{}));
}

struct Sparse {
  std::optional<int64_t> count;
  std::optional<Inner> inner;
  std::vector<std::pair<double, int64_t>> pairs;
  template <class Visitor>
  void visit(Visitor& v) {
    v("count", count, "left out while empty");
    v("inner", inner, "a struct that may be absent");
    v("pairs", pairs, "lists of two");
  }
};

TEST(Fields, ThatAreEmptyAreLeftOut) {
  Sparse sparse;
  EXPECT_EQ(fields_to_json(sparse).dump(), R"({"pairs":[]})");
  sparse.count = 3;
  sparse.inner.emplace().heads = 2;
  sparse.pairs = {{0.5, 1}};
  const Json json = fields_to_json(sparse);
  EXPECT_EQ(json.dump(), R"({"count":3,"inner":{"heads":2,"base":10000.0},"pairs":[[0.5,1]]})");
  EXPECT_TRUE(equal_fields(fields_from_json<Sparse>(json, ""), sparse));
  EXPECT_FALSE(fields_from_json<Sparse>(Json{{"count", nullptr}}, "").count);
  set_field(sparse, "count", "4k");
  EXPECT_EQ(sparse.count, 4000);
  EXPECT_NE(message_of([] {
              fields_from_json<Sparse>(Json{{"count", "x"}}, "s");
            }).find("s.count: expected a whole"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              fields_from_json<Sparse>(Json{{"pairs", {{1}}}}, "s");
            }).find("s.pairs[0]: expected a list of two"),
            std::string::npos);
}

TEST(Fields, NameTheNearestKnownFieldForAnUnknownOne) {
  EXPECT_EQ(message_of([] { fields_from_json<Outer>(parse_json(R"({"one": {"haeds": 3}})", "test"), "recipe"); }),
            "[fields] expected a field of recipe.one; found \"haeds\"; did you mean \"heads\"?");
}

TEST(Json, ThatIsAnEmptyFileSaysSo) {
  EXPECT_EQ(message_of([] { parse_json("", "config.json"); }),
            "[json] expected JSON in config.json; found nothing; restore the file, or name another.");
}

TEST(Fields, RejectAValueOfTheWrongTypeWithItsPath) {
  EXPECT_EQ(message_of([] { fields_from_json<Outer>(parse_json(R"({"layers": [{"heads": "3"}]})", "test"), "model"); }),
            "[fields] model.layers[0].heads: expected a whole number; found \"3\"; change it.");
  EXPECT_EQ(message_of([] { fields_from_json<Outer>(parse_json(R"({"layers": [{"heads": 2.5}]})", "test"), "model"); }),
            "[fields] model.layers[0].heads: expected a whole number; found 2.5; change it.");
  for (const char* text : {"9223372036854775808", "18446744073709551615", "-1e20", "99999999999999999999"}) {
    Outer outer;
    EXPECT_REFUSED(set_field(outer, "layers[0].heads", text), "expected a whole number nearer to 0; found ");
  }
}

TEST(Json, ThatIsNotUtf8SaysSo) {
  EXPECT_REFUSED(parse_json("{\"a\": \"caf\xe9\"}", "one.json"),
                 "expected JSON in one.json; found byte 0xE9 at offset 10, which is not UTF-8; convert the text");
  EXPECT_REFUSED(parse_json("{\"a\": x, \"b\": \"caf\xe9\"}", "one.json"),
                 "expected JSON in one.json; found a fault at byte 7");
}

TEST(Fields, AreSetByPathWithRangesAndSuffixes) {
  Outer a;
  set_field(a, "layers[0-1].heads", "3");
  EXPECT_REFUSED(set_field(a, "layers[-1].heads", "3"), "expected [index] or [first-last]; found [-1]");
  set_field(a, "layers[2].base", ".5");
  EXPECT_EQ(a.layers[2].base, 0.5);
  set_field(a, "layers[2].base", "500k");
  set_field(a, "one.heads", "2.01M");  // 2.01e6 in binary is 2009999.9999999998
  EXPECT_EQ(a.one.heads, 2010000);
  set_field(a, "one.heads", "1.005k");
  EXPECT_EQ(a.one.heads, 1005);
  set_field(a, "one.heads", "4M");
  set_field(a, "name", "12");
  set_field(a, "tied", "off");
  set_field(a, "steps", "[5, 6]");
  EXPECT_EQ(a.layers[0].heads, 3);
  EXPECT_EQ(a.layers[1].heads, 3);
  EXPECT_EQ(a.layers[2].heads, 4);
  EXPECT_EQ(a.layers[2].base, 5e5);
  EXPECT_EQ(a.one.heads, 4000000);
  EXPECT_EQ(a.name, "12");
  EXPECT_FALSE(a.tied);
  EXPECT_EQ(a.steps, (std::vector<int64_t>{5, 6}));
}

TEST(Fields, RejectSuffixedNumbersThatAreNotWhole) {
  Outer a;
  EXPECT_REFUSED(set_field(a, "one.heads", "1.0005k"), "whole number");
}

TEST(Fields, RejectPathsThatLeadNowhere) {
  Outer a;
  EXPECT_NE(message_of([&] { set_field(a, "shape", "3"); }).find("expected a known field; found \"shape\"; "),
            std::string::npos);
  EXPECT_EQ(message_of([&] { set_field(a, "one.haeds", "3"); }),
            "[fields] expected a field of one; found \"haeds\"; did you mean \"heads\"?");
  EXPECT_EQ(message_of([&] { set_field(a, "layers[0-3].heads", "3"); }),
            "[fields] layers[0-3].heads: expected indices from 0 to 2; found 0-3; choose others.");
  a.layers.clear();
  EXPECT_EQ(message_of([&] { set_field(a, "layers[0].heads", "3"); }),
            "[fields] layers[0].heads: expected a list with elements; found an empty one; set the whole list.");
  EXPECT_NE(message_of([&] { set_field(a, "name.x", "3"); }), "");
  EXPECT_NE(message_of([&] { set_field(a, "layers[x].heads", "3"); }), "");
  EXPECT_NE(message_of([&] { set_field(a, "one[0].heads", "3"); }), "");
}

TEST(Json, ThatIsCutOrEmptyIsNamedWithItsFault) {
  EXPECT_REFUSED(parse_json("", "a.json"), "expected JSON in a.json; found nothing");
  EXPECT_REFUSED(parse_json("{\"a\": 1", "a.json"), "ends too early, after 7 bytes");
  EXPECT_REFUSED(parse_json("{", "a.json"), "ends too early, after 1 byte;");
  EXPECT_REFUSED(parse_json("[1e999]", "a.json"), "a number out of range");
  EXPECT_REFUSED(parse_json(std::string(1'000'000, '['), "a.json"), "more than 100 levels");
  EXPECT_EQ(parse_json(R"({"a": "[[\"{"})", "a.json")["a"], "[[\"{");
  std::string brackets(200, '[');
  EXPECT_EQ(parse_json("[\"" + brackets + "\"]", "a.json").size(), 1u) << "brackets in text are text";
}

TEST(Json, WithAMemberTwiceIsRefusedAtAnyDepth) {
  EXPECT_REFUSED(parse_json(R"({"a": 1, "b": 2, "a": 3})", "text"), "\"a\" twice");
  EXPECT_REFUSED(parse_json(R"([{"a": {"c": 1, "c": 1}}])", "text"), "\"c\" twice");
  EXPECT_EQ(parse_json(R"([{"a": {"a": 1}}, {"a": 2}])", "text").size(), 2u);
}

TEST(Error, GivesItsReasonWithoutOperationAndFullStop) {
  EXPECT_EQ(InputError("read", "expected a; found b.").reason(), "expected a; found b");
  EXPECT_EQ(FailedError("", "no stop").reason(), "no stop");
}

TEST(Json, OfBytesThatAreNoTextIsPrintedAllTheSame) {
  EXPECT_EQ(to_text(Json{{"name", "a\xFF"}}), "{\"name\":\"a\xEF\xBF\xBD\"}");
}

TEST(Fields, DescribeEveryLeafWithItsDefault) {
  const auto rows = describe_fields<Outer>("model.");
  ASSERT_EQ(rows.size(), 7u);
  EXPECT_EQ(rows[2].path, "model.layers[i].heads");
  EXPECT_EQ(rows[2].default_value, "4");
  EXPECT_EQ(rows[2].help, "attention heads");
}

}  // namespace
}  // namespace prism

#include "prism/template/template.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "tests/core/message_of.h"

namespace prism {
namespace {

std::string render(const std::string& text, const Json& values = Json::object(), const RenderOptions& options = {}) {
  return Template::parse(text).render(values, options);
}

/// `text` `times` times.
std::string repeated(const std::string& text, int times) {
  std::string made;
  for (int i = 0; i < times; ++i) made += text;
  return made;
}

TEST(Template, RendersMessages) {
  const Template chat = Template::parse("{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}");
  EXPECT_EQ(chat.render({{"messages", {{{"role", "user"}, {"content", "Hi"}}}}}), "<user>Hi\n");
  EXPECT_EQ(chat.render({{"messages", Json::array()}}), "");
}

TEST(Template, KeepsTheOrderOfMembersInJson) {
  Json tool = Json::object();
  tool["name"] = "f";
  tool["arguments"] = {1, 2.0, nullptr, true};
  EXPECT_EQ(render("{{ tool|tojson }}", {{"tool", tool}}), R"({"name": "f", "arguments": [1, 2.0, null, true]})");
}

TEST(Template, ReportsTheBytesThatGenerationBlocksWrote) {
  const std::string text = "é{% for m in l %}<{% generation %}{{ m }}!{% endgeneration %}>{% endfor %}";
  std::vector<ByteRange> ranges;
  RenderOptions options;
  options.generated = &ranges;
  EXPECT_EQ(render(text, {{"l", {"灯", "b"}}}, options), "é<灯!><b!>");
  EXPECT_EQ(ranges, (std::vector<ByteRange>{{3, 7}, {9, 11}}));
  EXPECT_EQ(render("none", Json::object(), options), "none");
  EXPECT_TRUE(ranges.empty());
}

TEST(Template, RefusesRangesOfGenerationBlocksInsideOtherBlocks) {
  std::vector<ByteRange> ranges;
  RenderOptions options;
  options.generated = &ranges;
  const std::string block = "{% generation %}a{% endgeneration %}";
  for (const std::string& text :
       {"{% macro m() %}" + block + "{% endmacro %}{{ m() }}", "{% filter upper %}" + block + "{% endfilter %}",
        "{% set x %}" + block + "{% endset %}", "{% generation %}" + block + "{% endgeneration %}"}) {
    EXPECT_REFUSED(render(text, Json::object(), options), "expected a generation block outside macros");
    EXPECT_NO_THROW(render(text));
  }
}

TEST(Template, TakesTheTimeThatItIsGiven) {
  RenderOptions options;
  options.now = 1720256703;  // 6 July 2024 in every time zone
  EXPECT_EQ(render("{{ strftime_now('%Y %B %-d|%y %b %%') }}", Json::object(), options), "2024 July 6|24 Jul %");
  EXPECT_REFUSED(render("{{ strftime_now('%1000000d') }}"), "expected conversions such as %Y");
  EXPECT_REFUSED(render("{{ strftime_now('%') }}"), "expected conversions such as %Y");
}

TEST(Template, PassesOnWhatATemplateRefuses) {
  EXPECT_REFUSED(render("a\n{{ raise_exception('roles must\n alternate') }}"),
                 "line 2: expected messages that the template accepts; found ones that it refuses with \"roles must  "
                 "alternate\"");
}

TEST(Template, NamesTheLineAndWhatItFound) {
  EXPECT_REFUSED(render("a\n\n{{ missing.x }}"), "line 3: expected a value before the member x; found `missing`");
  EXPECT_REFUSED(render("{{ d.x.y }}", {{"d", Json::object()}}), "found the member x of a dict, which is undefined");
  EXPECT_REFUSED(render("\n{% if x %}"), "line 2: expected `elif` or `else` or `endif`; found the end of the template");
  EXPECT_REFUSED(render("{% nope %}"), "expected one of the tags break, call, continue, filter, for");
  EXPECT_REFUSED(render("{{ x|uper }}"), "expected one of the filters abs, attr");
  EXPECT_REFUSED(render("{{ x|uper }}"), "found `uper`; did you mean upper?");
  EXPECT_REFUSED(render("{{ x is strung }}"), "found `strung`; did you mean string?");
  EXPECT_REFUSED(render("{{ 'a'.encode() }}"), "expected one of the methods capitalize");
  EXPECT_REFUSED(render("{{ (1).real }}"), "expected no member of an integer; found real; write the template without");
  EXPECT_REFUSED(render("{{ true['numerator'] }}"), "expected no member of a boolean; found numerator");
  EXPECT_REFUSED(render("{{ (1.5).is_integer() }}"), "expected no member of a float; found is_integer");
  EXPECT_REFUSED(render("{{ range(3).index(1) }}"), "expected no member of a range; found index");
  EXPECT_REFUSED(render("{% macro m() %}{% endmacro %}{{ m.name }}"), "expected no member of a macro; found name");
  EXPECT_EQ(render("{{ (1).x }}{% macro m() %}{% endmacro %}{{ m.x }}"), "");
  EXPECT_REFUSED(render("{{ cycler(1) }}"), "expected one of the functions dict, namespace");
  EXPECT_REFUSED(render("{{ l.append(1) }}", {{"l", Json::array()}}),
                 "the member append of a list, which templates may");
  EXPECT_REFUSED(render("{% for x in l recursive %}{% endfor %}"), "expected a loop that is not recursive");
  EXPECT_REFUSED(render("{{ f(*l) }}"), "expected arguments one by one");
  EXPECT_REFUSED(render("{{ self.x }}"), "expected a name other than self");
  EXPECT_REFUSED(render("{% include 'x' %}"), "found `include`");
  EXPECT_REFUSED(render("{{ 'a }}"), "expected a quote at the end of a text");
  EXPECT_REFUSED(render("{{ é }}"), "found `é`");
  EXPECT_REFUSED(render("{{ '\\N{DASH}' }}"), "found \\N");
  EXPECT_REFUSED(render("{{ range }}"), "expected a value that can be printed; found the function range");
  EXPECT_REFUSED(render("{{ 1 is sameas 1 }}"), "expected sameas to compare with true, false or none");
}

TEST(Template, RefusesValuesThatItCannotHold) {
  EXPECT_REFUSED(render("\xFF"), "expected a template in UTF-8");
  EXPECT_REFUSED(render("{{ x }}", {{"x", "\xFF"}}), "expected values in UTF-8");
  EXPECT_REFUSED(render("{{ x }}", {{"x", 18446744073709551615u}}), "found 18446744073709551615");
  EXPECT_REFUSED(render("{{ 9223372036854775808 }}"), "expected whole numbers within 63 bits");
  EXPECT_REFUSED(render("{{ 9223372036854775807 + 1 }}"), "expected whole numbers within 63 bits");
  EXPECT_REFUSED(render("{{ 3 ** 100 }}"), "expected whole numbers within 63 bits");
  EXPECT_REFUSED(render("", Json::array()), "expected an object of variables");
  Json deep = 1;
  for (int i = 0; i < 300; ++i) deep = Json::array({deep});
  EXPECT_REFUSED(render("{{ x }}", {{"x", deep}}), "expected values of at most 200 levels");
  EXPECT_EQ(render("a", {{"x", deep}}), "a");  // variables that the template does not name are not read
}

TEST(TemplateLimits, EndRenderingsThatTakeTooLong) {
  RenderOptions options;
  options.limits.steps = 100'000;
  const std::string loops = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
  EXPECT_REFUSED(render(loops, Json::object(), options), "expected a rendering of at most 100000 steps");
  const std::string compare = "{% set x = 'a' * 100000 %}{% for i in range(1000) %}{{ x < x ~ 'b' }}{% endfor %}";
  EXPECT_REFUSED(render(compare, Json::object(), options), "expected a rendering of at most 100000 steps");
  // Lists that hold one list many times: as a tree, 2^100 items.
  const std::string graph =
      "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] %}"
      "{% set ns.y = [ns.y, ns.y] %}{% endfor %}";
  EXPECT_REFUSED(render(graph + "{{ ns.x == ns.y }}", Json::object(), options), "at most 100000 steps");
  EXPECT_REFUSED(render(graph + "{{ ns.x }}", Json::object(), options), "expected");
  EXPECT_REFUSED(render(graph + "{{ ns.x|tojson }}", Json::object(), options), "expected");
}

TEST(TemplateLimits, BoundTheSizeOfValues) {
  const std::string too_long = "expected texts and lists of at most 16777216 bytes";
  EXPECT_REFUSED(render("{{ 'a' * 10**9 }}"), too_long);
  EXPECT_REFUSED(render("{{ ('a' * 10**18) }}"), too_long);
  EXPECT_REFUSED(render("{{ [0] * 10**9 }}"), too_long);
  EXPECT_REFUSED(render("{{ 'a'.center(10**12) }}"), too_long);
  EXPECT_REFUSED(render("{{ ''|indent(10**12, true) }}"), too_long);
  EXPECT_REFUSED(render("{{ [1]|tojson(indent=10**12) }}"), too_long);
  EXPECT_REFUSED(render("{{ [1]|slice(10**12)|list }}"), too_long);
  EXPECT_REFUSED(render("{{ [1]|batch(10**12, 0)|list }}"), too_long);
  EXPECT_REFUSED(render("{{ '%1000000000d' % 1 }}"), "expected widths of at most 10000");
  EXPECT_REFUSED(render("{{ range(10**12) }}"), "expected a range of at most 100000 numbers");
  EXPECT_REFUSED(
      render("{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}"),
      too_long);
  EXPECT_REFUSED(render("{% set x = 'a' * 10**4 %}{{ x.replace('a', x) }}"), too_long);
  EXPECT_REFUSED(render("{% set x = 'a' * 10**4 %}{{ x.join(x) }}"), too_long);
  EXPECT_REFUSED(render("{% set x = 'a' * 10**6 %}{% for i in range(99) %}{{ x }}{% endfor %}"), too_long);
  EXPECT_REFUSED(render("{% set x = 'a' * 10**7 %}{% for i in range(99) %}{% set y = x ~ i %}{% endfor %}"),
                 "expected values of at most 536870912 bytes in total");
  EXPECT_REFUSED(render("{% for i in range(99) %}{% set x = namespace() %}{% for j in range(9999) %}{% set x = "
                        "namespace() %}{% endfor %}{% endfor %}"),
                 "expected at most 100000 namespaces, macros and loops");
}

TEST(TemplateLimits, BoundTheDepth) {
  const std::string too_deep = "expected at most 200 levels of expressions and blocks";
  for (const auto& pair : std::vector<std::pair<std::string, std::string>>{{"(", ")"},
                                                                           {"[", "]"},
                                                                           {"{1:", "}"},
                                                                           {"-", ""},
                                                                           {"not ", ""},
                                                                           {"f(", ")"},
                                                                           {"1 if 1 else ", ""},
                                                                           {"x[", "]"}}) {
    EXPECT_REFUSED(render("{{ " + repeated(pair.first, 100'000) + "1" + repeated(pair.second, 100'000) + " }}"),
                   too_deep);
  }
  for (const char* behind : {".a", "[0]", "()", "|upper", " is string"})
    EXPECT_REFUSED(render("{{ x" + repeated(behind, 100'000) + " }}"), "expected");
  EXPECT_REFUSED(render(repeated("{% if 1 %}", 100'000)), too_deep);
  EXPECT_REFUSED(render(repeated("{% for a in b %}", 100'000)), too_deep);
  EXPECT_REFUSED(render("{% set x = " + repeated("(", 100'000) + "a" + repeated(")", 100'000) + " %}"), too_deep);
  EXPECT_EQ(render("{{ 1" + repeated(" + 1", 10'000) + " }}"), "10001");
  EXPECT_EQ(render("{{ 1" + repeated(" ~ 1", 1'000) + " }}").size(), 1001u);
  EXPECT_EQ(render("{{ 1" + repeated(" and 1", 10'000) + " }}"), "1");
  EXPECT_EQ(render("{% if 0 %}" + repeated("{% elif 0 %}", 10'000) + "{% endif %}"), "");
}

TEST(TemplateLimits, BoundTheDepthOfMacrosAndValues) {
  EXPECT_REFUSED(render("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), "levels of macros and expressions");
  EXPECT_REFUSED(render("{% macro m() %}{% call m() %}{% endcall %}{{ caller() }}{% endmacro %}{{ m() }}"),
                 "levels of macros and expressions");
  const std::string nest = "{% set ns = namespace(x=[]) %}{% for i in range(999) %}{% set ns.x = ";
  for (const char* value : {"[ns.x]", "(ns.x,)", "{1: ns.x}", "{1: ns.x}.items()", "ns.x|map('string')",
                            "[ns.x]|reverse", "[ns.x].count", "loop.changed"})
    EXPECT_NO_THROW(message_of([&] { render(nest + value + " %}{% endfor %}"); })) << value;
  for (const char* value : {"[ns.x]", "(ns.x,)", "{1: ns.x}", "[ns.x]|reverse"})
    EXPECT_REFUSED(render(nest + value + " %}{% endfor %}"), "expected values of at most 200 levels");
}

TEST(TemplateLimits, EndCyclesBetweenValues) {
  // The leak check of the address sanitizer sees what is not freed.
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.self = ns %}{% set ns.l = [ns] %}a"), "a");
  EXPECT_EQ(render("{% set ns = namespace() %}{% macro m() %}{% endmacro %}{% set ns.m = m %}a"), "a");
  EXPECT_EQ(render("{% set ns3 = namespace() %}{% for i in [1] if ns3 %}{% set ns3.loop = loop %}{% endfor %}a"), "a");
  EXPECT_EQ(render("{% for i in [1, 2] %}{{ loop.changed(loop) }} {% endfor %}"), "True False ");
  EXPECT_EQ(render("{% macro m() %}{% set ns2 = namespace(f=caller) %}b{% endmacro %}{% call m() %}{% endcall %}"),
            "b");
}

TEST(TemplateLimits, FreeChainsOfLoopsOneByOne) {
  // Each loop keeps the one before it. Freeing the last one first would exhaust the stack.
  EXPECT_EQ(render("{% set ns = namespace(last=none) %}{% for i in range(50000) %}{% for j in [1] %}"
                   "{% if loop.changed(ns.last) %}{% set ns.last = loop %}{% endif %}{% endfor %}{% endfor %}a"),
            "a");
}

}  // namespace
}  // namespace prism

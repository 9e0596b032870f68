// Tests of published GGUF files, which are too large to commit and are found through PRISM_DATA.
#include <gtest/gtest.h>

#include <boost/crc.hpp>
#include <nlohmann/json.hpp>

#include "prism/core/files.h"
#include "prism/formats/gguf.h"
#include "tests/core/large_data.h"
#include "tests/formats/gguf_bytes.h"

namespace prism {
namespace {

template <class Element>
void add_bytes(boost::crc_32_type& crc, const Element& element) {
  crc.process_bytes(&element, sizeof element);
}

void add_bytes(boost::crc_32_type& crc, const std::string& text) {
  crc.process_bytes(text.data(), text.size());
  crc.process_byte('\n');
}

void add_bytes(boost::crc_32_type& crc, const GgufArray& array) {
  std::visit(
      [&](const auto& elements) {
        using Element = typename std::decay_t<decltype(elements)>::value_type;
        for (const Element& element : elements) add_bytes(crc, element);
      },
      array);
}

size_t count_of(const GgufValue& value) {
  const auto* array = std::get_if<GgufArray>(&value);
  return array == nullptr ? 1 : std::visit([](const auto& elements) { return elements.size(); }, *array);
}

TEST(PublishedGguf, HasTheMetadataThatThePackageGgufReads) {
  if (!data_folder()) GTEST_SKIP() << "set PRISM_DATA to the folder that holds tokenizers/";
  const auto files = nlohmann::json::parse(read_file(PRISM_SOURCE_DIR "/tests/formats/fixtures/vocabularies.json"));
  ASSERT_EQ(files.size(), 4u);
  for (const auto& [name, rows] : files.items()) {
    SCOPED_TRACE(name);
    const std::string bytes = read_xz(*data_folder() + "/tokenizers/ggml-vocab/" + name);
    const GgufReader reader(span_of(bytes), name);
    EXPECT_EQ(reader.metadata().values().size(), rows.size());
    for (const auto& row : rows) {
      SCOPED_TRACE(row["key"]);
      const GgufValue* value = reader.metadata().find(row["key"].get<std::string>());
      ASSERT_NE(value, nullptr);
      EXPECT_EQ(gguf_type_name(*value), row["type"]);
      EXPECT_EQ(count_of(*value), row["count"].get<size_t>());
      boost::crc_32_type crc;
      std::visit([&](const auto& exact) { add_bytes(crc, exact); }, *value);
      EXPECT_EQ(crc.checksum(), row["crc"].get<uint32_t>());
    }
  }
}

}  // namespace
}  // namespace prism

// Reads event files back with an independent reader: frames, checksums, and the fields of their messages.
#include "prism/formats/event_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "prism/core/error.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

/// Computes CRC-32C bit by bit.
uint32_t plain_crc32c(const std::string& data) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const char byte : data) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
  }
  return ~crc;
}

uint32_t plain_mask(const std::string& data) {
  const uint32_t crc = plain_crc32c(data);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

template <class Number>
Number number_at(const std::string& data, size_t at) {
  Number value;
  EXPECT_LE(at + sizeof value, data.size());
  std::memcpy(&value, data.data() + at, sizeof value);
  return value;
}

/// The fields of a message: numbers as their eight or four bytes, messages and texts unchanged.
std::map<int, std::string> fields_of(const std::string& message) {
  std::map<int, std::string> fields;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(at++));
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.size()) {
    const uint64_t key = varint();
    const int field = static_cast<int>(key >> 3);
    if ((key & 7) == 0) {
      fields[field] = std::to_string(varint());
      continue;
    }
    const size_t size = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : varint();
    fields[field] = message.substr(at, size);
    at += size;
  }
  return fields;
}

std::vector<std::map<int, std::string>> events_of(const std::filesystem::path& file) {
  const std::string data = read_file(file);
  std::vector<std::map<int, std::string>> events;
  for (size_t at = 0; at < data.size();) {
    const auto length = number_at<uint64_t>(data, at);
    EXPECT_EQ(number_at<uint32_t>(data, at + 8), plain_mask(data.substr(at, 8)));
    const std::string event = data.substr(at + 12, length);
    EXPECT_EQ(number_at<uint32_t>(data, at + 12 + length), plain_mask(event));
    events.push_back(fields_of(event));
    at += 16 + length;
  }
  return events;
}

TEST(EventFile, HoldsWhatWasAddedInFramesWithChecksums) {
  EXPECT_EQ(plain_crc32c("123456789"), 0xE3069283u) << "the check value of CRC-32C";
  const TemporaryFolder folder;
  EventFile file(folder.path(), 7);
  file.scalar(300, "train/loss", 4.25);
  file.text(301, "sample/0", "Once \xE2\x80\x94");
  file.histogram(302, "weights/a", {.low = -1, .high = 1, .counts = {3, 1}, .sum = -0.5, .squares = 2});
  file.flush();
  const auto events = events_of(file.path());
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].at(3), "brain.Event:2");
  EXPECT_EQ(events[1].at(2), "7");
  EXPECT_EQ(fields_of(events[1].at(7)).at(1), "1") << "earlier files end before step 7";
  const auto value_of = [&](size_t i) { return fields_of(fields_of(events[i].at(5)).at(1)); };
  EXPECT_EQ(events[2].at(2), "300");
  EXPECT_EQ(value_of(2).at(1), "train/loss");
  EXPECT_EQ(number_at<float>(value_of(2).at(2), 0), 4.25f);
  EXPECT_GT(number_at<double>(events[2].at(1), 0), 1.7e9) << "seconds since 1970";
  EXPECT_EQ(fields_of(value_of(3).at(8)).at(8), "Once \xE2\x80\x94");
  EXPECT_EQ(fields_of(fields_of(value_of(3).at(9)).at(1)).at(1), "text");
  const auto histogram = fields_of(value_of(4).at(5));
  EXPECT_EQ(number_at<double>(histogram.at(1), 0), -1);
  EXPECT_EQ(number_at<double>(histogram.at(3), 0), 4);
  EXPECT_EQ(number_at<double>(histogram.at(6), 0), 0);
  EXPECT_EQ(number_at<double>(histogram.at(6), 8), 1);
  EXPECT_EQ(number_at<double>(histogram.at(7), 0), 3);
}

TEST(EventFile, ThatCannotBeMadeIsAnError) {
  const TemporaryFolder folder;
  EXPECT_THROW(EventFile(folder.path() / "absent", 0), FailedError);
}

}  // namespace
}  // namespace prism

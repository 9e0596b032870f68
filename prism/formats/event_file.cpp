#include "prism/formats/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <boost/crc.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <type_traits>

#include "prism/core/error.h"

namespace prism {
namespace {

constexpr const char* kEventOperation = "tensorboard";
/// Bytes that are buffered before they are written.
constexpr size_t kMostKept = 1 << 20;

// Field numbers of the messages.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;          // Event
constexpr int kStatus = 1, kStarted = 1;                                                          // SessionLog
constexpr int kValue = 1;                                                                         // Summary
constexpr int kTag = 1, kSimpleValue = 2, kHistogram = 5, kTensor = 8, kMetadata = 9;             // Summary.Value
constexpr int kMin = 1, kMax = 2, kNumber = 3, kSum = 4, kSquares = 5, kLimits = 6, kCounts = 7;  // HistogramProto
constexpr int kPluginData = 1, kPluginName = 1;                                                   // SummaryMetadata
constexpr int kType = 1, kShape = 2, kStringType = 7, kStrings = 8;                               // TensorProto

/// A protocol buffer message under construction.
class Message {
 public:
  void number(int field, int64_t value) {
    key(field, 0);
    varint(static_cast<uint64_t>(value));
  }
  void real(int field, double value) {
    key(field, 1);
    little_endian(value);
  }
  void single(int field, float value) {
    key(field, 5);
    little_endian(value);
  }
  void bytes(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    text_ += value;
  }
  void reals(int field, const std::vector<double>& values) {
    Message packed;
    for (const double value : values) packed.little_endian(value);
    bytes(field, packed.text_);
  }
  const std::string& text() const { return text_; }

 private:
  void key(int field, int kind) { varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(kind)); }
  void varint(uint64_t value) {
    for (; value > 0x7F; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  template <class Number>
  void little_endian(Number value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    text_.append(raw, sizeof value);
  }

  std::string text_;
};

template <class Number>
std::string raw_bytes(Number value) {
  std::string raw(sizeof value, '\0');
  std::memcpy(raw.data(), &value, sizeof value);
  return raw;
}

/// CRC-32C, rotated and offset by a constant, so that computing the CRC of data that contains CRCs is safe.
std::string masked_crc(std::string_view data) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(data.data(), data.size());
  const uint32_t value = crc.checksum();
  return raw_bytes(((value >> 15) | (value << 17)) + 0xA282EAD8u);
}

std::string summary(const Message& value) {
  Message all, event;
  all.bytes(kValue, value.text());
  event.bytes(kSummary, all.text());
  return event.text();
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& folder, int64_t first_step)
    : path_(folder / fmt::format("events.out.tfevents.{:.0f}.{}.prism", now(), ::getpid())),
      file_(open_output(path_, O_WRONLY | O_APPEND, kEventOperation)) {
  Message version;
  version.bytes(kFileVersion, "brain.Event:2");
  add(0, version.text());
  Message status, started;
  status.number(kStatus, kStarted);
  started.bytes(kSessionLog, status.text());
  add(first_step, started.text());
  flush();
}

void EventFile::scalar(int64_t step, std::string_view tag, double value) {
  Message message;
  message.bytes(kTag, tag);
  message.single(kSimpleValue, static_cast<float>(value));
  add(step, summary(message));
}

void EventFile::text(int64_t step, std::string_view tag, std::string_view text) {
  Message plugin, metadata, tensor, message;
  plugin.bytes(kPluginName, "text");
  metadata.bytes(kPluginData, plugin.text());
  tensor.number(kType, kStringType);
  tensor.bytes(kShape, "");
  tensor.bytes(kStrings, text);
  message.bytes(kTag, tag);
  message.bytes(kTensor, tensor.text());
  message.bytes(kMetadata, metadata.text());
  add(step, summary(message));
}

void EventFile::histogram(int64_t step, std::string_view tag, const ValueHistogram& values) {
  std::vector<double> limits, counts;
  const auto parts = static_cast<double>(values.counts.size());
  int64_t number = 0;
  for (size_t i = 0; i < values.counts.size(); ++i) {
    limits.push_back(values.low + (values.high - values.low) * static_cast<double>(i + 1) / parts);
    counts.push_back(static_cast<double>(values.counts[i]));
    number += values.counts[i];
  }
  Message histogram, message;
  histogram.real(kMin, values.low);
  histogram.real(kMax, values.high);
  histogram.real(kNumber, static_cast<double>(number));
  histogram.real(kSum, values.sum);
  histogram.real(kSquares, values.squares);
  histogram.reals(kLimits, limits);
  histogram.reals(kCounts, counts);
  message.bytes(kTag, tag);
  message.bytes(kHistogram, histogram.text());
  add(step, summary(message));
}

void EventFile::add(int64_t step, const std::string& event) {
  Message time;
  time.real(kWallTime, now());
  time.number(kStep, step);
  const std::string data = time.text() + event, length = raw_bytes(static_cast<uint64_t>(data.size()));
  kept_ += length + masked_crc(length) + data + masked_crc(data);
  if (kept_.size() > kMostKept) flush();
}

void EventFile::flush() {
  for (size_t written = 0; written < kept_.size();) {
    const ssize_t count = ::write(file_.get(), kept_.data() + written, kept_.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_write(path_, errno, kEventOperation);
    written += static_cast<size_t>(count);
  }
  kept_.clear();
}

}  // namespace prism

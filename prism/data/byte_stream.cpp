#include "prism/data/byte_stream.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filter/lzma.hpp>
#include <boost/iostreams/filter/zstd.hpp>
#include <boost/iostreams/filtering_streambuf.hpp>
#include <boost/iostreams/read.hpp>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/stop.h"
#include "prism/data/zstd_frames.h"

namespace prism {
namespace {

namespace io = boost::iostreams;
using namespace std::string_view_literals;

constexpr std::streamsize kBufferBytes = 1 << 16;

enum class Packing { none, gzip, xz, zstd };

struct PackingRow {
  Packing packing;
  std::string_view name, ending, magic;
};

constexpr std::array kPackings = {
    PackingRow{Packing::gzip, "gzip", ".gz", "\x1F\x8B"sv}, PackingRow{Packing::xz, "xz", ".xz", "\xFD\x37zXZ\0"sv},
    PackingRow{Packing::zstd, "zstd", ".zst", "\x28\xB5\x2F\xFD"sv},
    PackingRow{Packing::zstd, "zstd", ".zst", "\x50\x2A\x4D\x18"sv},  // pzstd opens with a skippable frame
};

const PackingRow* row_by_ending(std::string_view name) {
  for (const PackingRow& row : kPackings) {
    if (name.size() > row.ending.size() && name.ends_with(row.ending)) return &row;
  }
  return nullptr;
}

/// An open file. Its first bytes can be examined before they are consumed, and all bytes read are counted.
struct RawFile {
  std::string name;
  Descriptor file;   ///< none for standard input
  size_t size = 0;   ///< of the file when it was opened; 0 if unknown
  size_t taken = 0;  ///< bytes read from it
  const std::atomic<bool>* cancelled = nullptr;
  std::string head;  ///< read already, not handed out yet
  int64_t consumed = 0;
  ZstdFrames frames;
  bool follow_frames = false;

  int descriptor() const { return file.get() < 0 ? STDIN_FILENO : file.get(); }

  /// Waits without reading, so that a stop signal is seen on a silent pipe.
  void wait() const {
    if (!wait_to_read(descriptor(), cancelled))
      throw FailedError("read", fmt::format("stopped while waiting for more of {}.", name));
  }

  size_t read_descriptor(char* out, size_t wanted) {
    for (;;) {
      wait();
      const ssize_t count = ::read(descriptor(), out, wanted);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail_read(name, errno);
      taken += static_cast<size_t>(count);
      if (count == 0 && wanted > 0 && taken < size) fail_shortened(name, size, taken);
      return static_cast<size_t>(count);
    }
  }

  /// Reads on while the bytes may become those of a packing, so that a short line of a pipe is not held back.
  void read_head() {
    constexpr size_t kLongestMagic = 6;
    char buffer[kLongestMagic];
    const auto may_be = [&](const PackingRow& row) {
      return head.size() < row.magic.size() && row.magic.starts_with(head);
    };
    while (std::any_of(kPackings.begin(), kPackings.end(), may_be)) {
      const size_t count = read_descriptor(buffer, kLongestMagic - head.size());
      if (count == 0) return;
      head.append(buffer, count);
    }
  }

  size_t read(char* out, size_t wanted) {
    size_t count = std::min(wanted, head.size());
    if (count > 0) {
      std::memcpy(out, head.data(), count);
      head.erase(0, count);
    } else {
      count = read_descriptor(out, wanted);
    }
    consumed += static_cast<int64_t>(count);
    if (follow_frames) frames.pass({out, count});
    return count;
  }
};

/// RawFile as Boost wants a source: copyable, -1 at the end.
class RawSource {
 public:
  using char_type = char;
  using category = io::source_tag;
  explicit RawSource(RawFile* file) : file_(file) {}
  std::streamsize read(char* out, std::streamsize size) {
    const size_t count = file_->read(out, static_cast<size_t>(size));
    return count == 0 ? -1 : static_cast<std::streamsize>(count);
  }

 private:
  RawFile* file_;
};

}  // namespace

class ByteStream::Impl {
 public:
  Impl(const std::string& path, Unpack unpacked, const std::atomic<bool>* cancelled) {
    file_.cancelled = cancelled;
    const bool standard_input = path == "-";
    file_.name = standard_input ? "standard input" : path;
    if (!standard_input) file_.file = open_regular(path, &file_.size, ", or - for standard input");
    file_.read_head();
    const PackingRow* named = row_by_ending(path);
    for (const PackingRow& row : kPackings) {
      if (file_.head.starts_with(row.magic) && (unpacked == Unpack::by_content || named != nullptr)) packing_ = &row;
    }
    PRISM_CHECK(named == nullptr || packing_ != nullptr || file_.head.empty(), "read",
                "{}: expected bytes packed by {}, as its name says; found others; fetch it again or rename it.", path,
                named->name);
    file_.follow_frames = packing_ != nullptr && packing_->packing == Packing::zstd;
    unpack();
  }

  size_t read(char* out, size_t size) {
    if (packing_ == nullptr) return file_.read(out, size);
    try {
      const std::streamsize count = io::read(unpacked_, out, static_cast<std::streamsize>(size));
      if (count > 0) {
        delivered_ += count;
        return static_cast<size_t>(count);
      }
    } catch (const std::ios_base::failure&) {
      fail_packed();
    }
    if (file_.follow_frames && !file_.frames.between_frames()) fail_packed();
    return 0;
  }

  int64_t consumed() const { return file_.consumed; }

 private:
  void unpack() {
    if (packing_ == nullptr) return;
    if (packing_->packing == Packing::gzip)
      unpacked_.push(io::gzip_decompressor(io::gzip::default_window_bits, kBufferBytes));
    if (packing_->packing == Packing::xz) unpacked_.push(io::lzma_decompressor(kBufferBytes));
    if (packing_->packing == Packing::zstd) unpacked_.push(io::zstd_decompressor(kBufferBytes));
    unpacked_.push(RawSource(&file_), kBufferBytes);
  }

  [[noreturn]] void fail_packed() const {
    throw InputError("read",
                     fmt::format("{}: expected a whole {} stream; found it damaged or cut short, after {} bytes "
                                 "of text; fetch it again.",
                                 file_.name, packing_->name, delivered_));
  }

  RawFile file_;
  const PackingRow* packing_ = nullptr;
  io::filtering_streambuf<io::input> unpacked_;
  int64_t delivered_ = 0;
};

ByteStream::ByteStream(const std::string& path, Unpack unpack, const std::atomic<bool>* cancelled)
    : impl_(std::make_unique<Impl>(path, unpack, cancelled)) {}
ByteStream::~ByteStream() = default;

size_t ByteStream::read(char* out, size_t size) {
  return impl_->read(out, size);
}

int64_t ByteStream::consumed() const {
  return impl_->consumed();
}

std::string without_packed_ending(const std::string& name) {
  const PackingRow* row = row_by_ending(name);
  return row == nullptr ? name : name.substr(0, name.size() - row->ending.size());
}

}  // namespace prism

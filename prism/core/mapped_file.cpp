#include "prism/core/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <string>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/text/printable.h"

namespace prism {
namespace {

/// The regions mapped now, for the signal handler to search. Regions beyond this capacity get no message.
std::array<std::atomic<const MappedRegion*>, 4096> regions;

}  // namespace

struct MappedRegion {
  MappedRegion(const std::filesystem::path& path, const Descriptor& file, size_t bytes)
      : data(::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0)),
        size(bytes),
        name(path),
        sentence(fmt::format("[read] expected {} bytes in {}; found fewer: another program made the file shorter while "
                             "it was in use; restore it and run again.\n",
                             bytes, plain_line(path.string()))) {
    if (data == MAP_FAILED || ::fstat(file.get(), &opened) != 0) fail_read(path, errno);
    for (auto& slot : regions) {
      const MappedRegion* free = nullptr;
      if (slot.compare_exchange_strong(free, this)) break;
    }
  }
  ~MappedRegion() {
    for (auto& slot : regions) {
      const MappedRegion* mine = this;
      if (slot.compare_exchange_strong(mine, nullptr)) break;
    }
    ::munmap(data, size);
  }
  MappedRegion(const MappedRegion&) = delete;
  MappedRegion& operator=(const MappedRegion&) = delete;

  bool holds(const void* address) const {
    const auto begin = reinterpret_cast<uintptr_t>(data), at = reinterpret_cast<uintptr_t>(address);
    return at >= begin && at - begin < size;
  }

  void* data;
  size_t size;
  struct stat opened {};  ///< identifies the file; open descriptors for many shards would be too many
  std::filesystem::path name;
  std::string sentence;  ///< formatted in advance, since a signal handler may not allocate
};

MappedFile::MappedFile(const std::filesystem::path& path) {
  size_t size = 0;
  const Descriptor file = open_regular(path, &size);
  if (size > 0) region_ = std::make_shared<const MappedRegion>(path, file, size);
}

void MappedFile::check_whole() const {
  struct stat status {};
  if (region_ == nullptr || ::stat(region_->name.c_str(), &status) != 0) return;
  // If the name now belongs to another file, the mapped one is unchanged.
  if (status.st_ino != region_->opened.st_ino || status.st_dev != region_->opened.st_dev) return;
  const auto now = static_cast<size_t>(status.st_size);
  if (now < region_->size) fail_shortened(region_->name, region_->size, now);
}

std::span<const std::byte> MappedFile::bytes() const {
  if (region_ == nullptr) return {};
  return {static_cast<const std::byte*>(region_->data), region_->size};
}

void explain_shortened_files() {
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  action.sa_sigaction = [](int signal, siginfo_t* info, void*) {
    static std::atomic_flag said;
    // BUS_ADRERR means beyond the end of the file. Failing memory has another code.
    for (const auto& slot : regions) {
      const MappedRegion* region = slot.load();
      if (info->si_code != BUS_ADRERR || region == nullptr || !region->holds(info->si_addr)) continue;
      if (!said.test_and_set()) (void)!::write(STDERR_FILENO, region->sentence.data(), region->sentence.size());
      ::_exit(1);
    }
    std::signal(signal, SIG_DFL);  // another fault: the access repeats and ends the process
  };
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace prism

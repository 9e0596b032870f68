// How long OpenMP's threads spin at a barrier before they sleep. By default they spin for milliseconds, which on a
// machine whose cores are busy keeps those off a core that still work: a step of training then takes several times as
// long.
//
// libgomp reads the environment once, when it is loaded, which is before main() and before every constructor of this
// program. So the program starts again with the variable set, from the one place that runs earlier, .preinit_array: the
// libraries are mapped by then, none is initialised, and the second start costs milliseconds. A value that
// the user sets for GOMP_SPINCOUNT or OMP_WAIT_POLICY is kept.
#include <unistd.h>

#include <array>
#include <cstring>

namespace prism {
namespace {

char spin_count[] = "GOMP_SPINCOUNT=1000";

bool is_set(const char* entry, const char* name) {
  const size_t length = std::strlen(name);
  return std::strncmp(entry, name, length) == 0 && entry[length] == '=';
}

/// Neither the environment of the C library nor its memory may be used yet.
void start_with_spin_count(int /*count*/, char** words, char** environment) {
  std::array<char*, 4096> entries;
  size_t number = 0;
  for (; environment[number] != nullptr; ++number) {
    if (number + 2 >= entries.size()) return;
    if (is_set(environment[number], "GOMP_SPINCOUNT") || is_set(environment[number], "OMP_WAIT_POLICY")) return;
    entries[number] = environment[number];
  }
  entries[number] = spin_count;
  entries[number + 1] = nullptr;
  ::execve("/proc/self/exe", words, entries.data());  // where it fails the program goes on as it is
}

__attribute__((section(".preinit_array"), used)) void (*const before_everything)(int, char**,
                                                                                 char**) = start_with_spin_count;

}  // namespace
}  // namespace prism

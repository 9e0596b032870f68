// Shortens the time that OpenMP threads spin at a barrier before they sleep. By default they spin for milliseconds. On
// a machine with busy cores, spinning threads take cores from threads that still work, and a training step takes
// several times as long. The count below lasts about 50 us, longer than a decoding step's threads wait for each other.
//
// libgomp reads the environment once, when it is loaded: before main() and before all constructors of this program.
// Only .preinit_array runs earlier. From there the program sets the variable and starts itself again. At that point the
// libraries are mapped but not initialised, so the second start costs milliseconds. If the user has set GOMP_SPINCOUNT
// or OMP_WAIT_POLICY, nothing is changed.
#include <unistd.h>

#include <array>
#include <cstring>

namespace prism {
namespace {

char spin_count[] = "GOMP_SPINCOUNT=5000";

bool is_set(const char* entry, const char* name) {
  const size_t length = std::strlen(name);
  return std::strncmp(entry, name, length) == 0 && entry[length] == '=';
}

/// The C library is not initialised yet: its environment functions and its allocator must not be used.
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
  ::execve("/proc/self/exe", words, entries.data());  // on failure the program continues unchanged
}

__attribute__((section(".preinit_array"), used)) void (*const before_everything)(int, char**,
                                                                                 char**) = start_with_spin_count;

}  // namespace
}  // namespace prism

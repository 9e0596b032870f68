// Runs the prism program as a user would, and returns its exit status and both output streams.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/core/temporary_folder.h"

namespace prism {

inline const std::string kProgram = std::string(PRISM_BINARY_DIR) + "/bin/prism";

struct Outcome {
  int status = -1;  ///< exit status, or 128 + signal
  std::string out, err;
};

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// Starts prism with its streams in files in `folder`.
/// @param prepare  called in the child before exec, e.g. to set limits.
inline pid_t start_prism(const std::vector<std::string>& words, const std::filesystem::path& folder,
                         const std::function<void()>& prepare = {}) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  const auto redirect = [&](const char* name, int target) {
    ::dup2(::open((folder / name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), target);
  };
  redirect("stdout.txt", STDOUT_FILENO);
  redirect("stderr.txt", STDERR_FILENO);
  ::dup2(::open((folder / "stdin.txt").c_str(), O_RDONLY | O_CREAT, 0666), STDIN_FILENO);
  ::chdir(folder.c_str());
  if (prepare) prepare();
  std::vector<char*> arguments = {const_cast<char*>(kProgram.c_str())};
  for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(kProgram.c_str(), arguments.data());
  ::_exit(127);
}

/// Waits until `condition` holds. Returns false after a minute.
inline bool wait_until(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::usleep(1000);
  }
  return true;
}

inline bool wait_for_file(const std::filesystem::path& path) {
  return wait_until([&] { return std::filesystem::exists(path); });
}

/// Waits until the child catches `signal` instead of dying from it.
inline bool wait_until_caught(pid_t child, int signal) {
  return wait_until([&] {
    std::ifstream status("/proc/" + std::to_string(child) + "/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigCgt:")) return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
    return false;
  });
}

inline Outcome wait_for(pid_t child, const std::filesystem::path& folder) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_text(folder / "stdout.txt"),
          read_text(folder / "stderr.txt")};
}

inline Outcome run_prism(const std::vector<std::string>& words, const std::filesystem::path& folder,
                         const std::string& input = "", const std::function<void()>& prepare = {}) {
  write_text(folder / "stdin.txt", input);
  return wait_for(start_prism(words, folder, prepare), folder);
}

/// A folder with a small corpus, tokenizer, token shards and recipe, made once by the program itself.
class Workshop {
 public:
  static const std::filesystem::path& folder() {
    static Workshop shop;
    return shop.temporary_.path();
  }

 private:
  Workshop() {
    const auto& path = temporary_.path();
    write_text(path / "text.txt", corpus());
    const auto make = [&](const std::vector<std::string>& words) {
      const auto outcome = run_prism(words, path);
      if (outcome.status != 0) throw std::runtime_error("workshop: " + outcome.err);
    };
    make({"tokenizer", "train", "text.txt", "--vocab-size", "300", "--out", "tokenizer"});
    make({"tokenize", "text.txt", "--separator", "\\n\\n", "--tokenizer", "tokenizer", "--valid-share", "0.2", "--out",
          "data"});
    write_text(path / "recipe.json", R"({"prism_format": 1, "seed": 3,
      "model": {"d_model": 32, "context": 32, "schedule": "1x1,2x1", "ffn_width": 48},
      "data": {"folder": "data"},
      "train": {"tokens": 4096, "batch_rows": 4, "accumulate": 2, "learning_rate": 0.003, "log_steps": 3,
                "eval_every_tokens": 2048, "checkpoint_every_tokens": 1024, "save_steps": "log",
                "sample_prompts": ["The"], "sample_tokens": 5}})");
  }

  static std::string corpus() {
    const char* words[] = {"river",  "stone",   "light",   "walks",  "under",
                           "golden", "morning", "quietly", "bridge", "sings"};
    std::string text;
    uint32_t state = 1;
    for (int sentence = 0; sentence < 400; ++sentence) {
      text += "The";
      for (int i = 0; i < 8; ++i) {
        state = state * 1664525u + 1013904223u;
        text += std::string(" ") + words[(state >> 16) % 10];
      }
      text += sentence % 5 == 4 ? ".\n\n" : ". ";
    }
    return text;
  }

  TemporaryFolder temporary_;
};

}  // namespace prism

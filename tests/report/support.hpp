// Helpers of the report tests: golden files, and programs that check a format.
#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/golden.hpp"

namespace weir::report::support {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline void expect_golden(const std::string& name, const std::string& got) {
  tests::expect_file("tests/golden/report/" + name, got);
}

struct Answer {
  int exit = -1;
  std::string out;
};

// Feeds `input` to a program (fixed words of a test, never text from outside) and returns its
// answer.
inline Answer feed(const std::string& program, const std::string& input) {
  std::string path = (std::filesystem::temp_directory_path() / "weir-report-XXXXXX").string();
  const int file = mkstemp(path.data());
  EXPECT_GE(file, 0);
  if (file < 0) return {};
  close(file);
  write_file(path, input);
  Answer answer;
  FILE* pipe = popen((program + " < '" + path + "' 2>&1").c_str(), "r");
  if (pipe != nullptr) {
    std::array<char, 4096> part{};
    while (const std::size_t got = fread(part.data(), 1, part.size(), pipe)) {
      answer.out.append(part.data(), got);
    }
    const int status = pclose(pipe);
    answer.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::filesystem::remove(path);
  return answer;
}

inline std::size_t occurrences(const std::string& text, const std::string& of) {
  std::size_t number = 0;
  for (std::size_t at = text.find(of); at != std::string::npos;
       at = text.find(of, at + of.size())) {
    ++number;
  }
  return number;
}

inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace weir::report::support

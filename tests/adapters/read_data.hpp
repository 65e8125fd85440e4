// Saved engine output for the tests.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace weir::adapters {

inline std::string read_data(const std::string& name) {
  std::ifstream file(std::string(WEIR_SOURCE_DIR) + "/tests/adapters/data/" + name);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (text.empty()) ADD_FAILURE() << "no test data named " << name;
  return text;
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) {
    ADD_FAILURE() << "the test data no longer holds " << from;
    return text;
  }
  return text.replace(at, from.size(), to);
}

}  // namespace weir::adapters

// How often the first finding names the cause that was planted.
#pragma once

#include <string>
#include <vector>

#include "gate/explain/explain.hpp"

namespace weir::explain::test {

struct Planted {
  std::string name;  // for people: what was changed, and where
  std::string want;  // a kind, or kinds apart by '|'; "" for no finding at all
  Explanation got;
};

struct Score {
  std::size_t right = 0, cases = 0;
  std::string wrong;  // one paragraph for each

  void add(const Planted& one) {
    ++cases;
    const Finding* first = one.got.findings.empty() ? nullptr : &one.got.findings.front();
    const std::string kind = first == nullptr ? "" : first->kind;
    const bool hit = one.want.empty()
                         ? first == nullptr
                         : first != nullptr &&
                               ("|" + one.want + "|").find("|" + kind + "|") != std::string::npos;
    if (hit) {
      ++right;
      return;
    }
    wrong += one.name + ": wanted " + (one.want.empty() ? "nothing" : one.want) + ", got ";
    wrong += first == nullptr ? "nothing\n" : kind + ": " + first->text() + "\n";
  }
  [[nodiscard]] double share() const {
    return cases == 0 ? 0 : static_cast<double>(right) / static_cast<double>(cases);
  }
};

}  // namespace weir::explain::test

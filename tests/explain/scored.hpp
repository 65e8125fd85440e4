// How often the first finding names the cause that was planted.
#pragma once

#include <algorithm>
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
  std::size_t right = 0, in_three = 0, cases = 0;  // the cause is first, among the first three
  std::string wrong;                               // one paragraph for each

  void add(const Planted& one) {
    ++cases;
    const auto& findings = one.got.findings;
    const auto is_wanted = [&](const Finding& finding) {
      return ("|" + one.want + "|").find("|" + finding.kind + "|") != std::string::npos;
    };
    const auto at = std::ranges::find_if(findings, is_wanted) - findings.begin();
    const bool none = one.want.empty() && findings.empty();
    in_three += none || (at < std::ssize(findings) && at < 3) ? 1 : 0;
    if (none || (at == 0 && !findings.empty())) {
      ++right;
      return;
    }
    const Finding* first = findings.empty() ? nullptr : &findings.front();
    wrong += one.name + ": wanted " + (one.want.empty() ? "nothing" : one.want) + ", got ";
    wrong += first == nullptr ? "nothing\n" : first->kind + ": " + first->text() + "\n";
  }
  [[nodiscard]] double share() const {
    return cases == 0 ? 0 : static_cast<double>(right) / static_cast<double>(cases);
  }
};

}  // namespace weir::explain::test

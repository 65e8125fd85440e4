// Counts how often the first finding names the injected cause.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "gate/explain/explain.hpp"

namespace weir::explain::test {

struct Planted {
  std::string name;  // shown to people: the change and its place
  std::string want;  // kinds separated by '|'; "": no finding at all
  Explanation got;
};

struct Score {
  std::size_t right = 0, in_three = 0, cases = 0;  // cause is first; among the first three; all
  std::string wrong;                               // one paragraph for each

  void add(const Planted& planted) {
    ++cases;
    const auto& findings = planted.got.findings;
    const auto is_wanted = [&](const Finding& finding) {
      return ("|" + planted.want + "|").find("|" + finding.kind + "|") != std::string::npos;
    };
    const auto at = std::ranges::find_if(findings, is_wanted) - findings.begin();
    const bool none = planted.want.empty() && findings.empty();
    in_three += none || (at < std::ssize(findings) && at < 3) ? 1 : 0;
    if (none || (at == 0 && !findings.empty())) {
      ++right;
      return;
    }
    const Finding* first = findings.empty() ? nullptr : &findings.front();
    wrong +=
        planted.name + ": wanted " + (planted.want.empty() ? "nothing" : planted.want) + ", got ";
    wrong += first == nullptr ? "nothing\n" : first->kind + ": " + first->text() + "\n";
  }
  [[nodiscard]] double share() const {
    return cases == 0 ? 0 : static_cast<double>(right) / static_cast<double>(cases);
  }
};

}  // namespace weir::explain::test

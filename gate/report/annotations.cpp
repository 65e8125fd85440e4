#include "gate/report/annotations.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/compose.hpp"
#include "gate/report/document.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/proposals.hpp"

namespace weir::report {
namespace {

// The runner undoes exactly these, in data and in properties.
constexpr Replacement k_escapes[] = {
    {'%', "%25"}, {'\r', "%0D"}, {'\n', "%0A"}, {':', "%3A"}, {',', "%2C"}};

// The last two in properties alone.
std::string escaped(std::string_view text, bool property) {
  return replace_each(text, std::span(k_escapes).first(property ? 5 : 3));
}

std::string command(std::string_view kind, std::string_view title, std::string_view message) {
  return fmt::format("::{} title={}::{}\n", kind, escaped(text::disarm(title), true),
                     escaped(text::disarm(message), false));
}

// "dispatches/token: 65 → 77 (+12, must not change)", with the reason where there is one.
std::string line_of(const Number& one) {
  std::vector<std::string> sides{one.base, one.now};
  std::erase(sides, "");
  std::string line = text::join(sides, k_arrow);
  if (const std::string parts = one.parts(); !parts.empty() && says_numbers(one)) {
    line += fmt::format("{}({})", line.empty() ? "" : " ", parts);
  }
  if (!says_numbers(one)) line = one.where;
  if (!one.why.empty()) line += (line.empty() ? "" : ": ") + one_line(one.why, 300);
  return one.label + ": " + line;
}

// Lines of the parts that a comment has.
void add_lines(std::vector<std::string>& lines, const Parts& parts) {
  constexpr std::size_t k_most_changes = 8;
  for (const Part& part : parts) {
    if ((part.readers & k_comment) == 0) continue;
    const std::string head = part.head.empty() ? part.in : plain_words(part.head) + ": " + part.in;
    if (part.kind == Part::Kind::paragraph) {
      lines.push_back(head + one_line(plain_words(part.words), 600));
    } else if (part.kind == Part::Kind::changes) {
      const auto all = collect<std::string>(
          part.items, [](const Words& one) { return one.front().text + " " + one.back().text; });
      lines.push_back(head + text::join(shortened(all, k_most_changes)));
    }
    for (const Number& one : part.numbers) {
      if ((one.readers & k_comment) == 0) continue;
      lines.push_back(line_of(one));
      add_lines(lines, one.below);
    }
  }
}

// Sections that speak of cells; causes and what they leave have their verdict from around them.
void add(std::vector<Annotation>& all, const Parts& parts, Outcome outcome) {
  constexpr std::size_t k_most_lines = 12;
  for (const Part& part : parts) {
    if (part.kind != Part::Kind::section) continue;
    const Outcome own = part.outcome.value_or(outcome);
    if (part.cells == 0) {
      add(all, part.parts, own);
      continue;
    }
    std::vector<std::string> lines;
    add_lines(lines, part.parts);
    all.push_back({own, fmt::format("{}: {}", verdict::to_string(own), plain_words(part.head)),
                   text::join(shortened(std::move(lines), k_most_lines), "\n"), part.cells});
  }
}

}  // namespace

std::vector<Annotation> annotations_of(const Document& document) {
  std::vector<Annotation> all;
  add(all, compose(document), document.gate.verdict);
  return all;
}

std::vector<Annotation> at_most(std::vector<Annotation> all, std::size_t most) {
  if (all.size() <= most) return all;
  std::size_t cells = 0;
  for (std::size_t i = std::max<std::size_t>(most, 1) - 1; i < all.size(); ++i) {
    cells += all[i].cells;
  }
  all.resize(most);
  if (most > 0) {
    all.back().title = "";
    all.back().message = "and " + plural(cells, "more cell");
    all.back().cells = cells;
  }
  return all;
}

std::string annotations(const Document& document) {
  const std::string_view verdict = verdict::to_string(document.gate.verdict);
  std::string out = command("notice", fmt::format("weir {}", verdict), document.first_line());
  const ProposalWords rules = proposal_words(document.gate, 10);
  if (!rules.head.empty()) {
    out += command("warning", "weir: " + rules.head, text::join(rules.lines, "\n"));
  }
  const std::vector<Annotation> all = annotations_of(document);
  for (const std::string_view kind : {"error", "warning", "notice"}) {
    std::vector<Annotation> of_kind = all;
    std::erase_if(of_kind,
                  [&](const Annotation& one) { return look_of(one.verdict).level != kind; });
    // One notice is the headline's.
    const std::size_t room = k_annotations_shown - (kind == "notice" ? 1 : 0);
    for (const Annotation& one : at_most(std::move(of_kind), room)) {
      out += command(kind, one.title.empty() ? "weir" : "weir " + one.title, one.message);
    }
  }
  return out;
}

}  // namespace weir::report

// Tests the tree of parts that every format shows, for every fixture.
#include "gate/report/compose.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"

#include "tests/report/fixtures.hpp"
#include "tests/report/paired_fixtures.hpp"
#include "tests/report/support.hpp"

namespace weir::report {
namespace compose_test {

constexpr const char* k_kinds[] = {"section", "fold",  "paragraph",    "list",   "changes",
                                   "numbers", "table", "preformatted", "ratios", "figure"};

// Returns " for brief, page"; "" for all readers.
std::string readers(Readers readers) {
  if (readers == k_all) return "";
  std::vector<std::string> names;
  if ((readers & k_brief) != 0) names.emplace_back("brief");
  if ((readers & k_verbose) != 0) names.emplace_back("verbose");
  if ((readers & k_comment) != 0) names.emplace_back("comment");
  if ((readers & k_page) != 0) names.emplace_back("page");
  return " for " + text::join(names);
}

void dump(std::string& out, const Parts& parts, std::size_t depth);

void dump(std::string& out, const Part& part, std::size_t depth) {
  const std::string indent(2 * depth, ' ');
  const auto line = [&](const std::string& words) {
    if (!words.empty()) out += fmt::format("{}  {}\n", indent, printable_line(words, 2000));
  };
  out += indent + k_kinds[static_cast<std::size_t>(part.kind)] + readers(part.readers);
  if (part.outcome) out += fmt::format(" {}", verdict::to_string(*part.outcome));
  if (!part.head.empty()) out += ": " + plain_text(part.head);
  out += "\n";
  line(part.in + plain_text(part.words));
  line(part.text);
  for (const Words& item : part.items) line("- " + plain_text(item));
  for (const auto& row : part.rows) {
    line(text::join(collect<std::string>(row, plain_text), " | "));
  }
  for (const Number& number : part.numbers) {
    std::vector<std::string> cells{number.label,    number.base,  number.candidate, number.change,
                                   number.evidence, number.limit, number.where,     number.why};
    std::erase(cells, "");
    line(text::join(cells, " | ") + readers(number.readers));
    dump(out, number.below, depth + 2);
  }
  dump(out, part.parts, depth + 1);
}

void dump(std::string& out, const Parts& parts, std::size_t depth) {
  for (const Part& part : parts) dump(out, part, depth);
}

TEST(Compose, BuildsTheTreeThatIsStored) {
  auto all = fixtures::all();
  for (auto& fixture : fixtures::all_beside()) all.push_back(std::move(fixture));
  for (const auto& [name, gate] : all) {
    std::string out;
    dump(out, compose(gate), 0);
    support::expect_golden(name + ".tree", out);
  }
}

}  // namespace compose_test
}  // namespace weir::report

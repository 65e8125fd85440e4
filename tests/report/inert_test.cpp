// Tests that text from outside stays inert wherever it is in a verdict. Each attack is put into
// every string of weir.verdict/1, and through every report for a page or a log.
#include <cctype>
#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/report/annotations.hpp"
#include "gate/report/check.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/markdown.hpp"
#include "gate/report/terminal.hpp"

#include "tests/report/paired_fixtures.hpp"
#include "tests/report/support.hpp"

namespace weir::report {
namespace inert_test {

using verdict::CellVerdict;
using verdict::GateVerdict;
using verdict::Outcome;

// Attacks. They are short, as some fields show a few characters only.
const std::vector<std::string>& attacks() {
  static const std::vector<std::string> k_attacks = {
      "@octocat",
      "x @org/team y",
      "#123",
      "owner/repo#1",
      "GH-123",
      "gh-7 Gh-8",
      "deadbeef",
      "0123456789abcdef0123456789abcdef01234567",
      "user@deadbeef",
      "https://evil.example/x",
      "www.evil.example",
      "a@evil.example",
      "mailto:a@evil.example",
      "xmpp:a@evil.example/b",
      "ftp://evil.example",
      "[l](https://evil.example)",
      "![i](//evil.example/p.png)",
      "[l]: //evil.example",
      "[^1]",
      "[^1]: note",
      "<https://evil.example>",
      "<b>bold</b>",
      "<img src=x onerror=alert(1)>",
      "</details></sub></td><h1>",
      "</code></pre><script>x</script>",
      "<!-- weir:gate -->",
      "<!-- weir: -->",
      "--><b>",
      "&lt;b&gt;&#60;i&#62;&commat;octocat",
      "a | b | c |",
      "a \\| b \\",
      "`code` ``more``",
      "```\n@octocat\n/merge",
      "~~~\n<b>",
      "**b** _i_ ~~s~~ ~s~",
      "> [!NOTE]\n> text",
      "# heading\n===\n---",
      "- list\n1. list\n2) list",
      "- [x] task",
      "    <b>indented",
      ":tada: :+1: :e-mail:",
      "$x^2$ and $$y$$ and $`z`$",
      "/merge",
      "x\n/close\n /approve\n\t/lgtm",
      "!1 ~label %milestone &1 $1 ~\"a label\"",
      "{+ in +} {- out -} [+ in +]",
      "x\n::error::run",
      "x\r::set-output name=a::b\r",
      "x\u2028::error::run\u2029::error::run",
      "\u3000::add-mask::run",
      "::stop-commands::run",
      "##[error]run ##vso[task.setvariable variable=a]b",
      "%0A::error::run%0D%0A::error::run",
      "title=x,file=y::run",
      "\x1b[31mred\x1b[0m\x1b]8;;https://evil.example\x07",
      "a\u202egnp.exe\u202c\u2066x\u2069",
      "zero\u200bwidth\u200d\ufeff\u00adjoin",
      "\xff\xfe\xc0\x80",
      "{{ github.token }} ${{ secrets.X }}",
  };
  return k_attacks;
}

using Place = std::string;  // a JSON pointer

void collect_strings(const Json& json, const Place& at, std::vector<Place>& places) {
  if (json.is_string()) places.push_back(at);
  if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) {
      collect_strings(json[i], at + "/" + std::to_string(i), places);
    }
  }
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) collect_strings(value, at + "/" + key, places);
  }
}

// Builds one cell of each kind with as many fields filled as possible.
GateVerdict everything() {
  GateVerdict gate = fixtures::red();
  CellVerdict fail = fixtures::decode_on_vulkan(gate);
  fixtures::keep_metrics(fail, 2);
  fail.judgements[1].metric =
      unit::custom_metric("mine", unit::Kind::count, unit::Unit::count, unit::Better::lower);
  fail.judgements[1].current = 1;  // fewer: a reason that the numbers do not show
  fail.judgements[1].current_text = "1";
  fail.judgements[1].warnings = {"w"};
  fail.judgements[1].limit.reason = "r";
  fail.reason = "r";
  fail.put("placement").verdict = Outcome::fail;
  fail.put("placement").reason = "p";
  fail.put("kernels").changed.resize(1);
  fail.functions = fail.put("placement").changed = fail.judgement_of("kernels").changed;
  fail.warnings = fail.notes = {"w"};
  verdict::TwinCheck twin{"t", "d", fail.cell, {"a"}, 1, true, {}, {}};
  twin.differences = {{"n", Rational(1), Rational(2)}};
  twin.kernels = {{"k", std::nullopt, Rational(2)}};
  fail.twin_check = twin;
  verdict::Finding finding;
  finding.kind = finding.headline = finding.cause = finding.look_at = "f";
  finding.lines = finding.ops = finding.tensors = {"f"};
  fail.findings = {finding};
  fail.counts_skip_reason = fail.instructions_skip_reason = "c";
  CellVerdict error = fail, fresh = fail, skipped = fail;
  error.verdict = Outcome::error;
  error.stderr_tail = "tail";
  fresh.verdict = Outcome::new_;
  skipped.verdict = Outcome::skipped;
  // No cell is better than its judgements.
  for (CellVerdict* cell : {&error, &fresh, &skipped}) {
    for (Judgement& judgement : cell->judgements) judgement.verdict = cell->verdict;
  }
  CellVerdict open = fixtures::beside_open().cells[1];
  open.judgements.erase(open.judgements.begin(), open.judgements.begin() + 5);
  open.warnings = {"w"};
  CellVerdict pass = fixtures::beside_pass().cells[0];
  pass.judgements.erase(pass.judgements.begin(), pass.judgements.begin() + 5);
  gate.cells = {fail, error, fresh, skipped, open, pass};
  gate.against = verdict::Against{"origin/main", {}};
  gate.notes = gate.not_judged = {"n"};
  gate.totals = {{"fail", 1}};
  gate.causes = {{"k", "h", {"o"}, {fail.cell.str()}, {{"m", 1, 2, 1}}, 1, "c", "l", {"b"}}};
  gate.unexplained = {{"u", {fail.cell.str()}}};
  return gate;
}

// Builds a report that begins with causes: every string of one that reports show is `text`.
GateVerdict caused(const std::string& text) {
  GateVerdict gate = fixtures::two_causes();
  gate.unexplained.push_back({"placement", {gate.cells[0].cell.str()}});
  gate.cells[0].put("placement").reason = text;
  gate.unexplained.push_back({text, {gate.cells[1].cell.str()}});
  verdict::Cause& cause = gate.causes.front();
  cause.kind = cause.headline = cause.cause = cause.look_at = text;
  cause.ops = {text};
  cause.carriers.push_back({text, 1, 2, 40});
  cause.cells.push_back(text);
  return gate;
}

const Verbs k_verbs{"baseline accept",
                    "baseline accept --reason",
                    "gate --counts-only",
                    "gate --from",
                    "doctor",
                    "explain",
                    "gate --resume",
                    "/weir waive"};

MarkdownStyle style() {
  MarkdownStyle result;
  result.verbs = k_verbs;
  result.run_url = "https://example.org/runs/1";
  return result;
}

std::string cmark(const std::string& extensions, const std::string& text) {
  const auto answer =
      support::feed("cmark-gfm --unsafe -e table -e autolink -e strikethrough " + extensions, text);
  EXPECT_EQ(answer.exit, 0) << "cmark-gfm (Debian package cmark-gfm): " << answer.out;
  return answer.out;
}

// Tags that weir itself writes, none of them with text from outside.
const std::set<std::string>& own_tags() {
  static const std::set<std::string> k_own = {"<h3>",
                                              "</h3>",
                                              "<p>",
                                              "</p>",
                                              "<table>",
                                              "</table>",
                                              "<thead>",
                                              "</thead>",
                                              "<tbody>",
                                              "</tbody>",
                                              "<tr>",
                                              "</tr>",
                                              "<th>",
                                              "</th>",
                                              "<th align=\"right\">",
                                              "<td>",
                                              "</td>",
                                              "<td align=\"right\">",
                                              "<strong>",
                                              "</strong>",
                                              "<em>",
                                              "</em>",
                                              "<code>",
                                              "</code>",
                                              "<code class=\"language-text\">",
                                              "<pre>",
                                              "</pre>",
                                              "<sub>",
                                              "</sub>",
                                              "<ul>",
                                              "</ul>",
                                              "<li>",
                                              "</li>",
                                              "<br>",
                                              "<details>",
                                              "<details open>",
                                              "</details>",
                                              "<summary>",
                                              "</summary>",
                                              "<span>",
                                              "</span>",
                                              "<a href=\"https://example.org/runs/1\">",
                                              "</a>"};
  return k_own;
}

// Returns the text outside of code as a reader sees it, with "\n" for each tag. Collects the tags.
std::string visible_text(const std::string& html, std::set<std::string>& tags) {
  std::string prose;
  bool code = false;
  for (std::size_t at = 0; at < html.size();) {
    if (html[at] == '<') {
      const std::size_t end = std::min(html.find('>', at), html.size() - 1);
      const std::string tag = html.substr(at, end + 1 - at);
      tags.insert(tag);
      if (tag.starts_with("<code")) code = true;
      if (tag == "</code>") code = false;
      // A single "$" in a <span> is no part of a formula.
      const bool lone = tag == "<span>" && html.compare(end + 1, 8, "$</span>") == 0;
      prose += '\n';
      at = end + 1 + (lone ? 1 : 0);
      continue;
    }
    if (!code) prose += html[at];
    ++at;
  }
  for (const auto& [entity, text] : {std::pair{"&lt;", "<"}, std::pair{"&gt;", ">"},
                                     std::pair{"&quot;", "\""}, std::pair{"&amp;", "&"}}) {
    for (std::size_t at = prose.find(entity); at != std::string::npos;
         at = prose.find(entity, at + 1)) {
      prose.replace(at, std::string(entity).size(), text);
    }
  }
  return prose;
}

bool word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Returns the first part that GitHub or GitLab would turn into a link, a mention or the like; "" if
// none.
std::string bait_in(const std::string& prose) {
  const auto at = [&](std::size_t i) { return i < prose.size() ? prose[i] : '\0'; };
  for (std::size_t i = 0; i < prose.size(); ++i) {
    const std::string_view rest = std::string_view(prose).substr(i);
    const bool begins = i == 0 || !word(prose[i - 1]);
    const auto excerpt = [&] { return prose.substr(i > 20 ? i - 20 : 0, 60); };
    if (std::string_view("@#!~&").find(rest[0]) != std::string_view::npos && word(at(i + 1))) {
      return excerpt();
    }
    if (rest[0] == '%' && (word(at(i + 1)) || at(i + 1) == '"')) return excerpt();
    if (rest[0] == '$') return excerpt();
    if ((rest[0] == '{' || rest[0] == '[') && (at(i + 1) == '+' || at(i + 1) == '-')) {
      return excerpt();
    }
    if (rest.starts_with("://") || text::lower(rest.substr(0, 4)) == "www.") return excerpt();
    if (begins && text::lower(rest.substr(0, 3)) == "gh-" && word(at(i + 3))) return excerpt();
    std::size_t end = i;
    while (std::isxdigit(static_cast<unsigned char>(at(end))) != 0) ++end;
    if (begins && end >= i + 7 && !word(at(end))) return excerpt();
    end = i + 1;
    while (word(at(end)) || at(end) == '+' || at(end) == '-') ++end;
    if (rest[0] == ':' && end > i + 1 && at(end) == ':') return excerpt();
  }
  return "";
}

// Names the first command to a runner, a robot or a terminal in the text as sent; "" if none.
std::string order_in(const std::string& text) {
  if (text.find("<!--") != std::string::npos) return "the marker of weir's own comment";
  for (const char* bad : {"##[", "##vso[", "\r", "\x1b", "\x07", "\u2028", "\u2029", "\u202e",
                          "\u2066", "\ufeff", "\u200d", "\u00ad"}) {
    if (text.find(bad) != std::string::npos) return std::string("holds ") + bad;
  }
  for (const std::string& line : text::lines(text)) {
    const std::string_view trimmed = text::trim(line);
    if (trimmed.starts_with('/')) return line;
    if (text::neutralize_ci_commands(line) != line) return line;
  }
  return "";
}

TEST(Inert, IsTextFromOutsideInMarkdownWhereverItStands) {
  const Json original = write_fields(everything());
  std::vector<Place> places;
  collect_strings(original, "", places);
  EXPECT_GT(places.size(), 200U);
  std::set<Place> shown;
  const std::string untouched = markdown(everything(), style());
  for (const std::string& attack : attacks()) {
    std::string all;
    std::size_t documents = 0;
    for (const Place& place : places) {
      Json hostile = original;
      hostile[Json::json_pointer(place)] = attack;
      const auto gate = read_fields<verdict::GateVerdict>(hostile, "verdict");
      if (!gate) continue;  // reading checks names of cells, verdicts and natures
      const std::string document = markdown(*gate, style());
      EXPECT_EQ(order_in(document), "") << place << ": " << attack;
      if (document == untouched) continue;
      shown.insert(place);
      all += fmt::format("{}\n\nend of {}\n\n", document, documents++);
    }
    // Renders with all of GitHub's filters, and without the one that removes tags.
    for (const char* extensions : {"", "-e footnotes -e tagfilter -e tasklist"}) {
      const std::string html = cmark(extensions, all);
      std::set<std::string> tags;
      EXPECT_EQ(bait_in(visible_text(html, tags)), "") << attack;
      for (const std::string& tag : tags) {
        EXPECT_TRUE(own_tags().contains(tag)) << "a tag that weir never writes: " << tag << "\n"
                                              << attack;
      }
      for (std::size_t i = 0; i < documents; ++i) {
        EXPECT_EQ(support::occurrences(html, fmt::format("<p>end of {}</p>\n", i)), 1U)
            << "a block was not closed: " << attack;
      }
      // Rows have as many cells as the heading.
      EXPECT_EQ(html.find("<p>|"), std::string::npos) << "a torn table: " << attack;
    }
  }
  for (const char* place : {"/base_source", "/commit", "/cells/0/judgements/2/changed/0/name",
                            "/cells/1/stderr_tail", "/cells/0/judgements/1/reason", "/not_judged/0",
                            "/cells/0/device_name", "/cells/2/reason"}) {
    EXPECT_TRUE(shown.contains(place)) << place << " is not shown: the test proves nothing of it";
  }
}

TEST(Inert, IsTextFromOutsideInLogsWhereverItStands) {
  const Json original = write_fields(everything());
  std::vector<Place> places;
  collect_strings(original, "", places);
  const std::size_t lines = text::lines(annotations(everything())).size();
  TerminalStyle plain;
  plain.verbs = k_verbs;
  for (const std::string& attack : attacks()) {
    // Other text has no meaning to a runner or a terminal.
    if (attack.find_first_of(":#%\r\x1b\xff\xe2\xe3") == std::string::npos) continue;
    for (const Place& place : places) {
      Json hostile = original;
      hostile[Json::json_pointer(place)] = attack;
      const auto gate = read_fields<verdict::GateVerdict>(hostile, "verdict");
      if (!gate) continue;
      // In a runner's log: one command a line, each of the three kinds that weir prints.
      const std::string commands = annotations(*gate);
      const auto command_lines = text::lines(commands);
      EXPECT_EQ(command_lines.size(), lines) << place << ": " << attack;
      EXPECT_EQ(commands.find('\r'), std::string::npos);
      for (const std::string& line : command_lines) {
        const std::size_t begin = line.find("title=weir ");
        EXPECT_TRUE(begin != std::string::npos &&
                    (line.substr(0, begin) == "::error " || line.substr(0, begin) == "::warning " ||
                     line.substr(0, begin) == "::notice "))
            << line;
        // The runner ends the properties at the next "::" and separates them at commas.
        const std::string properties = line.substr(begin, line.find("::", 2) - begin);
        EXPECT_EQ(properties.find_first_of(",:\r\n"), std::string::npos) << line;
        EXPECT_EQ(line.find("##["), std::string::npos) << line;
      }
      // A check and a status, as GitHub shows them and as --dry-run prints them.
      const CheckText check = check_text(*gate, style());
      std::vector<std::string> words{check.title, status_text(*gate).description};
      for (const CheckAnnotation& annotation : check.annotations) {
        words.push_back(annotation.title);
        words.push_back(annotation.message);
        EXPECT_EQ(annotation.path.find_first_of("\\:\r\n"), std::string::npos);
        EXPECT_FALSE(annotation.path.starts_with('/') ||
                     annotation.path.find("..") != std::string::npos);
      }
      for (const std::string& text : words) {
        EXPECT_EQ(text::neutralize_ci_commands(text::printable(text)), text)
            << place << ": " << attack;
      }
      const std::string printed = terminal(*gate, plain);
      EXPECT_EQ(text::neutralize_ci_commands(text::printable(printed)), printed)
          << place << ": " << attack;
    }
  }
}

TEST(Inert, IsTextFromOutsideInCauses) {
  ASSERT_TRUE(Document(caused("x")).cause_first);
  TerminalStyle plain;
  plain.verbs = k_verbs;
  for (const std::string& attack : attacks()) {
    const GateVerdict gate = caused(attack);
    const std::string document = markdown(gate, style());
    EXPECT_EQ(order_in(document), "") << attack;
    const std::string html = cmark("", document + "\n\nend\n");
    std::set<std::string> tags;
    EXPECT_EQ(bait_in(visible_text(html, tags)), "") << attack;
    for (const std::string& tag : tags) EXPECT_TRUE(own_tags().contains(tag)) << tag;
    EXPECT_EQ(support::occurrences(html, "<p>end</p>\n"), 1U) << attack;
    EXPECT_EQ(html.find("<p>|"), std::string::npos) << "a torn table: " << attack;
    std::vector<std::string> texts{terminal(gate, plain)};
    for (const CheckAnnotation& annotation : check_text(gate, style()).annotations) {
      texts.push_back(annotation.title);
      texts.push_back(annotation.message);
    }
    for (const std::string& text : texts) {
      EXPECT_EQ(text::neutralize_ci_commands(text::printable(text)), text) << attack;
    }
    EXPECT_EQ(text::lines(annotations(gate)).size(), 4U) << attack;  // headline, 2 causes, the rest
  }
}

// Reading checks names of cells, but a caller may still pass others.
TEST(Inert, AreNamesOfCellsThatWereNotRead) {
  for (const std::string& attack : attacks()) {
    GateVerdict gate = everything();
    for (CellVerdict& cell : gate.cells) {
      cell.cell.engine = cell.cell.model = cell.cell.backend = cell.cell.prompt = attack;
    }
    const std::string document = markdown(gate, style());
    EXPECT_EQ(order_in(document), "") << attack;
    const std::string html = cmark("", document + "\n\nend\n");
    std::set<std::string> tags;
    EXPECT_EQ(bait_in(visible_text(html, tags)), "") << attack;
    for (const std::string& tag : tags) EXPECT_TRUE(own_tags().contains(tag)) << tag;
    EXPECT_EQ(support::occurrences(html, "<p>end</p>\n"), 1U) << attack;
  }
}

TEST(Inert, StaysReadable) {
  struct Row {
    const char* text;
    const char* markdown;
  };
  for (const auto& [text, want] : {
           Row{"5 % of 28.6 tok/s", "5 % of 28.6 tok/s"},
           Row{"12 of 60 runs: fine", "12 of 60 runs: fine"},
           Row{"a/b/c", "a/b/c"},
           Row{"/merge", "\\/merge"},
           Row{"3. of May", "3\\. of May"},
           Row{"3.5 ms", "3.5 ms"},
           Row{"std::vector", "std::vector"},
           Row{":tada:", ":\u200btada:"},
           Row{"$5", "<span>$</span>5"},
           Row{"commit a1b2c3d", "commit `a1b2c3d`"},
           Row{"vulkan-0a1b2c3d", "vulkan-0a1b2c\u200b3d"},
       }) {
    EXPECT_EQ(markdown_text(text), want);
  }
  EXPECT_EQ(markdown_code("<!-- weir:x"), "`<\u200b!-- weir:x`");
  EXPECT_EQ(markdown_fence({"/merge", "a ``` b", "x@y"}),
            "````text\n\u200b/merge\na ``` b\nx@y\n````\n");
}

}  // namespace inert_test
}  // namespace weir::report

// Checks that the reference pages list the program's commands, keys and metrics. Also checks that
// every page of docs can be reached and every link in it works.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/config/keys.hpp"
#include "gate/flow/configure.hpp"
#include "gate/unit/kernel_cost.hpp"
#include "gate/unit/metric.hpp"

#include "tests/app/run.hpp"
#include "tests/support/golden.hpp"

namespace weir::app {
namespace reference_test {

namespace fs = std::filesystem;

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns the text that --help of these words prints; without words, that of `weir help --all`.
std::string help_text(std::vector<std::string> words) {
  tests::FakeWorld world(tests::k_timed_yaml);
  if (words.empty()) words = {"help", "--all"};
  if (words.front() != "help") words.emplace_back("--help");
  std::vector<const char*> all;
  for (const std::string& word : words) all.push_back(word.c_str());
  testing::internal::CaptureStdout();
  EXPECT_EQ(run(world, all), 0) << text::join(words, " ");
  return testing::internal::GetCapturedStdout();
}

// The help of a verb and of all below it, with their names.
void collect_help(const std::vector<std::string>& words,
                  std::vector<std::pair<std::string, std::string>>& all) {
  const std::string help = help_text(words);
  all.emplace_back(text::join(words, " "), help);
  const std::size_t end = help.find("\nExample");
  bool verbs = false;
  for (const std::string& line : text::lines(help.substr(0, end))) {
    const bool heads = line.ends_with(':') && !line.starts_with(' ');
    if (heads) verbs = line != "Options:" && line != "Positionals:";
    if (heads || !verbs || line.size() < 3 || line[2] == ' ' || !line.starts_with("  ")) continue;
    std::vector<std::string> below = words;
    below.push_back(line.substr(2, line.find(' ', 2) - 2));
    collect_help(below, all);
  }
}

std::vector<std::pair<std::string, std::string>> all_help() {
  std::vector<std::pair<std::string, std::string>> all;
  collect_help({}, all);
  return all;
}

TEST(Help, FitsIntoEightyColumnsAndSaysWhatEachOptionIs) {
  const auto all = all_help();
  EXPECT_GT(all.size(), 40U) << "verbs, and those below them";
  for (const auto& [words, help] : all) {
    for (const std::string& line : text::lines(help)) {
      EXPECT_LE(text::columns(line), 80U) << "weir " << words << " --help: " << line;
      EXPECT_FALSE(line.starts_with("  -") && line.ends_with(' ')) << words << ": " << line;
    }
  }
}

TEST(Help, OfAllVerbsFitsOnAScreenAndNamesTheWayToTheRest) {
  const std::string help = help_text({"help"});
  EXPECT_LE(text::lines(help).size(), 48U) << help;
  EXPECT_NE(help.find("weir help --all"), std::string::npos);
  for (const char* verb : {"\n  plan ", "\n  merge ", "\n  reach ", "\n  replay "}) {
    EXPECT_EQ(help.find(verb), std::string::npos) << verb;
    EXPECT_NE(help_text({}).find(verb), std::string::npos) << verb;
  }
}

TEST(Help, OfAVerbIsThatOfItsOption) {
  tests::FakeWorld world(tests::k_timed_yaml);
  const std::string help = help_text({"baseline", "accept"});
  testing::internal::CaptureStdout();
  EXPECT_EQ(run(world, {"help", "baseline", "accept"}), 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), help);
}

TEST(Reference, HasEveryCommand) {
  std::string page =
      "# Commands\n\nMade from `weir help --all`; `weir help COMMAND` prints the same.\n";
  for (const auto& [words, help] : all_help()) {
    const std::string name = words.empty() ? "weir" : "weir " + words;
    page += fmt::format("\n## {}\n\n```text\n{}```\n", name, help);
  }
  tests::expect_file("docs/reference/commands.md", page);
}

std::string table_cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.insert(at, "\\");
  }
  return text;
}

TEST(Reference, HasEveryVariableOfWeirsThatAnEngineGets) {
  const std::string page = slurp(fs::path(WEIR_SOURCE_DIR) / "docs/reference/configuration.md");
  const std::regex variable("\"(WEIR_(?:PROBE|PROFILE|PROMPT|RUNTIME|TWIN)[A-Z_]*)\"");
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(WEIR_SOURCE_DIR) / "gate")) {
    const std::string suffix = entry.path().extension();
    if (suffix != ".cpp" && suffix != ".hpp" && suffix != ".h") continue;
    const std::string code = slurp(entry.path());
    for (std::sregex_iterator it(code.begin(), code.end(), variable), end; it != end; ++it)
      names.insert((*it)[1]);
  }
  // Beginnings of names, and where weir itself finds its probes.
  for (const char* other : {"WEIR_PROBE", "WEIR_PROBE_", "WEIR_PROBES"}) names.erase(other);
  EXPECT_GE(names.size(), 13U);
  for (const std::string& name : names)
    EXPECT_NE(page.find("`" + name + "`"), std::string::npos) << name;
}

TEST(Reference, HasEveryMetric) {
  std::string page =
      "# Metrics\n\nMade from weir's table of metrics. [What is counted, and how]"
      "(../explanation/counting.md) has the rules, [servers](servers.md) the "
      "requests.\n\n"
      "| metric | in reports | unit | better | kind | what it is |\n| --- | --- | --- | --- | --- "
      "| "
      "--- |\n";
  for (const std::string& name : unit::metric_names()) {
    const auto metric = unit::find_metric(name);
    ASSERT_TRUE(metric) << name;
    EXPECT_NE(unit::about(*metric), "") << name;
    page += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", name, unit::display_name(*metric),
                        unit::to_string(metric->unit), unit::to_string(metric->better),
                        unit::to_string(metric->kind), unit::about(*metric));
  }
  page +=
      "\nBesides: `COUNT_at_N` where counts lie on no line (N is the generation length), and times "
      "and calls of single ops and kernels: `op:NAME`, `kernel:NAME`, `op_calls:NAME`, "
      "`kernel_calls:NAME`. Of command buffers: `buffer:LABEL` (time), `buffers:LABEL` (how many). "
      "The cost of the code of a kernel is `COST:NAME`:\n\n"
      "| cost | meaning |\n| --- | --- |\n";
  for (const unit::KernelCost& cost : unit::kernel_costs()) {
    page += fmt::format("| `{}` | {} |\n", cost.name, cost.about);
  }
  tests::expect_file("docs/reference/metrics.md", page);
}

TEST(Reference, HasEveryKeyOfTheConfiguration) {
  tests::FakeWorld world(tests::k_timed_yaml);
  const auto keys = config::list_keys(flow::config_context(world.world, "weir.yaml"));
  tests::expect_file("configs/weir.schema.json", config::json_schema(keys));
  std::string page =
      "# Keys of weir.yaml\n\nMade from weir's table of keys, as is `configs/weir.schema.json`, by "
      "which editors complete. [weir.yaml](configuration.md) explains how they go together. `NAME` "
      "is a name of your own, `[]` each entry of a list.\n\n"
      "| key | type | default | example | what it is |\n| --- | --- | --- | --- | --- |\n";
  for (const config::KeyInfo& key : keys) {
    std::string path = key.path();
    for (std::size_t at = 0; (at = path.find('*', at)) != std::string::npos;) {
      path.replace(at, 1, "NAME");
    }
    page += fmt::format("| `{}` | {} | {} | {} | {} |\n", path, key.form.type, key.shown_default,
                        table_cell("`" + key.example + "`"), table_cell(key.meaning));
  }
  tests::expect_file("docs/reference/keys.md", page);
}

// --- Pages and links.

struct Page {
  std::string text;  // without blocks of code
  std::set<std::string> anchors;
};

// As GitHub makes them of headings.
std::string heading_anchor(const std::string& heading) {
  std::string anchor;
  for (const char c : text::lower(heading)) {
    if (text::is_alphanumeric(c) || c == '-' || c == '_' || (c & 0x80) != 0) anchor += c;
    if (c == ' ') anchor += '-';
  }
  return anchor;
}

Page read_page(const fs::path& path) {
  Page page;
  bool code = false;
  for (const std::string& line : text::lines(slurp(path))) {
    if (line.starts_with("```")) code = !code;
    if (code) continue;
    page.text += line + "\n";
    if (!line.starts_with('#')) continue;
    const std::string heading = line.substr(line.find_first_not_of("# "));
    page.anchors.insert(heading_anchor(
        std::regex_replace(heading, std::regex(R"(\[([^\]]*)\]\([^)]*\)|`)"), "$1")));
  }
  return page;
}

TEST(Docs, LinkToWhatIsThereAndLeaveNoPageOut) {
  const fs::path root = WEIR_SOURCE_DIR;
  std::map<fs::path, Page> pages;
  for (const auto& entry : fs::recursive_directory_iterator(root / "docs")) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".md") && !name.starts_with('.')) pages[entry.path()] = read_page(entry);
  }
  for (const char* page : {"README.md", "CONTRIBUTING.md", "gate/README.md"}) {
    pages[root / page] = read_page(root / page);
  }
  const std::regex link(R"(\]\(([^)\s]+)\))");
  std::map<fs::path, std::set<fs::path>> leads;
  for (const auto& [path, page] : pages) {
    for (std::sregex_iterator it(page.text.begin(), page.text.end(), link), end; it != end; ++it) {
      const std::string url = (*it)[1];
      if (url.find("://") != std::string::npos || url.starts_with("mailto:")) continue;
      const std::string file = url.substr(0, url.find('#'));
      const fs::path target = file.empty() ? path : (path.parent_path() / file).lexically_normal();
      EXPECT_TRUE(fs::exists(target)) << path << " links to " << url;
      leads[path].insert(target);
      if (url.find('#') == std::string::npos || !pages.contains(target)) continue;
      EXPECT_TRUE(pages[target].anchors.contains(url.substr(url.find('#') + 1)))
          << path << " links to " << url << ", and no heading is called so";
    }
  }
  std::set<fs::path> reached{root / "docs/index.md"};
  std::vector<fs::path> next{root / "docs/index.md"};
  while (!next.empty()) {
    const fs::path page = next.back();
    next.pop_back();
    for (const fs::path& target : leads[page]) {
      if (pages.contains(target) && reached.insert(target).second) next.push_back(target);
    }
  }
  for (const auto& [path, page] : pages) {
    const bool outside = path.lexically_relative(root / "docs").string().starts_with("..");
    EXPECT_TRUE(outside || reached.contains(path))
        << path << " cannot be reached from docs/index.md";
  }
}

}  // namespace reference_test
}  // namespace weir::app

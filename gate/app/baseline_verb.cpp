// weir baseline list|show|prune: what is stored. accept has a file of its own.
#include <memory>
#include <set>

#include "gate/app/accept.hpp"
#include "gate/app/command_line.hpp"
#include "gate/app/session.hpp"
#include "gate/app/stored_baselines.hpp"
#include "gate/base/text.hpp"
#include "gate/report/texts.hpp"

namespace weir::app {
namespace {

bool selected(const std::vector<std::string>& globs, const std::string& cell) {
  if (globs.empty()) return true;
  for (const std::string& glob : globs) {
    if (text::glob_match(glob, cell)) return true;
  }
  return false;
}

Result<std::vector<StoredBaselines::Entry>> stored_entries(const CommonOptions& options,
                                                           const std::vector<std::string>& globs,
                                                           const StoredBaselines& stored) {
  WEIR_TRY(std::vector<StoredBaselines::Entry> entries, stored.all());
  std::erase_if(entries, [&](const auto& entry) { return !selected(globs, entry.baseline.cell); });
  if (entries.empty() && !globs.empty()) {
    return fail(Code::usage, "{}: no stored baseline of a cell that matches {}", options.baselines,
                text::join(globs));
  }
  return entries;
}

Result<ExitCode> print_entries(const CommonOptions& options, const std::vector<std::string>& globs,
                               bool whole) {
  sys::RealFiles files;
  const StoredBaselines stored(files, options.baselines);
  WEIR_TRY(const auto entries, stored_entries(options, globs, stored));
  std::vector<baseline::Baseline> baselines;
  Json list = Json::array();
  for (const StoredBaselines::Entry& entry : entries) {
    baselines.push_back(entry.baseline);
    WEIR_TRY(const Json content, parse_json(baseline::to_text(entry.baseline)));
    list.push_back({{"path", entry.path}, {"baseline", content}});
  }
  if (baselines.empty()) {
    answer(options,
           fmt::format("No baselines in {}. weir baseline accept stores what was measured.\n",
                       options.baselines));
  } else if (whole) {
    for (const baseline::Baseline& one : baselines)
      answer(options, report::baseline_show(one, width_of(answer_stream(options))));
  } else {
    answer(options, report::baseline_list(baselines, width_of(answer_stream(options))));
  }
  WEIR_CHECK(write_json(
      options, dump_json({{"schema", "weir.baselines/1"}, {"baselines", list}}, 1) + "\n"));
  return ExitCode::pass;
}

Result<ExitCode> prune(const CommonOptions& options, bool dry) {
  sys::RealFiles files;
  WEIR_TRY(const Loaded loaded, load_config(options, files));
  std::set<std::string> wanted;
  for (const config::Cell& cell : loaded.cells) {
    wanted.insert(cell.key.str());
    wanted.insert(cell.key.line().str());
  }
  StoredBaselines stored(files, options.baselines);
  WEIR_TRY(const auto entries, stored.all());
  std::size_t removed = 0;
  for (const StoredBaselines::Entry& entry : entries) {
    if (wanted.contains(entry.baseline.cell)) continue;
    if (!dry) WEIR_CHECK(stored.remove(entry));
    answer(options, fmt::format("{} {}\n", dry ? "would remove" : "removed", entry.path));
    ++removed;
  }
  answer(options, fmt::format("{} of {} baselines belong to no cell of {}\n", removed,
                              entries.size(), options.config));
  return ExitCode::pass;
}

}  // namespace

void add_baseline(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("baseline", "What a candidate is held to, in the repository");
  verb->require_subcommand(1);
  add_accept(*verb);

  auto options = std::make_shared<CommonOptions>();
  auto globs = std::make_shared<std::vector<std::string>>();
  auto dry = std::make_shared<bool>(false);
  CLI::App* list = verb->add_subcommand("list", "One line a stored baseline");
  CLI::App* show = verb->add_subcommand("show", "Everything stored of some cells");
  CLI::App* prune_verb =
      verb->add_subcommand("prune", "Remove the baselines of cells that the config no longer has");
  for (CLI::App* one : {list, show}) {
    one->add_option("CELL", *globs, "Cells, as names or globs");
    one->footer(one == list ? "Example:\n  weir baseline list '*/vulkan/*'"
                            : "Example:\n  weir baseline show llama.cpp/tiny-llama/vulkan/decode");
  }
  for (CLI::App* one : {list, show, prune_verb}) {
    one->add_option("--baselines", options->baselines, "The folder of stored baselines")
        ->type_name("DIR")
        ->capture_default_str();
  }
  for (CLI::App* one : {list, show}) {
    one->add_option("--json", options->json,
                    "Write the result as JSON to FILE, or to standard output")
        ->type_name("[FILE]")
        ->expected(0, 1)
        ->default_str("-");
  }
  prune_verb->add_option("-c,--config", options->config, "The configuration")
      ->type_name("FILE")
      ->capture_default_str();
  prune_verb->add_flag("-n,--dry-run", *dry, "Only say what would be removed");
  set_action(*list, [options, globs] { return print_entries(*options, *globs, false); });
  set_action(*show, [options, globs] { return print_entries(*options, *globs, true); });
  set_action(*prune_verb, [options, dry] { return prune(*options, *dry); });
}

}  // namespace weir::app

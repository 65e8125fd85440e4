#include "gate/flow/base.hpp"

#include <cmath>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/container.hpp"
#include "gate/flow/repository.hpp"
#include "gate/report/layout.hpp"
#include "gate/run/container.hpp"
#include "gate/run/progress.hpp"
#include "gate/sys/paths.hpp"
#include "gate/verdict/over_depth.hpp"

namespace weir::flow {
namespace {

// The links of the two sides lie beside the cache, for a run's folder is often kept as an artifact,
// and what follows links would take the repository along.
Result<void> point(run::PreparedCell& cell, const Job& job, const std::string& root,
                   const std::string& program, const std::string& name = "") {
  const std::string out = source::default_cache_folder().value_or(sys::absolute(job.asked.out));
  WEIR_TRY(cell.program_stamp, job.files().stamp(program));
  WEIR_TRY(cell.program, source::through_equal_length_link(job.files(), out, root, program, name));
  return {};
}

// A program may look for what belongs to it in the folder above its own ("bin/../lib"), so the link
// stands for that.
std::string root_of(const std::string& program) {
  const std::string folder = sys::folder_of(program), above = sys::folder_of(folder);
  return above.empty() || above == "/" || above == "." ? folder : above;
}

// Programs that no checkout has, by the `name` of their side.
Result<void> point_all(std::vector<run::PreparedCell>& cells, const Job& job,
                       const std::string& name = "") {
  for (run::PreparedCell& cell : cells) {
    if (cell.program.empty() || run::container_of(cell) != nullptr) continue;
    const std::string own = cell.program;
    WEIR_CHECK(point(cell, job, root_of(own), own, name));
  }
  return {};
}

// A checkout has no image of its own.
Result<void> all_run_here(const std::vector<run::PreparedCell>& cells) {
  for (const run::PreparedCell& cell : cells) {
    const config::ContainerSettings* container = run::container_of(cell);
    if (container == nullptr) continue;
    return fail(Code::usage,
                "{}: it runs in a container, whose image no commit has: name the base's with\n"
                "  --against -- {}{} … IMAGE COMMAND…",
                cell.cell.key.str(), config::to_string(container->runtime),
                container->runtime == config::Runtime::srun ? "" : " run");
  }
  return {};
}

// The base's cells with the programs of `tree`, and both sides' by paths of equal length.
Result<PreparedBase> from_tree(const source::BaseTree& tree, const std::string& counts_folder,
                               const Job& job, std::vector<run::PreparedCell>& candidate) {
  PreparedBase side;
  side.facts = {{},        tree.words, tree.commit, tree.candidate_commit, tree.candidate_dirty,
                tree.notes};
  side.held = tree.held;
  side.counts_folder = counts_folder;
  side.cells = candidate;
  for (std::size_t i = 0; i < candidate.size(); ++i) {
    const std::string own = candidate[i].program;
    if (own.empty()) continue;
    WEIR_TRY(const std::string program, source::program_in_base(job.files(), tree, own));
    WEIR_CHECK(point(side.cells[i], job, tree.root, program));
    std::string root = root_of(own);
    for (const std::string& top : {tree.candidate_real_root, tree.candidate_root}) {
      if (own.starts_with(top + "/")) root = top;
    }
    WEIR_CHECK(point(candidate[i], job, root, own));
  }
  return side;
}

Result<PreparedBase> from_spec(const BaseRequest& wanted, const Job& job,
                               const config::Redactor& redactor,
                               std::vector<run::PreparedCell>& candidate, const sys::Stop& stop) {
  WEIR_CHECK(all_run_here(candidate));
  source::BaseWanted base_wanted;
  base_wanted.spec = wanted.spec;
  base_wanted.config_folder = job.folder();
  for (const run::PreparedCell& cell : candidate) add_build(base_wanted.builds, cell.cell);
  WEIR_TRY(base_wanted.cache_folder, source::default_cache_folder());
  WEIR_TRY(
      source::BaseTree tree,
      source::prepare_base(base_wanted, effects_of(job.world, stop, [&](const std::string& line) {
                             job.talk(redactor.text(line));
                           })));
  if (wanted.other_commit && tree.commit && tree.commit == tree.candidate_commit &&
      !tree.candidate_dirty) {
    return fail(Code::unavailable, "{} is what was measured: nothing lies between", tree.words);
  }
  const bool in_cache = tree.kind == source::BaseTree::Kind::worktree;
  WEIR_TRY(PreparedBase side,
           from_tree(tree, in_cache ? counts_of_tree(base_wanted.cache_folder, tree.root) : "", job,
                     candidate));
  side.facts.against.spec = wanted.spec;
  return side;
}

Result<PreparedBase> from_command(const BaseRequest& wanted, const Job& job,
                                  const config::Settings& settings,
                                  std::vector<run::PreparedCell>& candidate,
                                  const PrepareCells& prepare) {
  std::set<std::string> engines;
  for (const run::PreparedCell& cell : candidate) engines.insert(cell.cell.key.engine);
  if (engines.size() != 1) {
    return fail(Code::usage,
                "--against -- COMMAND… takes the place of one engine's command; {} are selected "
                "({}): choose one with --cell 'ENGINE/*'",
                engines.size(),
                text::join(std::vector<std::string>(engines.begin(), engines.end())));
  }
  PreparedBase side;
  side.settings = std::make_unique<config::Settings>(settings);
  for (config::EngineSettings& engine : side.settings->engines) {
    if (engine.name != *engines.begin()) continue;
    engine.command = wanted.command;
    engine.source = "--against -- " + text::shell_word(wanted.command.front());
    if (wanted.env) engine.extra.env = *wanted.env;
    // A whole command line of the runtime's brings its own image.
    if (engine.container && config::begins_with(engine.command, engine.container->runtime)) {
      engine.container->image.clear();
      engine.container->args.clear();
    }
  }
  WEIR_TRY(const config::Matrix matrix,
           config::expand(*side.settings)
               .map_error(in_context("with the command of --against in place of the engine's")));
  std::vector<config::Cell> cells;
  for (const run::PreparedCell& cell : candidate) {
    const auto found = std::ranges::find(matrix.cells, cell.cell.key, &config::Cell::key);
    if (found == matrix.cells.end()) {
      return fail(Code::usage,
                  "--against -- {}: it has no placeholder for what {} asks for; give it those of "
                  "the engine's own command",
                  text::join(wanted.command, " "), cell.cell.key.str());
    }
    cells.push_back(*found);
    cells.back().gpu = cell.cell.gpu;  // it was asked
  }
  WEIR_TRY(side.cells, prepare(cells));
  side.facts.words = "another command of the engine";
  if (!candidate.front().cell.engine->is_private) {
    side.facts.against.command = wanted.command;
    side.facts.words = "the command " + text::join(wanted.command, " ");
  }
  WEIR_CHECK(point_all(side.cells, job));
  WEIR_CHECK(point_all(candidate, job));
  return side;
}

// A/A: the same program, by two paths of equal length.
Result<PreparedBase> from_own(const Job& job, std::vector<run::PreparedCell>& candidate) {
  PreparedBase side;
  side.facts.words = "the same program by another path";
  side.cells = candidate;
  WEIR_CHECK(point_all(side.cells, job, "base"));
  WEIR_CHECK(point_all(candidate, job));
  return side;
}

}  // namespace

void fields(Fields& io, BaseFacts& facts) {
  io.sparse("spec", facts.against.spec);
  io.sparse("command", facts.against.command);
  io("words", facts.words);
  io.sparse("commit", facts.commit);
  io.sparse("candidate_commit", facts.candidate_commit);
  io.always("candidate_dirty", facts.candidate_dirty);
  io.always("notes", facts.notes);
}

Result<PreparedBase> prepare_base(const BaseRequest& wanted, const Job& job,
                                  const config::Settings& settings,
                                  const config::Redactor& redactor,
                                  std::vector<run::PreparedCell>& candidate,
                                  const PrepareCells& prepare, const sys::Stop& stop) {
  if (wanted.commits) {
    return from_tree(wanted.commits->base, wanted.commits->counts_folder, job, candidate);
  }
  if (wanted.own) return from_own(job, candidate);
  return wanted.command.empty() ? from_spec(wanted, job, redactor, candidate, stop)
                                : from_command(wanted, job, settings, candidate, prepare);
}

std::vector<baseline::Baseline> CachedCounts::of(const profile::CellKey& cell) const {
  if (folder_.empty()) return {};
  // A cache that cannot be read is one that is not there: the base is counted again.
  return stored_.of_cell(cell).value_or(std::vector<baseline::Baseline>());
}

Result<void> CachedCounts::keep(const baseline::Baseline& counts) {
  if (folder_.empty()) return {};
  WEIR_CHECK(stored_.put(counts));
  return {};
}

std::string counts_of_tree(const std::string& cache_folder, const std::string& tree) {
  // To be raised when more is counted than before: what is kept lacks it.
  return sys::join_path(cache_folder, "counts-2/" + tree.substr(tree.find_last_of('/') + 1));
}

std::string base_counts_folder(const std::string& run_folder) {
  return sys::join_path(run_folder, "base-counts");
}

Beside measured_beside(const BaseFacts& facts, const run::RunHeader& header,
                       const std::vector<profile::Profile>& profiles,
                       const std::vector<profile::RunRecord>& records,
                       const run::KnownCounts& known) {
  Beside beside;
  beside.facts = facts;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    beside.counts.push_back(run::base_counts_of(profiles[i], header.base_cells[i], records,
                                                known.of(profiles[i].cell)));
    beside.pairs.push_back(profile::paired_runs(header.cells[i], records));
    beside.cells.push_back(header.cells[i]);
  }
  const auto keys = collect<profile::CellKey>(header.cells, &profile::CellFacts::cell);
  for (const verdict::DepthGroup& group : verdict::depth_groups(keys)) {
    const profile::Profile line = verdict::fit_profile(group, profiles);
    beside.counts.push_back(verdict::fit_choice(group, line, beside.counts));
    beside.pairs.push_back(verdict::fit_pairs(group, beside.pairs));
    beside.cells.emplace_back().cell = group.fit;
  }
  return beside;
}

std::vector<std::string> keep_base_counts(const PreparedBase& base, const run::RunHeader& header,
                                          const std::vector<profile::RunRecord>& records,
                                          const std::string& run_folder, sys::Files& files) {
  std::vector<std::string> told;
  const auto keep = [&](CachedCounts& where, const baseline::Baseline& counts) {
    if (const auto kept = where.keep(counts); !kept && told.empty()) {
      told.push_back("the base's counts are not kept for the next run: " + kept.error().message);
    }
  };
  CachedCounts cache(files, base.counts_folder), run(files, base_counts_folder(run_folder));
  for (const profile::CellFacts& facts : header.base_cells) {
    if (run::base_was_counted(facts.cell, records)) {
      profile::Profile profile = profile::assemble(facts, records, profile::Side::base);
      if (!profile.errors.empty()) continue;
      baseline::Baseline counts = baseline::accept(profile, std::nullopt, {});
      counts.sessions.clear();
      keep(cache, counts);
      continue;
    }
    for (const baseline::Baseline& known : cache.of(facts.cell)) keep(run, known);
  }
  return told;
}

namespace {

// Seconds that a cell takes, as far as is known before it runs.
double seconds_of(const run::PlannedPairs& cell) {
  const auto fewest = static_cast<double>(cell.fewest);
  return std::max(fewest, cell.calibrated.value_or(fewest)) * cell.pair_seconds;
}

// Which cells this budget is not likely to decide, when those that take least come first.
std::vector<bool> too_much(const run::PairsPlan& plan) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < plan.cells.size(); ++i) {
    if (plan.cells[i].now) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return seconds_of(plan.cells[a]) < seconds_of(plan.cells[b]);
  });
  std::vector<bool> beyond(plan.cells.size(), false);
  double left = plan.budget_seconds;
  for (const std::size_t i : order) {
    left -= seconds_of(plan.cells[i]);
    beyond[i] = left < 0 && plan.cells[i].calibrated;
  }
  return beyond;
}

std::string pairs_words(const run::PlannedPairs& cell, bool beyond, const BaseFacts& facts) {
  std::string words =
      fmt::format("{:.1f} s a pair, {} pairs at least", cell.pair_seconds, cell.fewest);
  if (cell.calibrated) {
    words += fmt::format(", about {:.0f} here ({})", std::ceil(*cell.calibrated),
                         run::show_time_left(*cell.calibrated * cell.pair_seconds));
  }
  if (!cell.now) {
    // Which cells are left out depends on the commit, where there is one.
    return words + "; not within this budget" +
           (facts.candidate_commit ? ", a later commit's turn" : "");
  }
  return beyond ? words + "; this budget is not likely to decide it" : words;
}

}  // namespace

std::vector<std::string> words_of(const run::PairsPlan& plan, const BaseFacts& facts,
                                  const config::Redactor& redactor) {
  std::vector<std::string> lines;
  const std::vector<bool> beyond = too_much(plan);
  const auto trouble = [&](std::size_t i) { return !plan.cells[i].now || beyond[i]; };
  std::size_t not_now = 0;
  for (std::size_t i = 0; i < plan.cells.size(); ++i) not_now += trouble(i) ? 1 : 0;
  lines.push_back(fmt::format(
      "pairs: {} beside the base within {}; to decide all takes {} at least",
      report::plural(plan.cells.size(), "cell"), run::show_time_left(plan.budget_seconds),
      run::show_time_left(plan.seconds_for_all)));
  constexpr std::size_t k_most_lines = 16;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < plan.cells.size(); ++i) {
    const run::PlannedPairs& cell = plan.cells[i];
    // Of many, those that this budget does not reach.
    if (plan.cells.size() > k_most_lines && (!trouble(i) || shown >= k_most_lines)) continue;
    ++shown;
    const auto key = profile::CellKey::parse(cell.cell);
    lines.push_back(fmt::format("  {}: {}", key ? redactor.cell(*key).str() : cell.cell,
                                pairs_words(cell, beyond[i], facts)));
  }
  if (not_now > shown) lines.push_back(fmt::format("  … and {} more", not_now - shown));
  return lines;
}

}  // namespace weir::flow

// The base program of --against: finds and builds it, and keeps what was counted of it.
#include "gate/flow/base.hpp"

#include <cmath>
#include <set>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/container.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/repository.hpp"
#include "gate/flow/rules.hpp"
#include "gate/flow/start_files.hpp"
#include "gate/report/layout.hpp"
#include "gate/run/container.hpp"
#include "gate/run/engine_call.hpp"
#include "gate/run/environment.hpp"
#include "gate/run/progress.hpp"
#include "gate/source/side_paths.hpp"
#include "gate/source/virtual_environment.hpp"
#include "gate/sys/paths.hpp"
#include "gate/verdict/over_depth.hpp"

namespace weir::flow {
namespace {

// Gives a cell the program at `program`, through a link of a fixed length. The links lie beside the
// cache: a run's folder is often kept as an artifact, and copying it would follow them.
Result<void> link_program(run::PreparedCell& cell, const Job& job, const std::string& root,
                          const std::string& program, const std::string& name = "") {
  const std::string links_folder =
      source::default_cache_folder().value_or(sys::absolute(job.selection.runs_folder));
  WEIR_TRY(cell.program_stamp, job.files().stamp(program));
  WEIR_TRY(cell.program,
           source::through_equal_length_link(job.files(), links_folder, root, program, name));
  return {};
}

// Returns the folder that a program's link stands for: the one above its own, as a program may look
// for its files there ("bin/../lib").
std::string link_root(const std::string& program) {
  const std::string folder = sys::folder_of(program), above = sys::folder_of(folder);
  return above.empty() || above == "/" || above == "." ? folder : above;
}

// Links the programs of all cells that belong to no checkout. `name` keeps base and candidate
// apart.
Result<void> link_programs(std::vector<run::PreparedCell>& cells, const Job& job,
                           const std::string& name = "") {
  for (run::PreparedCell& cell : cells) {
    if (cell.program.empty() || run::find_container(cell) != nullptr) continue;
    const std::string program = cell.program;
    WEIR_CHECK(link_program(cell, job, link_root(program), program, name));
  }
  return {};
}

// Fails with Code::usage if a cell runs in a container: a checkout of the base has no image.
Result<void> check_no_containers(const std::vector<run::PreparedCell>& cells) {
  for (const run::PreparedCell& cell : cells) {
    const config::ContainerSettings* container = run::find_container(cell);
    if (container == nullptr) continue;
    return fail(Code::usage,
                "{}: it runs in a container, whose image no commit has: name the base's with\n"
                "  --against -- {}{} … IMAGE COMMAND…",
                cell.cell.key.str(), config::to_string(container->runtime),
                container->runtime == config::Runtime::srun ? "" : " run");
  }
  return {};
}

// Lets a cell run in the checkout of its side (base or candidate): replaces the paths in its
// command and variables, and its folder. Fails if code is missing there.
Result<void> use_checkout_of_side(run::PreparedCell& cell, source::SidePaths& side) {
  config::Cell& settings = cell.cell;
  // The program itself has a path of its own.
  for (std::size_t i = 1; i < settings.command.size(); ++i)
    WEIR_TRY_SET(settings.command[i], side.place(settings.command[i]));
  for (std::string& word : settings.counted_run_args) WEIR_TRY_SET(word, side.place(word));
  for (config::Environment* environment : {&settings.env, &settings.counted_run_env}) {
    for (auto& [name, value] : *environment) WEIR_TRY_SET(value, side.place(value));
  }
  cell.folder = side.folder();
  cell.moved_env = {{"PWD", cell.folder}};
  const sys::EnvironmentList own = sys::own_environment();
  const std::vector<std::string> unset = run::probes_own(own);
  for (const auto& [name, value] : sys::inherited(own, run::passed_variables(cell))) {
    const std::string moved = side.place_inherited(value);
    if (moved != value && !holds(unset, name)) cell.moved_env.try_emplace(name, moved);
  }
  return {};
}

// Returns what replaces paths of the user's checkout (`own_roots`) by those of one side's checkout
// at `root`. Commands use a link of fixed length to it. `other_root` is the other side's checkout.
Result<source::SidePaths> make_side_paths(const std::vector<std::string>& own_roots,
                                          const std::string& root, const std::string& other_root,
                                          const Job& job) {
  WEIR_TRY(const std::string links_folder, source::default_cache_folder());
  WEIR_TRY(const std::string link,
           source::through_equal_length_link(job.files(), links_folder, root, root));
  // Returns true if git tracks a file at or below `path`, or cannot tell.
  const auto is_tracked = [&job, top = own_roots.front()](const std::string& path) {
    const auto repository = Repository::containing(job.world, top);
    if (!repository) return true;
    const auto tracked_files = (*repository)->git().tracked_files();
    if (!tracked_files) return true;
    return std::ranges::any_of(*tracked_files,
                               [&](const std::string& file) { return sys::is_within(file, path); });
  };
  return source::SidePaths(job.files(),
                           {own_roots, job.folder(), root, link, other_root, is_tracked});
}

// Adds `path` to `rest`; where it holds some of `left_out`, all else in it.
void add_rest(const sys::Files& files, const std::string& path,
              const std::vector<std::string>& left_out, std::vector<std::string>& rest) {
  if (holds(left_out, path)) return;
  const auto is_inside = [&](const std::string& inner) { return sys::is_within(inner, path); };
  if (std::ranges::none_of(left_out, is_inside)) {
    rest.push_back(path);
    return;
  }
  for (const std::string& name : files.list(path).value_or(std::vector<std::string>()))
    add_rest(files, sys::join_path(path, name), left_out, rest);
}

// Returns the paths from the top that differ between the base's commit and the work tree; none if
// the base is no commit of it.
std::vector<std::string> edited_files(const source::BaseTree& tree, const Job& job) {
  if (!tree.commit) return {};
  const auto repository = Repository::containing(job.world, tree.candidate_root);
  if (!repository) return {};
  return (*repository)->git().changed_files(*tree.commit, "").value_or(std::vector<std::string>());
}

// Returns the files and folders of the work tree that both sides share. A shared environment's
// copies of packages that the candidate edits are left out.
std::vector<std::string> shared_inputs(const source::BaseTree& tree, const std::string& top,
                                       const source::SidePaths& side, const Job& job) {
  const std::vector<std::string> edited =
      side.shares_environment() ? edited_files(tree, job) : std::vector<std::string>();
  std::vector<std::string> inputs;
  for (const std::string& inner : side.shared()) {
    const std::string path = sys::join_path(top, inner);
    add_rest(job.files(), path, source::find_copies(job.files(), path, edited), inputs);
  }
  return inputs;
}

// Seals (records, to notice changes) the files and folders of the work tree at `top` that both
// sides share. In a folder only code and tracked files are held, since runs may write others.
void seal_inputs(const std::vector<std::string>& inputs, const std::string& top, const Job& job,
                 source::Seal& seal, const sys::Stop& stop) {
  if (inputs.empty()) return;
  std::set<std::string> tracked;
  if (const auto repository = Repository::containing(job.world, top)) {
    const auto names = (*repository)->git().tracked_files();
    for (const std::string& name : names.value_or(std::vector<std::string>()))
      tracked.insert(sys::join_path(top, name));
  }
  std::set<std::string> environments;
  for (const std::string& input : inputs) {
    const auto environment = source::environment_around(job.files(), input);
    if (environment && environments.insert(*environment).second)
      prepare_environment(job, *environment, seal, stop);
    if (job.files().kind(input) == sys::Kind::file) {
      seal.add(job.files(), input, input);
      continue;
    }
    const auto is_code = environment ? is_python_file : is_package_code;
    const auto is_held = [tracked, input, is_code](std::string_view name) {
      return is_code(name) || tracked.contains(sys::join_path(input, std::string(name)));
    };
    seal.add_start_place(job.files(), input, input, is_held);
  }
}

// Appends the files of a cell's device twin; a path may be "".
void append_twin_files(const run::PreparedCell& cell, std::vector<std::string>& paths) {
  if (!cell.twin) return;
  const run::RuntimeFiles& files = cell.twin->files;
  paths.insert(paths.end(), {cell.twin->blob, cell.twin->driver, files.kernels, files.stubs});
}

// Returns the work tree to watch while a base of `tree` runs, without what the base may open there:
// its own checkout, runs, git's files, and `inputs`.
sys::WatchedFolder watch_work_tree(const run::PreparedCell& cell, const source::BaseTree& tree,
                                   const std::string& top, const std::vector<std::string>& inputs,
                                   const Job& job) {
  sys::WatchedFolder watched{sys::follow_links(top)};
  std::vector<std::string> may_open{tree.root, sys::absolute(job.selection.runs_folder), cell.model,
                                    cell.prompt_file, sys::join_path(top, ".git")};
  if (const auto cache = source::default_cache_folder()) may_open.push_back(*cache);
  may_open.insert(may_open.end(), inputs.begin(), inputs.end());
  append_twin_files(cell, may_open);
  for (const std::string& path : may_open) {
    std::string followed = sys::follow_links(path);
    const bool holds_all = sys::relative_path(watched.folder, followed).has_value();
    if (!path.empty() && !holds_all) watched.except.push_back(std::move(followed));
  }
  return watched;
}

// Returns the folder to watch while the candidate runs: copies of packages that it edits, in an
// environment that the base does not share. Stale ones count in the checkout's own environment, all
// outside of it. Nullopt if there are none.
std::optional<sys::WatchedFolder> watch_copies(const std::string& environment,
                                               const source::BaseTree& tree,
                                               const std::vector<std::string>& edited,
                                               const sys::Files& files) {
  const bool is_own = sys::is_within(environment, tree.candidate_real_root);
  const auto copies =
      is_own ? source::find_stale_copies(files, environment, tree.candidate_root, edited)
             : source::find_copies(files, environment, edited);
  if (copies.empty()) return std::nullopt;
  sys::WatchedFolder watched{environment};
  std::vector<std::string> rest;
  add_rest(files, environment, copies, rest);
  for (const std::string& path : rest) {
    // A link may lead to all that is watched.
    std::string followed = sys::follow_links(path);
    if (!sys::is_within(watched.folder, followed)) watched.except.push_back(std::move(followed));
  }
  return watched;
}

// Watches the candidate's programs where an environment has copies of packages that it edits.
// `programs` are those of the cells, `shared` the paths from the top that are the base's, too.
void watch_candidate(const source::BaseTree& tree, const std::vector<std::string>& programs,
                     const std::set<std::string>& shared, const Job& job,
                     std::vector<run::PreparedCell>& candidate) {
  std::optional<std::vector<std::string>> edited;
  for (std::size_t i = 0; i < candidate.size(); ++i) {
    run::PreparedCell& cell = candidate[i];
    std::vector<std::string> paths = cell.cell.command;
    paths.insert(paths.end(), {programs[i], job.variable("VIRTUAL_ENV")});
    for (const std::string& word : paths) {
      const std::string path = sys::absolute(sys::join_path(cell.folder, word));
      const auto folder = source::environment_around(job.files(), path);
      if (!folder || cell.watched) continue;
      // A side's folder is a link.
      const std::string environment = sys::follow_links(*folder);
      const auto path_from_top = sys::relative_path(environment, tree.candidate_real_root);
      if (path_from_top && shared.contains(*path_from_top)) continue;
      if (!edited) edited = edited_files(tree, job);
      cell.watched = watch_copies(environment, tree, *edited, job.files());
    }
  }
}

// Gives a base's cell on the twin of a runtime the kernels of its own code: of `program`, or of the
// library that the engine opens by itself, where the base has one.
Result<void> find_own_kernels(run::PreparedCell& cell, const source::SidePaths& side,
                              const std::string& program, const Job& job, ProgramCode& programs) {
  if (!cell.twin || cell.twin->runtime == nullptr) return {};
  std::string library = cell.cell.engine->gpu_code;
  if (!library.empty()) {
    library = side.place_inherited(sys::absolute(sys::join_path(job.folder(), library)));
  }
  WEIR_TRY_SET(cell.twin->files, write_runtime_files(program, library, *cell.twin, job, programs));
  return {};
}

// Returns the base's cells with the programs of `tree`. Changes both sides to folders and paths of
// equal length. `own_roots` are all names of the top of the user's checkout.
Result<PreparedBase> prepare_from_tree(const source::BaseTree& tree,
                                       const std::vector<std::string>& own_roots,
                                       const std::string& counts_folder, const Job& job,
                                       std::vector<run::PreparedCell>& candidate,
                                       const sys::Stop& stop) {
  PreparedBase base;
  base.facts = {
      {},         tree.words,      tree.commit, tree.candidate_commit, tree.candidate_dirty,
      tree.notes, tree.merge_bases};
  base.held = tree.held;
  base.counts_folder = counts_folder;
  base.cells = candidate;
  const auto program_paths = collect<std::string>(candidate, &run::PreparedCell::program);
  const bool is_own = holds(own_roots, tree.candidate_root);
  WEIR_TRY(source::SidePaths base_side, make_side_paths(own_roots, tree.root, "", job));
  WEIR_TRY(source::SidePaths candidate_side,
           make_side_paths(own_roots, tree.candidate_root, is_own ? tree.root : "", job));
  ProgramCode programs;
  for (std::size_t i = 0; i < candidate.size(); ++i) {
    const std::string own_program_path = candidate[i].program;
    if (own_program_path.empty()) continue;
    std::string root = link_root(own_program_path);
    bool is_outside = true;
    for (const std::string& top : {tree.candidate_real_root, tree.candidate_root}) {
      if (!own_program_path.starts_with(top + "/")) continue;
      root = top;
      is_outside = false;
    }
    // An interpreter: the file that the command names beside it is the base's own.
    WEIR_TRY(const bool is_in_environment, base_side.share_environment(own_program_path));
    if (!is_own) WEIR_CHECK(candidate_side.share_environment(own_program_path));
    const bool is_shared = is_outside || is_in_environment;
    std::string base_program_path = own_program_path;
    if (!is_shared)
      WEIR_TRY_SET(base_program_path, source::program_in_base(job.files(), tree, own_program_path));
    WEIR_CHECK(link_program(base.cells[i], job, is_shared ? root : tree.root, base_program_path));
    WEIR_CHECK(find_own_kernels(base.cells[i], base_side, base_program_path, job, programs));
    WEIR_CHECK(link_program(candidate[i], job, root, own_program_path));
    const std::size_t own_files_before = base_side.own_files();
    WEIR_CHECK(use_checkout_of_side(base.cells[i], base_side));
    WEIR_CHECK(use_checkout_of_side(candidate[i], candidate_side));
    if (is_shared && base_side.own_files() == own_files_before) {
      return fail(
          Code::config,
          "{}: it lies {}, and the command of {} names no file of the base beside it, so that it "
          "would be compared with itself; name what the repository changes (a script), or give "
          "the base as a command: --against -- COMMAND…",
          text::printable(own_program_path),
          is_outside ? "outside of the repository"
                     : "in a virtual environment that both sides share",
          candidate[i].cell.key.str());
    }
  }
  // An activated one is used where a script of the base starts "python".
  (void)base_side.share_environment(job.variable("VIRTUAL_ENV"));
  watch_candidate(tree, program_paths, base_side.shared(), job, candidate);
  // Packages in it may change without a commit.
  if (base_side.shares_environment()) base.counts_folder.clear();
  const auto inputs = shared_inputs(tree, own_roots.front(), base_side, job);
  for (run::PreparedCell& cell : base.cells)
    cell.watched = watch_work_tree(cell, tree, own_roots.front(), inputs, job);
  if (!job.reuses_cache()) seal_inputs(inputs, own_roots.front(), job, base.seal, stop);
  // The configuration may lie in a folder that the base lacks.
  WEIR_CHECK(job.files().make_dirs(base_side.folder()));
  if (!base_side.shared().empty()) {
    base.facts.notes.push_back(
        fmt::format("not in the base, so both programs are given the file here: {}",
                    verdict::list_some({base_side.shared().begin(), base_side.shared().end()})));
  }
  return base;
}

// Returns true if the candidate lacks the commit whose rules judge it.
Result<bool> lacks_rules_commit(const Job& job, const source::BaseTree& tree) {
  if (!job.rules || !job.rules->used.from || !job.rules->repository || !tree.candidate_commit)
    return false;
  WEIR_TRY(const bool contains, job.rules->repository->git().contains(
                                    *tree.candidate_commit, job.rules->used.from->commit));
  return !contains;
}

// Records the files of a base's folder, to notice changes while it is measured. In a git checkout
// these are tracked and executable files, as a base may write others. Leaves out weir's own files.
Result<void> seal_folder(const std::string& folder, const std::string& place, const Job& job,
                         source::Seal& seal) {
  WEIR_TRY(const sys::FileStates states, job.files().states(folder));
  std::optional<std::set<std::string>> tracked;
  const auto repository = Repository::containing(job.world, folder);
  if (repository && sys::real_path(folder) == sys::real_path((*repository)->git().top())) {
    WEIR_TRY(const std::vector<std::string> names, (*repository)->git().tracked_files());
    tracked.emplace(names.begin(), names.end());
  }
  const std::string out = sys::absolute(job.selection.runs_folder);
  for (const auto& [name, state] : states) {
    const std::string path = sys::join_path(folder, name);
    if (sys::is_within(path, out)) continue;
    if (!tracked || tracked->contains(name) || state.executable)
      seal.add(job.files(), path, name, place);
  }
  return {};
}

// Records the program of a cell, where it starts, and what both sides read: the model, the prompt,
// and files of a device twin (simulated GPU).
Result<void> seal_cell(const run::PreparedCell& cell, const Job& job, source::Seal& seal) {
  std::vector<std::string> paths{cell.program, cell.folder, cell.model, cell.prompt_file};
  append_twin_files(cell, paths);
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    seal.add(job.files(), path, path);
    const bool holds_all = sys::is_within(job.folder(), path);
    if (path == cell.folder || holds_all || job.files().kind(path) != sys::Kind::folder) continue;
    WEIR_TRY(const sys::FileStates states, job.files().states(path));
    for (const auto& [name, state] : states) {
      const std::string file = sys::join_path(path, name);
      seal.add(job.files(), file, file);
    }
  }
  return {};
}

// Returns the first word after the program that names a file: a script, for an interpreter.
std::optional<std::string> find_script(const run::PreparedCell& cell, const sys::Files& files) {
  for (std::size_t i = 1; i < cell.cell.command.size(); ++i) {
    std::string path = sys::join_path(cell.folder, cell.cell.command[i]);
    if (files.kind(path) == sys::Kind::file) return path;
  }
  return std::nullopt;
}

// Records the program and the script of a base that is a command, and the files of their folders,
// to notice changes. Leaves out folders in PATH, and a folder that the configuration lies in.
Result<void> seal_command(const run::PreparedCell& cell, const Job& job, source::Seal& seal) {
  const std::string path_variable = job.variable("PATH");
  const auto program_folders = text::split(path_variable, ':');
  std::vector<std::string> paths{cell.program};
  if (auto script = find_script(cell, job.files())) paths.push_back(std::move(*script));
  for (const std::string& path : paths) {
    const auto real = path.empty() ? std::nullopt : sys::real_path(path);
    if (!real) continue;
    seal.add(job.files(), path, *real, " in the base's folder");
    const std::string folder = sys::folder_of(*real);
    seal_folders_above(job, folder, seal);
    const auto is_same = [&](std::string_view other) {
      return sys::real_path(std::string(other)) == folder;
    };
    if (sys::is_within(sys::follow_links(job.folder()), folder) ||
        std::ranges::any_of(program_folders, is_same))
      continue;
    WEIR_CHECK(seal_folder(folder, " in the base's folder", job, seal));
  }
  return {};
}

// Checks out and builds the commit, or uses the folder, that --against names. Without reuse of the
// cache, also records its files to notice changes.
Result<PreparedBase> prepare_from_spec(const BaseRequest& request, const Job& job,
                                       const config::Redactor& redactor,
                                       std::vector<run::PreparedCell>& candidate,
                                       const sys::Stop& stop) {
  WEIR_CHECK(check_no_containers(candidate));
  source::BaseWanted base_wanted;
  base_wanted.spec = request.spec;
  base_wanted.config_folder = job.folder();
  for (const run::PreparedCell& cell : candidate) add_build(base_wanted.builds, cell.cell);
  WEIR_TRY(base_wanted.cache_folder, source::default_cache_folder());
  base_wanted.reuse = job.reuses_cache();
  WEIR_TRY(source::BaseTree tree,
           source::prepare_base(base_wanted,
                                source_effects(job.world, stop, [&](const std::string& line) {
                                  job.log(redactor.text(line));
                                })));
  if (request.other_commit && tree.commit && tree.commit == tree.candidate_commit &&
      !tree.candidate_dirty) {
    return fail(Code::unavailable, "{} is what was measured: nothing lies between", tree.words);
  }
  const bool has_counts = base_wanted.reuse && tree.kind == source::BaseTree::Kind::worktree;
  WEIR_TRY(
      PreparedBase base,
      prepare_from_tree(tree, {tree.candidate_root, tree.candidate_real_root},
                        has_counts ? tree_counts_folder(base_wanted.cache_folder, tree.root) : "",
                        job, candidate, stop));
  base.facts.against.spec = request.spec;
  if (tree.kind == source::BaseTree::Kind::worktree)
    WEIR_TRY_SET(base.facts.is_behind, lacks_rules_commit(job, tree));
  if (!base_wanted.reuse) {
    const bool is_folder = tree.kind == source::BaseTree::Kind::folder;
    WEIR_CHECK(seal_folder(tree.root,
                           is_folder ? " in the base's folder" : " in the base's checkout", job,
                           base.seal));
    for (const run::PreparedCell& cell : base.cells) WEIR_CHECK(seal_cell(cell, job, base.seal));
    seal_start_files(job, base.seal, stop);
    // A link leads from the cache's folder to the checkout.
    seal_folders_above(job, sys::follow_links(tree.root), base.seal);
    seal_folders_above(job, sys::join_path(base_wanted.cache_folder, "sides/link"), base.seal);
  }
  return base;
}

// Returns the candidate's cells with the command after `--against --` in place of the engine's.
Result<PreparedBase> prepare_from_command(const BaseRequest& wanted, const Job& job,
                                          const config::Settings& settings,
                                          std::vector<run::PreparedCell>& candidate,
                                          const PrepareCells& prepare, const sys::Stop& stop) {
  std::set<std::string> engines;
  for (const run::PreparedCell& cell : candidate) engines.insert(cell.cell.key.engine);
  if (engines.size() != 1) {
    return fail(Code::usage,
                "--against -- COMMAND… takes the place of one engine's command; {} are selected "
                "({}): choose one with --cell 'ENGINE/*'",
                engines.size(),
                text::join(std::vector<std::string>(engines.begin(), engines.end())));
  }
  PreparedBase base;
  base.settings = std::make_unique<config::Settings>(settings);
  for (config::EngineSettings& engine : base.settings->engines) {
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
           config::expand(*base.settings)
               .map_error(with_prefix("with the command of --against in place of the engine's")));
  std::vector<config::Cell> cells;
  for (const run::PreparedCell& cell : candidate) {
    const auto cell_of_base = std::ranges::find(matrix.cells, cell.cell.key, &config::Cell::key);
    if (cell_of_base == matrix.cells.end()) {
      return fail(Code::usage,
                  "--against -- {}: it has no placeholder for what {} asks for; give it those of "
                  "the engine's own command",
                  text::join(wanted.command, " "), cell.cell.key.str());
    }
    cells.push_back(*cell_of_base);
    cells.back().gpu = cell.cell.gpu;  // the candidate's GPU is known already
  }
  WEIR_TRY(base.cells, prepare(cells));
  base.facts.words = "another command of the engine";
  if (!candidate.front().cell.engine->is_private) {
    base.facts.against.command = wanted.command;
    base.facts.words = "the command " + text::join(wanted.command, " ");
  }
  WEIR_CHECK(link_programs(base.cells, job));
  WEIR_CHECK(link_programs(candidate, job));
  if (!job.reuses_cache()) {
    for (const run::PreparedCell& cell : base.cells) {
      WEIR_CHECK(seal_command(cell, job, base.seal));
      WEIR_CHECK(seal_cell(cell, job, base.seal));
    }
    seal_start_files(job, base.seal, stop);
  }
  return base;
}

// Returns the candidate's own program by another path of equal length, for A/A runs.
Result<PreparedBase> prepare_same_program(const Job& job,
                                          std::vector<run::PreparedCell>& candidate) {
  PreparedBase base;
  base.facts.words = "the same program by another path";
  base.cells = candidate;
  WEIR_CHECK(link_programs(base.cells, job, "base"));
  WEIR_CHECK(link_programs(candidate, job));
  return base;
}

}  // namespace

void fields(Fields& io, BaseFacts& facts) {
  io.optional("spec", facts.against.spec);
  io.optional("command", facts.against.command);
  io("words", facts.words);
  io.optional("commit", facts.commit);
  io.optional("candidate_commit", facts.candidate_commit);
  io.always("candidate_dirty", facts.candidate_dirty);
  io.always("notes", facts.notes);
  io.optional("merge_bases", facts.merge_bases);
  io.optional("is_behind", facts.is_behind);
}

// Prepares the base that `request` names: two checked-out commits, the candidate's own program, a
// commit or folder, or a command.
Result<PreparedBase> prepare_base(const BaseRequest& request, const Job& job,
                                  const config::Settings& settings,
                                  const config::Redactor& redactor,
                                  std::vector<run::PreparedCell>& candidate,
                                  const PrepareCells& prepare, const sys::Stop& stop) {
  if (request.commits) {
    return prepare_from_tree(request.commits->base, request.commits->own_roots,
                             request.commits->counts_folder, job, candidate, stop);
  }
  if (request.own) return prepare_same_program(job, candidate);
  return request.command.empty()
             ? prepare_from_spec(request, job, redactor, candidate, stop)
             : prepare_from_command(request, job, settings, candidate, prepare, stop);
}

std::vector<baseline::Baseline> CachedCounts::find_counts(const profile::CellKey& cell) const {
  if (folder_.empty()) return {};
  // A cache that cannot be read counts as absent: then the base is counted again.
  return stored_.of_cell(cell).value_or(std::vector<baseline::Baseline>());
}

Result<void> CachedCounts::keep(const baseline::Baseline& counts) {
  if (folder_.empty()) return {};
  WEIR_CHECK(stored_.put(counts));
  return {};
}

std::string tree_counts_folder(const std::string& cache_folder, const std::string& tree) {
  // Increase the number when more is counted than before, or in another way.
  return sys::join_path(cache_folder, "counts-6/" + tree.substr(tree.find_last_of('/') + 1));
}

std::string base_counts_folder(const std::string& run_folder) {
  return sys::join_path(run_folder, "base-counts");
}

// Returns the base's counts and the pairs (base and candidate runs) of each cell. Then those of the
// lines over depths, fitted to cells that differ only in context length.
BaseRuns assemble_base_runs(const BaseFacts& facts, const run::RunHeader& header,
                            const std::vector<profile::Profile>& profiles,
                            const profile::RecordsByCell& records,
                            const run::KnownCounts& known_counts) {
  BaseRuns base_runs;
  base_runs.facts = facts;
  bool is_watched = true;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const auto records_of_cell = records.find(header.cells[i].cell);
    base_runs.counts.push_back(run::choose_base_counts(profiles[i], header.base_cells[i],
                                                       records_of_cell,
                                                       known_counts.find_counts(profiles[i].cell)));
    base_runs.pairs.push_back(profile::paired_runs(header.cells[i], records_of_cell));
    base_runs.cells.push_back(header.cells[i]);
    is_watched = is_watched && std::ranges::none_of(records_of_cell, [](const auto& record) {
                   return holds(record.warnings, run::k_not_watched);
                 });
  }
  if (!is_watched) base_runs.facts.notes.emplace_back(run::k_not_watched);
  const auto keys = collect<profile::CellKey>(header.cells, &profile::CellFacts::cell);
  for (const verdict::DepthGroup& group : verdict::depth_groups(keys)) {
    const profile::Profile line = verdict::fit_profile(group, profiles);
    base_runs.counts.push_back(verdict::fit_baseline(group, line, base_runs.counts));
    base_runs.pairs.push_back(verdict::fit_pairs(group, base_runs.pairs));
    base_runs.cells.emplace_back().cell = group.fit;
  }
  return base_runs;
}

// Stores fresh counts of the base in the cache, and cached ones in the run's folder. Returns a
// warning if that fails.
std::vector<std::string> keep_base_counts(const PreparedBase& base, const run::RunHeader& header,
                                          const profile::RecordsByCell& records,
                                          const std::string& run_folder, sys::Files& files) {
  std::vector<std::string> warnings;
  const auto keep_in = [&](CachedCounts& cache_or_run, const baseline::Baseline& counts) {
    if (const auto result = cache_or_run.keep(counts); !result && warnings.empty()) {
      warnings.push_back("the base's counts are not kept for the next run: " +
                         result.error().message);
    }
  };
  CachedCounts cache(files, base.counts_folder), run(files, base_counts_folder(run_folder));
  for (const profile::CellFacts& facts : header.base_cells) {
    const auto records_of_cell = records.find(facts.cell);
    if (run::base_was_counted(facts.cell, records_of_cell)) {
      profile::Profile profile = profile::assemble(facts, records_of_cell, profile::Side::base);
      if (!profile.errors.empty()) continue;
      baseline::Baseline counts = baseline::accept(profile, std::nullopt, {});
      counts.sessions.clear();
      keep_in(cache, counts);
      continue;
    }
    for (const baseline::Baseline& stored : cache.find_counts(facts.cell)) keep_in(run, stored);
  }
  return warnings;
}

namespace {

// Returns the seconds that a cell's pairs take, as far as is known before they run.
double estimate_seconds(const run::PlannedPairs& cell) {
  const auto fewest = static_cast<double>(cell.fewest);
  return std::max(fewest, cell.calibrated.value_or(fewest)) * cell.pair_seconds;
}

// Returns, for each cell, true if the budget is not likely to decide it, when the fastest cells run
// first.
std::vector<bool> find_undecidable(const run::PairsPlan& plan) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < plan.cells.size(); ++i) {
    if (plan.cells[i].now) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return estimate_seconds(plan.cells[a]) < estimate_seconds(plan.cells[b]);
  });
  std::vector<bool> is_undecidable(plan.cells.size(), false);
  double seconds_left = plan.budget_seconds;
  for (const std::size_t i : order) {
    seconds_left -= estimate_seconds(plan.cells[i]);
    is_undecidable[i] = seconds_left < 0 && plan.cells[i].calibrated;
  }
  return is_undecidable;
}

// Describes the pairs of one cell: their time, how many, and if the budget is likely to suffice.
std::string pairs_text(const run::PlannedPairs& cell, bool is_undecidable, const BaseFacts& facts) {
  std::string text =
      fmt::format("{:.1f} s a pair, {} pairs at least", cell.pair_seconds, cell.fewest);
  if (cell.calibrated) {
    text += fmt::format(", about {:.0f} here ({})", std::ceil(*cell.calibrated),
                        run::show_time_left(*cell.calibrated * cell.pair_seconds));
  }
  if (!cell.now) {
    // With a commit to depend on, other cells are left out the next time.
    return text + "; not within this budget" +
           (facts.candidate_commit ? ", a later commit measures it" : "");
  }
  return is_undecidable ? text + "; this budget is not likely to decide it" : text;
}

}  // namespace

// Describes the planned pairs for people. With many cells, it lists only those that the budget is
// not likely to decide.
std::vector<std::string> describe_pairs(const run::PairsPlan& plan, const BaseFacts& facts,
                                        const config::Redactor& redactor) {
  std::vector<std::string> lines;
  const std::vector<bool> is_undecidable = find_undecidable(plan);
  const auto needs_line = [&](std::size_t i) { return !plan.cells[i].now || is_undecidable[i]; };
  std::size_t lines_needed = 0;
  for (std::size_t i = 0; i < plan.cells.size(); ++i) {
    if (needs_line(i)) ++lines_needed;
  }
  lines.push_back(
      fmt::format("pairs: {} beside the base within {}; to decide all takes {} at least",
                  text::plural(plan.cells.size(), "cell"), run::show_time_left(plan.budget_seconds),
                  run::show_time_left(plan.seconds_for_all)));
  if (!plan.failed_cells.empty()) {
    const auto key = profile::CellKey::parse(plan.failed_cells.front());
    const std::string first = key ? redactor.cell(*key).str() : plan.failed_cells.front();
    const std::size_t more = plan.failed_cells.size() - 1;
    lines.push_back(fmt::format(
        "  counts break a limit already: {}{}; pairs decide the times (--counts-only skips them)",
        first, more == 0 ? "" : fmt::format(" and {} more", more)));
  }
  constexpr std::size_t k_max_lines = 16;
  std::size_t listed = 0;
  for (std::size_t i = 0; i < plan.cells.size(); ++i) {
    const run::PlannedPairs& cell = plan.cells[i];
    // With many cells, only those that the budget does not reach get a line.
    if (plan.cells.size() > k_max_lines && (!needs_line(i) || listed >= k_max_lines)) continue;
    ++listed;
    const auto key = profile::CellKey::parse(cell.cell);
    lines.push_back(fmt::format("  {}: {}", key ? redactor.cell(*key).str() : cell.cell,
                                pairs_text(cell, is_undecidable[i], facts)));
  }
  if (lines_needed > listed) lines.push_back(fmt::format("  … and {} more", lines_needed - listed));
  return lines;
}

}  // namespace weir::flow

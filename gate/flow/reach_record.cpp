// weir reach --record: records the source files, kernels and ops that each cell runs.
#include "gate/base/text.hpp"
#include "gate/flow/newest_run.hpp"
#include "gate/flow/program.hpp"
#include "gate/flow/reach.hpp"
#include "gate/probes/read/instructions.hpp"
#include "gate/profile/reach.hpp"
#include "gate/report/layout.hpp"
#include "gate/run/engine_call.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr std::uint64_t k_largest_coverage = std::uint64_t{512} << 20;

// The state of the repository that the engine was built from, which weir.yaml lies in.
struct Origin {
  std::string top, commit;
  bool dirty = false;
};

Result<Origin> read_origin(const Job& job, const sys::Stop& stop) {
  const source::Effects effects = source_effects(job.world, stop);
  WEIR_TRY(const source::Git git, source::Git::open(effects, job.folder()));
  Origin origin;
  origin.top = git.top();
  WEIR_TRY(const auto commit, git.resolve_commit("HEAD"));
  origin.commit = commit.value_or("");
  WEIR_TRY(origin.dirty, git.dirty());
  return origin;
}

// Returns the names of a file below the repository's top: by its path, and by the file that a link
// leads to. The path itself if neither lies there.
std::vector<std::string> names_below(const std::string& path, const std::string& top) {
  const auto is_below = [](const std::string& name) { return !name.starts_with('/'); };
  const std::string own_name = profile::path_below(path, top);
  std::vector<std::string> names;
  if (is_below(own_name)) names.push_back(own_name);
  if (const auto real = path.starts_with('/') ? sys::real_path(path) : std::nullopt) {
    const std::string real_name = profile::path_below(*real, top);
    if (is_below(real_name) && real_name != own_name) names.push_back(real_name);
  }
  if (names.empty()) names.push_back(own_name);
  return names;
}

// Returns the executed files and functions with paths relative to the repository's top.
profile::Executed relative_to_top(const profile::Executed& executed, const std::string& top) {
  profile::Executed relative;
  relative.without_debug_info = executed.without_debug_info;
  for (const auto& [path, functions] : executed.files) {
    for (const std::string& name : names_below(path, top)) {
      profile::add_executed(relative, name, /*function=*/"");  // the file, if no function is known
      for (const std::string& function : functions) profile::add_executed(relative, name, function);
    }
  }
  if (!executed.inlined) relative.inlined.reset();
  for (const std::string& path : executed.inlined.value_or(std::set<std::string>())) {
    // Files of the compiler and the system never change with a commit.
    if (profile::is_system_object(path)) continue;
    for (std::string& name : names_below(path, top)) relative.inlined->insert(std::move(name));
  }
  return relative;
}

// Adds the kernels and ops that the newest run's counted pass ran in the cell.
void add_counted_work(const std::vector<profile::RunRecord>& records, profile::Reach& reach) {
  bool all_kernels_named = true;
  for (const profile::RunRecord& record : records) {
    if (record.cell != reach.cell || record.pass != profile::Pass::counted || record.error ||
        record.side != profile::Side::candidate) {
      continue;
    }
    for (const profile::ProbeCounts& probe : record.probes) {
      for (const profile::OpCount& op : probe.ops) reach.ops.insert(op.op);
      if (probe.kernels.empty()) continue;
      if (!reach.kernels) reach.kernels.emplace();
      // "(other)" stands for kernels that did not fit into the probe's table.
      all_kernels_named =
          all_kernels_named && probe.kernels_named && !probe.kernels.contains("(other)");
      for (const auto& [kernel, count] : probe.kernels) reach.kernels->insert(kernel);
    }
  }
  reach.kernels_named = reach.kernels && all_kernels_named;
}

// Returns the longest of a cell's counted commands; if it has none, a timed one; else null.
const PlannedCommand* choose_command(const std::vector<PlannedCommand>& commands,
                                     const std::string& cell) {
  const PlannedCommand* best = nullptr;
  for (const PlannedCommand& command : commands) {
    if (command.cell != cell) continue;
    const bool is_counted = command.pass == profile::Pass::counted;
    if (best == nullptr ||
        (is_counted && (best->pass != profile::Pass::counted || command.length > best->length))) {
      best = &command;
    }
  }
  return best;
}

// Returns the reason why a command cannot run under callgrind; null if it can.
const char* recording_problem(const PlannedCommand* command) {
  if (command == nullptr) return "nothing of it can run here";
  if (command->in_container) return "runs in a container";
  if (command->serves) return "is a server's";
  return nullptr;
}

// Records what cells run, under callgrind or from coverage files, and stores it.
class Recorder {
 public:
  explicit Recorder(const Job& job) : job_(job) {}

  // Records all selected cells, or one from files of coverage. Exit 3 if a cell could not be
  // recorded.
  Result<Answer> record(const std::vector<std::string>& coverage) {
    WEIR_TRY(LoadedConfig loaded, load_config(job_));
    redactor_ = loaded.configuration.redactor;
    const std::vector<ReachCell> cells = reach_cells(loaded.cells);
    if (!coverage.empty() && cells.size() != 1) {
      return fail(Code::usage,
                  "--coverage is of one cell, and {} are selected: name it with --cell",
                  cells.size());
    }
    auto origin = read_origin(job_, interrupts_.stop());
    if (!origin && origin.error().code == Code::interrupted) {
      return tl::unexpected(std::move(origin).error());
    }
    if (origin) {
      origin_ = std::move(*origin);
    } else {
      job_.log("paths stay as they are: " + text::printable(origin.error().message));
    }
    WEIR_CHECK(read_newest_run());
    WEIR_CHECK(coverage.empty() ? run_cells(std::move(loaded), cells)
                                : store_coverage(cells.front().cell, coverage));
    return Answer{fmt::format("recorded {} of {} in {}\n", recorded_,
                              text::plural(cells.size(), "cell"), stored_.folder()),
                  "", recorded_ == cells.size() ? ExitCode::pass : ExitCode::unmeasured};
  }

 private:
  // Reads the newest run, which knows kernels and ops.
  Result<void> read_newest_run() {
    const auto newest = newest_run(job_);
    if (!newest) {
      job_.log("no run here yet: kernels are not known (weir run --counts-only)");
      return {};
    }
    WEIR_TRY(run::RunFile run, run::read_run(files_, *newest));
    records_ = std::move(run.records);
    return {};
  }

  Result<void> store_coverage(const std::string& cell, const std::vector<std::string>& coverage) {
    profile::Executed executed;
    for (const std::string& path : coverage) {
      WEIR_TRY(const std::string text, files_.read(path, k_largest_coverage));
      WEIR_TRY(const auto file_coverage, profile::read_coverage(text).map_error(with_prefix(path)));
      profile::merge_executed(executed, file_coverage);
    }
    return store(cell, executed, "coverage");
  }

  // Runs each cell under callgrind in a temporary folder.
  Result<void> run_cells(LoadedConfig loaded, const std::vector<ReachCell>& cells) {
    const auto valgrind = sys::find_program(files_, "valgrind", "/", job_.variable("PATH"));
    if (!valgrind) {
      return fail(Code::unavailable,
                  "valgrind is not installed; --coverage takes an engine's own coverage instead");
    }
    WEIR_TRY(std::string folder,
             run::make_run_folder(files_, sys::join_path(job_.selection.runs_folder, "reach/tmp"),
                                  job_.world.clock.now()));
    folder = sys::absolute(folder);
    auto result = run_in_folder(std::move(loaded), cells, *valgrind, folder);
    (void)files_.remove_tree(folder);
    return result;
  }

  // Runs each cell under callgrind in `folder`, and stores its record. Cells that cannot be run are
  // reported.
  Result<void> run_in_folder(LoadedConfig loaded, const std::vector<ReachCell>& cells,
                             const std::string& valgrind, const std::string& folder) {
    MeasureOptions wanted;
    wanted.plan.runs = 1;
    wanted.plan.instruction_processes = 0;  // the same program again, under valgrind already
    WEIR_TRY(
        const PlannedCommands planned,
        planned_commands(std::move(loaded), job_, wanted, {folder + "/out", folder + "/probes"}));
    for (const ReachCell& cell : cells) {
      const std::string name = redactor_.cell_name(cell.cell);
      const PlannedCommand* command = choose_command(planned.commands, cell.cell);
      const char* problem = recording_problem(command);
      if (problem != nullptr) {
        job_.log(fmt::format("{}: {}: not recorded", name, problem));
        continue;
      }
      job_.log(fmt::format("running {} under valgrind", name));
      auto executed = run_one(*command, valgrind, folder);
      if (!executed) {
        if (executed.error().code == Code::interrupted) {
          return tl::unexpected(std::move(executed).error());
        }
        job_.log(redactor_.text(
            fmt::format("{}: {}: not recorded", name, text::printable(executed.error().message))));
        continue;
      }
      WEIR_CHECK(store(cell.cell, *executed, "callgrind"));
    }
    return {};
  }

  // Runs one command under callgrind, and returns the code that it executed.
  Result<profile::Executed> run_one(const PlannedCommand& command, const std::string& valgrind,
                                    const std::string& folder) {
    for (const char* part : {"/out", "/probes"}) {
      WEIR_CHECK(files_.remove_tree(folder + part));
      WEIR_CHECK(files_.make_dirs(folder + part));
    }
    sys::ProcessSpec spec = command.spec;
    spec.argv = probes::under_valgrind(valgrind, folder + "/probes", spec.argv);
    spec.timeout_seconds *= probes::k_valgrind_is_slower;
    WEIR_TRY(const sys::Finished finished, run_program(job_.world, spec, interrupts_.stop()));
    if (const std::string why = failure_text(finished, spec); !why.empty()) {
      const std::string last_output =
          run::last_lines(finished.err + probes::valgrind_log(files_, folder + "/probes"));
      return fail(Code::data, "{}{}", why, text::prefix_if_any("\n", last_output));
    }
    return probes::collect_executed(files_, folder + "/probes");
  }

  // Stores the record of one cell, and prints how much was found.
  Result<void> store(const std::string& cell, const profile::Executed& executed,
                     const char* source) {
    profile::Reach reach;
    reach.cell = cell;
    reach.commit = origin_.commit;
    reach.dirty = origin_.dirty;
    reach.source = source;
    reach.executed = origin_.top.empty() ? executed : relative_to_top(executed, origin_.top);
    add_counted_work(records_, reach);
    const auto& files = reach.executed.files;
    // Debug information of other code, such as the C library, has relative paths too.
    const auto in_repository = std::ranges::count_if(files, [&](const auto& file) {
      return !file.first.starts_with('/') && files_.exists(sys::join_path(origin_.top, file.first));
    });
    if (files.empty()) {
      job_.log(
          fmt::format("{}: its engine has no debug information (build it with -g): "
                      "every change will reach it",
                      redactor_.cell_name(cell)));
    }
    WEIR_CHECK(stored_.put(reach));
    ++recorded_;
    job_.log(fmt::format("{}: {} source files, {} of them found below the repository's top, {}",
                         redactor_.cell_name(cell), files.size(), in_repository,
                         reach.kernels ? fmt::format("{} kernels", reach.kernels->size())
                                       : std::string("kernels unknown")));
    return {};
  }

  const Job& job_;
  sys::Files& files_ = job_.files();
  const sys::Interrupts interrupts_;
  ReachRecords stored_{files_, job_.selection.runs_folder};
  config::Redactor redactor_;
  Origin origin_;
  std::vector<profile::RunRecord> records_;
  std::size_t recorded_ = 0;
};

}  // namespace

Result<Answer> record_reach(const Job& job, const std::vector<std::string>& coverage) {
  return Recorder(job).record(coverage);
}

}  // namespace weir::flow

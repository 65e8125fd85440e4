
#include "gate/base/text.hpp"
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

// Of the repository that the engine was built from: the one that weir.yaml lies in.
struct Origin {
  std::string top, commit;
  bool dirty = false;
};

Result<Origin> origin_of(const Job& job, const sys::Stop& stop) {
  const source::Effects effects = effects_of(job.world, stop);
  WEIR_TRY(const source::Git git, source::Git::open(effects, job.folder()));
  Origin origin;
  origin.top = git.top();
  WEIR_TRY(const auto commit, git.commit("HEAD"));
  origin.commit = commit.value_or("");
  WEIR_TRY(origin.dirty, git.dirty());
  return origin;
}

// Files below the repository's top are counted from there, also where a link leads to them.
profile::Executed from_top(const profile::Executed& executed, const std::string& top) {
  const auto names_of = [&](const std::string& path) {
    std::vector<std::string> names{profile::path_below(path, top)};
    if (const auto real = path.starts_with('/') ? sys::real_path(path) : std::nullopt) {
      std::string below = profile::path_below(*real, top);
      if (!below.starts_with('/') && below != names.front()) {
        if (names.front().starts_with('/')) names.clear();
        names.push_back(std::move(below));
      }
    }
    return names;
  };
  profile::Executed out;
  out.blind = executed.blind;
  for (const auto& [path, functions] : executed.files) {
    for (const std::string& name : names_of(path)) {
      profile::add_executed(out, name, "");
      for (const std::string& function : functions) profile::add_executed(out, name, function);
    }
  }
  if (!executed.inlined) out.inlined.reset();
  for (const std::string& path : executed.inlined.value_or(std::set<std::string>())) {
    // Of the compiler's and the system's files nothing is asked.
    if (profile::of_the_system(path)) continue;
    for (std::string& name : names_of(path)) out.inlined->insert(std::move(name));
  }
  return out;
}

// What the newest run's counted pass saw of a cell.
void take_counted(const std::vector<profile::RunRecord>& records, profile::Reach& reach) {
  bool named = true;
  for (const profile::RunRecord& record : records) {
    if (record.cell != reach.cell || record.pass != profile::Pass::counted || record.error ||
        record.side != profile::Side::candidate) {
      continue;
    }
    for (const profile::ProbeCounts& probe : record.probes) {
      for (const profile::OpCount& op : probe.ops) reach.ops.insert(op.op);
      if (probe.kernels.empty()) continue;
      if (!reach.kernels) reach.kernels.emplace();
      // "(other)": its table was too small for all of them.
      named = named && probe.kernels_named && !probe.kernels.contains("(other)");
      for (const auto& [kernel, count] : probe.kernels) reach.kernels->insert(kernel);
    }
  }
  reach.kernels_named = reach.kernels && named;
}

// The longest of a cell's counted command lines; where it has none, one of its timed ones.
const PlannedCommand* command_of(const std::vector<PlannedCommand>& commands,
                                 const std::string& cell) {
  const PlannedCommand* best = nullptr;
  for (const PlannedCommand& command : commands) {
    if (command.cell != cell) continue;
    const bool counted = command.pass == profile::Pass::counted;
    if (best == nullptr ||
        (counted && (best->pass != profile::Pass::counted || command.length > best->length))) {
      best = &command;
    }
  }
  return best;
}

class Recorder {
 public:
  explicit Recorder(const Job& job) : job_(job) {}

  Result<Answer> record(const std::vector<std::string>& coverage) {
    WEIR_TRY(Loaded loaded, load_config(job_));
    redactor_ = loaded.known.redactor;
    const std::vector<ReachCell> cells = reach_cells(loaded.cells);
    if (!coverage.empty() && cells.size() != 1) {
      return fail(Code::usage,
                  "--coverage is of one cell, and {} are selected: name it with --cell",
                  cells.size());
    }
    auto origin = origin_of(job_, interrupts_.stop());
    if (!origin && origin.error().code == Code::interrupted) {
      return tl::unexpected(std::move(origin).error());
    }
    if (origin) {
      origin_ = std::move(*origin);
    } else {
      job_.talk("paths stay as they are: " + text::printable(origin.error().message));
    }
    WEIR_CHECK(read_newest_run());
    WEIR_CHECK(coverage.empty() ? run_all(std::move(loaded), cells)
                                : keep_coverage(cells.front().cell, coverage));
    return Answer{fmt::format("recorded {} of {} in {}\n", recorded_,
                              report::plural(cells.size(), "cell"), stored_.folder()),
                  "", recorded_ == cells.size() ? ExitCode::pass : ExitCode::unmeasured};
  }

 private:
  Result<void> read_newest_run() {
    const auto newest = run::newest_run(files_, job_.asked.out);
    if (!newest) {
      job_.talk("no run here yet: kernels are not known (weir run --counts-only)");
      return {};
    }
    WEIR_TRY(run::RunFile run, run::read_run(files_, *newest));
    records_ = std::move(run.records);
    return {};
  }

  Result<void> keep_coverage(const std::string& cell, const std::vector<std::string>& coverage) {
    profile::Executed executed;
    for (const std::string& path : coverage) {
      WEIR_TRY(const std::string text, files_.read(path, k_largest_coverage));
      WEIR_TRY(const auto one, profile::read_coverage(text).map_error(in_context(path)));
      profile::merge_executed(executed, one);
    }
    return keep(cell, executed, "coverage");
  }

  Result<void> run_all(Loaded loaded, const std::vector<ReachCell>& cells) {
    const auto valgrind = sys::find_program(files_, "valgrind", "/", job_.variable("PATH"));
    if (!valgrind) {
      return fail(Code::unavailable,
                  "valgrind is not installed; --coverage takes an engine's own coverage instead");
    }
    WEIR_TRY(std::string folder,
             run::make_run_folder(files_, sys::join_path(job_.asked.out, "reach/tmp"),
                                  job_.world.clock.now()));
    folder = sys::absolute(folder);
    auto ran = run_below(std::move(loaded), cells, *valgrind, folder);
    (void)files_.remove_tree(folder);
    return ran;
  }

  Result<void> run_below(Loaded loaded, const std::vector<ReachCell>& cells,
                         const std::string& valgrind, const std::string& folder) {
    MeasureOptions wanted;
    wanted.plan.runs = 1;
    wanted.plan.instruction_processes = 0;  // the same program again, under valgrind already
    WEIR_TRY(const auto commands, planned_commands(std::move(loaded), job_, wanted,
                                                   {folder + "/out", folder + "/probes"}));
    for (const ReachCell& cell : cells) {
      const std::string name = redactor_.cell_name(cell.cell);
      const PlannedCommand* command = command_of(commands, cell.cell);
      const char* why_not = command == nullptr      ? "nothing of it can run here"
                            : command->in_container ? "runs in a container"
                            : command->serves       ? "is a server's"
                                                    : nullptr;
      if (why_not != nullptr) {
        job_.talk(fmt::format("{}: {}: not recorded", name, why_not));
        continue;
      }
      job_.talk(fmt::format("running {} under valgrind", name));
      auto executed = run_one(*command, valgrind, folder);
      if (!executed) {
        if (executed.error().code == Code::interrupted) {
          return tl::unexpected(std::move(executed).error());
        }
        job_.talk(redactor_.text(
            fmt::format("{}: {}: not recorded", name, text::printable(executed.error().message))));
        continue;
      }
      WEIR_CHECK(keep(cell.cell, *executed, "callgrind"));
    }
    return {};
  }

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
    if (const std::string why = failure_words(finished, spec); !why.empty()) {
      const std::string said =
          run::last_lines(finished.err + probes::valgrind_log(files_, folder + "/probes"));
      return fail(Code::data, "{}{}{}", why, said.empty() ? "" : "\n", said);
    }
    return probes::collect_executed(files_, folder + "/probes");
  }

  Result<void> keep(const std::string& cell, const profile::Executed& executed,
                    const char* source) {
    profile::Reach reach;
    reach.cell = cell;
    reach.commit = origin_.commit;
    reach.dirty = origin_.dirty;
    reach.source = source;
    reach.executed = origin_.top.empty() ? executed : from_top(executed, origin_.top);
    take_counted(records_, reach);
    const auto& ran = reach.executed.files;
    // Debug information of others, the C library's for one, has relative names too.
    const auto own = std::ranges::count_if(ran, [&](const auto& file) {
      return !file.first.starts_with('/') && files_.exists(sys::join_path(origin_.top, file.first));
    });
    if (ran.empty()) {
      job_.talk(
          fmt::format("{}: its engine has no debug information (build it with -g): "
                      "every change will reach it",
                      redactor_.cell_name(cell)));
    }
    WEIR_CHECK(stored_.put(reach));
    ++recorded_;
    job_.talk(fmt::format("{}: {} source files, {} of them found below the repository's top, {}",
                          redactor_.cell_name(cell), ran.size(), own,
                          reach.kernels ? fmt::format("{} kernels", reach.kernels->size())
                                        : std::string("kernels unknown")));
    return {};
  }

  const Job& job_;
  sys::Files& files_ = job_.files();
  const sys::Interrupts interrupts_;
  StoredReach stored_{files_, job_.asked.out};
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

#include "gate/flow/gate.hpp"

#include "gate/adapters/format.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/calibrate.hpp"
#include "gate/flow/judge.hpp"
#include "gate/flow/program.hpp"
#include "gate/flow/reach.hpp"
#include "gate/profile/assemble.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/profile_text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

// What pairs of the suspected cells gave, or why there are none (one line; empty where nothing is
// to be said).
struct Pairs {
  std::optional<Measured> measured{};
  std::string why_not{};
};

std::optional<std::string> base_ref(const ConfirmOptions& confirm, const Measured& first,
                                    const sys::Files& files) {
  if (confirm.ref) return confirm.ref;
  if (first.known.settings->gate.confirm) return first.known.settings->gate.confirm;
  const source::PullRequest pull = source::read_pull_request(files);
  if (pull.base_branch.empty()) return std::nullopt;
  return "origin/" + pull.base_branch;
}

// A suspected line over depths is looked at at all of its depths.
std::vector<config::Cell> chosen(std::vector<config::Cell> cells,
                                 const std::vector<profile::CellKey>& suspected) {
  std::set<std::string> names;
  for (const profile::CellKey& key : suspected) names.insert(key.str());
  std::erase_if(cells, [&](const config::Cell& cell) {
    return !names.contains(cell.key.str()) && !names.contains(cell.key.line().str());
  });
  return cells;
}

// What was allowed, and by which rules, is the whole gate's to say, once.
Measured alone(Measured pairs) {
  pairs.allowed.reset();
  if (pairs.known.rules) {
    // A cell under a new name is still judged as the one it was.
    RulesUsed names;
    for (const verdict::HeldCell& held : pairs.known.rules->held) {
      if (!held.now.empty()) names.held.push_back({held.cell, held.shown, held.now});
    }
    pairs.known.rules = std::move(names);
  }
  return pairs;
}

// `first` is the run whose stored verdict is `verdict`. Takes gate.budget at most. Fails with
// Code::interrupted alone: whatever else goes wrong leaves the stored verdict as it is, and says
// so.
Result<Pairs> pairs_of_suspected(const Job& job, const ConfirmOptions& confirm,
                                 const Measured& first, const verdict::GateVerdict& verdict) {
  const std::vector<profile::CellKey> suspected = verdict::suspected(verdict.cells);
  if (suspected.empty() || confirm.off) return Pairs{};
  if (!confirm.ref && !first.known.settings->gate.confirms) return Pairs{};
  Job inner = job;
  inner.asked.out = sys::join_path(first.folder, "confirm");
  inner.asked.cells.clear();
  const std::vector<std::string> earlier = run::list_runs(job.files(), inner.asked.out);
  const auto none = [](std::string why) { return Pairs{{}, std::move(why)}; };
  constexpr const char* k_alone =
      "compared with stored runs alone; weir gate --confirm REF re-tests such drops in paired runs "
      "before they fail";
  if (confirm.read_only) {
    if (earlier.empty()) return none(k_alone);
    auto read = read_measured(inner, earlier.back());
    if (!read) {
      return none("their pairs cannot be read: " + text::first_line(read.error().message));
    }
    if (read->interrupted.empty()) return Pairs{alone(std::move(*read))};
    return none("their pairs were interrupted: weir gate --resume goes on with them");
  }
  if (first.shard && first.shard->index > 0) {
    return none("a shard is not confirmed by pairs of its own: gate the joined run");
  }
  const std::optional<std::string> ref = base_ref(confirm, first, job.files());
  if (!ref) return none(k_alone);
  job.talk(fmt::format(
      "{} slower than stored runs: re-testing in pairs with {}",
      suspected.size() == 1 ? "1 cell is" : fmt::format("{} cells are", suspected.size()), *ref));
  MeasureOptions wanted;
  wanted.plan.counts = false;
  wanted.against = BaseRequest{.spec = *ref, .command = {}, .own = false, .other_commit = true};
  config::Redactor redactor;
  // A run that was interrupted in its pairs goes on with these, where they are of the same cells.
  auto measured = measure_or_resume(
      [&]() -> Result<Loaded> {
        WEIR_TRY(Loaded loaded, load_config(job));
        loaded.cells = chosen(std::move(loaded.cells), suspected);
        redactor = loaded.known.redactor;
        return loaded;
      },
      inner, wanted);
  if (measured) return Pairs{alone(std::move(*measured))};
  const Error error = redacted(std::move(measured).error(), redactor);
  if (error.code == Code::interrupted) {
    return fail(
        Code::interrupted,
        "interrupted in the pairs that were to confirm a drop; go on with: weir gate --resume "
        "{} and the same options",
        text::shell_word(first.folder));
  }
  return none("could not be confirmed in paired runs: " + text::first_line(error.message));
}

Result<std::optional<BaseRequest>> against_wanted(const GateOptions& options) {
  const std::vector<std::string>& words = options.words;
  if (!options.against) {
    if (words.empty()) return std::nullopt;
    return fail(Code::usage, "words after \"--\" are the base's command: --against -- COMMAND…");
  }
  if (options.confirm.ref) {
    return fail(Code::usage,
                "--confirm is for times compared with stored runs: with --against all times are in "
                "pairs already");
  }
  if (options.wanted.plan.runs) {
    return fail(Code::usage,
                "--runs is for stored baselines: with --against, pairs run until the verdict is "
                "certain or gate.budget is spent");
  }
  if (options.against->empty() == words.empty()) {
    return fail(Code::usage, "--against {}",
                words.empty() ? "needs a base: a REF, a DIR, or -- COMMAND…"
                              : "takes one base: a REF or DIR, or -- COMMAND…");
  }
  return BaseRequest{.spec = *options.against, .command = words, .env = options.base_env};
}

// The weir.yaml of result files, where there is none.
Result<std::string> config_of_results(const std::string& file, const Job& job) {
  WEIR_TRY(const std::string text, job.files().read(file, adapters::k_most_read));
  const auto formats = adapters::recognised(adapters::Printed({text, {}, file}));
  if (formats.empty() || formats.front()->adapter.counts != adapters::Counts::results) {
    return fail(Code::usage, "{}: no result of AIPerf, guidellm or vllm bench serve", file);
  }
  return fmt::format(
      "version: 1\n"
      "engines: {{{0}: {{output: {0}}}}}\n"
      "backends: {{server: {{device: cpu}}}}\n"
      "prompts: {{load: {{}}}}\n",
      formats.front()->adapter.name);
}

Result<Measured> obtain(const Job& job, const GateOptions& options) {
  // Of somebody else's run it says what is judged: a run's word that it takes no times is not
  // taken.
  const bool counts_only = job.asked.counts_only && !options.rules.rules_from;
  if (options.from && (counts_only || options.wanted.plan.runs || options.against)) {
    return fail(Code::usage,
                "--from judges what RUN measured, which {} cannot change: leave one of them out",
                options.against            ? "--against"
                : options.wanted.plan.runs ? "--runs"
                                           : "--counts-only");
  }
  if (options.from && options.confirm.ref) {
    return fail(Code::usage, "--from judges what RUN measured: leave --confirm out");
  }
  if (options.from && options.rules.baselines_ref && !options.rules.rules_from) {
    return fail(
        Code::usage,
        "--from judges by the rules that RUN was measured under: add --rules-from, or leave "
        "--baselines-ref out");
  }
  if (options.from) {
    WEIR_TRY(Measured measured, read_measured(job, *options.from));
    const std::string& config = job.asked.config;
    if (!measured.claimed && job.asked.config_given &&
        sys::absolute(config) != sys::absolute(measured.known.file)) {
      return fail(Code::usage,
                  "--from judges {} under the configuration it was measured with ({}): leave -c {} "
                  "out",
                  measured.folder, measured.known.file, config);
    }
    return measured;
  }
  MeasureOptions wanted = options.wanted;
  wanted.results = options.results;
  WEIR_TRY(wanted.against, against_wanted(options));
  wanted.plan.times = !job.asked.counts_only;
  WEIR_TRY(wanted.output_places, places_of(job, options.files));
  return measure(job, wanted);
}

// Against stored baselines; what is slower there is looked at in pairs before it fails.
Result<verdict::GateVerdict> judge(const Job& job, const GateOptions& options,
                                   const Measured& measured, const StoredBaselines& stored,
                                   const verdict::Policy& policy) {
  WEIR_TRY(verdict::GateVerdict verdict, judge_stored(measured, stored, policy, job.files()));
  ConfirmOptions confirm = options.confirm;
  confirm.off = confirm.off || !options.results.empty();  // nothing can be started again
  confirm.read_only = options.from.has_value();
  WEIR_TRY(const Pairs pairs, pairs_of_suspected(job, confirm, measured, verdict));
  if (!pairs.why_not.empty()) verdict.notes.push_back("slower times: " + pairs.why_not);
  if (!pairs.measured) return verdict;
  return judge_stored(measured, stored, policy, job.files(), &*pairs.measured);
}

// Where the baselines are that judge: a run that was measured under a commit's keeps them.
StoredBaselines baselines_for(const Job& job, const GateOptions& options,
                              const Measured& measured) {
  if (options.from && !measured.claimed && measured.known.rules &&
      !measured.known.rules->baselines_words.empty()) {
    return {job.files(), baselines_in_run(measured.folder), measured.known.rules->baselines_words};
  }
  return baselines_of(job);
}

// GateVerdict::options
std::map<std::string, std::string> given_options(const Job& job, const GateOptions& options) {
  const Asked usual;
  std::map<std::string, std::string> given;
  if (job.asked.baselines != usual.baselines) given["--baselines"] = job.asked.baselines;
  if (job.asked.out != usual.out) given["--out"] = job.asked.out;
  if (const auto& ref = options.rules.rules_from) given["--rules-from"] = *ref;
  if (const auto& ref = options.rules.baselines_ref) given["--baselines-ref"] = *ref;
  if (options.from && !options.from->empty()) given["--from"] = *options.from;
  return given;
}

}  // namespace

Result<Answer> gate(const Job& asked, const GateOptions& options) {
  Job job = asked;
  if (!options.results.empty() && !job.asked.config_given && !job.files().exists(job.asked.config))
    WEIR_SET(job.asked.config_text, config_of_results(options.results.front(), job));
  if (!options.from || options.rules.rules_from)
    WEIR_SET(job.rules, read_rules(options.rules, job));
  WEIR_TRY(job.allowed, read_allowed(options.allowed, job));
  WEIR_TRY(Measured measured, obtain(job, options));
  if (job.allowed) measured.allowed = *job.allowed;
  const StoredBaselines stored = baselines_for(job, options, measured);
  if (measured.known.rules) {
    WEIR_CHECK(find_renamed(*measured.known.rules, measured.profiles, stored));
  }
  const verdict::Policy policy = policy_of(measured, options.require_baseline);
  WEIR_TRY(verdict::GateVerdict verdict, measured.beside
                                             ? judge_beside(measured, stored, policy, job.files())
                                             : judge(job, options, measured, stored, policy));
  if (measured.claimed && measured.counts_only && !job.asked.counts_only) {
    verdict::leave_unjudged(
        verdict, "the run has no times: pass --counts-only (ci/post: counts-only: true)");
  }
  // These ask this machine for what a run of others names.
  if (!measured.claimed) tell_reach(measured, job, verdict);
  if (!measured.claimed && !job.asked.config_text)
    tell_calibration(measured, Calibrations(job.files()), verdict);
  verdict.options = given_options(job, options);
  return publish_verdict(job, options.files, verdict, measured.known.redactor);
}

namespace {

Result<Answer> dry_run(const Job& job, const MeasureOptions& wanted) {
  WEIR_TRY(Loaded loaded, load_config(job));
  const config::Redactor redactor = loaded.known.redactor;
  WEIR_TRY(const auto commands,
           planned_commands(std::move(loaded), job, wanted, {job.asked.out, ""}));
  Json planned = Json::array();
  std::string lines;
  std::vector<std::string> passed;
  for (const PlannedCommand& command : commands) {
    passed.insert(passed.end(), command.spec.passed.begin(), command.spec.passed.end());
    Json env = Json::object();
    std::vector<std::string> words;
    for (const auto& [name, value] : command.spec.env) {
      env[name] = value;
      words.push_back(fmt::format("{}={}", name, text::shell_word(redactor.text(value))));
    }
    for (const std::string& word : command.spec.argv) {
      words.push_back(text::shell_word(redactor.text(word)));
    }
    planned.push_back({{"cell", command.cell},
                       {"pass", profile::to_string(command.pass)},
                       {"argv", command.spec.argv},
                       {"env", std::move(env)},
                       {"passed", command.spec.passed}});
    lines += text::join(words, " ") + "\n";
  }
  if (const std::string names = sys::withheld_names(passed); !names.empty()) {
    job.talk(fmt::format("withheld from engines: {} ({})", names, k_pass_through));
  }
  return Answer{lines, document({{"schema", "weir.commands/1"}, {"commands", planned}})};
}

}  // namespace

Result<Answer> run_matrix(const Job& job, const RunOptions& options) {
  MeasureOptions wanted = options.wanted;
  wanted.plan.times = !job.asked.counts_only;
  if (options.against) wanted.against = BaseRequest{.spec = *options.against, .command = {}};
  WEIR_TRY(wanted.output_places, places_of(job));
  if (options.dry_run) return dry_run(job, wanted);
  WEIR_TRY(Measured measured, measure(job, wanted));
  redact_profiles(measured);
  report::Page notes(static_cast<std::size_t>(job.width()));
  for (const std::string& note : profile::missing_kernel_costs(measured.profiles)) {
    notes.paragraph("note: ", measured.known.redactor.text(note), 2);
  }
  return profiles_answer(report::profiles_text(measured.profiles, {.width = job.width()}) +
                             notes.finish() + fmt::format("run {}\n", measured.folder),
                         measured.profiles);
}

}  // namespace weir::flow

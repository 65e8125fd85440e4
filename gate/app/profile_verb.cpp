// weir profile: one program once, with everything that the probes can see: a table and a Chrome
// trace. Judges nothing.
#include <algorithm>
#include <memory>

#include <unistd.h>

#include "gate/app/command_line.hpp"
#include "gate/app/ended.hpp"
#include "gate/app/probing.hpp"
#include "gate/app/profile_files.hpp"
#include "gate/app/profile_page.hpp"
#include "gate/app/session.hpp"
#include "gate/app/two_sides.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/observed/timeline.hpp"
#include "gate/observed/totals.hpp"
#include "gate/probes/events.h"
#include "gate/probes/read/fit.hpp"
#include "gate/probes/read/timeline.hpp"
#include "gate/report/chrome_trace.hpp"
#include "gate/report/hiding.hpp"
#include "gate/report/observed_text.hpp"
#include "gate/report/profile_text.hpp"
#include "gate/report/timeline_text.hpp"
#include "gate/run/environment.hpp"
#include "gate/run/journal.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

struct ProfileOptions {
  CommonOptions common;
  std::string what;                    // a file, a folder or a cell
  std::vector<std::string> command{};  // behind "--"
  std::vector<std::string> probes;     // empty: those that fit
  std::string timing = "batched";
  std::string trace;  // where it goes; "" for the profile's own folder
  ProfilePage page;
  double timeout = 600;
  std::uint64_t events_mib = 256;
  std::size_t top = 20;
  std::string by = "kernel";
  bool keep = false;
  std::vector<std::string> given{};  // those of the options below that were on the command line
};

// Where one profile lies.
struct Place {
  std::string folder;  // absolute
  [[nodiscard]] std::string events() const { return folder + "/probes"; }
  [[nodiscard]] std::string out() const { return folder + "/out"; }  // {out}; removed after
};

struct Target {
  sys::ProcessSpec spec;
  std::vector<std::string> probes;
  bool on_twin = false;  // its times mean nothing
  config::Veil veil;     // of a cell
};

// Those that see something in the program, of what is installed; all that are where its file tells
// nothing (a script).
std::vector<std::string> fitting_probes(const std::string& program, const sys::Files& files,
                                        run::Probing& probing, const std::string& folder) {
  std::vector<std::string> installed;
  for (const auto& [name, devices] : probes::probe_devices()) {
    if (probing.attach(std::vector{name}, folder, nullptr)) installed.push_back(name);
  }
  const auto facts = probes::look_at_program(program, files, [](std::string_view variable) {
    return sys::environment_value(std::string(variable));
  });
  if (!facts) return installed;
  std::vector<std::string> out;
  for (const probes::Fit& fit : probes::judge_fit(*facts, installed)) {
    if (fit.state == probes::Fit::State::sees || fit.state == probes::Fit::State::perhaps) {
      out.push_back(fit.probe);
    }
  }
  return out;
}

Result<Target> target_of_command(const ProfileOptions& options, const sys::Files& files) {
  Target target;
  WEIR_TRY(target.spec, command_spec(options.command, options.timeout, files));
  return target;
}

// The longest of the cell's counted command lines.
Result<Target> target_of_cell(const ProfileOptions& options, const Place& place,
                              sys::Files& files) {
  CommonOptions common = options.common;
  common.cells = {options.what};
  MeasureOptions wanted;
  wanted.plan.times = false;
  wanted.plan.instruction_processes = 0;  // nothing is attached to those
  Target target;
  WEIR_TRY(Loaded loaded, load_config(common, files));
  target.veil = loaded.veil;
  for (const config::Cell& cell : loaded.cells) {
    if (!cell.engine->server) continue;
    return fail(Code::usage,
                "{} is a server's, which weir profile does not send prompts to\n"
                "  weir run measures it, and weir profile RUN shows all that it saw",
                target.veil.cell_name(cell.key.str()));
  }
  WEIR_TRY(const auto commands, planned_commands(std::move(loaded), common, wanted,
                                                 {place.out(), place.events()}, files));
  if (commands.empty()) {
    return fail(Code::usage, "nothing would be counted in {}", target.veil.text(options.what));
  }
  for (const PlannedCommand& command : commands) {
    if (command.cell == commands.back().cell) continue;
    return fail(Code::usage, "\"{}\" names more than one cell: {} and {}",
                target.veil.text(options.what), target.veil.cell_name(command.cell),
                target.veil.cell_name(commands.back().cell));
  }
  const PlannedCommand& longest = *std::max_element(
      commands.begin(), commands.end(),
      [](const PlannedCommand& a, const PlannedCommand& b) { return a.length < b.length; });
  if (longest.in_container) {
    return fail(Code::usage,
                "{} runs in a container, where weir profile does not reach; weir run counts there",
                target.veil.cell_name(longest.cell));
  }
  target.spec.argv = longest.argv;
  target.spec.env = longest.env;
  target.spec.folder = longest.folder;
  target.spec.timeout_seconds = longest.timeout_seconds;
  target.spec.output_limit = longest.output_limit;
  target.probes = longest.probes;
  target.on_twin = longest.on_twin;
  return target;
}

// Names and values on top of `spec`'s own, so that probes write events into `folder`.
Result<void> attach(const ProfileOptions& options, run::Probing& probing, const std::string& folder,
                    Target* target) {
  WEIR_TRY(config::Environment added, probing.attach(target->probes, folder, nullptr));
  added[WEIR_PROBE_EVENTS_VARIABLE] = fmt::format("{}", options.events_mib);
  if (options.timing != "off" && !target->on_twin)
    added[WEIR_PROBE_TIMING_VARIABLE] = options.timing;
  // An engine's own marks: here with command buffers and each dispatch.
  const auto marks = added.find("WEIR_PROFILE");
  if (marks != added.end()) marks->second = "counts,ops,cb,dispatch";
  config::Environment own;
  for (const auto& [name, value] : target->spec.env) own[name] = value;
  // ggml names its pipelines when it is asked to.
  own.try_emplace("GGML_VK_DEBUG_MARKERS", "1");
  target->spec.env = run::merge_environment(sys::own_environment(), own, added);
  return {};
}

// The page's command: `command`, as a config hides it; empty for what was recorded before.
Result<void> write_page(const ProfileOptions& options, std::vector<std::string> command,
                        const observed::Timeline& timeline, sys::Files& files) {
  if (options.page.file.empty()) return {};
  ProfilePage page = options.page;
  page.command = std::move(command);
  page.by = options.by == "op" ? observed::By::op : observed::By::kernel;
  WEIR_TRY(const std::string frame, page_template(files));
  WEIR_CHECK(write_profile_page(page, frame, timeline, files));
  answer(options.common, fmt::format("\npage {} (open it in a browser)\n", page.file));
  return {};
}

Result<ExitCode> show_outcome(const ProfileOptions& options, observed::Timeline timeline,
                              const std::string& trace_file, std::vector<std::string> command,
                              sys::Files& files) {
  observed::align(timeline);
  answer(options.common,
         report::timeline_text(
             timeline, {.width = width_of(answer_stream(options.common)),
                        .most_rows = options.top,
                        .by = options.by == "op" ? observed::By::op : observed::By::kernel}));
  WEIR_CHECK(write_json(options.common, dump_json(report::timeline_json(timeline), 1) + "\n"));
  if (!trace_file.empty()) {
    WEIR_CHECK(files.write_atomic(trace_file, report::chrome_trace(timeline)));
    answer(
        options.common,
        fmt::format("\ntrace {} (open it in ui.perfetto.dev or chrome://tracing)\n", trace_file));
  }
  WEIR_CHECK(write_page(options, std::move(command), timeline, files));
  return timeline.processes.empty() ? ExitCode::unmeasured : ExitCode::pass;
}

Result<ExitCode> run_target(const ProfileOptions& options, Target target, const Place& place,
                            sys::Files& files) {
  const sys::Interrupts interrupts;
  WEIR_TRY(const auto probing, make_probing(files));
  if (!options.probes.empty()) {
    target.probes = options.probes;
  } else if (target.probes.empty()) {
    target.probes = fitting_probes(target.spec.argv.front(), files, *probing, place.events());
  }
  const std::string program = target.veil.text(target.spec.argv.front());
  if (target.probes.empty()) {
    return fail(Code::unavailable, "no probe can see {}: weir doctor {} says why", program,
                program);
  }
  WEIR_CHECK(attach(options, *probing, place.events(), &target));
  talk(options.common,
       fmt::format("running {} with {}", sys::file_name_of(program), text::join(target.probes)));
  sys::RealProcesses processes;
  WEIR_TRY(const sys::Finished finished, processes.run(target.spec, interrupts.stop()));
  if (finished.ended == sys::HowEnded::interrupted) return fail(Code::interrupted, "interrupted");
  const std::string failed = ended_words(finished, target.spec);
  WEIR_TRY(observed::Timeline timeline, probes::collect_timeline(files, place.events()));
  // What could not be read is kept: it is all there is.
  if (!options.keep && timeline.unread == 0) (void)files.remove_tree(place.events());
  (void)files.remove_tree(place.out());
  for (observed::Process& process : timeline.processes) {
    process.name = target.veil.text(process.name);
  }
  for (std::string& warning : timeline.warnings) warning = target.veil.text(warning);
  if (target.on_twin) {
    timeline.warnings.emplace_back("a twin runs nothing: device work is counted without times");
  }
  if (!failed.empty()) {
    for (const std::string& line : text::lines(text::printable(finished.err))) {
      talk(options.common, "| " + target.veil.text(line));
    }
    timeline.warnings.insert(timeline.warnings.begin(), failed);
  } else if (timeline.processes.empty()) {
    timeline.warnings.insert(timeline.warnings.begin(),
                             "the probes saw nothing: weir doctor says what they can see");
  }
  const std::string trace = options.trace.empty() ? place.folder + "/trace.json" : options.trace;
  std::vector<std::string> command = target.spec.argv;
  for (std::string& word : command) word = target.veil.text(word);
  WEIR_TRY(const ExitCode shown,
           show_outcome(options, std::move(timeline), trace, std::move(command), files));
  return failed.empty() ? shown : ExitCode::unmeasured;
}

void add_doubts(std::vector<std::string>& warnings, const std::vector<std::string>& doubts) {
  for (const std::string& doubt : doubts) {
    if (std::find(warnings.begin(), warnings.end(), doubt) == warnings.end()) {
      warnings.push_back(doubt);
    }
  }
}

// What an engine or a profiler wrote.
Result<ExitCode> show_observed(const ProfileOptions& options, observed::Observed observed,
                               const observed::ObservedMoments& moments, sys::Files& files) {
  const bool trace = !moments.rows.empty();
  if (!options.trace.empty()) {
    return fail(Code::usage, "--trace: {} {}", options.what,
                trace ? "is a Chrome trace already"
                      : "holds totals, no moments: no trace can be made of it");
  }
  add_doubts(observed.warnings, observed::cross_checks(observed));
  report::ObservedStyle style;
  style.width = static_cast<std::size_t>(width_of(answer_stream(options.common)));
  style.most_rows = options.top;
  (void)report::set_grouping(style, options.by);
  answer(options.common, report::observed_text(observed, style));
  const Json json = observed::to_json(report::without_private(observed, options.page.privacy));
  WEIR_CHECK(write_json(options.common, dump_json(json, 1) + "\n"));
  if (options.page.file.empty()) return ExitCode::pass;
  ProfilePage page = options.page;
  page.title = sys::file_name_of(options.what);
  WEIR_TRY(const std::string frame, page_template(files));
  WEIR_CHECK(
      write_observed_page(page, style.by, frame, observed, trace ? &moments : nullptr, files));
  answer(options.common, fmt::format("\npage {} (open it in a browser)\n", page.file));
  return ExitCode::pass;
}

// Of what the probes saw, work has two names.
Result<void> check_grouping(const ProfileOptions& options) {
  if (options.by == "kernel" || options.by == "op") return {};
  return fail(
      Code::usage,
      "--by {} is for what an engine or a profiler wrote; what probes see goes by kernel or op",
      options.by);
}

// Profiles that weir measured itself. An error in one was told when it was made.
Result<ExitCode> show_measured(const ProfileOptions& options,
                               std::vector<profile::Profile> profiles) {
  for (profile::Profile& profile : profiles) {
    add_doubts(profile.warnings, profile::cross_checks(profile));
  }
  answer(options.common,
         report::profiles_text(
             profiles, {.width = width_of(answer_stream(options.common)), .verbose = true}));
  WEIR_CHECK(write_profiles(options.common, profiles));
  return ExitCode::pass;
}

// A run, a folder of probe files, profiles as weir writes them, or what others wrote.
Result<ExitCode> show_file(const ProfileOptions& options, sys::Files& files) {
  const bool folder = files.kind(options.what) == sys::Kind::folder;
  const auto refuse = [&](std::initializer_list<std::string_view> fitting) -> Result<void> {
    for (const std::string& given : options.given) {
      if (std::find(fitting.begin(), fitting.end(), given) != fitting.end()) continue;
      return fail(Code::usage, "{} does not apply to {}: it was recorded before", given,
                  options.what);
    }
    return {};
  };
  if (holds_run(options.what, files)) {
    WEIR_CHECK(refuse({}));
    std::optional<Measured> run;
    WEIR_TRY(ProfileFile read, read_side(options.common, options.what, files, run));
    return show_measured(options, std::move(read.profiles));
  }
  if (folder) {
    WEIR_CHECK(refuse({"--trace", "--top", "--by", "--html", "--show-private"}));
    WEIR_CHECK(check_grouping(options));
    WEIR_TRY(observed::Timeline timeline, probes::collect_timeline(files, options.what));
    return show_outcome(options, std::move(timeline), options.trace, {}, files);
  }
  // What fits no file is said without reading it.
  WEIR_CHECK(refuse({"--top", "--by", "--html", "--show-private", "--trace"}));
  observed::ObservedMoments moments;
  const bool asked = !options.page.file.empty() || !options.trace.empty();
  WEIR_TRY(ProfileFile read, read_profile_file(options.what, files, adapters::k_most_read,
                                               asked ? &moments : nullptr));
  if (read.observed) return show_observed(options, std::move(*read.observed), moments, files);
  WEIR_CHECK(refuse({}));
  return show_measured(options, std::move(read.profiles));
}

Result<void> check_place(const char* option, const std::string& file, const sys::Files& files) {
  if (file.empty()) return {};
  const std::string folder = sys::folder_of(sys::absolute(file));
  if (files.kind(folder) == sys::Kind::folder && files.writable(folder)) return {};
  return fail(Code::usage, "{} {}: {} is no folder that can be written to", option, file, folder);
}

// What can be wrong with the options alone.
Result<void> check_options(const ProfileOptions& options, const sys::Files& files) {
  if (options.what.empty() == options.command.empty()) {
    return fail(Code::usage,
                "weir profile takes a FILE, a CELL, or a program behind --\n"
                "  weir profile -- llama-bench -m model.gguf -n 16");
  }
  for (const std::string& probe : options.probes) {
    if (probe != "instructions") continue;
    return fail(Code::usage, "--probes instructions: those are counted by weir run, not profiled");
  }
  WEIR_CHECK(check_place("--trace", options.trace, files));
  if (options.page.file.empty()) {
    const bool json = options.common.json.has_value() && options.command.empty();
    if (options.page.privacy == report::Private::hidden || json) return {};
    return fail(Code::usage,
                "--show-private is for a page: --html FILE, or for --json of what others wrote");
  }
  WEIR_CHECK(check_place("--html", options.page.file, files));
  WEIR_TRY([[maybe_unused]] const std::string frame, page_template(files));
  return {};
}

Result<ExitCode> profile(const ProfileOptions& options) {
  sys::RealFiles files;
  WEIR_CHECK(check_options(options, files));
  const bool is_command = !options.command.empty();
  if (!is_command && files.exists(options.what)) return show_file(options, files);
  WEIR_CHECK(check_grouping(options));
  for (const std::string& given : options.given) {
    if (is_command || given != "--timeout") continue;
    return fail(Code::usage, "--timeout is for a program behind --: a cell has its engine's own");
  }
  Place place;
  WEIR_TRY(place.folder, run::make_run_folder(files, sys::join_path(options.common.out, "profiles"),
                                              sys::RealClock().now()));
  place.folder = sys::absolute(place.folder);
  WEIR_CHECK(files.make_dirs(place.events()));
  WEIR_CHECK(files.make_dirs(place.out()));
  auto target =
      is_command ? target_of_command(options, files) : target_of_cell(options, place, files);
  if (!target) {
    (void)files.remove_tree(place.folder);
    return tl::unexpected(std::move(target).error());
  }
  return run_target(options, std::move(*target), place, files);
}

}  // namespace

void add_profile(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "profile", "One program once, with all that probes see: a table and a Chrome trace");
  auto options = std::make_shared<ProfileOptions>();
  add_common(*verb, options->common, Takes::config);
  verb->add_option(
          "what", options->what,
          "A cell of weir.yaml, a run's folder, a folder of probe files, a file of weir run "
          "--json, or what an engine or profiler wrote")
      ->type_name("FILE|RUN|CELL");
  verb->add_option("--probes", options->probes, "Which to attach (default: those that fit)")
      ->delimiter(',')
      ->type_name("NAME,…");
  verb->add_option("--timing", options->timing,
                   "Device times: of what lies between two barriers (batched), of each command "
                   "alone (serialized), or none (off)")
      ->check(CLI::IsMember({"batched", "serialized", "off"}))
      ->capture_default_str();
  verb->add_option("--trace", options->trace, "Where the Chrome trace goes")->type_name("FILE");
  verb->add_option("--html", options->page.file,
                   "Where a page goes that anybody can open: timeline, statistics, machine")
      ->type_name("FILE");
  verb->add_flag_callback(
      "--show-private", [options] { options->page.privacy = report::Private::shown; },
      "Leave paths, prompts and hosts in the page, and in the JSON of what others wrote");
  verb->add_option("--top", options->top, "Rows of each table")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  verb->add_option(
          "--by", options->by,
          "Name device work by kernel, or by the engine's op; of what others wrote also by "
          "shape, backend, layer, …")
      ->check(CLI::IsMember(report::observed_groupings()))
      ->capture_default_str();
  verb->add_option("--timeout", options->timeout, "Seconds until a COMMAND is stopped")
      ->check(CLI::Range(1.0, 86'400.0))
      ->capture_default_str();
  verb->add_option("--events", options->events_mib, "MiB of events for each process")
      ->check(CLI::Range(std::uint64_t{1}, probes::k_most_events_mib))
      ->capture_default_str();
  verb->add_flag("--keep", options->keep, "Keep the probes' own files");
  verb->footer(
      "Examples:\n  weir profile llama.cpp/tiny-llama/vulkan/decode\n"
      "  weir profile -- llama-bench -m model.gguf -n 16\n"
      "  weir profile --html profile.html -- llama-bench -m model.gguf -n 16\n"
      "  weir profile --timing serialized --trace t.json -- ./my-engine\n"
      "  weir profile weir-out/20261120-0930      all that a run measured\n"
      "  weir profile engine.stderr.txt             as GGML_VK_PERF_LOGGER=1 prints it\n"
      "  weir profile --html page.html trace.json   of PyTorch, rocprof, …");
  set_action_with_words(*verb, [verb, options] {
    options->command = words_behind();
    for (const char* name : {"--probes", "--timing", "--trace", "--html", "--show-private", "--top",
                             "--by", "--timeout", "--events", "--keep"}) {
      if (verb->count(name) != 0) options->given.emplace_back(name);
    }
    return profile(*options);
  });
}

}  // namespace weir::app

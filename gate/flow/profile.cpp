// weir profile: runs a program or a cell once with all fitting probes, or shows a recorded profile.
#include "gate/flow/profile.hpp"

#include <ctime>

#include <fmt/chrono.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/newest_run.hpp"
#include "gate/flow/profile_files.hpp"
#include "gate/flow/program.hpp"
#include "gate/observed/totals.hpp"
#include "gate/probes/events.h"
#include "gate/probes/read/timeline.hpp"
#include "gate/probes/twin/blob.h"
#include "gate/probes/twin/runtime/blob.h"
#include "gate/report/observed_page.hpp"
#include "gate/report/observed_tables.hpp"
#include "gate/report/observed_text.hpp"
#include "gate/report/profile_text.hpp"
#include "gate/report/timeline_document.hpp"
#include "gate/report/timeline_text.hpp"
#include "gate/report/timeline_tracks.hpp"
#include "gate/site/site.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::flow {
namespace {

// Returns the title and the facts on a profile's page. An empty `command` means recorded earlier:
// then nothing about the machine and the time is known.
report::PageFacts page_facts(const Job& job, const ProfilePage& page, std::string title,
                             const std::vector<std::string>& command) {
  report::PageFacts facts;
  facts.title = title.empty() ? "profile" : std::move(title);
  if (!command.empty()) {
    facts.facts.emplace_back("command", report::shown_command(command, page.privacy));
    facts.facts.emplace_back("machine", sys::read_machine(job.files()).name());
    const auto measured_at = static_cast<std::time_t>(job.world.clock.now());
    facts.facts.emplace_back("measured",
                             fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(measured_at)));
  }
  facts.facts.emplace_back("weir", k_version);
  return facts;
}

// Reads the page's template. Code::unavailable if the pages are not installed: check before
// anything runs.
Result<std::string> page_template(const sys::Files& files) {
  return site::read_page(files, sys::own_program_path(), "profile.html");
}

// Makes the page of a timeline, with private places hidden unless the options show them.
report::TimelineDocument make_page(const Job& job, const ProfileOptions& options,
                                   const observed::Timeline& timeline,
                                   const std::vector<std::string>& command) {
  observed::Timeline redacted_timeline = timeline;
  if (options.page.privacy == report::PrivateWords::hidden) {
    for (std::string& warning : redacted_timeline.warnings)
      warning = report::without_places(warning);
    for (observed::Process& process : redacted_timeline.processes) {
      process.name = report::without_places(process.name);
    }
  }
  const auto& processes = timeline.processes;
  report::PageFacts facts =
      page_facts(job, options.page,
                 processes.empty() ? "" : report::without_places(processes.front().name), command);
  // The page sums up by kernel and by op itself; other groups need a table.
  if (options.by != "kernel" && options.by != "op") {
    observed::Observed rows = observed::to_observed(redacted_timeline);
    if (options.peak) observed::compare_with_peak(rows, *options.peak);
    facts.tables.push_back(report::table_by(rows, options.by));
  }
  return report::timeline_document(redacted_timeline, std::move(facts),
                                   options.by == "op" ? observed::By::op : observed::By::kernel);
}

// Writes the page whole or not at all, and adds its place to the answer.
Result<void> write_page(const Job& job, const std::string& file,
                        const report::TimelineDocument& page, Answer& answer) {
  WEIR_TRY(const std::string frame, page_template(job.files()));
  WEIR_TRY(const std::string text, report::timeline_page(frame, page));
  WEIR_CHECK(job.files().write_atomic(file, text));
  answer.text += fmt::format("\npage {} (open it in a browser)\n", file);
  return {};
}

// The folder of one profile.
struct ProfileFolder {
  std::string folder;  // absolute
  [[nodiscard]] std::string events() const { return folder + "/probes"; }
  [[nodiscard]] std::string out() const { return folder + "/out"; }  // {out}; removed after
};

// A program to profile: a command, or a cell's.
struct Target {
  sys::ProcessSpec spec;
  std::vector<std::string> probes;
  bool on_twin = false;       // on a device twin, where times mean nothing
  config::Redactor redactor;  // from the cell's configuration
};

// Returns the longest of the cell's counted command lines. Fails with Code::usage for a server, a
// container, or several cells.
Result<Target> find_cell_target(const Job& job, const ProfileOptions& options,
                                const ProfileFolder& profile_folder) {
  Job cell_job = job;
  cell_job.selection.cells = {options.what};
  MeasureOptions wanted;
  wanted.plan.times = false;
  wanted.plan.instruction_processes = 0;  // nothing is attached to those
  Target target;
  WEIR_TRY(LoadedConfig loaded, load_config(cell_job));
  target.redactor = loaded.configuration.redactor;
  for (const config::Cell& cell : loaded.cells) {
    if (!cell.engine->server) continue;
    return fail(Code::usage,
                "{} is a server's, which weir profile does not send prompts to\n"
                "  weir run measures it, and weir profile RUN shows all that it saw",
                target.redactor.cell_name(cell.key.str()));
  }
  WEIR_TRY(const PlannedCommands planned,
           planned_commands(std::move(loaded), cell_job, wanted,
                            {profile_folder.out(), profile_folder.events()}));
  const std::vector<PlannedCommand>& commands = planned.commands;
  if (commands.empty()) {
    const std::string why = planned.unavailable.empty() ? "" : planned.unavailable.begin()->second;
    return fail(Code::usage, "nothing would be counted in {}{}", target.redactor.text(options.what),
                text::prefix_if_any(": ", target.redactor.text(why)));
  }
  for (const PlannedCommand& command : commands) {
    if (command.cell == commands.back().cell) continue;
    return fail(Code::usage, "\"{}\" names more than one cell: {} and {}",
                target.redactor.text(options.what), target.redactor.cell_name(command.cell),
                target.redactor.cell_name(commands.back().cell));
  }
  const PlannedCommand& longest = *std::ranges::max_element(commands, {}, &PlannedCommand::length);
  if (longest.in_container) {
    return fail(Code::usage,
                "{} runs in a container, where weir profile does not reach; weir run counts there",
                target.redactor.cell_name(longest.cell));
  }
  target.spec = longest.spec;
  target.probes = longest.probes;
  target.on_twin = longest.on_twin;
  return target;
}

Result<Target> find_command_target(const Job& job, const ProfileOptions& options) {
  Target target;
  WEIR_TRY_SET(target.spec, command_spec(job, options.trailing_arguments, options.timeout));
  target.on_twin = names_twin(options.trailing_arguments, job.world.environment);
  return target;
}

// Makes the target's probes (libraries in the engine) write events, and times unless it runs on a
// device twin, into `folder`.
Result<void> attach_event_probes(const ProfileOptions& options, run::Probing& probing,
                                 const std::string& folder, Target* target) {
  config::Environment environment{
      {WEIR_PROBE_EVENTS_VARIABLE, fmt::format("{}", options.events_mib)}};
  if (options.timing != "off" && !target->on_twin)
    environment[WEIR_PROBE_TIMING_VARIABLE] = options.timing;
  // The ggml probe leaves to another probe the backends that the other one times.
  std::vector<std::string> timed;
  for (const std::string& probe : target->probes) {
    const unit::DeviceApi* api = unit::find_device_api(probe);
    if (api != nullptr && !api->timed_backend.empty()) timed.emplace_back(api->timed_backend);
    // The engine's own marks, here for command buffers and for each dispatch.
    if (probe == "instrument") environment["WEIR_PROFILE"] = "counts,ops,cb,dispatch";
  }
  environment[WEIR_PROBE_TIMED_VARIABLE] = text::join(timed, ",");
  return attach_probes(probing, target->probes, folder, environment, target->spec);
}

// Returns the answer for a timeline, and writes its trace and its page where requested. `command`
// is redacted; empty for a recorded timeline.
Result<Answer> show_timeline(const Job& job, const ProfileOptions& options,
                             observed::Timeline timeline, const std::string& trace_file,
                             const std::vector<std::string>& command) {
  observed::align(timeline);
  Answer answer{report::timeline_text(timeline, {.width = job.width(),
                                                 .max_rows = options.top,
                                                 .by = options.by,
                                                 .peak = options.peak.get()}),
                json_document(report::timeline_json(timeline)),
                timeline.processes.empty() ? ExitCode::unmeasured : ExitCode::pass};
  if (!trace_file.empty()) {
    WEIR_CHECK(job.files().write_atomic(trace_file, report::chrome_trace(timeline)));
    answer.text +=
        fmt::format("\ntrace {} (open it in ui.perfetto.dev or chrome://tracing)\n", trace_file);
  }
  if (options.page.file.empty()) return answer;
  WEIR_CHECK(
      write_page(job, options.page.file, make_page(job, options, timeline, command), answer));
  return answer;
}

// Removes the times of device work: a device twin (simulated GPU) computes nothing, so they mean
// nothing.
void remove_device_times(observed::Timeline& timeline) {
  for (observed::Process& process : timeline.processes) {
    for (observed::Submission& submission : process.submissions) {
      for (observed::BufferWork& buffer : submission.buffers) {
        buffer.device.reset();
        buffer.groups.clear();
      }
    }
    for (observed::LoneCommand& command : process.commands) command.device.reset();
  }
  timeline.warnings.emplace_back("a twin runs nothing: device work is counted without times");
}

// Adds those warnings that are not in the list yet.
void add_warnings(std::vector<std::string>& warnings, const std::vector<std::string>& additions) {
  for (const std::string& addition : additions) {
    if (!holds(warnings, addition)) warnings.push_back(addition);
  }
}

// Shows a profile that an engine or a profiler wrote.
Result<Answer> show_observed(const Job& job, const ProfileOptions& options,
                             observed::Observed observed,
                             const observed::ObservedMoments& moments) {
  const bool is_trace = !moments.rows.empty();
  if (!options.trace.empty()) {
    return fail(Code::usage, "--trace: {} {}", options.what,
                is_trace ? "is a Chrome trace already"
                         : "holds totals, no moments: no trace can be made of it");
  }
  add_warnings(observed.warnings, observed::cross_checks(observed));
  if (options.peak) observed::compare_with_peak(observed, *options.peak);
  report::ObservedStyle style;
  style.width = static_cast<std::size_t>(job.width());
  style.max_rows = options.top;
  (void)report::set_grouping(style, options.by);
  Answer answer{
      report::observed_text(observed, style),
      json_document(write_fields(report::without_private(observed, options.page.privacy)))};
  if (options.page.file.empty()) return answer;
  // The file may come from another machine, so the page says nothing about this one.
  report::PageFacts facts = page_facts(job, options.page, sys::file_name_of(options.what), {});
  WEIR_CHECK(write_page(job, options.page.file,
                        report::observed_page(observed, is_trace ? &moments : nullptr,
                                              std::move(facts), {options.page.privacy, style.by}),
                        answer));
  return answer;
}

// Returns the profile that the program printed itself, for a program in which the probes saw
// nothing. Nothing on a device twin, where its times mean nothing, or if a trace is requested.
std::optional<observed::Observed> printed_profile(const ProfileOptions& options,
                                                  const Target& target,
                                                  const sys::Finished& finished) {
  if (target.on_twin || !options.trace.empty()) return std::nullopt;
  auto printed =
      read_printed(target.redactor.text(finished.out), target.redactor.text(finished.err));
  if (!printed) return std::nullopt;
  printed->warnings.insert(printed->warnings.begin(),
                           "the probes saw nothing: this is what the program printed by itself");
  return std::move(*printed);
}

// Says why ggml may have found no Vulkan device; "" if one got work, or if no probe would have seen
// it.
std::string describe_hidden_devices(const Job& job, const Target& target,
                                    const observed::Timeline& timeline) {
  constexpr const char* k_variable = "GGML_VK_VISIBLE_DEVICES";
  if (!holds(target.probes, "ggml") || !holds(target.probes, "vulkan")) return "";
  const bool has_work = std::ranges::any_of(
      timeline.processes, [](const auto& process) { return !process.submissions.empty(); });
  if (has_work || timeline.processes.empty()) return "";
  const std::string value = job.variable(k_variable);
  if (value.empty()) {
    return fmt::format(
        "no Vulkan device got work: without {0} ggml leaves devices that are CPUs out; {0}=0 takes "
        "the first device",
        k_variable);
  }
  return fmt::format("no Vulkan device got work: {}={} lets ggml see no other", k_variable,
                     text::printable(value));
}

// Runs the target with its probes, and shows the timeline that they recorded.
Result<Answer> run_target(const Job& job, const ProfileOptions& options, Target target,
                          const ProfileFolder& profile_folder) {
  const sys::Interrupts interrupts;
  WEIR_TRY(const auto probing, make_probing(job.world));
  if (!options.probes.empty()) {
    target.probes = options.probes;
  } else if (target.probes.empty()) {
    target.probes =
        fitting_probes(job, target.spec.argv.front(), *probing, profile_folder.events());
  }
  const std::string program = target.redactor.text(target.spec.argv.front());
  if (target.probes.empty()) {
    return fail(Code::unavailable, "no probe can see {}: weir doctor {} says why", program,
                program);
  }
  WEIR_CHECK(attach_event_probes(options, *probing, profile_folder.events(), &target));
  job.log(fmt::format("running {} with {}", sys::file_name_of(program), text::join(target.probes)));
  WEIR_TRY(const sys::Finished finished, run_program(job.world, target.spec, interrupts.stop()));
  const std::string failure = failure_text(finished, target.spec);
  WEIR_TRY(observed::Timeline timeline,
           probes::collect_timeline(job.files(), profile_folder.events()));
  // Probe files that could not be read are kept, as nothing else is left of the run.
  if (!options.keep && timeline.unread == 0) (void)job.files().remove_tree(profile_folder.events());
  (void)job.files().remove_tree(profile_folder.out());
  for (observed::Process& process : timeline.processes) {
    process.name = target.redactor.text(process.name);
  }
  for (std::string& warning : timeline.warnings) warning = target.redactor.text(warning);
  if (target.on_twin) remove_device_times(timeline);
  if (!failure.empty()) {
    talk_output(job, target.redactor.text(sys::error_output(finished)));
    timeline.warnings.insert(timeline.warnings.begin(), failure);
  } else if (timeline.processes.empty()) {
    timeline.warnings.insert(timeline.warnings.begin(),
                             "the probes saw nothing: weir doctor says what they can see");
  }
  if (const std::string hidden = describe_hidden_devices(job, target, timeline); !hidden.empty()) {
    timeline.warnings.push_back(hidden);
  }
  if (failure.empty() && timeline.processes.empty() && timeline.unread == 0) {
    if (auto own_profile = printed_profile(options, target, finished)) {
      if (!options.keep) (void)job.files().remove_tree(profile_folder.folder);
      ProfileOptions printed_options = options;
      printed_options.what = sys::file_name_of(program);
      return show_observed(job, printed_options, std::move(*own_profile), {});
    }
  }
  const std::string trace =
      options.trace.empty() ? profile_folder.folder + "/trace.json" : options.trace;
  std::vector<std::string> command = target.spec.argv;
  for (std::string& word : command) word = target.redactor.text(word);
  WEIR_TRY(Answer answer, show_timeline(job, options, std::move(timeline), trace, command));
  if (!failure.empty()) answer.code = ExitCode::unmeasured;
  return answer;
}

// Shows profiles that weir measured. Their errors were reported when they were measured.
Answer show_measured(const Job& job, std::vector<profile::Profile> profiles) {
  for (profile::Profile& profile : profiles) {
    add_warnings(profile.warnings, profile::cross_checks(profile));
  }
  Answer answer = profiles_answer(
      report::profiles_text(profiles, {.width = job.width(), .verbose = true}), profiles);
  answer.code = ExitCode::pass;
  return answer;
}

// Shows a run, a folder of probe files, profiles as weir writes them, or output of other profilers.
Result<Answer> show_file(const Job& job, const ProfileOptions& options) {
  const sys::Files& files = job.files();
  const bool is_folder = files.kind(options.what) == sys::Kind::folder;
  const auto refuse_except = [&](std::initializer_list<std::string_view> fitting) -> Result<void> {
    for (const std::string& option : options.given) {
      if (holds(fitting, option)) continue;
      return fail(Code::usage, "{} does not apply to {}: it was recorded before", option,
                  options.what);
    }
    return {};
  };
  if (holds_run(options.what, files)) {
    WEIR_CHECK(refuse_except({}));
    std::optional<MeasuredRun> run;
    WEIR_TRY(ProfileFile file, read_profiles(job, options.what, run));
    return show_measured(job, std::move(file.profiles));
  }
  if (is_folder) {
    WEIR_CHECK(refuse_except({"--trace", "--top", "--by", "--peak", "--html", "--show-private"}));
    WEIR_TRY(observed::Timeline timeline, probes::collect_timeline(files, options.what));
    return show_timeline(job, options, std::move(timeline), options.trace, {});
  }
  // Options that fit no file are refused before it is read.
  WEIR_CHECK(refuse_except({"--top", "--by", "--peak", "--html", "--show-private", "--trace"}));
  observed::ObservedMoments moments;
  const bool needs_moments = !options.page.file.empty() || !options.trace.empty();
  WEIR_TRY(ProfileFile file, read_profile_file(options.what, files, adapters::k_max_read_bytes,
                                               needs_moments ? &moments : nullptr));
  if (file.observed) return show_observed(job, options, std::move(*file.observed), moments);
  WEIR_CHECK(refuse_except({}));
  return show_measured(job, std::move(file.profiles));
}

// Fails with the first problem that the options have by themselves.
Result<void> check_options(const Job& job, const ProfileOptions& options) {
  const sys::Files& files = job.files();
  const bool has_name = !options.what.empty(), has_program = !options.trailing_arguments.empty();
  if (has_name == has_program) {
    return fail(Code::usage,
                "weir profile takes a FILE, a CELL, or a program after --\n"
                "  weir profile -- llama-bench -m model.gguf -n 16");
  }
  if (holds(options.probes, "instructions")) {
    return fail(Code::usage, "--probes instructions: those are counted by weir run, not profiled");
  }
  WEIR_CHECK(check_place("--trace", options.trace, files));
  if (options.page.file.empty()) {
    const bool is_json = job.output.json.has_value() && options.trailing_arguments.empty();
    if (options.page.privacy == report::PrivateWords::hidden || is_json) return {};
    return fail(Code::usage,
                "--show-private is for a page: --html FILE, or for --json of what others wrote");
  }
  WEIR_CHECK(check_place("--html", options.page.file, files));
  WEIR_CHECK(page_template(files));
  return {};
}

}  // namespace

bool names_twin(const std::vector<std::string>& words, const Variables& variables) {
  for (const std::string name : {WEIR_TWIN_VARIABLE, WEIR_RUNTIME_TWIN_VARIABLE}) {
    const auto sets_variable = [&](const std::string& word) {
      return word.find(name + "=") != std::string::npos;
    };
    if (!variables(name).value_or("").empty() || std::ranges::any_of(words, sets_variable))
      return true;
  }
  return false;
}

// Profiles a program or a cell, or shows a recorded profile.
Result<Answer> profile(const Job& job, const ProfileOptions& given_options) {
  WEIR_CHECK(check_options(job, given_options));
  ProfileOptions options = given_options;
  if (!options.peak_file.empty()) {
    if (!options.page.file.empty() && (options.by == "kernel" || options.by == "op")) {
      return fail(Code::usage, "--peak on a page needs its table: --by op-shape, layer or backend");
    }
    WEIR_TRY(ProfileFile peak, read_profile_file(options.peak_file, job.files()));
    if (!peak.observed) return fail(Code::usage, "--peak {}: holds no ops", options.peak_file);
    options.peak = std::make_shared<observed::Observed>(std::move(*peak.observed));
  }
  const bool is_command = !options.trailing_arguments.empty();
  if (!is_command && job.files().exists(options.what)) return show_file(job, options);
  if (!is_command && holds(options.given, "--timeout")) {
    return fail(Code::usage, "--timeout is for a program after --: a cell has its engine's own");
  }
  const bool has_config = job.selection.config_text || job.files().exists(job.selection.config);
  if (!is_command && !has_config) {
    return fail(Code::usage,
                "{}: no such file, nor is there a {} with a cell of that name\n"
                "  a program goes after --: weir profile -- PROGRAM ARGUMENTS",
                text::printable(options.what), job.selection.config);
  }
  WEIR_CHECK(check_runs_folder(job));
  ProfileFolder profile_folder;
  WEIR_TRY(profile_folder.folder,
           run::make_run_folder(job.files(), job.below("profiles").selection.runs_folder,
                                job.world.clock.now()));
  profile_folder.folder = sys::absolute(profile_folder.folder);
  WEIR_CHECK(job.files().make_dirs(profile_folder.events()));
  WEIR_CHECK(job.files().make_dirs(profile_folder.out()));
  auto target = is_command ? find_command_target(job, options)
                           : find_cell_target(job, options, profile_folder);
  if (!target) {
    (void)job.files().remove_tree(profile_folder.folder);
    return tl::unexpected(std::move(target).error());
  }
  return run_target(job, options, std::move(*target), profile_folder);
}

}  // namespace weir::flow

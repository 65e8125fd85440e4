#include "gate/flow/profile.hpp"

#include <ctime>

#include <fmt/chrono.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/profile_files.hpp"
#include "gate/flow/program.hpp"
#include "gate/observed/totals.hpp"
#include "gate/probes/events.h"
#include "gate/probes/read/timeline.hpp"
#include "gate/probes/twin/blob.h"
#include "gate/probes/twin/cuda/blob.h"
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

// `command`: what was run, as its config hides it; empty where it was recorded before, and then
// nothing is said of the machine and the time either.
report::PageFacts facts_of(const Job& job, const ProfilePage& page, std::string title,
                           const std::vector<std::string>& command) {
  report::PageFacts out;
  out.title = title.empty() ? "profile" : std::move(title);
  if (!command.empty()) {
    out.facts.emplace_back("command", report::shown_command(command, page.privacy));
    out.facts.emplace_back("machine", sys::read_machine(job.files()).name());
    const auto now = static_cast<std::time_t>(job.world.clock.now());
    out.facts.emplace_back("measured", fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(now)));
  }
  out.facts.emplace_back("weir", k_version);
  return out;
}

// Fails with Code::unavailable where the pages are not installed. To be asked before anything runs.
Result<std::string> page_template(const sys::Files& files) {
  return site::read_page(files, sys::own_program(), "profile.html");
}

report::TimelineDocument page_of(const Job& job, const ProfileOptions& options,
                                 const observed::Timeline& timeline,
                                 const std::vector<std::string>& command) {
  observed::Timeline shown = timeline;
  if (options.page.privacy == report::Private::hidden) {
    for (std::string& warning : shown.warnings) warning = report::without_places(warning);
    for (observed::Process& process : shown.processes) {
      process.name = report::without_places(process.name);
    }
  }
  const auto& processes = timeline.processes;
  report::PageFacts facts =
      facts_of(job, options.page,
               processes.empty() ? "" : report::without_places(processes.front().name), command);
  // By kernel and op the page adds up itself.
  if (options.by != "kernel" && options.by != "op") {
    observed::Observed rows = observed::observed_of(shown);
    if (options.peak) observed::compare_with_peak(rows, *options.peak);
    facts.tables.push_back(report::table_by(rows, options.by));
  }
  return report::timeline_document(shown, std::move(facts),
                                   options.by == "op" ? observed::By::op : observed::By::kernel);
}

// Writes the page whole or not at all, and says where.
Result<void> write_page(const Job& job, const std::string& file,
                        const report::TimelineDocument& page, Answer& answer) {
  WEIR_TRY(const std::string frame, page_template(job.files()));
  WEIR_TRY(const std::string text, report::timeline_page(frame, page));
  WEIR_CHECK(job.files().write_atomic(file, text));
  answer.text += fmt::format("\npage {} (open it in a browser)\n", file);
  return {};
}

// Where one profile lies.
struct Place {
  std::string folder;  // absolute
  [[nodiscard]] std::string events() const { return folder + "/probes"; }
  [[nodiscard]] std::string out() const { return folder + "/out"; }  // {out}; removed after
};

struct Target {
  sys::ProcessSpec spec;
  std::vector<std::string> probes;
  bool on_twin = false;       // its times mean nothing
  config::Redactor redactor;  // of a cell
};

// The longest of the cell's counted command lines.
Result<Target> target_of_cell(const Job& job, const ProfileOptions& options, const Place& place) {
  Job common = job;
  common.asked.cells = {options.what};
  MeasureOptions wanted;
  wanted.plan.times = false;
  wanted.plan.instruction_processes = 0;  // nothing is attached to those
  Target target;
  WEIR_TRY(Loaded loaded, load_config(common));
  target.redactor = loaded.known.redactor;
  for (const config::Cell& cell : loaded.cells) {
    if (!cell.engine->server) continue;
    return fail(Code::usage,
                "{} is a server's, which weir profile does not send prompts to\n"
                "  weir run measures it, and weir profile RUN shows all that it saw",
                target.redactor.cell_name(cell.key.str()));
  }
  WEIR_TRY(const auto commands,
           planned_commands(std::move(loaded), common, wanted, {place.out(), place.events()}));
  if (commands.empty()) {
    return fail(Code::usage, "nothing would be counted in {}", target.redactor.text(options.what));
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

Result<Target> target_of_command(const Job& job, const ProfileOptions& options) {
  Target target;
  WEIR_SET(target.spec, command_spec(job, options.words, options.timeout));
  target.on_twin = names_twin(options.words, job.world.environment);
  return target;
}

// So that probes write events into `folder`.
Result<void> attach(const ProfileOptions& options, run::Probing& probing, const std::string& folder,
                    Target* target) {
  config::Environment added{{WEIR_PROBE_EVENTS_VARIABLE, fmt::format("{}", options.events_mib)}};
  if (options.timing != "off" && !target->on_twin)
    added[WEIR_PROBE_TIMING_VARIABLE] = options.timing;
  // The ggml probe leaves together what another one times.
  std::vector<std::string> timed;
  for (const std::string& probe : target->probes) {
    const unit::DeviceApi* api = unit::find_device_api(probe);
    if (api != nullptr && !api->timed_backend.empty()) timed.emplace_back(api->timed_backend);
    // An engine's own marks: here with command buffers and each dispatch.
    if (probe == "instrument") added["WEIR_PROFILE"] = "counts,ops,cb,dispatch";
  }
  added[WEIR_PROBE_TIMED_VARIABLE] = text::join(timed, ",");
  return attach_probes(probing, target->probes, folder, added, target->spec);
}

// `command` is what was run, as a config hides it; empty for what was recorded before.
Result<Answer> outcome(const Job& job, const ProfileOptions& options, observed::Timeline timeline,
                       const std::string& trace_file, const std::vector<std::string>& command) {
  observed::align(timeline);
  Answer answer{report::timeline_text(timeline, {.width = job.width(),
                                                 .most_rows = options.top,
                                                 .by = options.by,
                                                 .peak = options.peak.get()}),
                document(report::timeline_json(timeline)),
                timeline.processes.empty() ? ExitCode::unmeasured : ExitCode::pass};
  if (!trace_file.empty()) {
    WEIR_CHECK(job.files().write_atomic(trace_file, report::chrome_trace(timeline)));
    answer.text +=
        fmt::format("\ntrace {} (open it in ui.perfetto.dev or chrome://tracing)\n", trace_file);
  }
  if (options.page.file.empty()) return answer;
  WEIR_CHECK(write_page(job, options.page.file, page_of(job, options, timeline, command), answer));
  return answer;
}

// A twin runs nothing: what times it were given, by itself or by marks, mean nothing.
void forget_device_times(observed::Timeline& timeline) {
  for (observed::Process& process : timeline.processes) {
    for (observed::Submission& submission : process.submissions) {
      for (observed::BufferWork& buffer : submission.buffers) {
        buffer.device.reset();
        buffer.groups.clear();
      }
    }
    for (observed::LoneCommand& lone : process.commands) lone.device.reset();
  }
  timeline.warnings.emplace_back("a twin runs nothing: device work is counted without times");
}

void add_doubts(std::vector<std::string>& warnings, const std::vector<std::string>& doubts) {
  for (const std::string& doubt : doubts) {
    if (!holds(warnings, doubt)) warnings.push_back(doubt);
  }
}

// What an engine or a profiler wrote.
Result<Answer> show_observed(const Job& job, const ProfileOptions& options,
                             observed::Observed observed,
                             const observed::ObservedMoments& moments) {
  const bool trace = !moments.rows.empty();
  if (!options.trace.empty()) {
    return fail(Code::usage, "--trace: {} {}", options.what,
                trace ? "is a Chrome trace already"
                      : "holds totals, no moments: no trace can be made of it");
  }
  add_doubts(observed.warnings, observed::cross_checks(observed));
  if (options.peak) observed::compare_with_peak(observed, *options.peak);
  report::ObservedStyle style;
  style.width = static_cast<std::size_t>(job.width());
  style.most_rows = options.top;
  (void)report::set_grouping(style, options.by);
  Answer answer{report::observed_text(observed, style),
                document(write_fields(report::without_private(observed, options.page.privacy)))};
  if (options.page.file.empty()) return answer;
  // Nothing is said of this machine, as the file was not made on it.
  report::PageFacts facts = facts_of(job, options.page, sys::file_name_of(options.what), {});
  WEIR_CHECK(write_page(job, options.page.file,
                        report::observed_page(observed, trace ? &moments : nullptr,
                                              std::move(facts), {options.page.privacy, style.by}),
                        answer));
  return answer;
}

// A program's own profile, where no probe saw it do anything and it printed one. Times of what ran
// on a twin mean nothing.
std::optional<observed::Observed> printed_profile(const ProfileOptions& options,
                                                  const Target& target,
                                                  const sys::Finished& finished) {
  if (target.on_twin || !options.trace.empty()) return std::nullopt;
  auto read = read_printed(target.redactor.text(finished.out), target.redactor.text(finished.err));
  if (!read) return std::nullopt;
  read->warnings.insert(read->warnings.begin(),
                        "the probes saw nothing: this is what the program printed by itself");
  return std::move(*read);
}

Result<Answer> run_target(const Job& job, const ProfileOptions& options, Target target,
                          const Place& place) {
  const sys::Interrupts interrupts;
  WEIR_TRY(const auto probing, make_probing(job.world));
  if (!options.probes.empty()) {
    target.probes = options.probes;
  } else if (target.probes.empty()) {
    target.probes = fitting_probes(job, target.spec.argv.front(), *probing, place.events());
  }
  const std::string program = target.redactor.text(target.spec.argv.front());
  if (target.probes.empty()) {
    return fail(Code::unavailable, "no probe can see {}: weir doctor {} says why", program,
                program);
  }
  WEIR_CHECK(attach(options, *probing, place.events(), &target));
  job.talk(
      fmt::format("running {} with {}", sys::file_name_of(program), text::join(target.probes)));
  WEIR_TRY(const sys::Finished finished, run_program(job.world, target.spec, interrupts.stop()));
  const std::string failed = failure_words(finished, target.spec);
  WEIR_TRY(observed::Timeline timeline, probes::collect_timeline(job.files(), place.events()));
  // What could not be read is kept: it is all there is.
  if (!options.keep && timeline.unread == 0) (void)job.files().remove_tree(place.events());
  (void)job.files().remove_tree(place.out());
  for (observed::Process& process : timeline.processes) {
    process.name = target.redactor.text(process.name);
  }
  for (std::string& warning : timeline.warnings) warning = target.redactor.text(warning);
  if (target.on_twin) forget_device_times(timeline);
  if (!failed.empty()) {
    talk_of(job, target.redactor.text(finished.err));
    timeline.warnings.insert(timeline.warnings.begin(), failed);
  } else if (timeline.processes.empty()) {
    timeline.warnings.insert(timeline.warnings.begin(),
                             "the probes saw nothing: weir doctor says what they can see");
  }
  if (failed.empty() && timeline.processes.empty() && timeline.unread == 0) {
    if (auto printed = printed_profile(options, target, finished)) {
      if (!options.keep) (void)job.files().remove_tree(place.folder);
      ProfileOptions shown = options;
      shown.what = sys::file_name_of(program);
      return show_observed(job, shown, std::move(*printed), {});
    }
  }
  const std::string trace = options.trace.empty() ? place.folder + "/trace.json" : options.trace;
  std::vector<std::string> command = target.spec.argv;
  for (std::string& word : command) word = target.redactor.text(word);
  WEIR_TRY(Answer answer, outcome(job, options, std::move(timeline), trace, command));
  if (!failed.empty()) answer.code = ExitCode::unmeasured;
  return answer;
}

// Profiles that weir measured itself. An error in one was told when it was made.
Answer measured_answer(const Job& job, std::vector<profile::Profile> profiles) {
  for (profile::Profile& profile : profiles) {
    add_doubts(profile.warnings, profile::cross_checks(profile));
  }
  Answer answer = profiles_answer(
      report::profiles_text(profiles, {.width = job.width(), .verbose = true}), profiles);
  answer.code = ExitCode::pass;
  return answer;
}

// A run, a folder of probe files, profiles as weir writes them, or what others wrote.
Result<Answer> show_file(const Job& job, const ProfileOptions& options) {
  const sys::Files& files = job.files();
  const bool folder = files.kind(options.what) == sys::Kind::folder;
  const auto refuse = [&](std::initializer_list<std::string_view> fitting) -> Result<void> {
    for (const std::string& given : options.given) {
      if (holds(fitting, given)) continue;
      return fail(Code::usage, "{} does not apply to {}: it was recorded before", given,
                  options.what);
    }
    return {};
  };
  if (holds_run(options.what, files)) {
    WEIR_CHECK(refuse({}));
    std::optional<Measured> run;
    WEIR_TRY(ProfileFile read, read_profiles(job, options.what, run));
    return measured_answer(job, std::move(read.profiles));
  }
  if (folder) {
    WEIR_CHECK(refuse({"--trace", "--top", "--by", "--peak", "--html", "--show-private"}));
    WEIR_TRY(observed::Timeline timeline, probes::collect_timeline(files, options.what));
    return outcome(job, options, std::move(timeline), options.trace, {});
  }
  // What fits no file is said without reading it.
  WEIR_CHECK(refuse({"--top", "--by", "--peak", "--html", "--show-private", "--trace"}));
  observed::ObservedMoments moments;
  const bool asked = !options.page.file.empty() || !options.trace.empty();
  WEIR_TRY(ProfileFile read, read_profile_file(options.what, files, adapters::k_most_read,
                                               asked ? &moments : nullptr));
  if (read.observed) return show_observed(job, options, std::move(*read.observed), moments);
  WEIR_CHECK(refuse({}));
  return measured_answer(job, std::move(read.profiles));
}

// What can be wrong with the options alone.
Result<void> check_options(const Job& job, const ProfileOptions& options) {
  const sys::Files& files = job.files();
  if (options.what.empty() == options.words.empty()) {
    return fail(Code::usage,
                "weir profile takes a FILE, a CELL, or a program after --\n"
                "  weir profile -- llama-bench -m model.gguf -n 16");
  }
  if (holds(options.probes, "instructions")) {
    return fail(Code::usage, "--probes instructions: those are counted by weir run, not profiled");
  }
  WEIR_CHECK(check_place("--trace", options.trace, files));
  if (options.page.file.empty()) {
    const bool json = job.shown.json.has_value() && options.words.empty();
    if (options.page.privacy == report::Private::hidden || json) return {};
    return fail(Code::usage,
                "--show-private is for a page: --html FILE, or for --json of what others wrote");
  }
  WEIR_CHECK(check_place("--html", options.page.file, files));
  WEIR_CHECK(page_template(files));
  return {};
}

}  // namespace

bool names_twin(const std::vector<std::string>& words, const Variables& variables) {
  for (const std::string name : {WEIR_TWIN_VARIABLE, WEIR_CUDA_TWIN_VARIABLE}) {
    const auto sets_it = [&](const std::string& word) {
      return word.find(name + "=") != std::string::npos;
    };
    if (!variables(name).value_or("").empty() || std::ranges::any_of(words, sets_it)) return true;
  }
  return false;
}

Result<Answer> profile(const Job& job, const ProfileOptions& asked) {
  WEIR_CHECK(check_options(job, asked));
  ProfileOptions options = asked;
  if (!options.peak_file.empty()) {
    if (!options.page.file.empty() && (options.by == "kernel" || options.by == "op")) {
      return fail(Code::usage, "--peak on a page needs its table: --by op-shape, layer or backend");
    }
    WEIR_TRY(ProfileFile read, read_profile_file(options.peak_file, job.files()));
    if (!read.observed) return fail(Code::usage, "--peak {}: holds no ops", options.peak_file);
    options.peak = std::make_shared<observed::Observed>(std::move(*read.observed));
  }
  const bool is_command = !options.words.empty();
  if (!is_command && job.files().exists(options.what)) return show_file(job, options);
  if (!is_command && holds(options.given, "--timeout")) {
    return fail(Code::usage, "--timeout is for a program after --: a cell has its engine's own");
  }
  Place place;
  WEIR_TRY(place.folder, run::make_run_folder(job.files(), job.below("profiles").asked.out,
                                              job.world.clock.now()));
  place.folder = sys::absolute(place.folder);
  WEIR_CHECK(job.files().make_dirs(place.events()));
  WEIR_CHECK(job.files().make_dirs(place.out()));
  auto target = is_command ? target_of_command(job, options) : target_of_cell(job, options, place);
  if (!target) {
    (void)job.files().remove_tree(place.folder);
    return tl::unexpected(std::move(target).error());
  }
  return run_target(job, options, std::move(*target), place);
}

}  // namespace weir::flow

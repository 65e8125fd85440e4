// weir ab: makes a configuration of one cell from a command line, and gates it against a base.
#include "gate/flow/ab.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "gate/adapters/format.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/matrix.hpp"
#include "gate/config/pattern.hpp"
#include "gate/config/printed_metrics.hpp"
#include "gate/config/typed_command.hpp"
#include "gate/flow/configure.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/program.hpp"
#include "gate/probes/read/fit.hpp"
#include "gate/probes/read/twin_folder.hpp"
#include "gate/run/against.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::flow {
namespace {

// The interval at which a program that runs once is reported to go on.
constexpr std::chrono::seconds k_report_interval{10};

// Parses the words "NAME=VALUE" of --env.
Result<config::Environment> parse_environment(const std::vector<std::string>& assignments) {
  config::Environment env;
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == 0 || equals == assignment.npos) {
      return fail(Code::usage, "--env {}: expected NAME=VALUE", text::printable(assignment));
    }
    env[assignment.substr(0, equals)] = assignment.substr(equals + 1);
  }
  return env;
}

// Returns the preset of that name; without a name, the program's preset or null.
Result<const config::Preset*> choose_preset(const std::string& name, const std::string& program) {
  if (name.empty()) return config::find_preset_by_program(sys::file_name_of(program));
  if (const config::Preset* preset = find_named(config::presets(), name)) return preset;
  const std::vector<std::string> names = config::preset_names();
  return fail(Code::usage, "--preset: unknown preset \"{}\"{}\n  known here: {}",
              text::printable(name), text::did_you_mean(name, names), text::join(names));
}

// Returns the device that an engine reports to have used, as `device:` names it. Nothing if it
// reports none or another kind.
std::optional<std::string> reported_device(const adapters::Format& format,
                                           const adapters::Document& printed) {
  const auto observed = adapters::read_as(format.name, printed);
  if (!observed || !observed->context.backend) return std::nullopt;
  std::string name = text::lower(*observed->context.backend);
  if (name == "rocm") name = "hip";
  return holds(unit::device_names(), name) ? std::optional(name) : std::nullopt;
}

// Reports every k_report_interval how much of a program's time is left, as long as it lives.
class Countdown {
 public:
  Countdown(const Job& job, std::string program, double seconds)
      : job_(job), program_(std::move(program)), seconds_(seconds), thread_([this] { report(); }) {}
  ~Countdown() {
    {
      const std::scoped_lock lock(mutex_);
      is_over_ = true;
    }
    over_.notify_one();
    thread_.join();
  }
  Countdown(const Countdown&) = delete;
  Countdown& operator=(const Countdown&) = delete;

 private:
  void report() {
    std::unique_lock lock(mutex_);
    const auto start = std::chrono::steady_clock::now();
    for (auto next = start + k_report_interval;
         !over_.wait_until(lock, next, [&] { return is_over_; }); next += k_report_interval) {
      const std::chrono::duration<double> past = next - start;
      if (past.count() >= seconds_) return;
      job_.log(fmt::format("  {} still runs: {} left", program_,
                           unit::show_duration(seconds_ - past.count())));
    }
  }

  const Job& job_;
  const std::string program_;
  const double seconds_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;  // after all that it reads
};

// The findings of one run of a program without a preset.
struct Trial {
  std::string output{};        // the adapter that reads its output; "": none
  std::string printed{};       // what it printed, standard output first
  std::string reported{};      // the device that the engine names; "": none
  std::string device = "cpu";  // the reported device, or one on which a probe saw work
  std::vector<std::string> counting_probes{};  // those that counted something
  std::set<std::string> cpu_ops{};
};
// Runs the base program once with probes. Only the base: differences of the candidate are for the
// gate to find.
Result<Trial> try_once(const Job& job, const config::CommandLine& line,
                       const std::vector<std::string>& probes, double timeout,
                       run::Probing& probing, const sys::Stop& stop) {
  const std::string& program = line.argv.front();
  const std::string name = sys::file_name_of(program);
  WEIR_TRY(sys::ProcessSpec spec, command_spec(job, line.argv, timeout));
  WEIR_TRY(const sys::ScratchFolder scratch,
           sys::ScratchFolder::make_temporary(job.files(), "weir-ab-"));
  const std::string& folder = scratch.path();
  WEIR_CHECK(attach_probes(probing, probes, folder, line.env, spec));
  job.log(fmt::format("running {} once to see what it does, for at most {}", name,
                      unit::show_duration(timeout)));
  auto ended = [&] {
    const Countdown countdown(job, name, timeout);
    return run_program(job.world, spec, stop, /*has_to=*/true);
  }();
  WEIR_TRY(const sys::Finished finished, std::move(ended));
  const auto counted = probing.collect(probes, folder, {});
  if (const std::string failure = failure_text(finished, spec); !failure.empty()) {
    talk_output(job, sys::error_output(finished));
    const bool is_late = finished.ended == sys::HowEnded::timed_out;
    return fail(Code::unavailable, "{}: {}{}", program, failure,
                is_late ? "\n  a server does not end: docs/how-to/servers.md has its weir.yaml\n"
                          "  a program that takes longer: --timeout 10m"
                        : "");
  }
  Trial trial;
  trial.printed = finished.out + "\n" + finished.err;
  const adapters::Printed printed({finished.out, finished.err});
  const auto formats = adapters::find_formats(printed);
  if (!formats.empty()) trial.output = formats.front()->adapter.name;
  for (const profile::ProbeCounts& probe_counts :
       counted.value_or(std::vector<profile::ProbeCounts>())) {
    const bool is_counted = std::ranges::any_of(probe_counts.counts,
                                                [](const auto& count) { return count.second > 0; });
    if (is_counted) trial.counting_probes.push_back(probe_counts.probe);
    for (const profile::OpCount& op : probe_counts.ops) {
      if (op.on_cpu) trial.cpu_ops.insert(op.op);
    }
    const bool dispatches = look_up(probe_counts.counts, "dispatches", 0) != 0;
    if (!dispatches) continue;
    if (unit::find_device_api(probe_counts.probe) != nullptr) {
      trial.device = probe_counts.probe;
    } else if (trial.device == "cpu") {  // the engine's own marks, which may name a device
      for (const profile::ProbedDevice& device : probe_counts.devices) {
        if (holds(unit::device_names(), device.api)) trial.device = device.api;
      }
    }
  }
  if (!formats.empty()) {
    trial.reported = reported_device(*formats.front(), {finished.out, finished.err}).value_or("");
  }
  if (!trial.reported.empty()) trial.device = trial.reported;
  return trial;
}

// Returns the last lines of what a program printed, each as a line of an error.
std::string describe_printed(const std::string& printed) {
  constexpr std::size_t k_max_lines = 3, k_max_columns = 74;
  const std::vector<std::string> last = text::last_lines(printed, k_max_lines);
  if (last.empty()) return "  it printed nothing\n";
  std::string lines;
  for (const std::string& line : last)
    lines += "  | " + text::printable(line).substr(0, k_max_columns) + "\n";
  return lines;
}

// Fails with Code::usage if a metric named on the command line is not in what the program printed.
// Suggests a pattern if one would match.
Result<void> check_is_printed(const std::vector<config::PrintedMetric>& metrics,
                              const std::string& program, const std::string& printed) {
  for (const config::PrintedMetric& metric : metrics) {
    WEIR_TRY(const config::Pattern pattern, config::Pattern::compile(metric.regex));
    if (adapters::matches_a_line(pattern, printed)) continue;
    const std::string better = adapters::suggest_pattern(metric.name, printed);
    return fail(Code::usage, "--metric {}: '{}' matches nothing that {} printed\n{}{}", metric.name,
                text::printable(metric.regex), program, describe_printed(printed),
                better.empty() ? "" : fmt::format("  '{}' would match", text::printable(better)));
  }
  return {};
}

// Returns the environment that the preset sets for a device. Variables set by the user keep their
// values.
config::Environment device_environment(const Job& job, const config::Preset* preset,
                                       const std::string& device) {
  const auto* row = preset == nullptr ? nullptr : find_named(preset->devices, device);
  if (row == nullptr) return {};
  config::Environment env = row->extra.env;
  for (auto& [name, value] : env) value = job.world.environment(name).value_or(value);
  return env;
}

// Returns the words of a text that blanks separate.
config::Arguments split_words(const std::string& text) {
  config::Arguments words = text::split(text, ' ');
  std::erase(words, "");
  return words;
}

// Returns the base's command line as typed.
config::CommandLine command_line(const std::string& program, const config::TypedCommand& typed) {
  config::CommandLine line{{program}, {}};
  line.argv.insert(line.argv.end(), typed.args.begin(), typed.args.end());
  line.argv.insert(line.argv.end(), typed.base_args.begin(), typed.base_args.end());
  return line;
}

// Returns the base's shortest counted command line. It includes the preset's own arguments, as some
// make the engine name its backend (--profile).
Result<config::CommandLine> counted_command_line(const Job& job, const std::string& program,
                                                 config::TypedCommand typed) {
  typed.program = program;
  typed.candidate_args = typed.base_args;
  typed.env.clear();
  WEIR_TRY(const config::TypedConfig config, config::config_of(typed));
  WEIR_TRY(const Configuration configuration,
           parse_configuration(config.yaml, config::k_command_line,
                               config_context(job.world, config::k_command_line)));
  WEIR_TRY(const config::Matrix matrix, config::expand(*configuration.settings));
  const config::Cell& cell = matrix.cells.front();
  config::Filling filling{config::counted_requests(cell).front(), cell.model_path, "", "", ""};
  filling.pass = profile::Pass::counted;
  return config::fill(cell, filling);
}

// Returns the device that the engine reports, if it counts its own work and runs as typed; else "".
// Runs it once.
Result<std::string> ask_engine_for_device(const Job& job, const std::string& program,
                                          const config::TypedCommand& typed, double timeout,
                                          run::Probing& probing, const sys::Stop& stop) {
  const auto* adapter = adapters::find(typed.preset->output);
  if (adapter == nullptr || adapter->counts == adapters::Counts::none) return "";
  const auto line = counted_command_line(job, program, typed);
  if (!line) return "";  // the gate will report the error
  const auto trial = try_once(job, *line, {}, timeout, probing, stop);
  if (trial) return trial->reported;
  if (trial.error().code == Code::interrupted) return tl::unexpected(trial.error());
  return "";
}

// Chooses the device: the only one that the arguments name, else what the engine reports. Else the
// first that is present and that a probe can count, else the CPU. If only the engine can tell
// (CUDA, HIP), it runs once.
Result<std::string> choose_device(const Job& job, const std::string& program,
                                  const config::TypedCommand& typed, double timeout,
                                  run::Probing& probing, const sys::Stop& stop) {
  std::vector<std::string> names = config::typed_devices(*typed.preset, typed.args);
  if (names.size() != 1) {
    WEIR_TRY(std::string reported,
             ask_engine_for_device(job, program, typed, timeout, probing, stop));
    if (!reported.empty()) return reported;
  }
  if (names.empty()) names = config::default_devices(*typed.preset);
  config::Cell cell;
  const auto machine = sys::read_machine(job.files());
  bool may_be_found_by_running = false;
  for (const std::string& name : names) {
    if (!holds(typed.probes, name)) continue;
    cell.device = name;
    cell.env = device_environment(job, typed.preset, name);
    WEIR_TRY(const auto devices, find_devices(cell, machine, job.world, stop));
    const auto* device = look_up(devices, name);
    may_be_found_by_running = may_be_found_by_running || device == nullptr;
    if (device != nullptr && !device->absent) return name;
  }
  if (!may_be_found_by_running) return "cpu";
  WEIR_TRY(const Trial trial,
           try_once(job, command_line(program, typed), typed.probes, timeout, probing, stop));
  return trial.device;
}

// Chooses a simulated GPU as the device of both programs, and the probes that count there. Of its
// APIs, the first that a probe can see in the program is taken. Nothing is started.
Result<void> choose_twin(const Job& job, const AbOptions& options, config::TypedCommand& typed) {
  const auto folders = probes::twin_folders(job.files(), ".");
  WEIR_TRY(const probes::Twin twin, probes::load_twin(job.files(), folders, options.twin));
  std::vector<std::string> apis = twin.apis();
  std::erase_if(apis, [&](const std::string& api) {
    const bool is_other = !options.device.empty() && api != options.device;
    return is_other ||
           (typed.preset != nullptr && find_named(typed.preset->devices, api) == nullptr);
  });
  if (apis.empty()) {
    return fail(Code::usage, "--twin {}: a device for {}, on which {}", twin.name,
                text::join(twin.apis(), " or "),
                options.device.empty() ? typed.program + " does not run"
                                       : "--device " + options.device + " is not");
  }
  typed.twin = twin.name;
  const std::string* seen =
      find_first(apis, [&](const std::string& api) { return holds(typed.probes, api); });
  typed.device = seen == nullptr ? apis.front() : *seen;
  const bool has_ggml = typed.preset != nullptr && holds(typed.probes, "ggml");
  typed.probes = {typed.device};
  if (has_ggml) typed.probes.emplace_back("ggml");
  return {};
}

// Returns true if Python runs the program: its file is a script of Python, or an interpreter.
bool is_python(const Job& job, const std::string& program) {
  if (sys::file_name_of(program).starts_with("python")) return true;
  const auto path = sys::find_program(job.files(), program, ".", job.variable("PATH"));
  const auto start = path ? job.files().read_prefix(*path, 256) : std::string();
  return start && start->starts_with("#!") &&
         text::first_line(*start).find("python") != std::string::npos;
}

// Returns commands that show where a slower candidate takes longer; "" if there is nothing to add.
// Both were compared by counts of a device, or by times alone.
std::string next_commands(const Job& job, const AbOptions& options,
                          const config::TypedConfig& config, const config::Environment& env) {
  const std::string args = text::shell_line(options.trailing_arguments);
  const std::string tail = text::prefix_if_any(" -- ", args);
  if (!options.twin.empty() || !options.probes.empty()) return "";
  if (config.probes.empty()) {
    std::vector<std::string> words{"weir", "ab"};
    words.insert(words.end(), options.programs.begin(), options.programs.end());
    for (const std::string& assignment : options.env) {
      words.insert(words.end(), {"--env", assignment});
    }
    if (!options.base_args.empty()) words.push_back("--base-args=" + options.base_args);
    if (!options.candidate_args.empty()) {
      words.push_back("--candidate-args=" + options.candidate_args);
    }
    const bool has_python = is_python(job, options.programs.back());
    if (!options.device.empty()) words.insert(words.end(), {"--device", options.device});
    if (!options.preset.empty()) words.insert(words.end(), {"--preset", options.preset});
    if (options.timeout != AbOptions().timeout) {
      words.insert(words.end(), {"--timeout", fmt::format("{:g}s", options.timeout)});
    }
    words.insert(words.end(), {"--probes", has_python ? "python" : "host", "--counts-only"});
    return fmt::format("\n{}{} of both, by name:\n  {}{}\n",
                       has_python ? "loops that call nothing: python_lines: true in weir.yaml "
                                    "(--write FILE);\n"
                                  : "",
                       has_python ? "calls of Python's functions" : "system calls",
                       text::shell_line(words), tail);
  }
  if (job.selection.counts_only) return "";
  const auto profile_line = [&](const char* file, const std::string& program,
                                const std::string& own_args, const config::Environment& env) {
    std::string line;
    for (const auto& [name, value] : env) {
      line += fmt::format("{}={} ", name, text::shell_word(value));
    }
    return line + fmt::format("weir profile --json {} -- {}{}{}", file, text::shell_word(program),
                              text::prefix_if_any(" ", args),
                              text::prefix_if_any(" ", text::shell_line(split_words(own_args))));
  };
  config::Environment candidate_env = config.device_env;
  for (const auto& [name, value] : env) candidate_env[name] = value;
  return fmt::format(
      "\ntimes by kernel:\n  {}\n  {}\n  weir compare base.json candidate.json\n",
      profile_line("base.json", options.programs.front(), options.base_args, config.device_env),
      profile_line("candidate.json", options.programs.back(), options.candidate_args,
                   candidate_env));
}

// Returns true if the file of a program shows weir's instrument library.
bool shows_marks(const Job& job, const std::string& program) {
  const auto facts =
      probes::read_program_facts(program, job.files(), environment_reader(job.world));
  if (!facts) return false;
  const std::vector<std::string> installed{"instrument"};
  return std::ranges::any_of(probes::judge_fit(*facts, installed), [](const probes::Fit& fit) {
    return fit.probe == "instrument" && fit.state == probes::Fit::State::sees;
  });
}

}  // namespace

// Makes the configuration of the one cell from the options, the preset, and a trial run if needed.
Result<config::TypedConfig> config_for_command(const Job& job, const AbOptions& options,
                                               const config::Environment& env) {
  const sys::Interrupts interrupts;
  config::TypedCommand typed;
  std::vector<std::string> other_numbers;
  // The configuration may be written to another folder, so paths to files become absolute.
  const std::string config_folder = sys::folder_of(sys::absolute(options.write));
  const bool is_elsewhere = !options.write.empty() && config_folder != sys::absolute(".");
  const auto resolve_path = [&](const std::string& word) {
    return is_elsewhere && job.files().exists(word) ? sys::absolute(word) : word;
  };
  typed.program = resolve_path(options.programs.back());
  for (const std::string& word : options.trailing_arguments)
    typed.args.push_back(resolve_path(word));
  typed.base_args = split_words(options.base_args);
  typed.candidate_args = split_words(options.candidate_args);
  typed.env = env;
  typed.budget = options.budget;
  typed.has_token_flags = options.has_token_flags;
  typed.tokens = options.tokens;
  for (const std::string& assignment : options.metrics) {
    WEIR_TRY(auto metric, config::parse_printed_metric(assignment));
    typed.metrics.push_back(std::move(metric));
  }
  WEIR_TRY(typed.preset, choose_preset(options.preset, typed.program));
  if (typed.preset != nullptr && typed.preset->output.empty()) {
    return fail(Code::usage,
                "{} is an inference server, which weir ab sends no prompts to\n"
                "  weir gate --against compares servers: docs/how-to/servers.md",
                typed.program);
  }
  const std::string base = resolve_path(options.programs.front());
  WEIR_TRY(const auto probing, make_probing(job.world));
  bool has_marks = false;
  for (const std::string& program : options.programs) {
    WEIR_TRY(const sys::ProcessSpec spec, command_spec(job, {program}, options.timeout));
    has_marks = has_marks || shows_marks(job, spec.argv.front());
    for (const std::string& probe : fitting_probes(job, spec.argv.front(), *probing,
                                                   sys::absolute(job.selection.runs_folder))) {
      if (!holds(typed.probes, probe)) typed.probes.push_back(probe);
    }
  }
  // A preset knows if its engine is without ggml; the file of a script does not show that.
  if (typed.preset != nullptr && !holds(typed.preset->probes, "ggml")) {
    std::erase(typed.probes, "ggml");
  }
  // An engine that weir knows by its probes has marks of weir's library only if its file shows
  // them.
  const bool has_other_probes = typed.preset != nullptr && !typed.preset->probes.empty();
  if (has_other_probes && !holds(typed.preset->probes, "instrument") && !has_marks) {
    std::erase(typed.probes, "instrument");
  }
  if (typed.preset != nullptr && !options.metrics.empty()) {
    return fail(Code::usage,
                "--metric is for programs that weir does not know: the preset {} reads what {} "
                "prints",
                typed.preset->name, typed.program);
  }
  if (!options.twin.empty()) {
    WEIR_CHECK(choose_twin(job, options, typed));
  } else if (typed.preset == nullptr) {
    WEIR_TRY(const Trial trial, try_once(job, command_line(base, typed), typed.probes,
                                         options.timeout, *probing, interrupts.stop()));
    WEIR_CHECK(check_is_printed(typed.metrics, base, trial.printed));
    typed.output = typed.metrics.empty() ? trial.output : "";
    if (typed.output.empty()) {
      config::add_printed_metrics(trial.printed, typed.metrics);
      other_numbers = config::find_unread_numbers(trial.printed, typed.metrics);
    }
    // Counts of an engine that weir reads may need a pass with probes.
    if (typed.output.empty()) typed.probes = trial.counting_probes;
    typed.device = trial.device;
    if (trial.device != "cpu") typed.cpu_ops = trial.cpu_ops;
    // Finds the preset by the output format: "llama-bench-table" is llama-bench's. weir-observed
    // may come from any engine. A preset would not read the metrics that were named.
    typed.preset = find_first(config::presets(), [&](const config::Preset& preset) {
      return !preset.output.empty() && trial.output.starts_with(preset.output) &&
             trial.output != "weir-observed" && options.metrics.empty();
    });
    typed.is_preset_guessed = typed.preset != nullptr;
    if (typed.is_preset_guessed) {
      job.log(
          fmt::format("its output looks like {0}'s: preset {0}, with the arguments as typed\n"
                      "  not so? read its own numbers: --metric NAME=REGEX",
                      typed.preset->name));
    }
    const bool has_probes = !trial.counting_probes.empty() || !options.probes.empty();
    if (typed.output.empty() && typed.metrics.empty() && !has_probes) {
      return fail(Code::usage,
                  "{}: no tokens/s in what it prints, and no probe saw it do anything\n{}"
                  "  read another number with --metric NAME=REGEX, or say what its arguments mean\n"
                  "  with --preset NAME (weir init --list)",
                  base, describe_printed(trial.printed));
    }
  } else if (options.device.empty()) {
    WEIR_TRY_SET(typed.device,
                 choose_device(job, base, typed, options.timeout, *probing, interrupts.stop()));
  }
  if (!options.device.empty()) typed.device = options.device;
  if (!options.probes.empty()) typed.probes = options.probes;
  typed.device_env = device_environment(job, typed.preset, typed.device);
  WEIR_TRY(config::TypedConfig config, config::config_of(typed));
  if (typed.preset == nullptr) config.other_numbers = std::move(other_numbers);
  return config;
}

// Gates two programs, or one with two environments, without a configuration file.
Result<Answer> ab(const Job& given_job, const AbOptions& options) {
  if (options.programs.size() == 1 && options.env.empty() &&
      options.base_args == options.candidate_args) {
    return fail(Code::usage,
                "one program and nothing that differs: name the new one after the old one, or\n"
                "  what the candidate has besides: --env NAME=VALUE, --candidate-args ARGS");
  }
  if (options.programs.size() > 2) {
    return fail(Code::usage,
                "{} programs: base and candidate are one word each; what both take stands after\n"
                "  \"--\". Scripts are compared as programs: weir ab ./a.py ./b.py",
                options.programs.size());
  }
  if (!options.write.empty() && given_job.files().exists(options.write)) {
    return fail(Code::usage, "--write {}: it is there already; move it away or name another",
                options.write);
  }
  WEIR_TRY(const config::Environment env, parse_environment(options.env));
  WEIR_TRY(const config::TypedConfig config, config_for_command(given_job, options, env));
  Job job = given_job;
  job.selection.counts_only = job.selection.counts_only || !config.is_read || !options.twin.empty();
  job.selection.config = config::k_command_line;
  job.selection.config_text = config.yaml;
  if (!options.write.empty()) {
    WEIR_CHECK(job.files().write_atomic(options.write, config.yaml));
    job.log(fmt::format("wrote {}", options.write));
  }
  GateOptions gate_options;
  gate_options.files = options.files;
  gate_options.against = "";
  gate_options.require_baseline = true;  // the base's counts are all there is to judge by
  gate_options.trailing_arguments = config.base_command;
  gate_options.trailing_arguments.front() = options.programs.front();
  WEIR_TRY(const Configuration configuration,
           parse_configuration(config.yaml, job.selection.config,
                               config_context(job.world, job.selection.config)));
  config::Environment base_environment = configuration.settings->engines.front().extra.env;
  for (const auto& [name, value] : env) base_environment.erase(name);
  base_environment.insert(config.base_env.begin(), config.base_env.end());
  gate_options.base_env = std::move(base_environment);
  // There is no weir.yaml that could set a budget.
  auto answer = gate(job, gate_options).map_error(run::name_budget_option);
  if (answer && answer->code == ExitCode::fail) {
    job.answer_printable(next_commands(given_job, options, config, env));
  }
  if (answer && !options.write.empty()) {
    const std::string file = text::shell_word(options.write);
    // Only the base's command is typed again: what --env set is in the file, for both.
    const std::string next =
        env.empty() ? fmt::format("weir gate -c {} --against -- {}", file,
                                  text::shell_line(gate_options.trailing_arguments))
                    : fmt::format("weir baseline accept -c {0}, then weir gate -c {0}", file);
    job.answer_printable(fmt::format("\nnext, after a change of the candidate:\n  {}\n", next));
  }
  if (answer && config.totals) {
    job.answer_printable(
        "\nCounts are totals of a run: weir does not know which argument is its length\n"
        "  (--preset; weir init --list).\n");
  }
  return answer;
}

}  // namespace weir::flow

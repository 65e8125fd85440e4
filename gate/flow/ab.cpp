#include "gate/flow/ab.hpp"

#include "gate/adapters/format.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/matrix.hpp"
#include "gate/config/typed_command.hpp"
#include "gate/flow/configure.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/program.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::flow {
namespace {

constexpr double k_trial_seconds = 300;

Result<config::Environment> environment_of(const std::vector<std::string>& words) {
  config::Environment env;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == word.npos) {
      return fail(Code::usage, "--env {}: expected NAME=VALUE", text::printable(word));
    }
    env[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return env;
}

// By its name; else nothing.
Result<const config::Preset*> preset_of(const std::string& asked, const std::string& program) {
  if (asked.empty()) return config::preset_of_program(sys::file_name_of(program));
  if (const config::Preset* found = find_named(config::presets(), asked)) return found;
  const std::vector<std::string> names = config::preset_names();
  return fail(Code::usage, "--preset: unknown preset \"{}\"{}\n  known here: {}",
              text::printable(asked), text::did_you_mean(asked, names), text::join(names));
}

// What an engine says did its work, as `device:` names it; nothing where it does not say, or names
// something else.
std::optional<std::string> device_said(const adapters::Format& format,
                                       const adapters::Document& printed) {
  const auto observed = adapters::read_as(format.name, printed);
  if (!observed || !observed->context.backend) return std::nullopt;
  std::string name = text::lower(*observed->context.backend);
  if (name == "rocm") name = "hip";
  return holds(unit::device_names(), name) ? std::optional(name) : std::nullopt;
}

// What one run of a program that nobody knows shows.
struct Trial {
  std::string output{};        // the adapter that reads what it prints; "": none does
  std::string reported{};      // the device that the engine names; "": none
  std::string device = "cpu";  // that one, or one on which a probe saw work
  bool is_counted = false;     // a probe saw something
  std::set<std::string> cpu_ops{};
};
// Of the base: what its counterpart does elsewhere is for the gate to find.
Result<Trial> try_once(const Job& job, const config::CommandLine& line,
                       const std::vector<std::string>& probes, run::Probing& probing,
                       const sys::Stop& stop) {
  const std::string& program = line.argv.front();
  WEIR_TRY(sys::ProcessSpec spec, command_spec(job, line.argv, k_trial_seconds));
  WEIR_TRY(const sys::ScratchFolder scratch,
           sys::ScratchFolder::make_temporary(job.files(), "weir-ab-"));
  const std::string& folder = scratch.path();
  WEIR_CHECK(attach_probes(probing, probes, folder, line.env, spec));
  job.talk(fmt::format("running {} once to see what it does", sys::file_name_of(program)));
  WEIR_TRY(const sys::Finished finished, run_program(job.world, spec, stop, true));
  const auto counted = probing.collect(probes, folder);
  if (const std::string failed = failure_words(finished, spec); !failed.empty()) {
    talk_of(job, finished.err);
    return fail(Code::unavailable, "{}: {}", program, failed);
  }
  Trial trial;
  const adapters::Printed printed({finished.out, finished.err});
  const auto formats = adapters::recognised(printed);
  if (!formats.empty()) trial.output = formats.front()->adapter.name;
  for (const profile::ProbeCounts& one : counted.value_or(std::vector<profile::ProbeCounts>())) {
    trial.is_counted = trial.is_counted || std::ranges::any_of(one.counts, [](const auto& count) {
                         return count.second > 0;
                       });
    for (const profile::OpCount& op : one.ops) {
      if (op.on_cpu) trial.cpu_ops.insert(op.op);
    }
    const bool dispatches = look_up(one.counts, "dispatches", 0) != 0;
    if (!dispatches) continue;
    if (unit::find_device_api(one.probe) != nullptr) {
      trial.device = one.probe;
    } else if (trial.device == "cpu") {  // marks, of whatever the engine says
      for (const profile::DeviceSeen& device : one.devices) {
        if (holds(unit::device_names(), device.api)) trial.device = device.api;
      }
    }
  }
  if (!formats.empty()) {
    trial.reported = device_said(*formats.front(), {finished.out, finished.err}).value_or("");
  }
  if (!trial.reported.empty()) trial.device = trial.reported;
  return trial;
}

// What the preset sets for a device, but for what whoever types the command has set.
config::Environment device_env(const Job& job, const config::Preset* preset,
                               const std::string& device) {
  const auto* row = preset == nullptr ? nullptr : find_named(preset->devices, device);
  if (row == nullptr) return {};
  config::Environment env = row->extra.env;
  for (auto& [name, value] : env) value = job.world.environment(name).value_or(value);
  return env;
}

config::CommandLine typed_line(const std::string& program, const config::TypedCommand& typed) {
  config::CommandLine line{{program}, {}};
  line.argv.insert(line.argv.end(), typed.args.begin(), typed.args.end());
  return line;
}

// The base's shortest counted run: with the preset's own arguments, some of which make the engine
// name its backend (--profile).
Result<config::CommandLine> counted_line(const Job& job, const std::string& program,
                                         config::TypedCommand typed) {
  typed.program = program;
  typed.env.clear();
  WEIR_TRY(const config::TypedConfig config, config::config_of(typed));
  WEIR_TRY(const Configured known,
           configured(config.yaml, "the command line", known_now(job.world, "the command line")));
  WEIR_TRY(const config::Matrix matrix, config::expand(*known.settings));
  const config::Cell& cell = matrix.cells.front();
  config::Filling filling{config::counted_asked(cell).front(), cell.model_path, "", "", ""};
  filling.pass = profile::Pass::counted;
  return config::fill(cell, filling);
}

// What the engine reports of itself, if it counts its own work and runs as typed; "" else.
Result<std::string> device_reported(const Job& job, const std::string& program,
                                    const config::TypedCommand& typed, run::Probing& probing,
                                    const sys::Stop& stop) {
  const auto* adapter = adapters::find(typed.preset->output);
  if (adapter == nullptr || adapter->counts == adapters::Counts::none) return "";
  const auto line = counted_line(job, program, typed);
  if (!line) return "";  // as the gate will say
  const auto trial = try_once(job, *line, {}, probing, stop);
  if (trial) return trial->reported;
  if (trial.error().code == Code::interrupted) return tl::unexpected(trial.error());
  return "";
}

// The one device that the arguments name. If they name none or several: what the engine reports;
// else the first that is here and that a probe sees work on; else the CPU. Where only the engine
// can tell what is here (CUDA), it runs once.
Result<std::string> device_of(const Job& job, const std::string& program,
                              const config::TypedCommand& typed, run::Probing& probing,
                              const sys::Stop& stop) {
  std::vector<std::string> names = config::devices_typed(*typed.preset, typed.args);
  if (names.size() != 1) {
    WEIR_TRY(std::string reported, device_reported(job, program, typed, probing, stop));
    if (!reported.empty()) return reported;
  }
  if (names.empty()) names = config::devices_untyped(*typed.preset);
  config::Cell cell;
  const auto machine = sys::read_machine(job.files());
  bool runs = false;
  for (const std::string& name : names) {
    if (!holds(typed.probes, name)) continue;
    cell.device = name;
    cell.env = device_env(job, typed.preset, name);
    WEIR_TRY(const auto devices, look_for_devices(cell, machine, job.world, stop));
    const auto* found = look_up(devices, name);
    runs = runs || found == nullptr;
    if (found != nullptr && !found->absent) return name;
  }
  if (!runs) return "cpu";
  WEIR_TRY(const Trial trial,
           try_once(job, typed_line(program, typed), typed.probes, probing, stop));
  return trial.device;
}

Result<config::TypedConfig> config_of(const Job& job, const AbOptions& options,
                                      const config::Environment& env) {
  const sys::Interrupts interrupts;
  config::TypedCommand typed;
  // A file that lies elsewhere is read from there.
  const std::string kept = sys::folder_of(sys::absolute(options.write));
  const bool moves = !options.write.empty() && kept != sys::absolute(".");
  const auto placed = [&](const std::string& word) {
    return moves && job.files().exists(word) ? sys::absolute(word) : word;
  };
  typed.program = placed(options.programs.back());
  for (const std::string& word : options.words) typed.args.push_back(placed(word));
  typed.env = env;
  typed.budget = options.budget;
  WEIR_TRY(typed.preset, preset_of(options.preset, typed.program));
  const std::string base = placed(options.programs.front());
  WEIR_TRY(const auto probing, make_probing(job.world));
  for (const std::string& program : options.programs) {
    WEIR_TRY(const sys::ProcessSpec spec, command_spec(job, {program}, k_trial_seconds));
    for (const std::string& probe :
         fitting_probes(job, spec.argv.front(), *probing, sys::absolute(job.asked.out))) {
      if (!holds(typed.probes, probe)) typed.probes.push_back(probe);
    }
  }
  // An engine that its preset knows to be without ggml; a script's file does not tell.
  if (typed.preset != nullptr && !holds(typed.preset->probes, "ggml")) {
    std::erase(typed.probes, "ggml");
  }
  if (typed.preset == nullptr) {
    WEIR_TRY(const Trial trial,
             try_once(job, typed_line(base, typed), typed.probes, *probing, interrupts.stop()));
    typed.output = trial.output;
    typed.device = trial.device;
    if (trial.device != "cpu") typed.cpu_ops = trial.cpu_ops;
    // By what it prints ("llama-bench-table" is llama-bench's, too); not by what any engine may
    // print.
    typed.preset = first_of(config::presets(), [&](const config::Preset& one) {
      return !one.output.empty() && trial.output.starts_with(one.output) &&
             trial.output != "weir-observed";
    });
    if (typed.output.empty() && !trial.is_counted) {
      return fail(Code::usage,
                  "{}: weir reads nothing of what it prints, and no probe saw it do anything\n"
                  "  --preset NAME says what its arguments mean (weir init --list)",
                  typed.program);
    }
  } else if (typed.preset->output.empty()) {
    return fail(Code::usage,
                "{} is an inference server, which weir ab sends no prompts to\n"
                "  weir gate --against compares servers: docs/how-to/servers.md",
                typed.program);
  } else if (options.device.empty()) {
    WEIR_SET(typed.device, device_of(job, base, typed, *probing, interrupts.stop()));
  }
  if (!options.device.empty()) typed.device = options.device;
  typed.device_env = device_env(job, typed.preset, typed.device);
  return config::config_of(typed);
}

}  // namespace

Result<Answer> ab(const Job& asked, const AbOptions& options) {
  if (options.programs.size() == 1 && options.env.empty()) {
    return fail(Code::usage,
                "one program and nothing that differs: name the new one after the old one, or\n"
                "  what the candidate's environment has besides: --env NAME=VALUE");
  }
  if (!options.write.empty() && asked.files().exists(options.write)) {
    return fail(Code::usage, "--write {}: it is there already; move it away or name another",
                options.write);
  }
  WEIR_TRY(const config::Environment env, environment_of(options.env));
  WEIR_TRY(const config::TypedConfig config, config_of(asked, options, env));
  Job job = asked;
  job.asked.counts_only = job.asked.counts_only || !config.is_read;
  job.asked.config = "the command line";
  job.asked.config_text = config.yaml;
  if (!options.write.empty()) {
    WEIR_CHECK(job.files().write_atomic(options.write, config.yaml));
    job.talk(fmt::format("wrote {}", options.write));
  }
  GateOptions gate_options;
  gate_options.files = options.files;
  gate_options.against = "";
  gate_options.require_baseline = true;  // the base's counts are all there is to judge by
  gate_options.words = config.command;
  gate_options.words.front() = options.programs.front();
  WEIR_TRY(const Configured known,
           configured(config.yaml, job.asked.config, known_now(job.world, job.asked.config)));
  config::Environment base = known.settings->engines.front().extra.env;
  for (const auto& [name, value] : env) base.erase(name);
  base.insert(config.base_env.begin(), config.base_env.end());
  gate_options.base_env = std::move(base);
  auto answer = gate(job, gate_options);
  if (answer && config.totals) {
    job.say(
        "\nCounts are totals of a run: weir does not know which argument is its length\n"
        "  (--preset; weir init --list).\n");
  }
  return answer;
}

}  // namespace weir::flow

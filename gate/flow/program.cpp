// Programs that a flow starts: their command lines, their probes, and how they end.
#include "gate/flow/program.hpp"

#include "gate/base/text.hpp"
#include "gate/flow/devices.hpp"
#include "gate/probes/read/fit.hpp"
#include "gate/run/environment.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

// The output limit of a program after "--". It may print a lot, of which weir keeps little.
constexpr std::uint64_t k_command_output_limit = std::uint64_t{256} << 20;

// Returns the error for a name that is no program, with what to write where it looks like one.
Error no_program(const sys::Files& files, const std::string& program) {
  const bool is_file = files.kind(program) == sys::Kind::file;
  const bool has_folder = program.find('/') != std::string::npos;
  std::string why = fmt::format("no such program: {}", text::printable(program));
  if (is_file && !has_folder) {
    why += fmt::format("; {0} is here: write ./{0}", text::printable(program));
  } else if (is_file) {
    why = fmt::format("{0} is not executable: chmod +x {0}", text::printable(program));
  } else if (program.find(' ') != std::string::npos) {
    why += "; these are several words, and a program is one: its arguments stand after \"--\"";
  }
  return {Code::usage, why};
}

}  // namespace

Result<sys::ProcessSpec> command_spec(const Job& job, const std::vector<std::string>& command,
                                      double timeout_seconds) {
  sys::ProcessSpec spec;
  spec.argv = command;
  const auto program = sys::find_program(job.files(), command.front(), ".", job.variable("PATH"));
  if (!program) return tl::unexpected(no_program(job.files(), command.front()));
  spec.argv.front() = *program;
  spec.timeout_seconds = timeout_seconds;
  spec.output_limit = k_command_output_limit;
  return spec;
}

// Returns the installed probes that can see something in a program; all of them if its file cannot
// be examined.
std::vector<std::string> fitting_probes(const Job& job, const std::string& program,
                                        run::Probing& probing, const std::string& folder) {
  std::vector<std::string> installed;
  for (const auto& [name, devices] : probes::probe_devices()) {
    if (probing.attach(std::vector{name}, folder, nullptr)) installed.push_back(name);
  }
  const auto facts =
      probes::read_program_facts(program, job.files(), environment_reader(job.world));
  if (!facts) return installed;
  std::vector<std::string> fitting;
  for (const probes::Fit& fit : probes::judge_fit(*facts, installed)) {
    if (fit.state == probes::Fit::State::sees || fit.state == probes::Fit::State::may_see) {
      fitting.push_back(fit.probe);
    }
  }
  return fitting;
}

Result<void> attach_probes(run::Probing& probing, const std::vector<std::string>& probes,
                           const std::string& folder, const config::Environment& probe_variables,
                           sys::ProcessSpec& spec) {
  WEIR_TRY(config::Environment environment, probing.attach(probes, folder, nullptr));
  for (const auto& [name, value] : probe_variables) environment[name] = value;
  const config::Environment program(spec.env.begin(), spec.env.end());
  spec.env = run::merge_environment(sys::own_environment(), program, environment);
  return {};
}

Result<sys::Finished> run_program(sys::World& world, const sys::ProcessSpec& spec,
                                  const sys::Stop& stop, bool has_to) {
  WEIR_TRY(sys::Finished finished, world.processes.run(spec, stop));
  if (finished.ended == sys::HowEnded::interrupted) return fail(Code::interrupted, "interrupted");
  if (has_to && finished.ended == sys::HowEnded::not_started) {
    return fail(Code::unavailable, "{}: cannot be run: {}", spec.argv.front(),
                finished.start_error);
  }
  return finished;
}

void talk_output(const Job& job, const std::string& output) {
  for (const std::string& line : text::lines(text::printable(output))) job.log("| " + line);
}

std::string failure_text(const sys::Finished& finished, const sys::ProcessSpec& spec) {
  const bool is_success = finished.ended == sys::HowEnded::exited && finished.exit_code == 0;
  return is_success ? "" : "it " + sys::describe_ending(finished, spec);
}

// Returns the path of weir-engine: `option` if it is set, else the one installed near `program`.
// `who` needs it, for the error.
Result<std::string> find_weir_engine(const sys::Files& files, const std::string& option,
                                     const std::string& program, const std::string& who) {
  const auto is_program = [&](const std::string& path) {
    return files.executable(path) && files.kind(path) == sys::Kind::file;
  };
  if (!option.empty()) {
    const std::string path = sys::absolute(option);
    if (is_program(path)) return path;
    return fail(Code::usage, "--engine {}: no such program", option);
  }
  const std::string program_folder = sys::folder_of(program);
  std::vector<std::string> searched;
  for (const char* place :
       {"weir-engine", "libexec/weir/weir-engine", "../libexec/weir/weir-engine"}) {
    const std::string candidate = sys::absolute(sys::join_path(program_folder, place));
    if (is_program(candidate)) return candidate;
    searched.push_back(candidate);
  }
  return fail(Code::unavailable,
              "{} needs weir-engine, which is not here (looked for {})\n"
              "  It is built with weir where libhwy-dev and glslc are: in weir's\n"
              "  repository, ci/setup && ci/build. --engine FILE names one that lies elsewhere.",
              who, text::join(searched));
}

Result<void> check_place(const char* option, const std::string& file, const sys::Files& files) {
  if (file.empty()) return {};
  const std::string folder = sys::folder_of(sys::absolute(file));
  if (files.kind(folder) == sys::Kind::folder && files.writable(folder)) return {};
  return fail(Code::usage, "{} {}: {} is no folder that can be written to", option, file, folder);
}

}  // namespace weir::flow

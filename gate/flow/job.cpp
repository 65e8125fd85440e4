// The job of a flow: prints messages and answers in the style that was asked for.
#include "gate/flow/job.hpp"

#include <array>
#include <cstdio>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {

std::string Job::variable(const char* name) const { return world.environment(name).value_or(""); }

// Returns true in CI and in jobs of a scheduler such as Slurm.
bool Job::is_in_ci() const {
  // Most CI systems set CI; these set a variable of their own, as do schedulers in their jobs:
  // Slurm, PBS, LSF, Grid Engine, OAR, Flux, Cobalt and HTCondor.
  constexpr std::array k_variables{"CI",          "GITHUB_ACTIONS", "GITLAB_CI",
                                   "JENKINS_URL", "BUILD_ID",       "TEAMCITY_VERSION",
                                   "TF_BUILD",    "SLURM_JOB_ID",   "PBS_JOBID",
                                   "LSB_JOBID",   "SGE_TASK_ID",    "OAR_JOB_ID",
                                   "FLUX_JOB_ID", "COBALT_JOBID",   "_CONDOR_JOB_AD"};
  const auto is_set = [&](const char* name) {
    const std::string value = text::lower(variable(name));
    return !value.empty() && value != "false" && value != "0";
  };
  return std::ranges::any_of(k_variables, is_set);
}

bool Job::reuses_cache() const { return trusts_cache || !is_in_ci(); }

std::string Job::folder() const { return sys::absolute(sys::folder_of(selection.config)); }

Job Job::below(const std::string& name) const {
  Job job = *this;
  job.selection.runs_folder = sys::join_path(selection.runs_folder, name);
  return job;
}

int Job::width() const {
  const int columns = world.terminal.columns(stream()).value_or(0);
  return columns == 0 ? 80 : std::clamp(columns, 40, 120);
}

// Returns true if `stream` is a terminal that follows control sequences.
static bool has_control(const sys::World& world, int stream) {
  const std::string term = world.environment("TERM").value_or("dumb");
  return world.terminal.columns(stream) && term != "dumb";
}

bool Job::colored(int of_stream) const {
  if (output.color != "auto") return output.color == "always";
  return has_control(world, of_stream) && !world.environment("NO_COLOR");
}

std::optional<std::size_t> Job::bar_columns() const {
  if (!has_control(world, 2)) return std::nullopt;
  const int columns = world.terminal.columns(2).value_or(0);
  return columns > 0 ? static_cast<std::size_t>(columns) : 80;
}

void Job::answer(std::string_view text) const { command(text::neutralize_ci_commands(text)); }
void Job::command(std::string_view text) const { world.terminal.write(stream(), text); }
void Job::answer_printable(std::string_view text) const { answer(text::printable(text)); }
void Job::log(std::string_view line) const {
  if (!output.quiet) world.terminal.write(2, text::neutralize_ci_commands(line) + "\n");
}

// Breaks the lines of an error for a terminal. Elsewhere each stays one line, for tools to search.
static std::string wrap_error(const sys::World& world, const std::string& lead,
                              const std::string& message) {
  constexpr std::size_t k_indent = 2;
  const int columns = world.terminal.columns(2).value_or(0);
  if (columns <= 0) return lead + message;
  const std::size_t width = static_cast<std::size_t>(std::clamp(columns, 40, 120));
  std::vector<std::string> lines;
  for (const std::string& line : text::lines(message)) {
    const std::size_t spaces = std::min(line.find_first_not_of(' '), line.size());
    const std::string first = lines.empty() ? lead : std::string(spaces, ' ');
    const auto wrapped =
        report::wrap(line.substr(spaces), width, first, std::max(spaces, k_indent));
    lines.insert(lines.end(), wrapped.begin(), wrapped.end());
  }
  return text::join(lines, "\n");
}

void print_error(sys::World& world, const Error& error) {
  constexpr std::string_view k_lead = "weir: ";
  const bool color = has_control(world, 2) && !world.environment("NO_COLOR");
  std::string message = wrap_error(world, std::string(k_lead),
                                   text::neutralize_ci_commands(text::printable(error.message)));
  if (color) message.replace(0, k_lead.size(), "\x1B[1;31mweir:\x1B[0m ");
  world.terminal.write(2, message + "\n");
}

std::string json_document(const Json& json, int indent) { return dump_json(json, indent) + "\n"; }

Answer profiles_answer(std::string text, std::span<const profile::Profile> profiles) {
  Json list = Json::array();
  bool unmeasured = false;
  for (const profile::Profile& profile : profiles) {
    list.push_back(write_fields(profile));
    unmeasured = unmeasured || !profile.errors.empty();
  }
  return {std::move(text), json_document({{"schema", "weir.profiles/1"}, {"profiles", list}}),
          unmeasured ? ExitCode::unmeasured : ExitCode::pass};
}

Result<void> write_json(const Job& job, std::string_view text) {
  if (!job.output.json || text.empty()) return {};
  if (*job.output.json != "-") return job.files().write_atomic(*job.output.json, text);
  job.world.terminal.write(1, text);
  return {};
}

Result<void> append_text(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) return fail(Code::io, "{}: cannot be written", path);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) return fail(Code::io, "{}: cannot be written", path);
  return {};
}

}  // namespace weir::flow

// What every verb shares: common options, how answers and errors leave the program.
//
// Standard output is the answer, standard error the talk. With --json on standard output, what
// people read goes to standard error.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "gate/base/result.hpp"
#include "gate/profile/profile.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::app {

using verdict::ExitCode;
struct Rules;    // rules.hpp
struct Allowed;  // allowed.hpp

struct CommonOptions {
  std::string config = "weir.yaml";
  bool config_given = false;  // named on the command line
  std::string baselines = "baselines";
  std::string out = "weir-out";
  std::vector<std::string> cells;
  bool counts_only = false;
  bool quiet = false;
  std::string color = "auto";
  std::optional<std::string> json;  // "-" is standard output
  // Read from a commit in place of the working tree; a verb that takes the options for that sets
  // it.
  std::shared_ptr<const Rules> rules{};
  std::shared_ptr<const Allowed> allowed{};
};

// The options a verb takes of CommonOptions: those of a configuration, also of its cells, also of
// baselines, also of measuring; or of cells in runs that were measured before; or of none of these.
enum class Takes { config, cells, matrix, measuring, runs, output };
void add_common(CLI::App& verb, CommonOptions& options, Takes takes);

// An option that other verbs have and this one can not honour: using it is a usage error that says
// why.
void refuse_option(CLI::App& verb, const std::string& names, const std::string& why);

// What a verb does: an exit code, or an Error that is printed and turned into one.
using Action = std::function<Result<ExitCode>()>;
// Runs `action` when the verb is chosen; at most one is chosen.
void set_action(CLI::App& verb, Action action);
// The same for a verb that takes words behind "--"; for others they are a usage error.
void set_action_with_words(CLI::App& verb, Action action);
// What stands behind the first "--" of the command line, a program and its arguments, cut from
// `words` and kept for words_behind().
void take_words_behind(std::vector<std::string>& words);
[[nodiscard]] const std::vector<std::string>& words_behind();

// The action of the chosen verb; empty when none was.
[[nodiscard]] const Action& chosen_action();

[[nodiscard]] ExitCode exit_code_of(Code code);
// "weir: message" on standard error, colour only on a terminal.
void print_error(const Error& error);

// Whether text for `stream` (1 or 2) is coloured, and how wide it may be (40 to 120; 80 when
// piped).
[[nodiscard]] bool colored(const CommonOptions& options, int stream);
[[nodiscard]] int width_of(int stream);

// What people read: standard output, or standard error when --json took standard output. No line
// of it is a command to a CI system, whatever engines and files say: command() is for those.
void answer(const CommonOptions& options, std::string_view text);
void command(const CommonOptions& options, std::string_view text);
// answer() of a verb without these options: to standard output, without control characters that
// names of files may hold.
void say(std::string_view text);
[[nodiscard]] int answer_stream(const CommonOptions& options);
// Talk on standard error, not with --quiet.
void talk(const CommonOptions& options, std::string_view line);
// --json: writes `text` where it was asked for; nothing when it was not.
[[nodiscard]] Result<void> write_json(const CommonOptions& options, std::string_view text);
// Appends to a file that several steps of one job share.
[[nodiscard]] Result<void> append_text(const std::string& path, const std::string& text);
// weir.profiles/1 to where --json asks for it. The verb's exit code: not all could be measured
// where one has an error.
[[nodiscard]] Result<ExitCode> write_profiles(const CommonOptions& options,
                                              std::span<const profile::Profile> profiles);

// weir doctor, of all engines of weir.yaml.
[[nodiscard]] Result<ExitCode> doctor_of(const CommonOptions& common);

// One function a verb, each in its own file.
void add_demo(CLI::App& app);
void add_init(CLI::App& app);
void add_run(CLI::App& app);
void add_gate(CLI::App& app);
void add_compare(CLI::App& app);
void add_explain(CLI::App& app);
void add_plan(CLI::App& app);
void add_merge(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_baseline(CLI::App& app);
void add_model(CLI::App& app);
void add_device(CLI::App& app);
void add_doctor(CLI::App& app);
void add_device_matrix(CLI::App& device);  // below "device"
void add_profile(CLI::App& app);
void add_reach(CLI::App& app);
void add_replay_kernels(CLI::App& app);
void add_replay(CLI::App& app);
void add_post(CLI::App& app);
void add_allow(CLI::App& app);
void add_bisect(CLI::App& app);
void add_hook(CLI::App& app);
void add_trend(CLI::App& app);
void add_serve(CLI::App& app);
void add_completion(CLI::App& app);

}  // namespace weir::app

// What every flow is given, and what it answers.
//
// Standard output is the answer, standard error the talk. With --json on standard output, what
// people read goes to standard error.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/base/result.hpp"
#include "gate/profile/profile.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/world.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::flow {

using verdict::ExitCode;
inline constexpr std::string_view k_version = WEIR_VERSION;
struct Rules;    // rules.hpp
struct Allowed;  // allowances.hpp

// One of the globs matches, or there is none.
[[nodiscard]] bool matches(const std::vector<std::string>& globs, std::string_view name);

// Which cells, and where what belongs to them lies.
struct Asked {
  std::string config = "weir.yaml";
  bool config_given = false;                 // named on the command line
  std::optional<std::string> config_text{};  // in place of what the file holds
  std::string baselines = "baselines";
  std::string out = "weir-out";
  std::vector<std::string> cells;
  bool counts_only = false;

  // --cell selects it, or there is no --cell.
  [[nodiscard]] bool wants(std::string_view cell) const { return matches(cells, cell); }
};

// How answers are shown.
struct Shown {
  bool quiet = false;
  std::string color = "auto";
  std::optional<std::string> json;  // "-" is standard output
};

struct Job {
  sys::World& world;
  Asked asked{};
  Shown shown{};
  // Read from a commit in place of the working tree; null where nothing was asked of that.
  std::shared_ptr<const Rules> rules{};
  std::shared_ptr<const Allowed> allowed{};

  [[nodiscard]] sys::Files& files() const { return world.files; }
  // A variable of the environment; "" when unset.
  [[nodiscard]] std::string variable(const char* name) const;
  // Absolute, of the configuration.
  [[nodiscard]] std::string folder() const;
  // The same job, whose runs go below the folder `name` of its own.
  [[nodiscard]] Job below(const std::string& name) const;

  // Where what people read goes; how wide it may be (40 to 120; 80 when piped), whether coloured.
  [[nodiscard]] int stream() const { return shown.json == "-" ? 2 : 1; }
  [[nodiscard]] int width() const;
  [[nodiscard]] bool colored() const { return colored(stream()); }
  [[nodiscard]] bool colored(int stream) const;

  // What people read, before the flow ends. No line of it is a command to a CI system, whatever
  // engines and files say: command() is for those.
  void answer(std::string_view text) const;
  void command(std::string_view text) const;
  // answer() without control characters, which names of files may hold.
  void say(std::string_view text) const;
  // Talk on standard error, not with --quiet.
  void talk(std::string_view line) const;
};

// "weir: message" on standard error, colour only on a terminal.
void print_error(sys::World& world, const Error& error);

// What a flow came to: text for people, a document for --json ("" where it has none).
struct Answer {
  std::string text{};
  std::string json{};
  ExitCode code = ExitCode::pass;
};
// Of a document, its text.
[[nodiscard]] std::string document(const Json& json, int indent = 1);
// weir.profiles/1. The exit code: not all could be measured where one has an error.
[[nodiscard]] Answer profiles_answer(std::string text, std::span<const profile::Profile> profiles);

// --json: writes `text` where it was asked for; nothing when it was not.
[[nodiscard]] Result<void> write_json(const Job& job, std::string_view text);
// Appends to a file that several steps of one job share.
[[nodiscard]] Result<void> append_text(const std::string& path, const std::string& text);

}  // namespace weir::flow

// The input and the answer of every flow.
// Answers go to standard output, messages to standard error. With --json on standard output, text
// for people goes to standard error.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/base/result.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/profile.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/world.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::flow {

using verdict::ExitCode;
inline constexpr std::string_view k_version = WEIR_VERSION;
struct Rules;   // rules.hpp
struct Waived;  // waivers.hpp

// The selected cells, and the places of their files.
struct Selection {
  std::string config = "weir.yaml";
  bool config_is_set = false;                // set on the command line
  std::optional<std::string> config_text{};  // replaces the file's text
  // The commit that a run of others says it measured; "": none. Absent: the work tree is measured.
  std::optional<std::string> claimed_commit{};
  // Files of that run's checkout that its commit does not show, as the run says; absent: it had
  // changes and does not list them.
  std::optional<std::vector<std::string>> claimed_uncommitted{};
  std::string baselines = "baselines";
  std::string runs_folder = "weir-out";
  std::vector<std::string> cells;
  bool counts_only = false;

  // Returns true if --cell selects the cell, or there is no --cell.
  [[nodiscard]] bool wants(std::string_view cell) const { return text::matches_any(cells, cell); }
  // Returns true if --cell selects a cell by one of its names.
  [[nodiscard]] bool wants_any(const std::vector<std::string>& names) const {
    return std::ranges::any_of(names, [&](const std::string& name) { return wants(name); });
  }
};

// The style of answers.
struct OutputOptions {
  bool quiet = false;
  std::string color = "auto";
  std::optional<std::string> json;  // "-" is standard output
};

struct Job {
  sys::World& world;
  Selection selection{};
  OutputOptions output{};
  // Rules and waivers of a commit; null if the options name none.
  std::shared_ptr<const Rules> rules{};
  std::shared_ptr<const Waived> waived{};
  bool trusts_cache = false;  // --trust-cache

  [[nodiscard]] sys::Files& files() const { return world.files; }
  // Returns a variable of the environment; "" if unset.
  [[nodiscard]] std::string variable(const char* name) const;
  // Returns true in CI and in jobs of a scheduler.
  [[nodiscard]] bool is_in_ci() const;
  // Returns true if builds, counts and compiled kernels that earlier runs left in the cache may
  // decide a verdict. In CI and in jobs of a scheduler, other pull requests' engines ran as this
  // user and could write there, and no mark in the cache itself could tell: there it takes
  // --trust-cache.
  [[nodiscard]] bool reuses_cache() const;
  // Returns the absolute folder of the configuration.
  [[nodiscard]] std::string folder() const;
  // Returns the same job with runs in a folder `name` below its own.
  [[nodiscard]] Job below(const std::string& name) const;

  // The stream for people, its width in columns (40 to 120; 80 if piped), and if it is coloured.
  [[nodiscard]] int stream() const { return output.json == "-" ? 2 : 1; }
  [[nodiscard]] int width() const;
  [[nodiscard]] bool colored() const { return colored(stream()); }
  [[nodiscard]] bool colored(int stream) const;
  // Columns for a progress bar on standard error; absent if no line can be redrawn there.
  [[nodiscard]] std::optional<std::size_t> bar_columns() const;

  // Prints text for people before the flow ends. Text of engines and files cannot act as a command
  // to a CI system; command() prints those.
  void answer(std::string_view text) const;
  void command(std::string_view text) const;
  // Like answer(), without control characters, which names of files may contain.
  void answer_printable(std::string_view text) const;
  // Prints a message on standard error, unless --quiet.
  void log(std::string_view line) const;
};

// Prints "weir: message" on standard error, coloured on a terminal.
void print_error(sys::World& world, const Error& error);

// The result of a flow: text for people, and a document for --json ("" if it has none).
struct Answer {
  std::string text{};
  std::string json{};
  ExitCode code = ExitCode::pass;
};
// Returns a JSON document as text with a final newline.
[[nodiscard]] std::string json_document(const Json& json, int indent = 1);
// Returns weir.profiles/1; the exit code is `unmeasured` if a profile has an error.
[[nodiscard]] Answer profiles_answer(std::string text, std::span<const profile::Profile> profiles);

// Writes `text` to the place of --json; does nothing without that option.
[[nodiscard]] Result<void> write_json(const Job& job, std::string_view text);
// Appends to a file that several steps of one job share.
[[nodiscard]] Result<void> append_text(const std::string& path, const std::string& text);

}  // namespace weir::flow

#include "gate/app/command_line.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <sys/ioctl.h>
#include <unistd.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/files.hpp"

namespace weir::app {
namespace {

Action& action_slot() {
  static Action k_action;
  return k_action;
}

std::vector<std::string>& words_slot() {
  static std::vector<std::string> k_words;
  return k_words;
}

void write_all(int stream, std::string_view text) {
  std::FILE* file = stream == STDOUT_FILENO ? stdout : stderr;
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
}

}  // namespace

void add_common(CLI::App& verb, CommonOptions& options, Takes takes) {
  if (takes != Takes::runs && takes != Takes::output) {
    verb.add_option("-c,--config", options.config, "The configuration")
        ->type_name("FILE")
        ->capture_default_str()
        ->each([&options](const std::string&) { options.config_given = true; });
  }
  if (takes != Takes::config && takes != Takes::output) {
    verb.add_option("--cell", options.cells,
                    "Only cells whose name matches GLOB ('*' crosses '/'); may be repeated")
        ->type_name("GLOB")
        ->allow_extra_args(false);
  }
  if (takes == Takes::matrix || takes == Takes::measuring) {
    verb.add_option("--baselines", options.baselines, "The folder of stored baselines")
        ->type_name("DIR")
        ->capture_default_str();
  }
  if (takes != Takes::runs && takes != Takes::output) {
    verb.add_option("--out", options.out, "Where runs are kept")
        ->type_name("DIR")
        ->capture_default_str();
  }
  if (takes == Takes::measuring) {
    verb.add_flag("--counts-only", options.counts_only, "Leave the timed passes out");
  }
  verb.add_option("--json", options.json, "Write the result as JSON to FILE, or to standard output")
      ->type_name("[FILE]")
      ->expected(0, 1)
      ->default_str("-");
  verb.add_flag("-q,--quiet", options.quiet, "Only the answer, no progress");
  verb.add_option("--color", options.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
}

void refuse_option(CLI::App& verb, const std::string& names, const std::string& why) {
  verb.add_option_function<std::string>(
          names, [names, why](const std::string&) { throw CLI::ValidationError(names, why); })
      ->group("");  // not in --help
}

void set_action(CLI::App& verb, Action action) {
  verb.callback([action = std::move(action)] {
    if (words_slot().empty()) {
      action_slot() = action;
      return;
    }
    action_slot() = []() -> Result<ExitCode> {
      return fail(Code::usage, "this verb takes no program behind \"--\"");
    };
  });
}

void set_action_with_words(CLI::App& verb, Action action) {
  verb.callback([action = std::move(action)] { action_slot() = action; });
}

void take_words_behind(std::vector<std::string>& words) {
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes == words.end()) return;
  words_slot().assign(dashes + 1, words.end());
  words.erase(dashes, words.end());
}

const std::vector<std::string>& words_behind() { return words_slot(); }

const Action& chosen_action() { return action_slot(); }

ExitCode exit_code_of(Code code) {
  switch (code) {
    case Code::usage:
    case Code::config:
      return ExitCode::usage;
    case Code::interrupted:
      return ExitCode::interrupted;
    case Code::data:
    case Code::io:
    case Code::unavailable:
    case Code::internal:
      break;
  }
  return ExitCode::unmeasured;
}

void print_error(const Error& error) {
  const std::string message = text::disarm(text::printable(error.message));
  const bool color = isatty(STDERR_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  write_all(STDERR_FILENO, fmt::format("{}weir:{} {}\n", color ? "\x1B[1;31m" : "",
                                       color ? "\x1B[0m" : "", message));
}

bool colored(const CommonOptions& options, int stream) {
  if (options.color != "auto") return options.color == "always";
  const char* term = std::getenv("TERM");
  return isatty(stream) != 0 && std::getenv("NO_COLOR") == nullptr && term != nullptr &&
         std::string_view(term) != "dumb";
}

int width_of(int stream) {
  winsize size{};
  if (isatty(stream) == 0 || ioctl(stream, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return std::clamp(static_cast<int>(size.ws_col), 40, 120);
}

int answer_stream(const CommonOptions& options) {
  return options.json == "-" ? STDERR_FILENO : STDOUT_FILENO;
}

void answer(const CommonOptions& options, std::string_view text) {
  write_all(answer_stream(options), text::disarm(text));
}

void say(std::string_view text) { write_all(STDOUT_FILENO, text::disarm(text::printable(text))); }

void command(const CommonOptions& options, std::string_view text) {
  write_all(answer_stream(options), text);
}

void talk(const CommonOptions& options, std::string_view line) {
  if (!options.quiet) write_all(STDERR_FILENO, text::disarm(line) + "\n");
}

Result<void> append_text(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) return fail(Code::io, "{}: can not be written", path);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) return fail(Code::io, "{}: can not be written", path);
  return {};
}

Result<void> write_json(const CommonOptions& options, std::string_view text) {
  if (!options.json) return {};
  if (*options.json == "-") {
    write_all(STDOUT_FILENO, text);
    return {};
  }
  sys::RealFiles files;
  return files.write_atomic(*options.json, text);
}

Result<ExitCode> write_profiles(const CommonOptions& options,
                                std::span<const profile::Profile> profiles) {
  Json all = Json::array();
  bool unmeasured = false;
  for (const profile::Profile& profile : profiles) {
    all.push_back(profile::to_json(profile));
    unmeasured = unmeasured || !profile.errors.empty();
  }
  WEIR_CHECK(
      write_json(options, dump_json({{"schema", "weir.profiles/1"}, {"profiles", all}}, 1) + "\n"));
  return unmeasured ? ExitCode::unmeasured : ExitCode::pass;
}

}  // namespace weir::app

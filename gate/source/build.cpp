#include "gate/source/build.hpp"

#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/source/git.hpp"
#include "gate/sys/paths.hpp"

namespace weir::source {
namespace {

// A build that prints more than this is going round in circles.
constexpr std::uint64_t k_output_limit = std::uint64_t{1} << 30;
constexpr std::size_t k_kept_bytes = std::size_t{512} << 10;
constexpr std::size_t k_shown_lines = 20;

std::string last_lines(const std::string& text) {
  const std::string shown = text::printable(text);
  std::vector<std::string> lines = text::lines(text::trim(shown));
  if (lines.size() > k_shown_lines) {
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(k_shown_lines));
  }
  std::string all;
  for (const std::string& line : lines) all += "\n  " + line;
  return all;
}

std::string how(const sys::Finished& finished, double timeout_seconds) {
  switch (finished.ended) {
    case sys::HowEnded::exited:
      return fmt::format("exited with {}", finished.exit_code);
    case sys::HowEnded::signaled:
      return fmt::format("was ended by signal {}", finished.signal);
    case sys::HowEnded::timed_out:
      return fmt::format("did not end within {:.0f} s", timeout_seconds);
    case sys::HowEnded::output_limit:
      return fmt::format("printed more than {} bytes", k_output_limit);
    case sys::HowEnded::not_started:
      return "can not be started: " + finished.start_error;
    case sys::HowEnded::interrupted:
      break;
  }
  return "was interrupted";
}

tl::unexpected<Error> failed(const Build& build, const std::string& folder, const std::string& log,
                             const std::string& what, const sys::Finished& finished) {
  std::string message =
      fmt::format("the base could not be built: `{}` (`build:` of the engine {}) {}",
                  shell_line(build.command), text::printable(build.engine), text::printable(what));
  // Compilers complain on one stream, those who call them on the other.
  message += last_lines(finished.out) + last_lines(finished.err);
  message +=
      fmt::format("\nagain by hand: {} && {}\nall it printed: {}", shell_line({"cd", folder}),
                  shell_line(build.command), text::printable(log));
  message +=
      "\nThe base is a fresh checkout: files that git does not know (a configured build folder, "
      "for "
      "one) are not in it, so the command has to make all it needs.";
  return fail(Code::unavailable, "{}", message);
}

}  // namespace

std::string shell_line(const std::vector<std::string>& argv) {
  std::string line;
  for (const std::string& word : argv) {
    if (!line.empty()) line += ' ';
    const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             std::string_view("-_./=:,+@%").find(c) != std::string_view::npos;
    });
    if (plain) {
      line += word;
      continue;
    }
    const bool shown_as_it_is =
        text::printable(word) == word && word.find_first_of("\n\t") == std::string::npos;
    line += shown_as_it_is ? "'" : "$'";
    for (const char c : word) {
      if (c == '\'') {
        line += shown_as_it_is ? "'\\''" : "\\'";
      } else if (shown_as_it_is) {
        line += c;
      } else if (c == '\\') {
        line += "\\\\";
      } else if (c >= ' ' && c < 127) {
        line += c;
      } else {
        line += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
    }
    line += "'";
  }
  return line;
}

Result<void> run_builds(const std::vector<Build>& builds, const std::string& folder,
                        const std::string& log, double timeout_seconds, const Effects& effects) {
  std::string printed;
  const double begun = effects.clock.steady();
  for (const Build& build : builds) {
    if (build.command.empty()) continue;
    sys::ProcessSpec spec;
    spec.argv = build.command;
    const auto program = sys::find_program(effects.files, spec.argv[0], folder,
                                           sys::environment_value("PATH").value_or(""));
    if (!program) {
      return failed(build, folder, log, "can not be started: there is no such program", {});
    }
    spec.argv[0] = *program;
    spec.unset = git_variables();
    spec.env = {{"GIT_TERMINAL_PROMPT", "0"}};
    spec.folder = folder;
    spec.timeout_seconds = std::max(1.0, timeout_seconds - (effects.clock.steady() - begun));
    spec.output_limit = k_output_limit;
    spec.whole_output = false;
    spec.keep_head = spec.keep_tail = k_kept_bytes;
    WEIR_TRY(const sys::Finished finished, effects.processes.run(spec, effects.stop));
    printed += fmt::format("$ {}\n{}{}\n", shell_line(build.command), finished.out, finished.err);
    // A log that can not be written is no reason to give up what has been built.
    if (auto written = effects.files.write_atomic(log, printed); !written) {
      effects.tell(written.error().message);
    }
    if (finished.ended == sys::HowEnded::interrupted) {
      return fail(Code::interrupted, "stopped while the base was being built");
    }
    if (finished.ended != sys::HowEnded::exited || finished.exit_code != 0) {
      return failed(build, folder, log, how(finished, timeout_seconds), finished);
    }
  }
  return {};
}

}  // namespace weir::source

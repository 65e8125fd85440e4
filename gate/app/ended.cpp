#include "gate/app/ended.hpp"

#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

// A program behind "--" may print so much; what weir keeps of it is little.
constexpr std::uint64_t k_command_output_limit = std::uint64_t{256} << 20;

}  // namespace

Result<sys::ProcessSpec> command_spec(const std::vector<std::string>& command,
                                      double timeout_seconds, const sys::Files& files) {
  sys::ProcessSpec spec;
  spec.argv = command;
  const auto program =
      sys::find_program(files, command.front(), ".", sys::environment_value("PATH").value_or(""));
  if (!program) return fail(Code::usage, "no such program: {}", command.front());
  spec.argv.front() = *program;
  spec.timeout_seconds = timeout_seconds;
  spec.output_limit = k_command_output_limit;
  return spec;
}

std::string ended_words(const sys::Finished& finished, const sys::ProcessSpec& spec) {
  switch (finished.ended) {
    case sys::HowEnded::exited:
      return finished.exit_code == 0 ? ""
                                     : fmt::format("it exited with code {}", finished.exit_code);
    case sys::HowEnded::signaled:
      return fmt::format("it was ended by signal {}", finished.signal);
    case sys::HowEnded::timed_out:
      return fmt::format("it did not end within {:g} s and was stopped", spec.timeout_seconds);
    case sys::HowEnded::output_limit:
      return fmt::format("it printed more than {} MiB and was stopped", spec.output_limit >> 20);
    case sys::HowEnded::not_started:
      return "it could not be started: " + finished.start_error;
    case sys::HowEnded::interrupted:
      break;
  }
  return "it was interrupted";
}

}  // namespace weir::app

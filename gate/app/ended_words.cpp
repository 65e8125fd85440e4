#include "gate/app/ended_words.hpp"

#include <fmt/format.h>

namespace weir::app {

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

// The real files, clock, processes and terminal of this machine.
#include "gate/sys/world.hpp"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include <sys/ioctl.h>
#include <unistd.h>

#include "gate/sys/clock.hpp"
#include "gate/sys/http.hpp"
#include "gate/sys/lock.hpp"
#include "gate/sys/machine.hpp"
#include "gate/sys/process.hpp"

namespace weir::sys {
struct RealWorld::Parts {
  class RealTerminal final : public Terminal {
   public:
    void write(int stream, std::string_view text) override {
      std::FILE* file = stream == STDOUT_FILENO ? stdout : stderr;
      const bool is_complete = std::fwrite(text.data(), 1, text.size(), file) == text.size();
      const bool is_written = std::fflush(file) == 0 && is_complete;
      if (!is_written && stream == STDOUT_FILENO && errno != EPIPE) output_error = errno;
    }
    int output_error = 0;  // errno; 0: none
    [[nodiscard]] std::optional<int> columns(int stream) const override {
      if (isatty(stream) == 0) return std::nullopt;
      winsize size{};
      return ioctl(stream, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
    }
    [[nodiscard]] std::string read_input(std::size_t max_bytes) override {
      std::string text;
      char block[65536];
      for (;;) {
        const std::size_t count = std::fread(block, 1, sizeof block, stdin);
        if (count == 0) break;
        text.append(block, count);
        if (text.size() > max_bytes) break;
      }
      return text;
    }
  };

  // Creates the real object with the first process: from then on SIGPIPE is ignored, which
  // otherwise ends a verb whose reader has gone.
  class LazyProcesses final : public Processes {
   public:
    LazyProcesses(const Clock& clock, Pause& pause) : clock_(clock), pause_(pause) {}
    [[nodiscard]] Result<Finished> run(const ProcessSpec& spec, const Stop& stop) override {
      std::call_once(once_, [this] { real_.emplace(clock_, pause_); });
      return real_->run(spec, stop);
    }

   private:
    const Clock& clock_;
    Pause& pause_;
    std::once_flag once_;
    std::optional<RealProcesses> real_;
  };

  RealFiles files;
  RealClock clock;
  RealPause pause;
  LazyProcesses processes{clock, pause};
  HostLocks locks{HostLocks::default_folder(), pause};
  RealHttp http;
  RealCoin coin;
  RealMachineLoad load;
  RealTerminal terminal;
  World world{files, processes, clock, locks, http, pause, coin, load, terminal, environment_value};
};

RealWorld::RealWorld() : parts_(std::make_unique<Parts>()) {}
RealWorld::~RealWorld() = default;
World& RealWorld::world() { return parts_->world; }

std::optional<std::string> RealWorld::output_error() const {
  if (parts_->terminal.output_error == 0) return std::nullopt;
  return std::generic_category().message(parts_->terminal.output_error);
}

}  // namespace weir::sys

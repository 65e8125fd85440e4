#include "gate/run/server_process.hpp"

#include <utility>

#include <poll.h>

namespace weir::run {

ServerProcess::ServerProcess(sys::Processes& processes, sys::ProcessSpec spec,
                             const sys::Stop& stop, OnLine on_line)
    : processes_(processes),
      spec_(std::move(spec)),
      stop_(stop),
      on_line_(std::move(on_line)),
      finished_(fail(Code::internal, "the server was never started")) {
  if (on_line_) {
    spec_.heard = [this](std::string_view piece) { hear(piece); };
  }
  runner_ = std::thread([this] { run(); });
  hander_ = std::thread([this] { hand_on(); });
}

ServerProcess::~ServerProcess() { (void)end(); }

Result<sys::Finished> ServerProcess::end() {
  told_ = true;
  end_.request();
  if (runner_.joinable()) runner_.join();
  ended_.request();
  if (hander_.joinable()) hander_.join();
  return std::move(finished_);
}

void ServerProcess::run() {
  finished_ = processes_.run(spec_, end_);
  if (!told_) gone_ = true;
  over_.request();
}

// Ctrl-C ends the server as it ends engines: the second one at once.
void ServerProcess::hand_on() {
  constexpr int k_step_ms = 50;
  int handed = 0;
  while (!ended_.requested()) {
    pollfd fds[2] = {{handed > 0 ? -1 : stop_.fd(), POLLIN, 0}, {ended_.fd(), POLLIN, 0}};
    const bool blind = fds[1].fd < 0 || (handed == 0 && fds[0].fd < 0);
    (void)poll(fds, 2, handed > 0 || blind ? k_step_ms : -1);
    for (; handed < stop_.times(); ++handed) {
      told_ = true;
      over_.request();
      end_.request();
    }
  }
}

void ServerProcess::hear(std::string_view piece) {
  constexpr std::size_t k_longest = std::size_t{64} << 10;
  for (const char c : piece) {
    if (said_) return;
    if (c == '\n') {
      if (on_line_(line_)) said_ = true;
      line_.clear();
    } else if (line_.size() < k_longest && c != '\r') {
      line_ += c;
    }
  }
  // A line that is not ended yet may be all that it says.
  if (!said_ && !line_.empty() && on_line_(line_)) said_ = true;
}

}  // namespace weir::run

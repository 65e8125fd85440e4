#include "gate/sys/process.hpp"

#include <csignal>
#include <cstdlib>
#include <mutex>

#include <signal.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "gate/sys/running.hpp"

extern char** environ;

namespace weir::sys {

// The place in memory for one large output: see RealProcesses.
class RealProcesses::Place {
 public:
  // Nothing while somebody else has it.
  [[nodiscard]] static std::shared_ptr<void> try_take(const std::shared_ptr<Place>& place) {
    const std::lock_guard hold(place->mutex_);
    if (place->taken_) return nullptr;
    place->taken_ = true;
    return {place.get(), [place](void*) {
              const std::lock_guard give_back(place->mutex_);
              place->taken_ = false;
            }};
  }

 private:
  std::mutex mutex_;
  bool taken_ = false;
};

RealProcesses::RealProcesses() : place_(std::make_shared<Place>()) {
  // Telling a supervisor that was killed to stop must not end weir.
  struct sigaction now {};
  sigaction(SIGPIPE, nullptr, &now);
  if (now.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
#ifdef __GLIBC__
  // By itself glibc would keep memory as big as the biggest output for later use, in each thread.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
#endif
}

RealProcesses::~RealProcesses() = default;

Result<Finished> RealProcesses::run(const ProcessSpec& spec, const Stop& stop) {
  if (spec.argv.empty()) return fail(Code::internal, "a process needs a program to run");
  for (const std::string& argument : spec.argv) {
    if (argument.find('\0') != std::string::npos) {
      Finished finished;
      finished.ended = HowEnded::not_started;
      finished.start_error = "an argument holds a zero byte: no program can be given that";
      return finished;
    }
  }
  if (stop.requested()) {
    Finished finished;
    finished.ended = HowEnded::interrupted;
    return finished;
  }
  return run_process(spec, stop, [this] { return Place::try_take(place_); });
}

EnvironmentList own_environment() {
  EnvironmentList list;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    list.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return list;
}

std::optional<std::string> environment_value(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

}  // namespace weir::sys

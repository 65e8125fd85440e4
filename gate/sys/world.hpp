// All effects that weir has, in one argument. main makes the real ones, once; tests hand in others
// (tests/flow/fake_world.hpp).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace weir::sys {

class Clock;
class Coin;
class Files;
class Http;
class Locks;
class MachineLoad;
class Pause;
class Processes;

// The input and output streams that people and scripts use.
class Terminal {
 public:
  virtual ~Terminal() = default;
  // To standard output (1) or standard error (2), before anything that is written later to either.
  virtual void write(int stream, std::string_view text) = 0;
  // Width of the terminal at `stream`: 0 if it does not say, nothing if it is no terminal.
  [[nodiscard]] virtual std::optional<int> columns(int stream) const = 0;
  // All of standard input, a little more than `max_bytes` bytes of what is longer.
  [[nodiscard]] virtual std::string read_input(std::size_t max_bytes) = 0;
};

// References: whoever made them keeps them alive. Each is as thread-safe as its interface says.
struct World {
  Files& files;
  Processes& processes;
  const Clock& clock;
  Locks& locks;
  Http& http;
  Pause& pause;
  Coin& coin;
  const MachineLoad& load;
  Terminal& terminal;
  // A variable of weir's own environment; nothing when unset.
  std::function<std::optional<std::string>(const std::string& name)> environment;
};

class RealWorld {
 public:
  RealWorld();
  ~RealWorld();
  RealWorld(const RealWorld&) = delete;
  RealWorld& operator=(const RealWorld&) = delete;
  [[nodiscard]] World& world();
  // Why standard output could not be written, such as a full disk; nothing where it was, or where
  // its reader has gone.
  [[nodiscard]] std::optional<std::string> output_error() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::sys

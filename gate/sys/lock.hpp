// Locks that hold for the whole host, by name: two runs must not spoil each other's times.
//
// A lock is a flock on a file in a folder that all users share (WEIR_LOCK_DIR, else
// /tmp/weir-locks): gone with the process that held it, however that ended. Files are never
// removed, written or followed through links.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/sys/interrupts.hpp"

namespace weir::sys {

class Pause;

enum class Share { shared, exclusive };

struct LockWanted {
  std::string name;  // [A-Za-z0-9._-]: other characters become '-'
  Share share = Share::exclusive;

  friend bool operator==(const LockWanted&, const LockWanted&) = default;
};

// Released when destroyed.
class Held {
 public:
  virtual ~Held() = default;
};

class Locks {
 public:
  virtual ~Locks() = default;
  // All of them (taken in the order of their names, so that two callers never wait for each
  // other). Calls `waiting` once, with one line to show, when another process has one.
  // Fails with Code::interrupted on a stop, Code::io when the folder cannot be used.
  [[nodiscard]] virtual Result<std::unique_ptr<Held>> acquire(
      std::vector<LockWanted> wanted, const Stop& stop,
      const std::function<void(const std::string&)>& waiting) = 0;
};

class HostLocks final : public Locks {
 public:
  // A lock that another process has is tried again after a `pause`, which outlives this.
  HostLocks(std::string folder, Pause& pause) : folder_(std::move(folder)), pause_(pause) {}
  [[nodiscard]] Result<std::unique_ptr<Held>> acquire(
      std::vector<LockWanted> wanted, const Stop& stop,
      const std::function<void(const std::string&)>& waiting) override;

  // WEIR_LOCK_DIR's value where it is set and not empty, else the folder that all share.
  [[nodiscard]] static std::string default_folder();

 private:
  std::string folder_;
  Pause& pause_;
};

}  // namespace weir::sys

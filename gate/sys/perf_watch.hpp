// Sees performance events (perf_event_open) that the processes of an engine hold while these are
// stopped: by breakpoints and samples they can slow others down. Linux only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gate/sys/fd.hpp"

namespace weir::sys {

class PerfWatch {
 public:
  // Looks at all descendants of a process, which are stopped.
  explicit PerfWatch(std::int64_t process);

  // True if one of them holds an event, open or mapped, or hides what it holds.
  [[nodiscard]] bool has_events() const { return has_events_; }
  // True if an event has counted since, and so counts the work of other processes. False where
  // weir may not read it.
  [[nodiscard]] bool has_counted() const;

 private:
  struct Event {
    Fd descriptor;
    std::string reading;
  };
  void add_descriptors(std::int64_t process, const std::string& folder);

  bool has_events_ = false;
  std::vector<Event> events_;
};

}  // namespace weir::sys

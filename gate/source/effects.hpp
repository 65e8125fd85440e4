// What this module needs of the outside world. References: the caller keeps them alive.
#pragma once

#include <functional>
#include <string>

#include "gate/sys/clock.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/lock.hpp"
#include "gate/sys/process.hpp"

namespace weir::source {

// One line for the person who waits: something that takes long begins. May be empty.
using Say = std::function<void(const std::string&)>;

struct Effects {
  sys::Processes& processes;
  sys::Files& files;
  const sys::Clock& clock;
  sys::Locks& locks;
  Say say;
  const sys::Stop& stop;

  void tell(const std::string& line) const {
    if (say) say(line);
  }
};

}  // namespace weir::source

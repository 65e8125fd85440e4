// Holds back what the processes of a server compute (weir_probe_hold, gate/probes/format.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gate/sys/files.hpp"
#include "gate/sys/resting.hpp"

namespace weir::probes {

// One thread at a time.
class Hold {
 public:
  // Of all processes whose probes write into `folder` and can be held back.
  Hold(const sys::Files& files, const std::string& folder);
  // Whoever is held goes on.
  ~Hold() { let_go(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  // None: nothing can be held.
  [[nodiscard]] const std::vector<std::int64_t>& processes() const { return processes_; }

  // From here on a thread that is about to compute waits, until let_go() or for `seconds`.
  void begin(double seconds);
  void let_go();
  [[nodiscard]] bool is_held() const;  // a thread waits, or has waited
  [[nodiscard]] bool gave_up() const;  // one went on by itself

 private:
  struct Page {
    sys::SharedPage page;
    std::uint32_t number = 0;  // of the hold; numbers go on from what the page says
  };
  std::vector<Page> pages_;
  std::vector<std::int64_t> processes_;
};

}  // namespace weir::probes

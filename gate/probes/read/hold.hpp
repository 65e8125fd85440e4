// Makes the processes of a server wait before they compute (weir_probe_hold, gate/probes/format.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gate/sys/files.hpp"
#include "gate/sys/resting.hpp"

namespace weir::probes {

// Holds threads of a server that are about to compute. Use from one thread at a time.
class Hold {
 public:
  // Covers all processes whose probes write into `folder` and support holding.
  Hold(const sys::Files& files, const std::string& folder);
  // Releases threads that are held.
  ~Hold() { release(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  // Process ids; empty if nothing can be held.
  [[nodiscard]] const std::vector<std::int64_t>& processes() const { return processes_; }

  // Makes threads that are about to compute wait, until release() or for `seconds`.
  void begin(double seconds);
  void release();
  [[nodiscard]] bool is_held() const;  // true if a thread waits, or has waited
  [[nodiscard]] bool gave_up() const;  // true if a thread went on after `seconds`

 private:
  struct Page {
    sys::SharedPage page;
    std::uint32_t number = 0;  // the hold's, counting on from the page's last one; 0: none yet
  };
  std::vector<Page> pages_;
  std::vector<std::int64_t> processes_;
};

}  // namespace weir::probes

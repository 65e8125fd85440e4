// Holds a server's computing: sets requests in the memory-mapped files of its probes.
#include "gate/probes/read/hold.hpp"

#include <algorithm>
#include <cstddef>

#include "gate/base/text.hpp"
#include "gate/probes/format.h"
#include "gate/probes/read/bytes.hpp"
#include "gate/sys/paths.hpp"

namespace weir::probes {
namespace {

constexpr std::size_t k_hold = offsetof(weir_probe_header, hold);
constexpr std::size_t k_asked = k_hold + offsetof(weir_probe_hold, asked);
constexpr std::size_t k_let_go = k_hold + offsetof(weir_probe_hold, let_go);
constexpr std::size_t k_milliseconds = k_hold + offsetof(weir_probe_hold, milliseconds);
constexpr std::size_t k_held = k_hold + offsetof(weir_probe_hold, held);
constexpr std::size_t k_gave_up = k_hold + offsetof(weir_probe_hold, gave_up);

}  // namespace

// Opens the probe files in `folder`, at most 64, of those probes that support holding.
Hold::Hold(const sys::Files& files, const std::string& folder) {
  constexpr std::size_t k_max_processes = 64;
  const auto names = files.list(folder);
  if (!names) return;
  for (const std::string& name : *names) {
    if (!name.ends_with(WEIR_PROBE_SUFFIX) || pages_.size() == k_max_processes) continue;
    auto page = sys::SharedPage::open(sys::join_path(folder, name));
    if (!page) continue;
    const auto header =
        read_header<weir_probe_header>(page->bytes(), sizeof(weir_probe_header), WEIR_PROBE_MAGIC,
                                       WEIR_PROBE_VERSION, "probe file");
    if (!header || (header->flags & WEIR_PROBE_HOLDS) == 0) continue;
    const auto process = static_cast<std::int64_t>(header->pid);
    if (std::ranges::count(processes_, process) == 0) processes_.push_back(process);
    pages_.push_back({std::move(*page), 0});
  }
}

void Hold::begin(double seconds) {
  for (Page& entry : pages_) {
    entry.number = std::max(entry.page.get(k_asked), entry.page.get(k_let_go)) + 1;
    entry.page.set(k_milliseconds, static_cast<std::uint32_t>(seconds * 1e3));
    entry.page.set(k_asked, entry.number);
  }
}

void Hold::release() {
  for (Page& entry : pages_) {
    if (entry.number != 0) entry.page.set_and_wake(k_let_go, entry.number);
  }
}

bool Hold::is_held() const {
  return std::ranges::any_of(pages_, [](const Page& entry) {
    return entry.number != 0 && entry.page.get(k_held) == entry.number;
  });
}

bool Hold::gave_up() const {
  return std::ranges::any_of(pages_, [](const Page& entry) {
    return entry.number != 0 && entry.page.get(k_gave_up) == entry.number;
  });
}

}  // namespace weir::probes

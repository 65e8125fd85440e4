// Fuzz target: any bytes as what a probe saw happen, through the timeline to its trace and table.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "gate/observed/timeline.hpp"
#include "gate/probes/read/timeline.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::probes;
  auto events = read_event_file(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!events) return 0;
  ProbeRecord record;
  record.counts.probe = "vulkan";
  record.counts.devices.resize(1);
  record.counts.queues.resize(1);
  record.counts.kernels.resize(2);
  record.counts.graphs.resize(1U << 12);
  record.counts.transfers.resize(1);
  record.counts.ops.resize(1);
  record.events = std::move(*events);
  std::vector<ProbeRecord> records;
  records.push_back(std::move(record));
  auto timeline = make_timeline(std::move(records));
  weir::observed::align(timeline);
  for (const auto& row : weir::observed::work_times(timeline)) {
    if (row.timed > row.calls) std::abort();
  }
  return 0;
}

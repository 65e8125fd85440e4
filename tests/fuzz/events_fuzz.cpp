// Fuzz target: any bytes as what a probe saw happen, through the timeline to its trace and table.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "gate/observed/timeline.hpp"
#include "gate/probes/events.h"
#include "gate/probes/read/timeline.hpp"

namespace {

using namespace weir::probes;

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// A file whose one thread recorded this: chance alone never gets past a header of 4096 bytes.
std::string as_records(std::string_view records) {
  weir_event thread{};
  thread.kind = WEIR_EVENT_THREAD;
  thread.words = sizeof thread / 8;
  weir_events_block block{};
  block.used = static_cast<std::uint32_t>(sizeof thread + records.size());
  weir_events_header header{WEIR_EVENTS_MAGIC, WEIR_EVENTS_VERSION, WEIR_EVENTS_HEADER_SIZE};
  header.block_size = std::max<std::uint32_t>(64, sizeof block + block.used);
  header.blocks = 1;
  std::string file(bytes_of(header));
  file.resize(WEIR_EVENTS_HEADER_SIZE);
  file.append(bytes_of(block)).append(bytes_of(thread)).append(records);
  file.resize(WEIR_EVENTS_HEADER_SIZE + header.block_size);
  return file;
}

void check(std::string_view file) {
  auto events = read_event_file(file);
  if (!events) return;
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
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  check(as_records(bytes));
  return 0;
}

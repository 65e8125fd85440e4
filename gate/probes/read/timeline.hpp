// Event files -> what happened when. Pure, but for collect_timeline.
#pragma once

#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/observed/timeline.hpp"
#include "gate/probes/read/read.hpp"
#include "gate/probes/read/read_events.hpp"
#include "gate/sys/files.hpp"

namespace weir::probes {

// What one probe wrote in one process.
struct ProbeRecord {
  ProbeFile counts;  // names of kernels, queues, ops
  EventFile events;
};

// Probes of one process (by its number) become one process of the timeline. Device times are tied
// to the CPU's clock by the pairs that the probe read (a line between two of them), else by the
// earliest that a submission can have begun, else not at all, with a warning. Records that point at
// what is not there are left out and told.
[[nodiscard]] observed::Timeline make_timeline(std::vector<ProbeRecord> records);

// All probes' files in a folder, of processes that did work.
struct ProbeRecords {
  std::vector<ProbeRecord> records;
  std::vector<std::string> kept;      // the bytes that the records point into
  std::vector<std::string> warnings;  // what could not be read
};
// Fails with Code::io where the folder cannot be listed.
[[nodiscard]] Result<ProbeRecords> read_records(const sys::Files& files, const std::string& folder);

// All probes' files in `folder`. What cannot be read becomes a warning; processes that did no work
// are left out. Fails with Code::io where the folder cannot be listed.
[[nodiscard]] Result<observed::Timeline> collect_timeline(const sys::Files& files,
                                                          const std::string& folder);

}  // namespace weir::probes

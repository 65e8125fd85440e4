// Builds a timeline from event files. Pure but for read_records() and collect_timeline().
#pragma once

#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/observed/timeline.hpp"
#include "gate/probes/read/read.hpp"
#include "gate/probes/read/read_events.hpp"
#include "gate/sys/files.hpp"

namespace weir::probes {

// Both files that one probe wrote in one process.
struct ProbeRecord {
  ProbeFile counts;  // names of kernels, queues, ops
  EventFile events;
};

// Probes of one process (by its number) become one process of the timeline. Device times are
// placed on the CPU's clock by the pairs of times that the probe read, interpolated between two of
// them. Without pairs they are placed as early as submissions allow; else not at all, with a
// warning. Records that refer to missing entries are left out, with a warning.
[[nodiscard]] observed::Timeline make_timeline(std::vector<ProbeRecord> records);

// Files of all probes in a folder, without processes that did no work.
struct ProbeRecords {
  std::vector<ProbeRecord> records;
  std::vector<std::string> event_bytes;  // the records point into them
  std::vector<std::string> warnings;     // one for each unreadable file
};
// Fails with Code::io where the folder cannot be listed.
[[nodiscard]] Result<ProbeRecords> read_records(const sys::Files& files, const std::string& folder);

// The timeline of all probes' files in `folder`. Unreadable files become warnings. Fails with
// Code::io where the folder cannot be listed.
[[nodiscard]] Result<observed::Timeline> collect_timeline(const sys::Files& files,
                                                          const std::string& folder);

}  // namespace weir::probes

// Reads an event file (gate/probes/events.h, docs/reference/probe-format.md). Pure; the bytes are
// hostile.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/probes/events.h"

namespace weir::probes {

// One record. `body` points into the file's bytes and ends with padding.
struct ProbeEvent {
  std::uint16_t kind = 0;  // weir_event_kind, or a later one
  std::uint32_t index = 0;
  std::string_view body;

  // The struct that the body starts with; members that a short record lacks are 0.
  template <class T>
  [[nodiscard]] T as() const {
    T out{};
    std::memcpy(&out, body.data(), body.size() < sizeof out ? body.size() : sizeof out);
    return out;
  }
  // The bytes after the struct.
  template <class T>
  [[nodiscard]] std::string_view behind() const {
    return body.size() > sizeof(T) ? body.substr(sizeof(T)) : std::string_view();
  }
};

struct EventThread {
  std::uint32_t thread = 0;        // the system's number
  std::vector<ProbeEvent> events;  // in order
};

struct EventFile {
  std::string probe;
  std::uint32_t pid = 0;
  std::uint32_t flags = 0;
  std::uint64_t dropped = 0;    // records that found no room
  std::uint64_t recording = 0;  // CPU time that recording took, in nanoseconds, about; 0: unknown
  std::vector<EventThread> threads;
};

// The largest file that is read: the most MiB that WEIR_PROBE_EVENTS may set, and the header.
constexpr std::uint64_t k_max_events_mib = 4096;
constexpr std::uint64_t k_max_event_file_bytes = (k_max_events_mib << 20) + WEIR_EVENTS_HEADER_SIZE;

// Fails with Code::data on another kind of file, another version, and records that do not lie
// within their block. A block that a killed process left unfinished is read up to its end.
[[nodiscard]] Result<EventFile> read_event_file(std::string_view bytes);

// Names for people, of the numbers in event files. Pure.

[[nodiscard]] std::string_view copy_name(std::uint32_t kind);      // weir_copy_kind: "fill"
[[nodiscard]] std::string_view wait_name(std::uint32_t kind);      // weir_wait_kind
[[nodiscard]] std::string_view transfer_name(std::uint32_t kind);  // weir_probe_transfer_kind
// "memory barrier", "buffer+image layout barrier", "execution barrier".
[[nodiscard]] std::string barrier_name(const weir_event_barrier& barrier);

}  // namespace weir::probes

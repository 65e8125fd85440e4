// Reads an event file: blocks of records, each sorted to the thread that wrote it.
#include "gate/probes/read/read_events.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "gate/base/text.hpp"
#include "gate/probes/format.h"
#include "gate/probes/read/bytes.hpp"

namespace weir::probes {
namespace {

constexpr std::uint32_t k_min_block_bytes = 64;
constexpr std::uint32_t k_max_block_bytes = 1U << 26;

// Adds a block's records to their threads. A record with the thread's number comes first, and
// again where another thread took the block over. `indices`: into out->threads, by that number.
Result<void> read_block(std::string_view block, std::uint64_t number,
                        std::map<std::uint32_t, std::size_t>* indices, EventFile* out) {
  weir_events_block head;
  std::memcpy(&head, block.data(), sizeof head);  // a block is larger
  block.remove_prefix(sizeof head);
  if (head.used > block.size()) {
    return fail(Code::data, "event file: block {} says that {} of {} bytes are used", number,
                head.used, block.size());
  }
  block = block.substr(0, head.used);
  std::vector<ProbeEvent>* events = nullptr;  // the current thread's
  while (block.size() >= sizeof(weir_event)) {
    weir_event event;
    std::memcpy(&event, block.data(), sizeof event);
    const std::size_t size = std::size_t{event.words} * 8;
    if (size < sizeof event || size > block.size()) {
      return fail(Code::data, "event file: block {} has a record of {} bytes with {} left", number,
                  size, block.size());
    }
    if (event.kind == WEIR_EVENT_THREAD) {
      const auto [entry, inserted] = indices->try_emplace(event.index, out->threads.size());
      if (inserted) out->threads.push_back({.thread = event.index, .events = {}});
      events = &out->threads[entry->second].events;
    } else if (events != nullptr) {
      events->push_back({event.kind, event.index, block.substr(sizeof event, size - sizeof event)});
    } else {
      return fail(Code::data, "event file: block {} does not say whose it is", number);
    }
    block.remove_prefix(size);
  }
  return {};
}

// Indexed by weir_copy_kind, weir_wait_kind and weir_probe_transfer_kind. Later kinds get the last
// name.
constexpr std::string_view k_copies[] = {
    "copy buffer",        "fill",         "update",         "copy image",
    "copy query results", "copy to host", "copy to device", "copy"};
constexpr std::string_view k_waits[] = {"wait for fence",  "wait for semaphore", "wait for queue",
                                        "wait for device", "poll until done",    "wait for backend",
                                        "wait for event",  "blocking call"};
constexpr std::string_view k_transfers[] = {"copy", "set", "get", "fill", "transfer"};

template <std::size_t N>
std::string_view name_in(const std::string_view (&names)[N], std::uint32_t kind) {
  return names[std::min<std::size_t>(kind, N - 1)];
}

}  // namespace

// Reads a file of events, block by block. A last block that is cut short is ignored.
Result<EventFile> read_event_file(std::string_view bytes) {
  WEIR_TRY(const weir_events_header header,
           read_header<weir_events_header>(bytes, WEIR_EVENTS_HEADER_SIZE, WEIR_EVENTS_MAGIC,
                                           WEIR_EVENTS_VERSION, "event file"));
  if (header.header_size < sizeof header || header.header_size > bytes.size() ||
      header.block_size < k_min_block_bytes || header.block_size > k_max_block_bytes) {
    return fail(Code::data, "event file: a header of {} bytes, blocks of {}", header.header_size,
                header.block_size);
  }
  EventFile out;
  out.probe = printable_text(header.probe);
  out.pid = header.pid;
  out.flags = header.flags;
  out.dropped = header.dropped;
  out.recording = header.recording;
  std::map<std::uint32_t, std::size_t> indices;
  bytes.remove_prefix(header.header_size);
  for (std::uint64_t i = 0; i < header.blocks && bytes.size() >= header.block_size; ++i) {
    WEIR_CHECK(read_block(bytes.substr(0, header.block_size), i, &indices, &out));
    bytes.remove_prefix(header.block_size);
  }
  return out;
}

std::string_view copy_name(std::uint32_t kind) { return name_in(k_copies, kind); }
std::string_view wait_name(std::uint32_t kind) { return name_in(k_waits, kind); }
std::string_view transfer_name(std::uint32_t kind) { return name_in(k_transfers, kind); }

std::string barrier_name(const weir_event_barrier& barrier) {
  std::vector<std::string> parts;
  if (barrier.memory != 0) parts.emplace_back("memory");
  if (barrier.buffers != 0) parts.emplace_back("buffer");
  if (barrier.images != 0) parts.emplace_back("image");
  if (parts.empty()) parts.emplace_back("execution");
  std::string name = text::join(parts, "+");
  if ((barrier.flags & WEIR_BARRIER_LAYOUT) != 0) name += " layout";
  if ((barrier.flags & WEIR_BARRIER_TRANSFER) != 0) name += " ownership";
  return name + " barrier";
}

}  // namespace weir::probes

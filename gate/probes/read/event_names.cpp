#include "gate/probes/read/event_names.hpp"

#include <vector>

#include "gate/base/text.hpp"
#include "gate/probes/format.h"

namespace weir::probes {

std::string_view copy_name(std::uint32_t kind) {
  switch (kind) {
    case WEIR_COPY_BUFFER:
      return "copy buffer";
    case WEIR_COPY_FILL:
      return "fill";
    case WEIR_COPY_UPDATE:
      return "update";
    case WEIR_COPY_IMAGE:
      return "copy image";
    case WEIR_COPY_QUERY:
      return "copy query results";
    case WEIR_COPY_READ:
      return "copy to host";
    case WEIR_COPY_WRITE:
      return "copy to device";
    default:
      return "copy";
  }
}

std::string_view wait_name(std::uint32_t kind) {
  switch (kind) {
    case WEIR_WAIT_FENCE:
      return "wait for fence";
    case WEIR_WAIT_SEMAPHORE:
      return "wait for semaphore";
    case WEIR_WAIT_QUEUE:
      return "wait for queue";
    case WEIR_WAIT_DEVICE:
      return "wait for device";
    case WEIR_WAIT_POLL:
      return "poll until done";
    case WEIR_WAIT_BACKEND:
      return "wait for backend";
    case WEIR_WAIT_EVENT:
      return "wait for event";
    default:
      return "blocking call";
  }
}

std::string_view transfer_name(std::uint32_t kind) {
  switch (kind) {
    case WEIR_TRANSFER_COPY:
      return "copy";
    case WEIR_TRANSFER_SET:
      return "set";
    case WEIR_TRANSFER_GET:
      return "get";
    case WEIR_TRANSFER_FILL:
      return "fill";
    default:
      return "transfer";
  }
}

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

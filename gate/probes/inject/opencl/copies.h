// Which way a copy goes, and how many bytes it is about, by the arguments of its call.
#pragma once

#include "gate/probes/events.h"
#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {

// What a copy moves. Bytes are those that the call names, whether or not the device has to move
// them (a map on one that shares the host's memory moves none); 0: not told.
struct Moved {
  uint32_t kind;  // weir_copy_kind
  uint64_t bytes;
  cl_bool blocking = CL_FALSE;
};

inline uint64_t volume(const size_t* region) {
  return region == nullptr ? 0 : uint64_t{region[0]} * region[1] * region[2];
}

inline uint64_t image_bytes(cl_mem image, const size_t* region) {
  size_t element = 0;
  const auto ask = g.next.clGetImageInfo;
  if (ask == nullptr ||
      ask(image, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, nullptr) != CL_SUCCESS) {
    return 0;
  }
  return volume(region) * element;
}

inline uint32_t mapped_kind(cl_map_flags flags) {
  return (flags & CL_MAP_READ) != 0 ? WEIR_COPY_READ : WEIR_COPY_WRITE;
}

// Of the arguments behind the queue.
template <uint32_t kind>
struct OfBuffer {  // read, write
  template <class... Rest>
  static Moved moved(cl_mem, cl_bool blocking, size_t, size_t size, Rest...) {
    return {kind, size, blocking};
  }
};
template <uint32_t kind>
struct OfBufferRect {
  template <class... Rest>
  static Moved moved(cl_mem, cl_bool blocking, const size_t*, const size_t*, const size_t* region,
                     Rest...) {
    return {kind, volume(region), blocking};
  }
};
template <uint32_t kind>
struct OfImage {
  template <class... Rest>
  static Moved moved(cl_mem image, cl_bool blocking, const size_t*, const size_t* region, Rest...) {
    return {kind, image_bytes(image, region), blocking};
  }
};
struct CopyBuffer {
  template <class... Rest>
  static Moved moved(cl_mem, cl_mem, size_t, size_t, size_t size, Rest...) {
    return {WEIR_COPY_BUFFER, size};
  }
};
struct CopyBufferRect {
  template <class... Rest>
  static Moved moved(cl_mem, cl_mem, const size_t*, const size_t*, const size_t* region, Rest...) {
    return {WEIR_COPY_BUFFER, volume(region)};
  }
};
struct CopyImage {
  template <class... Rest>
  static Moved moved(cl_mem image, cl_mem, const size_t*, const size_t*, const size_t* region,
                     Rest...) {
    return {WEIR_COPY_IMAGE, image_bytes(image, region)};
  }
};
struct CopyImageToBuffer {
  template <class... Rest>
  static Moved moved(cl_mem image, cl_mem, const size_t*, const size_t* region, Rest...) {
    return {WEIR_COPY_IMAGE, image_bytes(image, region)};
  }
};
struct CopyBufferToImage {
  template <class... Rest>
  static Moved moved(cl_mem, cl_mem image, size_t, const size_t*, const size_t* region, Rest...) {
    return {WEIR_COPY_IMAGE, image_bytes(image, region)};
  }
};
struct FillBuffer {
  template <class... Rest>
  static Moved moved(cl_mem, const void*, size_t, size_t, size_t size, Rest...) {
    return {WEIR_COPY_FILL, size};
  }
};
struct FillImage {
  template <class... Rest>
  static Moved moved(cl_mem image, const void*, const size_t*, const size_t* region, Rest...) {
    return {WEIR_COPY_FILL, image_bytes(image, region)};
  }
};
struct SvmMemcpy {
  template <class... Rest>
  static Moved moved(cl_bool blocking, void*, const void*, size_t size, Rest...) {
    return {WEIR_COPY_BUFFER, size, blocking};
  }
};
struct SvmMap {
  template <class... Rest>
  static Moved moved(cl_bool blocking, cl_map_flags flags, void*, size_t size, Rest...) {
    return {mapped_kind(flags), size, blocking};
  }
};
struct SvmMemFill {
  template <class... Rest>
  static Moved moved(void*, const void*, size_t, size_t size, Rest...) {
    return {WEIR_COPY_FILL, size};
  }
};
struct Migration {  // what moves, if anything, the driver knows alone
  template <class... Rest>
  static Moved moved(Rest...) {
    return {WEIR_COPY_BUFFER, 0};
  }
};

}  // namespace weir_probe::opencl

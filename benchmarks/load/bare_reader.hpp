// The least that a client can do: sends one request on each of some sockets, and reads the answers
// into one buffer without parsing them.
#pragma once

#include <cstdint>
#include <string>

namespace weir::benchmarks {

struct BareRead {
  std::int64_t bytes = 0;
  double seconds = 0;      // from the first request to the last byte
  double cpu_seconds = 0;  // by the calling thread
};
// Reads until each connection has sent `bytes_each`. Aborts the program if a socket fails.
BareRead read_bare(int port, int streams, const std::string& request, std::int64_t bytes_each);

// Processor time of the calling thread, user and system.
double thread_cpu_seconds();
double steady_seconds();

}  // namespace weir::benchmarks

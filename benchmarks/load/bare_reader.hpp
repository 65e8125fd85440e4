// The least that a client can do: sends one request on each of so many sockets and reads what comes
// into one buffer that nobody looks at.
#pragma once

#include <cstdint>
#include <string>

namespace weir::benchmarks {

struct BareRead {
  std::int64_t bytes = 0;
  double seconds = 0;      // from the first request to the last byte
  double cpu_seconds = 0;  // of this thread
};
// Until each connection has brought `bytes_each`. Ends the program where a socket fails.
BareRead read_bare(int port, int streams, const std::string& request, std::int64_t bytes_each);

// Processor time of the calling thread, user and system.
double thread_cpu_seconds();
double steady_seconds();

}  // namespace weir::benchmarks

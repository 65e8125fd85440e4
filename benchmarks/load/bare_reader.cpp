// Reads streams from sockets and does nothing else, as a yardstick for the load driver.
#include "benchmarks/load/bare_reader.hpp"

#include <chrono>
#include <cstdlib>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

namespace weir::benchmarks {

double thread_cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Sends the request on `streams` connections to the local port and reads `bytes_each` from each,
// without looking at them. Aborts if a socket fails.
BareRead read_bare(int port, int streams, const std::string& request, std::int64_t bytes_each) {
  struct Connection {
    int fd = -1;
    std::int64_t bytes_to_come = 0;
  };
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  std::vector<Connection> connections;
  BareRead result;
  const double start = steady_seconds(), cpu_before = thread_cpu_seconds();
  for (int i = 0; i < streams; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        send(fd, request.data(), request.size(), 0) != static_cast<ssize_t>(request.size())) {
      std::abort();
    }
    connections.push_back({fd, bytes_each});
  }
  static char buffer[65536];
  std::vector<pollfd> watched;
  while (!connections.empty()) {
    watched.clear();
    for (const Connection& connection : connections) watched.push_back({connection.fd, POLLIN, 0});
    poll(watched.data(), watched.size(), -1);
    // From the back, so that erasing one keeps the indices of the rest.
    for (std::size_t i = watched.size(); i-- > 0;) {
      if (watched[i].revents == 0) continue;
      const ssize_t received = recv(connections[i].fd, buffer, sizeof buffer, MSG_DONTWAIT);
      if (received <= 0) std::abort();
      result.bytes += received;
      connections[i].bytes_to_come -= received;
      if (connections[i].bytes_to_come > 0) continue;
      close(connections[i].fd);
      connections.erase(connections.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  result.seconds = steady_seconds() - start;
  result.cpu_seconds = thread_cpu_seconds() - cpu_before;
  return result;
}

}  // namespace weir::benchmarks

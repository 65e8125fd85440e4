#include "gate/sys/port.hpp"

#include <cerrno>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "gate/sys/errno_words.hpp"
#include "gate/sys/fd.hpp"

namespace weir::sys {
namespace {

// A socket bound to the port (0: any) of 127.0.0.1; closed when it could not be.
Fd bound(int port) {
  Fd fd(socket(AF_INET, SOCK_STREAM, 0));
  if (!fd.open()) return fd;
  // As servers do: connections that were there before and are being given up do not matter.
  const int yes = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      listen(fd.get(), 1) != 0) {
    const int error = errno;
    fd.reset();
    errno = error;
  }
  return fd;
}

}  // namespace

Result<int> free_port() {
  const Fd fd = bound(0);
  sockaddr_in at{};
  socklen_t size = sizeof at;
  if (!fd.open() || getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    return fail(Code::io, "no port for a server: {}", errno_words());
  }
  return static_cast<int>(ntohs(at.sin_port));
}

bool is_free(int port) { return bound(port).open(); }

}  // namespace weir::sys

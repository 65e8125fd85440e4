#include "gate/app/systemd_notify.hpp"

#include <algorithm>
#include <cstddef>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "gate/sys/process.hpp"

namespace weir::app {

void notify_systemd(const std::string& state) {
  const std::string path = sys::environment_value("NOTIFY_SOCKET").value_or("");
  sockaddr_un address{};
  // '@' stands for the zero byte of an abstract name.
  if (path.size() < 2 || (path[0] != '/' && path[0] != '@') ||
      path.size() >= sizeof(address.sun_path)) {
    return;
  }
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  if (path[0] == '@') address.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  if (fd < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  (void)sendto(fd, state.data(), state.size(), 0, reinterpret_cast<const sockaddr*>(&address),
               size);
  close(fd);
}

}  // namespace weir::app

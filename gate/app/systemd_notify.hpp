// Telling systemd how it goes (sd_notify(3)): a datagram to the socket that NOTIFY_SOCKET names.
#pragma once

#include <string>

namespace weir::app {

// "READY=1". Nothing where nobody asked for it; what goes wrong is no fault of the service.
void notify_systemd(const std::string& state);

}  // namespace weir::app

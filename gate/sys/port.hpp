// A TCP port of this machine for a server that weir starts.
#pragma once

#include "gate/base/result.hpp"

namespace weir::sys {

// One that nobody listens on at 127.0.0.1 at this moment. It is not kept: whoever shall have it
// binds it soon, and may still find it taken. Fails with Code::io when the system has none to give.
[[nodiscard]] Result<int> free_port();

// Whether a server could listen there now.
[[nodiscard]] bool is_free(int port);

}  // namespace weir::sys

// The server's end of TLS 1.2 and 1.3 (OpenSSL). For use within serve alone.
#pragma once

#include <memory>

#include "gate/base/result.hpp"
#include "gate/serve/server.hpp"
#include "gate/serve/server_wire.hpp"

namespace weir::serve {

// A certificate and its key, as they are in their files now. Thread-safe.
class TlsKeeper {
 public:
  // Code::config where they can not be read or do not belong together; Code::unavailable in a
  // program that was built without TLS.
  [[nodiscard]] static Result<std::unique_ptr<TlsKeeper>> load(const Tls& files);
  virtual ~TlsKeeper() = default;
  // Looks after the files (at most once a second): new connections get what stands in them. Where
  // that is no good (half of them replaced), what was there stays, with a warning in the log.
  [[nodiscard]] virtual std::unique_ptr<Wire> wire(net::ip::tcp::socket socket) = 0;
};

}  // namespace weir::serve

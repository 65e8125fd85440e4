// The log of weir serve: one line a request, on standard error. Nothing in it can begin a line of
// its own or say something to a terminal, and no token is in it.
#pragma once

#ifdef WEIR_SERVE
#include <memory>
#include <string>

#include <spdlog/logger.h>

#include "gate/serve/service.hpp"

namespace weir::app {

enum class LogForm { text, json, none };

// Without a final newline. `now`: since the epoch.
[[nodiscard]] std::string log_line(const serve::RequestLine& line, double now, LogForm form);
[[nodiscard]] std::string log_line(const std::string& trouble, double now, LogForm form);

// To standard error; thread-safe. What the server says of itself (TLS) goes there too from now on.
[[nodiscard]] std::shared_ptr<spdlog::logger> make_log();

}  // namespace weir::app
#endif

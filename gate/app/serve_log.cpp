#include "gate/app/serve_log.hpp"

#ifdef WEIR_SERVE
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/clock.hpp"

namespace weir::app {
namespace {

constexpr std::size_t k_longest_path = 500;  // bytes

// On one line, whatever it was.
std::string flat(const std::string& text) {
  std::string one = text::disarm(text::printable(text.substr(0, k_longest_path)));
  for (char& c : one) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return one;
}

}  // namespace

std::string log_line(const serve::RequestLine& line, double now, LogForm form) {
  const double milliseconds = line.seconds * 1e3;
  if (form == LogForm::json) {
    Json json{{"time", sys::time_of(now)}, {"method", line.method}, {"path", flat(line.path)},
              {"status", line.status},     {"bytes", line.bytes},   {"milliseconds", milliseconds},
              {"peer", flat(line.peer)}};
    if (!line.token.empty()) json["token"] = line.token;
    return dump_json(json);
  }
  return fmt::format("{} {} {} {} {} bytes {:.1f} ms {}{}{}", sys::time_of(now), line.status,
                     line.method, flat(line.path), line.bytes, milliseconds, flat(line.peer),
                     line.token.empty() ? "" : " ", line.token);
}

std::string log_line(const std::string& trouble, double now, LogForm form) {
  if (form == LogForm::json) {
    return dump_json(Json{{"time", sys::time_of(now)}, {"trouble", flat(trouble)}});
  }
  return fmt::format("{} trouble {}", sys::time_of(now), flat(trouble));
}

std::shared_ptr<spdlog::logger> make_log() {
  auto log =
      std::make_shared<spdlog::logger>("weir", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  log->set_pattern("%v");
  log->flush_on(spdlog::level::info);
  auto server =
      std::make_shared<spdlog::logger>("server", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  server->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      "%Y-%m-%dT%H:%M:%SZ %l %v", spdlog::pattern_time_type::utc));
  server->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(server));
  return log;
}

}  // namespace weir::app
#endif

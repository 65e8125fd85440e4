// Bytes of a streamed answer -> its events, whatever chunks they come in. Pure.
//
// Server-sent events as WHATWG's HTML standard, 9.2.6, has them: lines end in CR, LF or CRLF, a
// blank line ends an event, a line that begins with ':' is a comment, several `data` lines are one
// text with '\n' between. Or JSON lines, as Ollama streams them: each line that is not blank is
// one.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "gate/base/result.hpp"

namespace weir::adapters {

enum class Framing { server_sent, json_lines };

struct EventLimits {
  std::size_t line_bytes = std::size_t{1} << 20;
  std::size_t event_bytes = std::size_t{1} << 20;  // its data
};

// Each event has some data. Unlike in the standard, an event with empty data is ignored: some
// servers keep a connection alive with those.
class EventReader {
 public:
  // `type` is that of the `event` field, "" where there is none (and of JSON lines).
  using Take = std::function<void(std::string_view type, std::string_view data)>;

  explicit EventReader(Framing framing, EventLimits limits = {});

  // Passes each complete event to `take`, in order. Fails with Code::data when a limit is exceeded;
  // later events are dropped, as is everything fed afterwards.
  // Any cut of the same bytes into chunks gives the same events.
  [[nodiscard]] Result<void> feed(std::string_view chunk, const Take& take);

  // Ends the stream; call it once. Passes on a last JSON line without its end. An incomplete event
  // is dropped, as the standard says; returns false if there was one.
  [[nodiscard]] bool finish(const Take& take);

 private:
  [[nodiscard]] Result<void> end_line(const Take& take);

  Framing framing_;
  EventLimits limits_;
  std::string line_, type_, data_;
  bool has_data_ = false;
  bool after_cr_ = false;  // an LF now belongs to the CR before it
  bool at_start_ = true;   // a byte order mark may come
  bool failed_ = false;
};

}  // namespace weir::adapters

// Splits a streamed answer into its events.
#include "gate/adapters/event_stream.hpp"

#include <algorithm>

namespace weir::adapters {

EventReader::EventReader(Framing framing, EventLimits limits)
    : framing_(framing), limits_(limits) {}

// Splits the chunk into lines and ends events with them. A line ends with LF, CR or CRLF, which a
// chunk may cut in two.
Result<void> EventReader::feed(std::string_view chunk, const Take& take) {
  if (failed_) return fail(Code::data, "the stream went wrong before");
  while (!chunk.empty()) {
    const bool ends_crlf = after_cr_ && chunk.front() == '\n';
    after_cr_ = false;
    if (ends_crlf) {
      chunk.remove_prefix(1);
      continue;
    }
    // In JSON lines a CR is a blank before the LF.
    const std::size_t end =
        framing_ == Framing::server_sent ? chunk.find_first_of("\r\n") : chunk.find('\n');
    const std::size_t length = std::min(end, chunk.size());
    if (length > limits_.line_bytes - std::min(line_.size(), limits_.line_bytes)) {
      failed_ = true;
      return fail(Code::data, "a line of more than {} bytes", limits_.line_bytes);
    }
    line_.append(chunk.substr(0, length));
    if (end == std::string_view::npos) return {};
    after_cr_ = chunk[end] == '\r';
    chunk.remove_prefix(end + 1);
    if (auto result = end_line(take); !result) {
      failed_ = true;
      return result;
    }
  }
  return {};
}

// Handles a complete line: a JSON line, a field of an event, or the blank line that ends an event.
Result<void> EventReader::end_line(const Take& take) {
  std::string_view line = line_;
  if (at_start_ && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  at_start_ = false;
  if (framing_ == Framing::json_lines) {
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) take("", line);
    line_.clear();
    return {};
  }
  if (line.empty()) {
    if (!data_.empty()) take(type_, data_);
    data_.clear();
    type_.clear();
    has_data_ = false;
  } else if (line.front() != ':') {
    const std::size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    std::string_view value;
    if (colon != std::string_view::npos) value = line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (name == "data") {
      if (value.size() + 1 > limits_.event_bytes - data_.size()) {
        return fail(Code::data, "an event of more than {} bytes", limits_.event_bytes);
      }
      if (has_data_) data_ += '\n';
      data_ += value;
      has_data_ = true;
    } else if (name == "event") {
      type_ = value;
    }  // `id` and `retry` are for reconnecting; other fields are ignored
  }
  line_.clear();
  return {};
}

bool EventReader::finish(const Take& take) {
  if (failed_) return false;
  const bool lines = framing_ == Framing::json_lines;
  const bool is_complete = lines || (line_.empty() && !has_data_);
  if (lines && !line_.empty()) static_cast<void>(end_line(take));
  failed_ = true;  // refuses further calls
  return is_complete;
}

}  // namespace weir::adapters

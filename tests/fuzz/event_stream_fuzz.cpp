// Fuzz target: any bytes as the stream of a server of models, through the reader of events and each
// API. Whole or byte by byte they have to mean the same; what comes out is fit to be added up.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gate/adapters/event_stream.hpp"
#include "gate/adapters/serving.hpp"

namespace {

using namespace weir::adapters;

void check(const weir::profile::ServedReport& report) {
  for (const auto& count : {report.prompt_tokens, report.cached_tokens, report.output_tokens}) {
    if (count && (*count < 0 || *count > 2'000'000'000)) std::abort();
  }
  for (const auto& seconds : {report.prompt_seconds, report.output_seconds}) {
    if (seconds && !(std::isfinite(*seconds) && *seconds >= 0)) std::abort();
  }
}

// Returns the meaning of the bytes as text.
std::string meaning(const serving::Api& api, std::string_view bytes, std::size_t step) {
  EventReader reader(api.framing, {.line_bytes = 512, .event_bytes = 512});
  std::string text;
  const auto take = [&](std::string_view type, std::string_view data) {
    if (data.empty()) std::abort();
    const auto piece = api.read(data);
    text.append(type).append(piece ? piece->text : piece.error().message).append("\n");
    if (!piece) {
      if (piece.error().message.empty()) std::abort();
      return;
    }
    check(piece->reported);
    if (piece->tokens < 0 || piece->tokens > 512) std::abort();
    text += std::to_string(piece->is_token ? piece->tokens : 0);
  };
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    if (const auto fed = reader.feed(bytes.substr(at, step), take); !fed) {
      text += fed.error().message;
      break;
    }
  }
  text += reader.finish(take) ? " whole" : " cut";
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const serving::Api& api : serving::apis()) {
    const std::string expected = meaning(api, bytes, size + 1);
    if (meaning(api, bytes, 1) != expected || meaning(api, bytes, 7) != expected) std::abort();
  }
  static_cast<void>(serving::error_answer_text(bytes));
  return 0;
}

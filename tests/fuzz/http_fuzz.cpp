// Fuzz target: any bytes as all that a connection says, through the reader of the sessions. Whole
// or octet by octet, they have to mean the same: who reads otherwise smuggles.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "gate/serve/server_reader.hpp"

namespace {

using weir::serve::RequestReader;

void check(const RequestReader& reader) {
  const auto& head = reader.head();
  if (head.target.path.empty() || head.target.path.front() != '/') std::abort();
  if (head.length && head.header("transfer-encoding") != nullptr) std::abort();
  if (!reader.http_1_0() && head.header("host") == nullptr) std::abort();
  for (std::size_t i = 0; i < head.headers.size(); ++i) {
    const auto& [name, value] = head.headers[i];
    if (head.header(name) != &value) std::abort();  // twice
    if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) std::abort();
  }
}

// Returns the meaning of the bytes as text.
std::string meaning(std::string_view bytes, std::size_t step) {
  std::string text, buffer;
  bool ended = false;
  auto reader = RequestReader::make(4096);
  for (std::size_t at = 0; at < bytes.size() && !ended; at += step) {
    buffer += bytes.substr(at, step);
    for (std::size_t taken = 1;
         !ended && (taken > 0 || reader->state() == RequestReader::State::done);) {
      taken = reader->feed(buffer);
      buffer.erase(0, taken);
      switch (reader->state()) {
        case RequestReader::State::waiting:
          check(*reader);
          text += reader->head().target.path + (reader->keep_alive() ? " +" : " -");
          reader->set_body_limit(1000);
          taken = 1;
          break;
        case RequestReader::State::done:
          if (reader->body_bytes() > 1000) std::abort();
          text += reader->take_body() + "\n";
          ended = !reader->keep_alive();
          reader = RequestReader::make(4096);
          taken = 1;
          break;
        case RequestReader::State::refused:
          if (reader->refusal().status < 400 || reader->refusal().message.empty()) std::abort();
          text += "refused";
          ended = true;
          break;
        default:
          break;
      }
    }
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096)
    return 0;  // a line between chunks may be that long, and be refused before its end
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string expected = meaning(bytes, size + 1);
  if (meaning(bytes, 1) != expected || meaning(bytes, 7) != expected) std::abort();
  return 0;
}

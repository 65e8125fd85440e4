// A client that says exactly the bytes that it is told to, right or wrong, over a socket to
// 127.0.0.1. Throws where there is no connection.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace weir::tests {

struct RawAnswer {
  int status = 0;
  std::string line;
  std::multimap<std::string, std::string> headers;  // names in lower case
  std::string body;

  [[nodiscard]] std::string header(const std::string& name) const;  // "" where there is none
};

class RawClient {
 public:
  explicit RawClient(std::uint16_t port, const std::string& address = "127.0.0.1");
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // False when the other end is gone.
  bool send(std::string_view bytes);
  // One answer; nothing where the connection ended before it had all come, or where nothing came
  // for that long. Of one to HEAD, which has no body, say so.
  std::optional<RawAnswer> answer(bool to_head = false, double seconds = 120);
  // Whether the other end closes, in that time, without a further byte.
  bool closed(double seconds = 120);
  // All until the end.
  std::string rest(double seconds = 120);
  void half_close();
  // With a RST.
  void abort();
  void small_receive_buffer();

 private:
  bool more(double seconds);

  int fd_ = -1;
  std::string buffer_;
  bool ended_ = false;
};

}  // namespace weir::tests

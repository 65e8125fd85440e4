// A client that sends exactly the given bytes, valid or not, over a socket to 127.0.0.1. Throws if
// it cannot connect.
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

  [[nodiscard]] std::string header(const std::string& name) const;  // "": no such header
};

class RawClient {
 public:
  explicit RawClient(std::uint16_t port, const std::string& address = "127.0.0.1");
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // Returns false if the peer is gone.
  bool send(std::string_view bytes);
  // Returns one answer. Nothing if the connection ended before all of it came, or if nothing came
  // for `seconds`. An answer to HEAD has no body: set `to_head`.
  std::optional<RawAnswer> answer(bool to_head = false, double seconds = 120);
  // Returns true if the other end closes in that time without a further byte.
  bool closed(double seconds = 120);
  // Returns all bytes until the end.
  std::string rest(double seconds = 120);
  void half_close();
  // Closes with a RST.
  void abort();
  void small_receive_buffer();

 private:
  bool more(double seconds);

  int fd_ = -1;
  std::string buffer_;
  bool ended_ = false;
};

}  // namespace weir::tests

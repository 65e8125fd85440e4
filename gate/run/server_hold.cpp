#include "gate/run/server_hold.hpp"

#include <numeric>

#include "gate/base/text.hpp"
#include "gate/run/server_start.hpp"

namespace weir::run {

ServerHold::ServerHold(const sys::Files& files, const std::string& folder, const std::string& url,
                       const sys::Stop& stop)
    : pages_(files, folder),
      threads_(pages_.processes()),
      port_(port_of_this_machine(url)),
      stop_(stop) {}

bool ServerHold::hold() {
  constexpr double k_longest = 60;  // that a thread waits; after it the server goes on by itself
  constexpr double k_step = 0.002;
  constexpr int k_looks = 5000;
  // What the warm-up left to do ends before.
  for (int look = 0; !threads_.rest(); ++look) {
    if (look == k_looks || !sys::RealPause().wait(k_step, stop_)) {
      why_ = threads_.awake() + " never sleeps";
      return false;
    }
  }
  // Connections of the warm-up that it closed while it came to rest are gone by now.
  const auto traffic = port_ ? threads_.traffic(*port_) : std::nullopt;
  if (!traffic) {
    why_ = "its connections cannot be seen";
    return false;
  }
  connections_before_ = traffic->connections;
  pages_.begin(k_longest);
  return true;
}

bool ServerHold::has_taken(std::int64_t requests) {
  const auto traffic = threads_.traffic(*port_);
  const bool is_read = traffic && traffic->connections == connections_before_ + requests &&
                       traffic->unread == 0 && traffic->unsent == 0;
  if (!is_read || std::exchange(asked_for_, requests) != requests) threads_.begin_again();
  const bool rests = threads_.rest();  // each time, for it looks back to the time before
  if (pages_.gave_up()) {
    why_ = "a thread that was held went on by itself";
  } else if (!is_read) {
    why_ = requests == 1 ? "request 1 was not read"
                         : fmt::format(
                               "request {} was not read, while {} are: if it reads no more "
                               "at once, give it more threads for HTTP (llama-server: "
                               "--threads-http)",
                               requests, requests - 1);
  } else if (!rests) {
    why_ = fmt::format("after request {} {} does not sleep", requests, threads_.awake());
  } else if (!pages_.is_held()) {
    why_ = "nothing was about to be computed";
  } else {
    return true;
  }
  return false;
}

std::vector<std::int64_t> held_lengths(std::int64_t tokens, std::int64_t requests) {
  const std::int64_t most = requests - 1, half = tokens / 2;
  // Steps of about the golden section visit every place, far from the one before.
  constexpr double k_golden = 0.618;
  auto step = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(k_golden * static_cast<double>(requests)));
  while (std::gcd(step, requests) != 1) --step;
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < requests; ++i) {
    const std::int64_t place = i * step % requests;
    lengths.push_back(tokens + (most == 0 ? 0 : half * (2 * place - most) / most));
  }
  return lengths;
}

}  // namespace weir::run

// Holds requests in a server's queue until all have arrived.
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

// Begins to hold the server's threads, so that requests queue up for one batch. Waits for idle
// threads first. Returns false, with `reason_` set, if that fails.
bool ServerHold::hold() {
  constexpr double k_max_wait_seconds =
      60;  // seconds that a thread waits before it goes on by itself
  constexpr double k_step_seconds = 0.002;
  constexpr int k_max_checks = 5000;
  // Wait until the server has finished the work of its warm-up.
  for (int check = 0; !threads_.all_sleep(); ++check) {
    if (check == k_max_checks || !sys::RealPause().wait(k_step_seconds, stop_)) {
      reason_ = threads_.awake() + " never sleeps";
      return false;
    }
  }
  // Connections of the warm-up that the server closed are gone by now.
  const auto traffic = port_ ? threads_.traffic(*port_) : std::nullopt;
  if (!traffic) {
    reason_ = "its connections cannot be seen";
    return false;
  }
  connections_before_ = traffic->connections;
  pages_.begin(k_max_wait_seconds);
  return true;
}

// Returns true once the server has read this number of requests and all its threads sleep. Else
// sets `reason_`. Call it again until it is true.
bool ServerHold::has_queued(std::int64_t requests) {
  const auto traffic = threads_.traffic(*port_);
  const bool is_read = traffic && traffic->connections == connections_before_ + requests &&
                       traffic->unread == 0 && traffic->unsent == 0;
  // Sleep counts only after the read, so the first call that finds it read begins again.
  const bool was_read = last_read_ == requests;
  if (!is_read || !was_read) threads_.begin_again();
  if (is_read) last_read_ = requests;
  const bool do_all_sleep =
      threads_.all_sleep();  // call it every time: it compares with the last call
  if (pages_.gave_up()) {
    reason_ = "a thread that was held went on by itself";
  } else if (!is_read) {
    reason_ = fmt::format("request {} was not read", requests);
    if (requests > 1) {
      reason_ += fmt::format(
          ", while {} are: if it reads no more at once, give it more threads for HTTP "
          "(llama-server: --threads-http)",
          requests - 1);
    }
  } else if (!do_all_sleep) {
    reason_ = fmt::format("after request {} {} does not sleep", requests, threads_.awake());
  } else if (!pages_.is_held()) {
    reason_ = "nothing was about to be computed";
  } else {
    return true;
  }
  return false;
}

// Returns a number of tokens for each of the requests. They lie evenly from half to one and a half
// times `tokens`, in an order that neither rises nor falls.
std::vector<std::int64_t> burst_token_counts(std::int64_t tokens, std::int64_t requests) {
  const std::int64_t last_place = requests - 1, half_range = tokens / 2;
  // Steps of about the golden section visit every place, each far from the one before.
  constexpr double k_golden_section = 0.618;
  auto step = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(k_golden_section * static_cast<double>(requests)));
  while (std::gcd(step, requests) != 1) --step;
  if (requests == 1) return {tokens};
  std::vector<std::int64_t> counts;
  for (std::int64_t i = 0; i < requests; ++i) {
    const std::int64_t place = i * step % requests;
    counts.push_back(tokens + half_range * (2 * place - last_place) / last_place);
  }
  return counts;
}

}  // namespace weir::run

// Sends prompts to an engine that serves and writes down what came of each, when.
//
// Closed loop: `concurrency` places, each sends its next request as soon as its last one has ended.
// Open loop: requests are sent when they are due (seeded Poisson arrivals), however many are under
// way. Either way latencies count from the intended start, so that a driver or a server that falls
// behind is seen (no coordinated omission). Request i asks prompt i mod n.
//
// One thread, no files; the server runs already (run starts and stops it). Every request ends,
// within the limits below, whole or with a named fault; one that fails takes no other with it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gate/adapters/serving.hpp"
#include "gate/base/secret.hpp"
#include "gate/profile/served.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/streams.hpp"

namespace weir::load {

struct LoadPrompt {
  std::string name;
  std::string text;
  std::int64_t max_tokens = 16;
};

struct ClosedLoop {
  std::int64_t concurrency = 1;  // 1 … 1024
};
struct OpenLoop {
  double requests_per_second = 1;
  std::uint64_t seed = 1;  // of the arrivals
  // More than this are not sent at once: later ones wait, and their latency tells.
  std::int64_t most_at_once = 1024;
};

// Requests that are all queued before the server computes anything: what batches it makes of them
// is then no matter of when each came.
class Queue {
 public:
  virtual ~Queue() = default;
  // From here on the server computes nothing. False: it cannot be held back.
  [[nodiscard]] virtual bool hold() = 0;
  // Has it taken in `requests` of them, and does nothing more? Asked again and again.
  [[nodiscard]] virtual bool has_taken(std::int64_t requests) = 0;
  virtual void let_go() = 0;
  // Why not, after a hold() or has_taken() that was never true.
  [[nodiscard]] virtual std::string why() const = 0;
};
// Requests are sent when recorded ones came, as in an open loop.
struct RecordedLoop {
  std::vector<double> arrivals;  // seconds after the beginning, in their order; of all requests
};
// All requests at once, sent one by one, each when the one before is queued. They wait for each
// other on purpose: none times out before load_seconds.
struct HeldBurst {
  Queue* queue = nullptr;
};

// How long to wait for what (a connection: StreamOptions). Seconds, above 0.
struct LoadLimits {
  double header_seconds = 60;        // from sending to a whole header
  double first_token_seconds = 120;  // from there
  double next_token_seconds = 30;    // comments and keep-alives are no tokens
  double request_seconds = 600;      // one request, all of it
  double load_seconds = 1800;        // all of them; what is under way then is ended
  double queue_seconds = 20;         // until one request of a held burst is queued
  std::int64_t answer_bytes = std::int64_t{64} << 20;
};

struct LoadPlan {
  std::string url;  // of the server, without a path: "http://127.0.0.1:8080"; a path is put before
  std::string api;  // adapters::serving::find_api
  std::string model;
  Secret token;  // sent as "Authorization: Bearer …"; empty: none
  std::vector<LoadPrompt> prompts;
  // Of each prompt, or of none: the one that is answered before it is sent, a turn of the same
  // conversation. Requests then keep their prompts' order as far as that goes.
  std::vector<std::optional<std::size_t>> after{};
  std::variant<ClosedLoop, OpenLoop, RecordedLoop, HeldBurst> loop = ClosedLoop{};
  std::int64_t requests = 1;  // 1 … 1 000 000, without the warm-up
  // No request is begun later than this after the first one; `requests` is then the most.
  std::optional<double> send_seconds{};
  std::function<void()> each_second{};  // is called about that often while the load runs
  std::int64_t warm_up = 0;             // sent one after the other beforehand, prompts in turn
  std::int64_t seed = 1;                // of sampling, which is greedy all the same
  bool own_fields = true, to_full_length = true, cached_prompts = false;  // adapters::serving::Ask
  Json more = nullptr;
  LoadLimits limits;
};

struct Load {
  std::vector<profile::ServedRequest> requests;  // in order of number, warm-up first
  std::int64_t not_sent = 0;  // of plan.requests: the load ran out of time, or was stopped
  bool interrupted = false;
  bool out_of_time = false;
  // Why a burst was not held until all of it was queued; it was then let go and sent as it came.
  std::optional<std::string> not_held{};
};

// Fails with Code::usage when the plan cannot be carried out as it stands (unknown API, no prompt,
// a number out of range); never for what the server does. When the stop is requested, what is under
// way ends as ServedFault::interrupted.
[[nodiscard]] Result<Load> drive(const LoadPlan& plan, sys::Streams& streams,
                                 const sys::Clock& clock, const sys::Stop& stop);

}  // namespace weir::load

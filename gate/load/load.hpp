// Sends prompts to an inference server, and records when each request's tokens came.
//
// Closed loop: `concurrency` places, each sends its next request as soon as its last one has ended.
// Open loop: requests are sent when they are due (seeded Poisson arrivals), however many are
// running. Latencies always count from the intended start, so that a driver or a server that falls
// behind shows (no coordinated omission). Request i sends prompt i mod n.
//
// One thread, no files; the server runs already (run starts and stops it). Every request ends
// within the limits below, complete or with a named fault. A failing request affects no other.
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
  std::uint64_t seed = 1;  // for the arrivals
  // More than this are not sent at once: later ones wait, and their latency tells.
  std::int64_t max_concurrent = 1024;
};

// Holds a server back until all requests are queued, so that its batches do not depend on when each
// request came.
class Queue {
 public:
  virtual ~Queue() = default;
  // Makes the server compute nothing from here on. False: it cannot be held back.
  [[nodiscard]] virtual bool hold() = 0;
  // Returns true once the server has queued `requests` requests and is idle. Called repeatedly.
  [[nodiscard]] virtual bool has_queued(std::int64_t requests) = 0;
  virtual void release() = 0;
  // The reason, after a hold() or has_queued() that was never true.
  [[nodiscard]] virtual std::string why() const = 0;
};
// Requests are sent when recorded ones came, as in an open loop.
struct RecordedLoop {
  std::vector<double> arrivals;  // seconds after the beginning, rising; one per request
};
// All requests are queued before the server computes the first. Each is sent when the one before is
// queued. They wait for each other on purpose: none times out before load_seconds.
struct QueuedBurst {
  Queue* queue = nullptr;
};

// Time limits in seconds, above 0 (connections: StreamOptions).
struct LoadLimits {
  double header_seconds = 60;        // from sending to a whole header
  double first_token_seconds = 120;  // from there
  double next_token_seconds = 30;    // comments and keep-alives are no tokens
  double request_seconds = 600;      // one request, all of it
  double load_seconds = 1800;        // all of them; what is under way then is ended
  double queue_seconds = 20;         // until one request of a QueuedBurst is queued
  std::int64_t answer_bytes = std::int64_t{64} << 20;
};

struct LoadPlan {
  std::string url;  // the server's: "http://127.0.0.1:8080"; may have a path, which goes first
  std::string api;  // adapters::serving::find_api
  std::string model;
  Secret token;  // sent as "Authorization: Bearer …"; empty: none
  std::vector<LoadPrompt> prompts;
  // For each prompt, or empty: the prompt that must be answered before it, a turn of the same
  // conversation. Requests otherwise keep their prompts' order.
  std::vector<std::optional<std::size_t>> after{};
  std::variant<ClosedLoop, OpenLoop, RecordedLoop, QueuedBurst> loop = ClosedLoop{};
  std::int64_t requests = 1;  // 1 … 1 000 000, without the warm-up
  // No request begins later than this after the first one; `requests` is then the maximum.
  std::optional<double> send_seconds{};
  std::function<void()> each_second{};  // is called about that often while the load runs
  std::int64_t warm_up = 0;             // sent one after the other beforehand, prompts in turn
  std::int64_t seed = 1;                // for sampling, which is greedy anyway
  bool sends_extra_fields = true, ignores_eos = true,
       allows_cached_prompts = false;  // adapters::serving::ServingRequest
  Json extra_members = nullptr;
  LoadLimits limits;
};

struct Load {
  std::vector<profile::ServedRequest> requests;  // in order of number, warm-up first
  std::int64_t not_sent = 0;  // requests of the plan that were not sent before time-out or stop
  bool interrupted = false;
  bool out_of_time = false;
  // The reason why the server was not held until all of a burst was queued. It was then sent as it
  // came.
  std::optional<std::string> hold_failure{};
};

// Fails with Code::usage when the plan cannot be carried out as it stands (unknown API, no prompt,
// a number out of range); never for what the server does. When the stop is requested, what is under
// way ends as ServedFault::interrupted.
[[nodiscard]] Result<Load> drive(const LoadPlan& plan, sys::Streams& streams,
                                 const sys::Clock& clock, const sys::Stop& stop);

}  // namespace weir::load

// Requests sent to an engine that serves, as they went: what was asked, when which token came, what
// came of it. `load` fills these, summarise() makes metrics of them. Pure.
//
// All times are seconds on one clock, whose 0 is when the driver began (before any warm-up).
// Absent is absent, never 0.
#pragma once

#include <map>
#include <span>

#include "gate/profile/likely.hpp"
#include "gate/unit/metric.hpp"

namespace weir::profile {
// Why a request is not a measurement. Each way in which a server goes wrong has a name of its own.
enum class ServedFault {
  invalid_request,    // cannot be sent: a bad URL, control characters in a header
  no_connection,      // no such host, unreachable, or not connected in time
  refused,            // no server listens there
  tls,                // the handshake failed, or the other side is not who it should be
  timeout_headers,    // sent, and no whole header of an answer in time
  timeout_token,      // no next token in time (the first one: since the header)
  timeout_total,      // tokens came, but not the end in time
  cut_off,            // the connection ended before the answer did
  bad_http,           // the answer is no HTTP that can be understood
  redirected,         // 3xx: a load is not sent to another place than the one stated
  too_many_requests,  // 429
  status,             // any other status but 200
  bad_content_type,   // not the type of the API's streams
  encoded,            // compressed, though nothing of the kind was accepted
  bad_event,          // an event that is not what the API says, or above the limits on one
  server_error,       // an error that the server reported within the stream
  unfinished,         // ended as HTTP, without the API's end of a stream ("[DONE]")
  no_token,           // whole, and not one token in it
  too_long,           // more tokens or bytes than may come
  interrupted,        // weir was stopped meanwhile, or the whole load ran out of time
  other,              // libcurl's words are in the detail
};
[[nodiscard]] std::string_view to_string(ServedFault fault);  // "timeout_headers"

struct ServedFailure {
  ServedFault fault = ServedFault::other;
  int status = 0;      // HTTP status, if the fault is about it
  std::string detail;  // fit to show (text::printable), cut in length; hostile still
  friend bool operator==(const ServedFailure&, const ServedFailure&) = default;
};

// The server's own report about a request, in `usage`, `timings` or the last line of a stream.
struct ServedReport {
  std::optional<std::int64_t> prompt_tokens{};  // all of the prompt's, those from a cache included
  std::optional<std::int64_t> cached_tokens{};  // the part taken from a prompt or prefix cache
  std::optional<std::int64_t> output_tokens{};
  // For speculative decoding: tokens that were drafted, and how many of them were right.
  std::optional<std::int64_t> drafted_tokens{}, accepted_tokens{};
  std::optional<double> prompt_seconds{};       // time that the server spent on the prompt
  std::optional<double> output_seconds{};       // and on tokens; whether the first is in it differs
  std::optional<std::string> finish{};          // "length", "stop"
  std::optional<std::string> model{}, build{};  // as the server names them; hostile text
  friend bool operator==(const ServedReport&, const ServedReport&) = default;
};

// One event of a stream that brought tokens.
struct ServedToken {
  double received_at = 0;   // when the last byte of it was there
  std::int64_t tokens = 1;  // tokens in it, if the server reports that; else 1
  friend bool operator==(const ServedToken&, const ServedToken&) = default;
};

struct ServedRequest {
  std::int64_t number = 0;  // in the order of intended starts, from 0; warm-up counts apart
  std::string prompt;       // its name
  std::int64_t asked_tokens = 0;
  bool warm_up = false;  // sent before the load; no part of any metric

  // When it should have been sent: by its arrival (open loop), or as soon as its place was free
  // (closed loop). What a client that is late adds is in every latency, for those begin here.
  double scheduled = 0;
  double sent = 0;                  // when it was handed to libcurl
  std::optional<double> connected;  // when the connection stood
  std::optional<double> answered;   // when the header of the answer was whole
  std::vector<ServedToken> tokens;  // in the order they came
  double ended = 0;                 // the last byte of the answer, or its failure
  bool kept_connection = false;     // sent on a connection that an earlier request had opened

  std::int64_t counted_tokens = 0;  // tokens of all events
  ServedReport reported;
  std::int64_t output_bytes = 0;         // bytes of text
  std::string output_digest;             // hash_hex of all text that came; "" without any
  Likely likely{};                       // if asked for; in no file
  std::optional<ServedFailure> failure;  // absent: whole, as it should be

  // Number of tokens for metrics: reported, else counted.
  [[nodiscard]] std::int64_t output_tokens() const;
  friend bool operator==(const ServedRequest&, const ServedRequest&) = default;
};

// Adds the requests of a block of a load that was sent in several, with other work between them:
// their times go on from where the block before ended, so that rates and spans are those of the
// blocks alone. Numbers go on as well.
void append_block(std::vector<ServedRequest>& all, std::vector<ServedRequest> block);

// One line of a file of requests (weir.served/1). What is absent is left out.
void fields(Fields& io, ServedRequest& request);

// Requests -> the metrics of serving. Names and definitions are those of vLLM's `bench serve`
// (vllm/benchmarks/serve.py, calculate_metrics); docs/reference/servers.md holds them beside
// GenAI-Perf's and the engines' own. Pure.
//
//   time to first token    first token − intended start
//   time per output token  (last token − first token) / (n − 1), n > 1 output tokens
//   inter-token latency    each gap between one event with tokens and the next, of all requests
//   end to end             last token − intended start (what comes behind it brings no token)
//   output tokens/s        output tokens of whole requests / span
//   requests/s, goodput    whole requests / span; of those, the ones within every objective
//   span                   first intended start … last end of any request
//
// Only whole requests are in latencies and rates; failed ones are counted by fault. vLLM begins
// each request when it is sent; here, when it should have been.
//
// Percentiles are interpolated linearly between order statistics (Hyndman and Fan's type 7), as
// numpy's, and so vLLM's, are: the same numbers give the same figures. Of n samples, percentiles
// above 1 − 1/n lie between the two largest: `samples` is there so that nobody has to guess.

// Latencies of a request with at least one token, in seconds.
struct Latencies {
  double first_token = 0, end_to_end = 0;
  std::optional<double> per_token;  // only with more than one token
};
[[nodiscard]] Latencies measure_latencies(const ServedRequest& request);

// Service level objectives: a request is good when it is whole and within each that is stated.
struct ServedObjectives {
  std::optional<double> first_token_seconds{};
  std::optional<double> per_token_seconds{};  // 0 for a request with one token, as in vLLM
  std::optional<double> end_to_end_seconds{};
  [[nodiscard]] bool any() const {
    return first_token_seconds || per_token_seconds || end_to_end_seconds;
  }
  friend bool operator==(const ServedObjectives&, const ServedObjectives&) = default;
};

struct ServedDistribution {
  std::int64_t samples = 0;  // at least 1
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, largest = 0;
  friend bool operator==(const ServedDistribution&, const ServedDistribution&) = default;
};

// Outputs of all requests with one prompt that succeeded. With greedy sampling and caches off there
// is one digest.
struct ServedOutputs {
  std::map<std::string, std::int64_t> digests;  // digest -> requests
  std::int64_t min_tokens = 0, max_tokens = 0;
  friend bool operator==(const ServedOutputs&, const ServedOutputs&) = default;
};

struct ServedSummary {
  std::int64_t requests = 0;  // warm-up left out
  std::int64_t succeeded = 0;
  std::map<ServedFault, std::int64_t> faults;
  double span_seconds = 0;

  std::optional<ServedDistribution> first_token, per_token, inter_token_gap, end_to_end;  // seconds
  std::optional<double> output_tokens_per_second, requests_per_second;
  std::optional<double> goodput;  // good requests a second; only with objectives
  std::optional<std::int64_t> met_objectives;

  std::int64_t input_tokens = 0;  // as reported, of whole requests
  std::int64_t output_tokens = 0;
  std::int64_t cached_tokens = 0;                // input tokens that servers report as cached
  std::optional<ServedDistribution> send_delay;  // sent − intended: what the driver itself added
  std::map<std::string, ServedOutputs> outputs;  // by prompt
  // Doubts: counted and reported tokens differ, a prompt came from a cache, several digests of one
  // prompt, fewer tokens than asked, no report of cached tokens, a late driver, failed requests.
  std::vector<std::string> warnings;
  friend bool operator==(const ServedSummary&, const ServedSummary&) = default;
};

// `requests` in any order; warm-up is passed over. Of none at all: everything absent.
[[nodiscard]] ServedSummary summarise(std::span<const ServedRequest> requests,
                                      const ServedObjectives& objectives = {});

// Each figure under its metric's name, in the order of the table above:
// "time_to_first_token_seconds" (its p50: what weir judges), "time_to_first_token_p90_seconds", …
// "time_per_output_token_…", "inter_token_latency_…", "end_to_end_latency_…",
// "output_tokens_per_second", "requests_per_second", "goodput_requests_per_second".
struct ServedFigure {
  unit::Metric metric;
  double value = 0;
  friend bool operator==(const ServedFigure&, const ServedFigure&) = default;
};
[[nodiscard]] std::vector<ServedFigure> figures_of(const ServedSummary& summary);

void fields(Fields& io, ServedSummary& summary);

}  // namespace weir::profile

// Requests sent to an engine that serves, as they went: what was asked, when which token came, what
// came of it. `load` fills these, served_summary.hpp makes metrics of them. Pure.
//
// All times are seconds on one clock, whose 0 is when the driver began (before any warm-up).
// Absent is absent, never 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/json.hpp"

namespace weir::profile {

// Why a request is not a measurement. Each way in which a server goes wrong has a name of its own.
enum class ServedFault {
  invalid_request,    // can not be sent: a bad URL, control characters in a header
  no_connection,      // no such host, unreachable, or not connected in time
  refused,            // nobody listens there
  tls,                // the handshake failed, or the other side is not who it should be
  timeout_headers,    // sent, and no whole header of an answer in time
  timeout_token,      // no next token in time (the first one: since the header)
  timeout_total,      // tokens came, but not the end in time
  cut_off,            // the connection ended before the answer did
  bad_http,           // what came is no HTTP that can be understood
  redirected,         // 3xx: a load is not sent to another place than the one stated
  too_many_requests,  // 429
  status,             // any other status but 200
  bad_content_type,   // not the type of the API's streams
  encoded,            // compressed, though nothing of the kind was accepted
  bad_event,          // an event that is not what the API says, or above the limits on one
  server_error,       // an error that the server told within the stream
  unfinished,         // ended as HTTP, without the API's end of a stream ("[DONE]")
  no_token,           // whole, and not one token in it
  too_long,           // more tokens or bytes than may come
  interrupted,        // weir was stopped meanwhile, or the whole load ran out of time
  other,              // libcurl's words are in the detail
};
[[nodiscard]] std::string_view to_string(ServedFault fault);  // "timeout_headers"
[[nodiscard]] std::optional<ServedFault> parse_served_fault(std::string_view text);

struct ServedFailure {
  ServedFault fault = ServedFault::other;
  int status = 0;      // of HTTP, where the fault is about it
  std::string detail;  // fit to show (text::printable), cut in length; hostile still
  friend bool operator==(const ServedFailure&, const ServedFailure&) = default;
};

// What the server itself said of a request, in `usage`, `timings` or the last line of a stream.
struct ServedReport {
  std::optional<std::int64_t> prompt_tokens{};  // all of the prompt's, those from a cache included
  std::optional<std::int64_t> cached_tokens{};  // of them, taken from a prompt or prefix cache
  std::optional<std::int64_t> output_tokens{};
  std::optional<double> prompt_seconds{};       // that the server spent on the prompt
  std::optional<double> output_seconds{};       // and on tokens; whether the first is in it differs
  std::optional<std::string> finish{};          // "length", "stop"
  std::optional<std::string> model{}, build{};  // as the server names them; hostile text
  friend bool operator==(const ServedReport&, const ServedReport&) = default;
};

// One event of a stream that brought tokens.
struct ServedToken {
  double at = 0;            // when the last byte of it was there
  std::int64_t tokens = 1;  // that it holds, where the server says; else 1
  friend bool operator==(const ServedToken&, const ServedToken&) = default;
};

struct ServedRequest {
  std::int64_t number = 0;  // in the order of intended starts, from 0; warm-up counts apart
  std::string prompt;       // its name
  std::int64_t asked_tokens = 0;
  bool warm_up = false;  // sent before the load; no part of any metric

  // When it should have been sent: by its arrival (open loop), or as soon as its place was free
  // (closed loop). What a client that is late adds is in every latency, for those begin here.
  double intended = 0;
  double sent = 0;                  // when it was handed to libcurl
  std::optional<double> connected;  // when the connection stood
  std::optional<double> answered;   // when the header of the answer was whole
  std::vector<ServedToken> tokens;  // in the order they came
  double ended = 0;                 // the last byte of the answer, or its failure
  bool kept_connection = false;     // sent on a connection that an earlier request had opened

  std::int64_t counted_tokens = 0;  // of `tokens` together
  ServedReport reported;
  std::int64_t output_bytes = 0;         // of text
  std::string output_digest;             // of all text that came (hash_hex); "" without any
  std::optional<ServedFailure> failure;  // absent: whole, as it should be

  // What metrics are made from: those reported, else those counted.
  [[nodiscard]] std::int64_t output_tokens() const;
  friend bool operator==(const ServedRequest&, const ServedRequest&) = default;
};

// Adds the requests of a block of a load that was sent in several, with other work between them:
// their times go on from where the block before ended, so that rates and spans are those of the
// blocks alone. Numbers go on as well.
void append_block(std::vector<ServedRequest>& all, std::vector<ServedRequest> block);

// One line of a file of requests (weir.served/1). What is absent is left out.
[[nodiscard]] Json to_json(const ServedRequest& request);
// Fails with Code::data when it is not that.
[[nodiscard]] Result<ServedRequest> served_request_from_json(const Json& json);

}  // namespace weir::profile

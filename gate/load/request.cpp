// Turns the events of one request's stream into its record.
#include "gate/load/request.hpp"

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"

namespace weir::load {
namespace {

using profile::ServedFault;
using StreamResult = sys::StreamEnd::What;

constexpr std::size_t k_longest_detail = 400;
constexpr std::size_t k_max_refusal_bytes = 64 << 10;
// Time limits for the body of an error answer, and for HTTP's end after the API's.
constexpr double k_refusal_seconds = 5;
constexpr double k_end_seconds = 1;

// Returns how many events a request may have. There may be more events than tokens, as a chat's
// token may come as thought and as answer.
std::int64_t max_tokens(std::int64_t requested) { return 2 * requested + 16; }

// Returns how many bytes of text a request may have. Memory is limited, as many requests may run at
// once.
std::size_t max_text_bytes(std::int64_t requested) {
  return (std::size_t{64} << 10) + 256 * static_cast<std::size_t>(requested);
}

std::string_view find_header(const sys::HttpHeaders& headers, std::string_view name) {
  const auto* match = find_first(headers, [&](const auto& pair) { return pair.first == name; });
  return match == nullptr ? std::string_view() : match->second;
}

// Returns the compression that a header names, in lower case; "" for none.
std::string content_encoding(const sys::HttpHeaders& headers) {
  const std::string content = text::lower(find_header(headers, "content-encoding"));
  if (!content.empty() && content != "identity") return content;
  const std::string transfer = text::lower(find_header(headers, "transfer-encoding"));
  return transfer.empty() || transfer == "chunked" ? "" : transfer;
}

ServedFault to_fault(StreamResult what) {
  constexpr std::pair<StreamResult, ServedFault> k_faults[] = {
      {StreamResult::invalid, ServedFault::invalid_request},
      {StreamResult::no_connection, ServedFault::no_connection},
      {StreamResult::refused, ServedFault::refused},
      {StreamResult::tls, ServedFault::tls},
      {StreamResult::cut, ServedFault::cut_off},
      {StreamResult::bad_http, ServedFault::bad_http}};
  const auto* match = find_first(k_faults, [&](const auto& pair) { return pair.first == what; });
  return match == nullptr ? ServedFault::other : match->second;
}

}  // namespace

Request::Request(const adapters::serving::Api& api, const LoadLimits& limits, double zero,
                 profile::ServedRequest begun)
    : api_(api),
      limits_(limits),
      zero_(zero),
      record_(std::move(begun)),
      reader_(api.framing),
      stage_since_(zero + record_.sent),
      sent_at_(zero + record_.sent) {}

void Request::connected(double at, bool is_reused) {
  record_.connected = since(at);
  record_.kept_connection = is_reused;
  stage_ = Stage::sent;
  stage_since_ = at;
}

// Takes the status and headers of the answer, which came at the time `at` (seconds). Returns false
// if its body need not be read.
bool Request::answered(double at, int status, const sys::HttpHeaders& headers) {
  record_.answered = since(at);
  stage_ = Stage::answered;
  stage_since_ = at;
  if (status >= 300 && status < 400) {
    fail(at, ServedFault::redirected, fmt::format("to {}", find_header(headers, "location")),
         status);
    return false;
  }
  if (const std::string encoded = content_encoding(headers); !encoded.empty()) {
    fail(at, ServedFault::encoded, encoded, status);
    return false;
  }
  if (status == 429) return refuse(ServedFault::too_many_requests, status);
  if (status != 200) return refuse(ServedFault::status, status);
  const std::string_view content_type = find_header(headers, "content-type");
  const std::string type = text::lower(text::trim(content_type.substr(0, content_type.find(';'))));
  if (type != api_.content_type) {
    fail(at, ServedFault::bad_content_type, fmt::format("\"{}\", not {}", type, api_.content_type),
         status);
    return false;
  }
  return true;
}

bool Request::refuse(ServedFault fault, int status) {
  refused_as_ = fault;
  refused_status_ = status;
  stage_ = Stage::refusing;
  return true;
}

// Takes a chunk of the body: events of the stream, or the text of a refusal. Returns false if no
// more is needed.
bool Request::bytes(double at, std::string_view chunk) {
  if (over_) return false;
  if (stage_ == Stage::refusing) {
    refusal_.append(chunk.substr(0, k_max_refusal_bytes - refusal_.size()));
    if (refusal_.size() < k_max_refusal_bytes) return true;
    fail(at, refused_as_, adapters::serving::error_answer_text(refusal_), refused_status_);
    return false;
  }
  answer_bytes_ += static_cast<std::int64_t>(chunk.size());
  if (answer_bytes_ > limits_.answer_bytes) {
    fail(at, ServedFault::too_long, fmt::format("more than {} bytes", limits_.answer_bytes));
    return false;
  }
  const auto fed = reader_.feed(
      chunk, [&](std::string_view type, std::string_view data) { handle_event(at, type, data); });
  if (!fed && !over_) fail(at, ServedFault::bad_event, fed.error().message);
  return !over_;
}

// Handles one event of the stream, which came at `at`: an error, or a piece of the answer.
void Request::handle_event(double at, std::string_view type, std::string_view data) {
  if (over_ || stage_ == Stage::stream_ended) return;
  if (type == "error") {
    fail(at, ServedFault::server_error, adapters::serving::error_answer_text(data));
    return;
  }
  const auto piece = api_.read(data);
  if (!piece) {
    fail(at, ServedFault::bad_event, piece.error().message);
  } else if (piece->error) {
    fail(at, ServedFault::server_error, *piece->error);
  } else {
    handle_piece(at, *piece);
  }
}

// Adds the text, tokens and reported numbers of a piece to the record. Fails the request if it is
// longer than it may be.
void Request::handle_piece(double at, const adapters::serving::StreamPiece& piece) {
  adapters::serving::replace_reported_parts(record_.reported, piece.reported);
  if (text_.size() + piece.text.size() > max_text_bytes(record_.asked_tokens)) {
    fail(at, ServedFault::too_long,
         fmt::format("more than {} bytes of text", max_text_bytes(record_.asked_tokens)));
    return;
  }
  text_ += piece.text;
  for (const profile::LikelyTokens& position : piece.likely) {
    if (record_.likely.size() < profile::k_likely_positions)
      record_.likely.push_back(profile::hashed(position));
  }
  const std::int64_t new_tokens = piece.tokens_so_far.value_or(0) - record_.counted_tokens;
  if (piece.is_token || new_tokens > 0) {
    const std::int64_t tokens = std::max(new_tokens, piece.is_token ? piece.tokens : 1);
    record_.tokens.push_back({since(at), tokens});
    record_.counted_tokens += tokens;
    stage_ = Stage::streaming;
    stage_since_ = at;
    if (record_.counted_tokens > max_tokens(record_.asked_tokens)) {
      fail(at, ServedFault::too_long,
           fmt::format("{} tokens came, {} were asked for", record_.counted_tokens,
                       record_.asked_tokens));
      return;
    }
  }
  if (piece.is_last) {
    stage_ = Stage::stream_ended;
    stage_since_ = at;
  }
}

// Takes the end of the connection, and decides if the request succeeded or which fault it had.
void Request::ended(double at, const sys::StreamEnd& end) {
  if (over_) return;
  if (stage_ == Stage::refusing) {
    fail(at, refused_as_, adapters::serving::error_answer_text(refusal_), refused_status_);
    return;
  }
  bool is_event_complete = true;
  if (end.what == StreamResult::complete && stage_ != Stage::stream_ended) {
    is_event_complete = reader_.finish(
        [&](std::string_view type, std::string_view data) { handle_event(at, type, data); });
    if (over_) return;
  }
  // After the API's end of the stream, it does not matter how the connection ended.
  if (stage_ == Stage::stream_ended) {
    finish(at);
  } else if (end.what == StreamResult::complete) {
    fail(at, ServedFault::unfinished,
         is_event_complete ? "the answer ended before the stream did"
                           : "the answer ended in the middle of an event");
  } else {
    fail(at, to_fault(end.what), end.message);
  }
}

void Request::finish(double at) {
  if (record_.counted_tokens == 0) {
    fail(at, ServedFault::no_token,
         fmt::format("the server reports {}", record_.reported.output_tokens.value_or(0)));
    return;
  }
  record_.output_digest = hash_hex(text_);
  close(at);
}

void Request::close(double at) {
  record_.ended = since(at);
  record_.output_bytes = static_cast<std::int64_t>(text_.size());
  over_ = true;
  over_at_ = at;
}

void Request::fail(double at, ServedFault fault, std::string_view detail, int status) {
  if (over_) return;
  std::string shown = text::printable(detail.substr(0, k_longest_detail));
  std::ranges::replace(shown, '\n', ' ');
  record_.failure = profile::ServedFailure{fault, status, std::move(shown)};
  if (!text_.empty()) record_.output_digest = hash_hex(text_);
  close(at);
}

double Request::deadline() const {
  const double last = sent_at_ + limits_.request_seconds;
  if (stage_ == Stage::connecting) return last;
  return std::min(stage_since_ + stage_seconds(), last);
}

// Returns how many seconds the present stage may last. Connecting is limited by StreamOptions.
double Request::stage_seconds() const {
  switch (stage_) {
    case Stage::connecting:
      break;
    case Stage::sent:
      return limits_.header_seconds;
    case Stage::answered:
      return limits_.first_token_seconds;
    case Stage::streaming:
      return limits_.next_token_seconds;
    case Stage::stream_ended:
      return k_end_seconds;
    case Stage::refusing:
      return k_refusal_seconds;
  }
  return limits_.request_seconds;
}

// Ends a request that took too long, with the fault of the stage in which it was waiting. After the
// stream's end it succeeded all the same.
void Request::give_up(double at) {
  const bool is_request_limit = at >= sent_at_ + limits_.request_seconds;
  switch (stage_) {
    case Stage::connecting:
      return fail(at, ServedFault::no_connection, "not connected in time");
    case Stage::sent:
      return fail(at, ServedFault::timeout_headers,
                  fmt::format("no answer within {:.3g} s",
                              is_request_limit ? limits_.request_seconds : limits_.header_seconds));
    case Stage::answered:
    case Stage::streaming:
      if (is_request_limit) {
        return fail(at, ServedFault::timeout_total,
                    fmt::format("not over within {:.3g} s", limits_.request_seconds));
      }
      return fail(at, ServedFault::timeout_token,
                  stage_ == Stage::answered
                      ? fmt::format("no token within {:.3g} s", limits_.first_token_seconds)
                      : fmt::format("no next token within {:.3g} s, after {}",
                                    limits_.next_token_seconds, record_.counted_tokens));
    case Stage::stream_ended:
      finish(stage_since_);
      over_at_ = at;
      return;
    case Stage::refusing:
      return fail(at, refused_as_, adapters::serving::error_answer_text(refusal_), refused_status_);
  }
}

void Request::interrupt(double at, std::string_view why) {
  fail(at, ServedFault::interrupted, why);
}

}  // namespace weir::load

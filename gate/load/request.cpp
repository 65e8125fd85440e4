#include "gate/load/request.hpp"

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"

namespace weir::load {
namespace {

using profile::ServedFault;
using Ended = sys::StreamEnd::What;

constexpr std::size_t k_longest_detail = 400;
constexpr std::size_t k_most_refusal_bytes = 64 << 10;
// For the words of an answer that is no stream, and for HTTP's end behind the API's.
constexpr double k_refusal_seconds = 5;
constexpr double k_end_seconds = 1;

// Events may be more than tokens (a chat's token may come as thought and as answer), but an answer
// that goes on and on is to be ended before its bytes are too many.
std::int64_t most_tokens(std::int64_t asked) { return 2 * asked + 16; }

// No token is that long, and many requests may be under way.
std::size_t most_text(std::int64_t asked) {
  return (std::size_t{64} << 10) + 256 * static_cast<std::size_t>(asked);
}

std::string_view header(const sys::HttpHeaders& headers, std::string_view name) {
  const auto* found = first_of(headers, [&](const auto& one) { return one.first == name; });
  return found == nullptr ? std::string_view() : found->second;
}

// Of compression, in either of the headers that may name one.
std::string encoding(const sys::HttpHeaders& headers) {
  const std::string content = text::lower(header(headers, "content-encoding"));
  if (!content.empty() && content != "identity") return content;
  const std::string transfer = text::lower(header(headers, "transfer-encoding"));
  return transfer.empty() || transfer == "chunked" ? "" : transfer;
}

ServedFault fault_of(Ended what) {
  constexpr std::pair<Ended, ServedFault> k_faults[] = {
      {Ended::invalid, ServedFault::invalid_request},
      {Ended::no_connection, ServedFault::no_connection},
      {Ended::refused, ServedFault::refused},
      {Ended::tls, ServedFault::tls},
      {Ended::cut, ServedFault::cut_off},
      {Ended::bad_http, ServedFault::bad_http}};
  const auto* found = first_of(k_faults, [&](const auto& one) { return one.first == what; });
  return found == nullptr ? ServedFault::other : found->second;
}

}  // namespace

Request::Request(const adapters::serving::Api& api, const LoadLimits& limits, double zero,
                 profile::ServedRequest begun)
    : api_(api),
      limits_(limits),
      zero_(zero),
      record_(std::move(begun)),
      reader_(api.framing),
      stage_at_(zero + record_.sent),
      sent_at_(zero + record_.sent) {}

void Request::connected(double at, bool kept) {
  record_.connected = since(at);
  record_.kept_connection = kept;
  stage_ = Stage::sent;
  stage_at_ = at;
}

bool Request::answered(double at, int status, const sys::HttpHeaders& headers) {
  record_.answered = since(at);
  stage_ = Stage::answered;
  stage_at_ = at;
  if (status >= 300 && status < 400) {
    fail(at, ServedFault::redirected, fmt::format("to {}", header(headers, "location")), status);
    return false;
  }
  if (const std::string encoded = encoding(headers); !encoded.empty()) {
    fail(at, ServedFault::encoded, encoded, status);
    return false;
  }
  if (status == 429) return refuse(ServedFault::too_many_requests, status);
  if (status != 200) return refuse(ServedFault::status, status);
  const std::string_view said = header(headers, "content-type");
  const std::string type = text::lower(text::trim(said.substr(0, said.find(';'))));
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

bool Request::bytes(double at, std::string_view chunk) {
  if (over_) return false;
  if (stage_ == Stage::refusing) {
    refusal_.append(chunk.substr(0, k_most_refusal_bytes - refusal_.size()));
    if (refusal_.size() < k_most_refusal_bytes) return true;
    fail(at, refused_as_, adapters::serving::error_words(refusal_), refused_status_);
    return false;
  }
  answer_bytes_ += static_cast<std::int64_t>(chunk.size());
  if (answer_bytes_ > limits_.answer_bytes) {
    fail(at, ServedFault::too_long, fmt::format("more than {} bytes", limits_.answer_bytes));
    return false;
  }
  const auto fed = reader_.feed(
      chunk, [&](std::string_view type, std::string_view data) { take_event(at, type, data); });
  if (!fed && !over_) fail(at, ServedFault::bad_event, fed.error().message);
  return !over_;
}

void Request::take_event(double at, std::string_view type, std::string_view data) {
  if (over_ || stage_ == Stage::told_end) return;
  if (type == "error") {
    fail(at, ServedFault::server_error, adapters::serving::error_words(data));
    return;
  }
  const auto piece = api_.read(data);
  if (!piece) {
    fail(at, ServedFault::bad_event, piece.error().message);
  } else if (piece->error) {
    fail(at, ServedFault::server_error, *piece->error);
  } else {
    take_piece(at, *piece);
  }
}

void Request::take_piece(double at, const adapters::serving::Piece& piece) {
  adapters::serving::merge(record_.reported, piece.reported);
  if (text_.size() + piece.text.size() > most_text(record_.asked_tokens)) {
    fail(at, ServedFault::too_long,
         fmt::format("more than {} bytes of text", most_text(record_.asked_tokens)));
    return;
  }
  text_ += piece.text;
  for (const profile::LikelyTokens& one : piece.likely) {
    if (record_.likely.size() < profile::k_likely_positions)
      record_.likely.push_back(profile::hashed(one));
  }
  const std::int64_t held = piece.so_far.value_or(0) - record_.counted_tokens;
  if (piece.is_token || held > 0) {
    const std::int64_t tokens = std::max(held, piece.is_token ? piece.tokens : 1);
    record_.tokens.push_back({since(at), tokens});
    record_.counted_tokens += tokens;
    stage_ = Stage::streaming;
    stage_at_ = at;
    if (record_.counted_tokens > most_tokens(record_.asked_tokens)) {
      fail(at, ServedFault::too_long,
           fmt::format("{} tokens came, {} were asked for", record_.counted_tokens,
                       record_.asked_tokens));
      return;
    }
  }
  if (piece.is_last) {
    stage_ = Stage::told_end;
    stage_at_ = at;
  }
}

void Request::ended(double at, const sys::StreamEnd& end) {
  if (over_) return;
  if (stage_ == Stage::refusing) {
    fail(at, refused_as_, adapters::serving::error_words(refusal_), refused_status_);
    return;
  }
  bool whole_events = true;
  if (end.what == Ended::complete && stage_ != Stage::told_end) {
    whole_events = reader_.finish(
        [&](std::string_view type, std::string_view data) { take_event(at, type, data); });
    if (over_) return;
  }
  // All that the API has to say was said: how the connection ended then does not matter.
  if (stage_ == Stage::told_end) {
    finish(at);
  } else if (end.what == Ended::complete) {
    fail(at, ServedFault::unfinished,
         whole_events ? "the answer ended before the stream did"
                      : "the answer ended in the middle of an event");
  } else {
    fail(at, fault_of(end.what), end.message);
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
  const double of_stage = stage_ == Stage::sent        ? limits_.header_seconds
                          : stage_ == Stage::answered  ? limits_.first_token_seconds
                          : stage_ == Stage::streaming ? limits_.next_token_seconds
                          : stage_ == Stage::told_end  ? k_end_seconds
                                                       : k_refusal_seconds;
  return std::min(stage_at_ + of_stage, last);
}

void Request::give_up(double at) {
  const bool total = at >= sent_at_ + limits_.request_seconds;
  switch (stage_) {
    case Stage::connecting:
      return fail(at, ServedFault::no_connection, "not connected in time");
    case Stage::sent:
      return fail(at, ServedFault::timeout_headers,
                  fmt::format("no answer within {:.3g} s",
                              total ? limits_.request_seconds : limits_.header_seconds));
    case Stage::answered:
    case Stage::streaming:
      if (total) {
        return fail(at, ServedFault::timeout_total,
                    fmt::format("not over within {:.3g} s", limits_.request_seconds));
      }
      return fail(at, ServedFault::timeout_token,
                  stage_ == Stage::answered
                      ? fmt::format("no token within {:.3g} s", limits_.first_token_seconds)
                      : fmt::format("no next token within {:.3g} s, after {}",
                                    limits_.next_token_seconds, record_.counted_tokens));
    case Stage::told_end:
      finish(stage_at_);
      over_at_ = at;
      return;
    case Stage::refusing:
      return fail(at, refused_as_, adapters::serving::error_words(refusal_), refused_status_);
  }
}

void Request::interrupt(double at, std::string_view why) {
  fail(at, ServedFault::interrupted, why);
}

}  // namespace weir::load

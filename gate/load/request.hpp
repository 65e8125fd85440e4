// One running request: turns the events of its stream into a ServedRequest, and knows how long to
// wait for the next one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gate/adapters/serving.hpp"
#include "gate/load/load.hpp"
#include "gate/profile/served.hpp"
#include "gate/sys/streams.hpp"

namespace weir::load {

// Moments are on Clock::steady(); those in the record count from `zero`.
class Request final : public sys::StreamSink {
 public:
  // `begun`: number, prompt, asked_tokens, warm_up, intended and sent are known.
  Request(const adapters::serving::Api& api, const LoadLimits& limits, double zero,
          profile::ServedRequest begun);

  void connected(double at, bool is_reused) override;
  bool answered(double at, int status, const sys::HttpHeaders& headers) override;
  bool bytes(double at, std::string_view chunk) override;
  void ended(double at, const sys::StreamEnd& end) override;

  // True once the record is complete.
  [[nodiscard]] bool is_over() const { return over_; }
  // The moment since which it is over. Later than the record's end if we waited for HTTP's end.
  [[nodiscard]] double over_at() const { return over_at_; }
  // The moment at which waiting ends, unless something comes before.
  [[nodiscard]] double deadline() const;
  // Ends it because its deadline has passed, or because weir stops. The caller drops its stream.
  void give_up(double at);
  void interrupt(double at, std::string_view why);

  // Once it is over.
  [[nodiscard]] profile::ServedRequest take() { return std::move(record_); }

 private:
  enum class Stage {
    connecting,
    sent,
    answered,      // the header came, no token yet
    streaming,     // tokens came
    stream_ended,  // the API's end came; HTTP's is to follow
    refusing,      // the answer is no stream: its words are read
  };
  void handle_event(double at, std::string_view type, std::string_view data);
  void handle_piece(double at, const adapters::serving::StreamPiece& piece);
  bool refuse(profile::ServedFault fault, int status);
  void fail(double at, profile::ServedFault fault, std::string_view detail = "", int status = 0);
  void finish(double at);
  void close(double at);
  [[nodiscard]] double stage_seconds() const;
  [[nodiscard]] double since(double at) const { return at - zero_; }

  const adapters::serving::Api& api_;
  const LoadLimits& limits_;
  double zero_;
  profile::ServedRequest record_;
  adapters::EventReader reader_;
  Stage stage_ = Stage::connecting;
  double stage_since_ = 0;  // begin of the stage, or the last token's moment
  double sent_at_ = 0;
  bool over_ = false;
  double over_at_ = 0;
  std::int64_t answer_bytes_ = 0;
  std::string text_;     // text of all tokens
  std::string refusal_;  // the body of an answer that is no stream
  profile::ServedFault refused_as_ = profile::ServedFault::other;
  int refused_status_ = 0;
};

}  // namespace weir::load

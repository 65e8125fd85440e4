// One request under way: takes what its stream says and writes it into a ServedRequest; says how
// long to wait for what comes next.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gate/adapters/serving.hpp"
#include "gate/load/load.hpp"
#include "gate/profile/served.hpp"
#include "gate/sys/streams.hpp"

namespace weir::load {

// Moments come and go on Clock::steady(); the record's count from `zero`.
class Request final : public sys::StreamSink {
 public:
  // `begun`: number, prompt, asked_tokens, warm_up, intended and sent are known.
  Request(const adapters::serving::Api& api, const LoadLimits& limits, double zero,
          profile::ServedRequest begun);

  void connected(double at, bool kept) override;
  bool answered(double at, int status, const sys::HttpHeaders& headers) override;
  bool bytes(double at, std::string_view chunk) override;
  void ended(double at, const sys::StreamEnd& end) override;

  // Nothing more will come of it.
  [[nodiscard]] bool is_over() const { return over_; }
  // Since when; after the record's end where more was waited for than came.
  [[nodiscard]] double over_at() const { return over_at_; }
  // When waiting ends, unless something comes before.
  [[nodiscard]] double deadline() const;
  // Ends it because that moment has come, or because weir stops. Its stream is to be dropped.
  void give_up(double at);
  void interrupt(double at, std::string_view why);

  // Once it is over.
  [[nodiscard]] profile::ServedRequest take() { return std::move(record_); }

 private:
  enum class Stage {
    connecting,
    sent,
    answered,   // the header came, no token yet
    streaming,  // tokens came
    told_end,   // the API's end came; HTTP's is to follow
    refusing,   // the answer is no stream: its words are read
  };
  void take_event(double at, std::string_view type, std::string_view data);
  void take_piece(double at, const adapters::serving::Piece& piece);
  bool refuse(profile::ServedFault fault, int status);
  void fail(double at, profile::ServedFault fault, std::string_view detail = "", int status = 0);
  void finish(double at);
  void close(double at);
  [[nodiscard]] double since(double at) const { return at - zero_; }

  const adapters::serving::Api& api_;
  const LoadLimits& limits_;
  double zero_;
  profile::ServedRequest record_;
  adapters::EventReader reader_;
  Stage stage_ = Stage::connecting;
  double stage_at_ = 0;  // when it began, or the last token came
  double sent_at_ = 0;
  bool over_ = false;
  double over_at_ = 0;
  std::int64_t answer_bytes_ = 0;
  std::string text_;     // of all tokens
  std::string refusal_;  // the body of an answer that is no stream
  profile::ServedFault refused_as_ = profile::ServedFault::other;
  int refused_status_ = 0;
};

}  // namespace weir::load

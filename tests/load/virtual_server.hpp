// A server, a network and a clock that are made of numbers: time passes only where the driver
// waits.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gate/sys/streams.hpp"

namespace weir::load {

class VirtualClock final : public sys::Clock {
 public:
  double at = 1000;
  [[nodiscard]] double now() const override { return at; }
  [[nodiscard]] double steady() const override { return at; }
};

// The answer to a request: seconds after it was sent, in order. Bytes "" are the header (200, an
// event stream); the last entry ends the answer well.
struct VirtualAnswer {
  std::vector<std::pair<double, std::string>> says;
  bool ends = true;
};

class VirtualStreams final : public sys::Streams {
 public:
  using Answer = std::function<VirtualAnswer(std::size_t number, double sent_at)>;
  VirtualStreams(VirtualClock& clock, Answer answer) : clock_(clock), answer_(std::move(answer)) {}

  double overhead = 0;  // the driver's own time for sending one request
  std::size_t max_concurrent = 0;

  Id post(const sys::StreamRequest&, sys::StreamSink& sink) override {
    const Id id = ++last_;
    sinks_[id] = &sink;
    max_concurrent = std::max(max_concurrent, sinks_.size());
    const VirtualAnswer answer = answer_(id - 1, clock_.at);
    news_.emplace(clock_.at, News{id, Kind::connected, ""});
    double at = clock_.at;
    for (const auto& [after, bytes] : answer.says) {
      at = clock_.at + after;
      news_.emplace(at, News{id, bytes.empty() ? Kind::answered : Kind::bytes, bytes});
    }
    if (answer.ends) news_.emplace(at, News{id, Kind::ended, ""});
    clock_.at += overhead;
    return id;
  }
  void drop(Id id) override { sinks_.erase(id); }
  void wait(double until, const sys::Stop& stop) override {
    if (stop.requested()) return;
    if (news_.empty() || news_.begin()->first > std::max(until, clock_.at)) {
      clock_.at = std::max(clock_.at, until);
      return;
    }
    clock_.at = std::max(clock_.at, news_.begin()->first);
    while (!news_.empty() && news_.begin()->first <= clock_.at) {
      const auto [at, news] = *news_.begin();
      news_.erase(news_.begin());
      const auto match = sinks_.find(news.id);
      if (match == sinks_.end()) continue;
      if (!tell(at, news, *match->second)) sinks_.erase(news.id);
    }
  }

 private:
  enum class Kind { connected, answered, bytes, ended };
  struct News {
    Id id = 0;
    Kind kind = Kind::ended;
    std::string bytes;
  };
  bool tell(double at, const News& news, sys::StreamSink& sink) {
    switch (news.kind) {
      case Kind::connected:
        sink.connected(at, false);
        return true;
      case Kind::answered:
        return sink.answered(at, 200, {{"content-type", "text/event-stream"}});
      case Kind::bytes:
        return sink.bytes(at, news.bytes);
      case Kind::ended:
        break;
    }
    sinks_.erase(news.id);
    sink.ended(at, {sys::StreamEnd::What::complete, ""});
    return false;
  }

  VirtualClock& clock_;
  Answer answer_;
  Id last_ = 0;
  std::map<Id, sys::StreamSink*> sinks_;
  std::multimap<double, News> news_;  // in order of moments, then as they were added
};

}  // namespace weir::load

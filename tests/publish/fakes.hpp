// Fakes of the clock and of HTTP: time passes only while somebody waits, answers are written in
// advance.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "gate/publish/github.hpp"

namespace weir::tests {

class FakeTime final : public sys::Clock, public sys::Pause {
 public:
  double time = 1'800'000'000;
  std::vector<double> waits;
  const sys::Stop* stopped_amid = nullptr;  // a wait ends with a stop

  [[nodiscard]] double now() const override { return time; }
  [[nodiscard]] double steady() const override { return time; }
  bool wait(double seconds, const sys::Stop& stop) override {
    waits.push_back(seconds);
    if (stopped_amid == &stop) return false;
    time += seconds;
    return true;
  }
};

class FixedCoin final : public sys::Coin {
 public:
  bool side = false;
  bool flip() override { return side; }
};

class FakeHttp final : public sys::Http {
 public:
  using Answer = tl::expected<sys::HttpResponse, sys::HttpFailure>;
  std::deque<Answer> answers;  // the last one stays
  std::vector<sys::HttpRequest> requests;
  std::vector<sys::HttpLimits> limits;
  FakeTime* time = nullptr;
  double seconds_each = 0;

  Answer send(const sys::HttpRequest& request, const sys::HttpLimits& limit,
              const sys::Stop&) override {
    requests.push_back(request);
    limits.push_back(limit);
    if (time != nullptr) time->time += seconds_each;
    Answer answer = answers.front();
    if (answers.size() > 1) answers.pop_front();
    return answer;
  }
};

}  // namespace weir::tests

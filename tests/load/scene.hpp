// A load on a StreamServer through libcurl, in a line.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "gate/load/load.hpp"

#include "tests/load/scripts.hpp"
#include "tests/load/stream_server.hpp"

namespace weir::load {

// One request of 4 tokens, with limits that no machine is slow enough to reach by chance.
inline LoadPlan plan_for(const std::string& url, const std::string& api = "completions") {
  LoadPlan plan;
  plan.url = url;
  plan.api = api;
  plan.model = "m";
  plan.prompts = {{"hello", "Hello world", 4}};
  plan.limits = {.header_seconds = 60,
                 .first_token_seconds = 60,
                 .next_token_seconds = 60,
                 .request_seconds = 60,
                 .load_seconds = 120,
                 .answer_bytes = 1 << 20};
  return plan;
}

inline Load drive_for_real(const LoadPlan& plan, sys::StreamOptions options = {}) {
  const sys::RealClock clock;
  const sys::Stop stop;
  const auto streams = sys::real_streams(clock, options);
  auto load = drive(plan, *streams, clock, stop);
  if (!load) {
    ADD_FAILURE() << load.error().message;
    return {};
  }
  return std::move(*load);
}

// Returns "whole", or the fault's name.
inline std::string outcome(const profile::ServedRequest& request) {
  return request.failure ? std::string(profile::to_string(request.failure->fault)) : "whole";
}
inline std::string failure_text(const profile::ServedRequest& request) {
  return request.failure ? request.failure->detail : "";
}

}  // namespace weir::load

// The three parts of post(), for post.cpp alone.
#pragma once

#include <memory>

#include "gate/publish/post.hpp"

namespace weir::publish {

// All refer to what they are given as long as they live.
struct Job {
  Api& api;
  const Target& target;
  const Texts& texts;
  const PostOptions& options;

  [[nodiscard]] Marker marker() const { return {options.gate, target.run}; }
};
[[nodiscard]] std::unique_ptr<Poster> comment_poster(const Job& job);
[[nodiscard]] std::unique_ptr<Poster> check_poster(const Job& job);
[[nodiscard]] std::unique_ptr<Poster> status_poster(const Job& job);

}  // namespace weir::publish

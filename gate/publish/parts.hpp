// What the three parts of post() are made of. Used by this module alone.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gate/publish/post.hpp"

namespace weir::publish {

// What a required check is content with.
[[nodiscard]] inline bool is_green(std::string_view conclusion) {
  return conclusion == "success" || conclusion == "neutral";
}

// A check run that is there, as far as posting and `/weir accept` look at it.
struct SeenCheck {
  std::int64_t id = 0, annotations = 0;
  Marker marker;
  std::string conclusion, title, summary, text, details_url, url;

  [[nodiscard]] bool green() const { return is_green(conclusion); }
};
// Those of the app's on a commit that bear `marker`'s name: the latest of each pull request.
struct SeenChecks {
  std::optional<SeenCheck> own;  // of the same gate, pull request and base
  std::vector<SeenCheck> others;
};
// Nothing where they may not be read.
[[nodiscard]] Result<SeenChecks> seen_checks(Api& api, const Target& target, const Marker& marker,
                                             std::string_view app);
// The open pull request of the same head and base whose check is red, for more than this one's
// sake: GitHub shows one check of a name, so that a green of ours would stand for it as well.
[[nodiscard]] Result<std::optional<std::int64_t>> says_otherwise(Api& api, const Target& target,
                                                                 const SeenChecks& checks);

// All refer to what they are given as long as they live.
struct Job {
  Api& api;
  const Target& target;
  const Texts& texts;
  const PostOptions& options;
};

// What one part does in turn. Each has a bounded number of requests.
class Poster {
 public:
  Poster(const Job& job, std::string name) : job_(job) { part_.name = std::move(name); }
  virtual ~Poster() = default;
  virtual void start() = 0;
  // Whether another poster may be at the same: look() some time later.
  [[nodiscard]] bool unsettled() const { return unsettled_; }
  virtual void look() = 0;
  [[nodiscard]] virtual Part part() const { return part_; }

 protected:
  [[nodiscard]] Marker marker() const { return job_.target.marker(job_.options.gate); }
  // Below the repository.
  template <class... Args>
  [[nodiscard]] std::string at(fmt::format_string<Args...> path, Args&&... args) const {
    return "/repos/" + job_.target.repository + fmt::format(path, std::forward<Args>(args)...);
  }
  void take(std::int64_t id, const std::string& url, Part::Outcome outcome) {
    part_.id = id;
    part_.url = url;
    part_.outcome = outcome;
  }
  // What is there is left alone where it shows a newer run.
  bool is_superseded(const RunNumber& shown, std::int64_t id, const std::string& url) {
    if (!newer(shown, job_.target.run)) return false;
    take(id, url, Part::Outcome::superseded);
    part_.reason = fmt::format("it shows a newer run, {}", shown.id);
    return true;
  }
  void fail_with(const Error& error) {
    part_.outcome = Part::Outcome::failed;
    part_.reason = error.message;
    unsettled_ = false;
  }

  const Job job_;
  Part part_;
  bool unsettled_ = false;
};
[[nodiscard]] std::unique_ptr<Poster> comment_poster(const Job& job);
[[nodiscard]] std::unique_ptr<Poster> check_poster(const Job& job);
[[nodiscard]] std::unique_ptr<Poster> status_poster(const Job& job);

}  // namespace weir::publish

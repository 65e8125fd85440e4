// The base of the three posters, and the check runs of a commit. Only this module includes it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gate/publish/post.hpp"

namespace weir::publish {

// Returns true if a required check accepts the conclusion.
[[nodiscard]] inline bool is_green_conclusion(std::string_view conclusion) {
  return conclusion == "success" || conclusion == "neutral";
}

// A check run on GitHub, with the members that posting and `/weir waive` need.
struct ExistingCheck {
  std::int64_t id = 0, annotations = 0;
  Marker marker;
  std::string conclusion, title, summary, text, details_url, url;

  [[nodiscard]] bool is_green() const { return is_green_conclusion(conclusion); }
};
// The app's check runs on a commit with the name of `marker`: the latest of each pull request.
struct ExistingChecks {
  std::optional<ExistingCheck> own;  // for the same gate, pull request and base
  std::vector<ExistingCheck> others;
};
// Returns no check runs if the token may not read them.
[[nodiscard]] Result<ExistingChecks> find_checks(Api& api, const Target& target,
                                                 const Marker& marker, std::string_view app);
// Returns the open pull request of the same head and base whose check is red by its own verdict.
// GitHub shows one check of a name, so a green check of ours would count for it as well.
[[nodiscard]] Result<std::optional<std::int64_t>> find_red_pull_request(
    Api& api, const Target& target, const ExistingChecks& checks);

// The inputs of a poster, which must outlive it.
struct Job {
  Api& api;
  const Target& target;
  const Texts& texts;
  const PostOptions& options;
};

// Posts one part: start(), then look() while is_unsettled(). Each step sends a bounded number of
// requests.
class Poster {
 public:
  Poster(const Job& job, std::string name) : job_(job) { part_.name = std::move(name); }
  virtual ~Poster() = default;
  virtual void start() = 0;
  // Returns true if another poster may have posted at the same time: call look() some time later.
  [[nodiscard]] bool is_unsettled() const { return unsettled_; }
  virtual void look() = 0;
  [[nodiscard]] virtual Part part() const { return part_; }

 protected:
  [[nodiscard]] Marker marker() const { return job_.target.marker(job_.options.gate); }
  // Returns the path of an API call below the repository.
  template <class... Args>
  [[nodiscard]] std::string at(fmt::format_string<Args...> path, Args&&... args) const {
    return "/repos/" + job_.target.repository + fmt::format(path, std::forward<Args>(args)...);
  }
  void take(std::int64_t id, const std::string& url, Part::Outcome outcome) {
    part_.id = id;
    part_.url = url;
    part_.outcome = outcome;
  }
  // Returns true if the post that is there shows a newer run, and so is left alone.
  bool is_superseded(const RunNumber& shown, std::int64_t id, const std::string& url) {
    if (!is_newer(shown, job_.target.run)) return false;
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

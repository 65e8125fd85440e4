// The sticky comment. What is seen in a list may be old, what is got by its id is not: so a list
// only says which comments to ask for.
#include <algorithm>
#include <set>

#include "gate/publish/api.hpp"
#include "gate/publish/parts.hpp"

namespace weir::publish {
namespace {

constexpr std::size_t k_most_comments = 10'000;
constexpr int k_most_creations = 2;

struct Seen {
  std::int64_t id = 0;
  std::string body, url;
  Json by;  // {"user": …}
  Marker marker;
};

// Nothing where it does not bear a marker of the same.
std::optional<Seen> seen_of(const Json& json, const Marker& own) {
  Seen seen;
  seen.id = number_in(json, "id");
  seen.body = text_in(json, "body");
  seen.url = link_in(json, "html_url");
  seen.by = {{"user", below(json, "user")}};
  const auto marker = marker_of(seen.body);
  if (seen.id <= 0 || !marker || !marker->of_the_same(own)) return std::nullopt;
  seen.marker = *marker;
  return seen;
}

class CommentPoster final : public Poster {
 public:
  explicit CommentPoster(const Job& job)
      : Poster(job, "comment"), body_(marker().hidden() + "\n" + job.texts.comment) {}

  void start() override {
    if (!job_.target.pull_request) {
      part_.reason = "no pull request is known";
      return;
    }
    if (job_.texts.reach == Texts::Reach::nothing) return;
    if (const auto begun = begin(); !begun) fail_with(begun.error());
  }

  void look() override {
    // One more look after an edit is enough: it is the newest of those that race that has to stay.
    if (!created_ && posted()) unsettled_ = false;
    ++looks_;
    const auto looked = look_again();
    // What was posted before the look, or had no need to be, stands all the same.
    if (!looked && (posted() || !may_create())) {
      part_.warnings.push_back("whether another poster left a comment is not known: " +
                               looked.error().message);
      unsettled_ = false;
      return;
    }
    if (!looked && looks_ >= 3) fail_with(looked.error());
  }

  [[nodiscard]] Part part() const override {
    Part part = part_;
    if (lost_ && !posted()) {
      part.outcome = Part::Outcome::failed;
      part.reason = lost_->message;
    }
    if (part.outcome == Part::Outcome::left_out && part.reason.empty()) {
      part.reason = job_.texts.reach_reason;
    }
    return part;
  }

 private:
  [[nodiscard]] bool posted() const {
    return part_.outcome != Part::Outcome::left_out && part_.outcome != Part::Outcome::failed;
  }

  [[nodiscard]] bool may_create() const { return job_.texts.reach == Texts::Reach::create; }

  Result<void> begin() {
    WEIR_TRY(const std::vector<Seen> seen, marked());
    WEIR_TRY(const bool there, settle_on(seen));
    if (there) {
      unsettled_ = part_.outcome == Part::Outcome::edited;
      return {};
    }
    if (may_create()) return create();
    // An older poster may be about to make one that this one's word belongs into.
    unsettled_ = true;
    return {};
  }

  Result<void> look_again() {
    WEIR_TRY(std::vector<Seen> seen, marked());
    if (made_ && std::ranges::none_of(seen, [&](const Seen& one) { return one.id == made_->id; })) {
      seen.push_back(*made_);  // lists lag
    }
    WEIR_TRY(const bool there, settle_on(seen));
    if (there) {
      lost_.reset();
      return {};
    }
    // Whoever removed it left no other one; or the answer was lost and the comment never made.
    if (!may_create() || (lost_ && looks_ < 2) || creations_ >= k_most_creations) return {};
    return create();
  }

  // Those of this gate that are ours.
  Result<std::vector<Seen>> marked() {
    WEIR_TRY(const Json list,
             job_.api.list(at("/issues/{}/comments", *job_.target.pull_request), k_most_comments));
    std::vector<Seen> found;
    for (const Json& json : list) {
      auto seen = seen_of(json, marker());
      if (!seen || not_ours_.contains(seen->id)) continue;
      WEIR_TRY(const bool ours, own_.wrote(seen->by));
      if (ours) found.push_back(std::move(*seen));
    }
    return found;
  }

  Result<void> create() {
    ++creations_;
    const auto answer = job_.api.send("POST", at("/issues/{}/comments", *job_.target.pull_request),
                                      {{"body", body_}});
    created_ = unsettled_ = true;
    if (!answer) {  // it may have been made: look() finds out
      lost_ = answer.error();
      return {};
    }
    if (!fine(*answer)) {
      created_ = false;
      return refused(*answer, " (the token needs pull-requests: write)");
    }
    lost_.reset();
    made_ = seen_of(answer->body, marker());
    if (!made_) {
      // GitHub answers with what it made. Whatever this was, look() finds the comment, or not.
      lost_ = Error{Code::data, "the answer to creating it is not a comment"};
      return {};
    }
    own_.learn(made_->by);
    take(made_->id, made_->url, Part::Outcome::created);
    return {};
  }

  // Makes the lowest of them say what is to be said, unless it is newer, and removes the others:
  // ours, and those that an older poster left. False where none of them is there any more.
  Result<bool> settle_on(std::vector<Seen> seen) {
    std::ranges::sort(seen, {}, &Seen::id);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      WEIR_TRY(const bool kept, keep(seen[i].id));
      if (!kept) continue;
      for (std::size_t k = i + 1; k < seen.size(); ++k) {
        if (!newer(seen[k].marker.run, job_.target.run)) remove(seen[k].id);
      }
      if (made_ && seen[i].id < made_->id) created_ = false;
      return true;
    }
    return false;
  }

  // False where it is gone, or is not ours after all.
  Result<bool> keep(std::int64_t id) {
    const std::string path = at("/issues/comments/{}", id);
    WEIR_TRY(const ApiResponse got, job_.api.get(path));
    const auto now = fine(got) ? seen_of(got.body, marker()) : std::nullopt;
    if (!now) return false;
    Part::Outcome before = lost_ ? Part::Outcome::created : Part::Outcome::unchanged;
    if (part_.id == id && posted()) before = part_.outcome;
    if (is_superseded(now->marker.run, now->id, now->url)) return true;
    if (as_written(now->body) == as_written(body_)) {
      take(now->id, now->url, before);
      return true;
    }
    WEIR_TRY(const ApiResponse edited, job_.api.send("PATCH", path, {{"body", body_}}));
    if (edited.status == 403 || edited.status == 404) {
      not_ours_.insert(id);
      return false;
    }
    if (!fine(edited)) return refused(edited);
    take(now->id, now->url,
         made_ && made_->id == id ? Part::Outcome::created : Part::Outcome::edited);
    return true;
  }

  void remove(std::int64_t id) {
    const auto answer = job_.api.call({.method = "DELETE", .path = at("/issues/comments/{}", id)});
    if (answer && (fine(*answer) || answer->status == 404)) return;
    part_.warnings.push_back(fmt::format("a second comment ({}) could not be removed: {}", id,
                                         answer ? refusal(*answer) : answer.error().message));
  }

  const std::string body_;
  OwnLogin own_{job_.api, job_.options.app};
  std::optional<Seen> made_;
  std::optional<Error> lost_;  // of a creation whose answer never came
  bool created_ = false;       // or tried to, and no lower one has been seen
  int looks_ = 0, creations_ = 0;
  std::set<std::int64_t> not_ours_;
};

}  // namespace

std::unique_ptr<Poster> comment_poster(const Job& job) {
  return std::make_unique<CommentPoster>(job);
}

}  // namespace weir::publish

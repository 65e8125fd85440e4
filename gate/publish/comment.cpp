// Posts the sticky comment.
//
// A list of comments may be outdated, a comment got by its id is not. So lists only say which
// comments to ask for.
#include <algorithm>
#include <set>

#include "gate/publish/api.hpp"
#include "gate/publish/parts.hpp"

namespace weir::publish {
namespace {

constexpr std::size_t k_max_comments = 10'000;
constexpr int k_max_creations = 2;

// A comment on GitHub with a marker.
struct ExistingComment {
  std::int64_t id = 0;
  std::string body, url;
  Json author;  // {"user": …}
  Marker marker;
};

// Reads a comment; nothing if it has no marker of the same gate, pull request and base.
std::optional<ExistingComment> read_comment(const Json& json, const Marker& own) {
  ExistingComment comment;
  comment.id = number_in(json, "id");
  comment.body = text_in(json, "body");
  comment.url = link_in(json, "html_url");
  comment.author = {{"user", member_or_null(json, "user")}};
  const auto marker = parse_comment_marker(comment.body);
  if (comment.id <= 0 || !marker || !marker->is_same_place(own)) return std::nullopt;
  comment.marker = *marker;
  return comment;
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
    // After an edit one more look is enough: of posters that race only the newest has to stay.
    if (!may_have_rival_ && posted()) unsettled_ = false;
    ++looks_;
    const auto result = look_again();
    // A look that fails is no failure if the comment is posted already, or none is needed.
    if (!result && (posted() || !may_create())) {
      part_.warnings.push_back("whether another poster left a comment is not known: " +
                               result.error().message);
      unsettled_ = false;
      return;
    }
    if (!result && looks_ >= 3) fail_with(result.error());
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
    WEIR_TRY(const std::vector<ExistingComment> comments, find_comments());
    WEIR_TRY(const bool there, settle(comments));
    if (there) {
      unsettled_ = part_.outcome == Part::Outcome::edited;
      return {};
    }
    if (may_create()) return create();
    // An older poster may be about to make a comment, which this verdict then has to replace.
    unsettled_ = true;
    return {};
  }

  // Settles on one comment again, and makes one if ours is gone or was never made.
  Result<void> look_again() {
    WEIR_TRY(std::vector<ExistingComment> comments, find_comments());
    const bool lacks_own =
        own_comment_ && std::ranges::none_of(comments, [&](const ExistingComment& comment) {
          return comment.id == own_comment_->id;
        });
    if (lacks_own) comments.push_back(*own_comment_);  // lists lag
    WEIR_TRY(const bool there, settle(comments));
    if (there) {
      lost_.reset();
      return {};
    }
    // No comment is left: somebody removed ours, or it was never made and the answer was lost.
    if (!may_create() || (lost_ && looks_ < 2) || creations_ >= k_max_creations) return {};
    return create();
  }

  // Lists the comments with our marker that we wrote.
  Result<std::vector<ExistingComment>> find_comments() {
    WEIR_TRY(const Json list,
             job_.api.list(at("/issues/{}/comments", *job_.target.pull_request), k_max_comments));
    std::vector<ExistingComment> comments;
    for (const Json& json : list) {
      auto comment = read_comment(json, marker());
      if (!comment || not_ours_.contains(comment->id)) continue;
      WEIR_TRY(const bool ours, own_.is_own(comment->author));
      if (ours) comments.push_back(std::move(*comment));
    }
    return comments;
  }

  // Makes the comment. An answer that is lost leaves it to look() to find out if it is there.
  Result<void> create() {
    ++creations_;
    const auto answer = job_.api.send("POST", at("/issues/{}/comments", *job_.target.pull_request),
                                      {{"body", body_}});
    may_have_rival_ = true;
    unsettled_ = true;
    if (!answer) {
      lost_ = answer.error();
      return {};
    }
    if (!is_success(*answer)) {
      may_have_rival_ = false;
      return refusal_error(*answer, " (the token needs pull-requests: write)");
    }
    lost_.reset();
    own_comment_ = read_comment(answer->body, marker());
    if (!own_comment_) {
      // GitHub answers with the comment. For any other answer look() finds out if it is there.
      lost_ = Error{Code::data, "the answer to creating it is not a comment"};
      return {};
    }
    own_.learn(own_comment_->author);
    take(own_comment_->id, own_comment_->url, Part::Outcome::created);
    return {};
  }

  // Makes the lowest comment show this verdict, unless it shows a newer one, and removes the others
  // that are ours or an older poster's. Returns false if none of them is there any more.
  Result<bool> settle(std::vector<ExistingComment> comments) {
    std::ranges::sort(comments, {}, &ExistingComment::id);
    for (std::size_t i = 0; i < comments.size(); ++i) {
      WEIR_TRY(const bool is_there, update(comments[i].id));
      if (!is_there) continue;
      for (std::size_t k = i + 1; k < comments.size(); ++k) {
        if (!is_newer(comments[k].marker.run, job_.target.run)) remove(comments[k].id);
      }
      if (own_comment_ && comments[i].id < own_comment_->id) may_have_rival_ = false;
      return true;
    }
    return false;
  }

  // Makes a comment show this verdict, unless it shows a newer one. Returns false if it is gone, or
  // is not ours after all.
  Result<bool> update(std::int64_t id) {
    const std::string path = at("/issues/comments/{}", id);
    WEIR_TRY(const ApiResponse answer, job_.api.get(path));
    const auto comment = is_success(answer) ? read_comment(answer.body, marker()) : std::nullopt;
    if (!comment) return false;
    // A comment whose creation had no answer counts as created.
    Part::Outcome outcome = lost_ ? Part::Outcome::created : Part::Outcome::unchanged;
    if (part_.id == id && posted()) outcome = part_.outcome;
    if (is_superseded(comment->marker.run, comment->id, comment->url)) return true;
    if (normalize_body(comment->body) == normalize_body(body_)) {
      take(comment->id, comment->url, outcome);
      return true;
    }
    WEIR_TRY(const ApiResponse edited, job_.api.send("PATCH", path, {{"body", body_}}));
    if (edited.status == 403 || edited.status == 404) {
      not_ours_.insert(id);
      return false;
    }
    if (!is_success(edited)) return refusal_error(edited);
    take(comment->id, comment->url,
         own_comment_ && own_comment_->id == id ? Part::Outcome::created : Part::Outcome::edited);
    return true;
  }

  void remove(std::int64_t id) {
    const auto answer = job_.api.call({.method = "DELETE", .path = at("/issues/comments/{}", id)});
    if (answer && (is_success(*answer) || answer->status == 404)) return;
    part_.warnings.push_back(fmt::format("a second comment ({}) could not be removed: {}", id,
                                         answer ? refusal_text(*answer) : answer.error().message));
  }

  const std::string body_;
  OwnLogin own_{job_.api, job_.options.app};
  std::optional<ExistingComment> own_comment_;  // the comment that this poster made
  std::optional<Error> lost_;                   // error of a creation whose answer never came
  // True if a comment was made, or may have been, and no lower one is known.
  bool may_have_rival_ = false;
  int looks_ = 0, creations_ = 0;
  std::set<std::int64_t> not_ours_;
};

}  // namespace

std::unique_ptr<Poster> comment_poster(const Job& job) {
  return std::make_unique<CommentPoster>(job);
}

}  // namespace weir::publish

// The check run. GitHub shows the latest of a name, adds the annotations of each request to those
// that are there and removes none: so a check run is edited where its annotations are among ours,
// and else another one takes its place.
#include <algorithm>
#include <map>

#include "gate/base/encode.hpp"
#include "gate/base/text.hpp"
#include "gate/publish/api.hpp"
#include "gate/publish/parts.hpp"

namespace weir::publish {
namespace {

constexpr std::size_t k_most_annotations = 10'000;

Json to_json(const report::CheckAnnotation& annotation) {
  Json json = {{"path", annotation.path},
               {"start_line", annotation.line},
               {"end_line", annotation.line},
               {"annotation_level", annotation.level},
               {"message", annotation.message}};
  if (!annotation.title.empty()) json["title"] = annotation.title;
  return json;
}

bool same(const Json& there, const report::CheckAnnotation& ours) {
  return text_in(there, "path") == ours.path && number_in(there, "start_line") == ours.line &&
         text_in(there, "annotation_level") == ours.level &&
         text_in(there, "message") == ours.message && text_in(there, "title") == ours.title;
}

class CheckPoster final : public Poster {
 public:
  explicit CheckPoster(const Job& job) : Poster(job, "check run") {}

  void start() override {
    if (job_.target.sha.empty()) {
      part_.reason = "no commit is known";
      return;
    }
    note(settle(/*create=*/true));
  }

  void look() override {
    ++looks_;
    // One more look after an edit is enough: it is the newest of those that race that has to stay.
    if (!made_ && !lost_) unsettled_ = false;
    note(settle(/*create=*/lost_ && looks_ >= 2));
  }

  [[nodiscard]] Part part() const override {
    Part part = part_;
    const std::optional<Error>& problem = trouble_ ? trouble_ : lost_;
    if (!problem) return part;
    if (part.id > 0) {  // it is there and says the verdict
      part.warnings.push_back(problem->message);
    } else {
      part.outcome = Part::Outcome::failed;
      part.reason = problem->message;
    }
    return part;
  }

 private:
  // A later look that succeeds ends the trouble.
  void note(const Result<void>& result) {
    trouble_ = result ? std::nullopt : std::optional<Error>(result.error());
  }

  // Makes our latest check run say what is to be said, unless it is newer.
  Result<void> settle(bool create) {
    WEIR_TRY(const SeenChecks seen, seen_checks(job_.api, job_.target, marker(), job_.options.app));
    const std::optional<SeenCheck>& there = seen.own;
    if (there && is_superseded(there->marker.run, there->id, there->url)) return {};
    WEIR_CHECK(hold(seen));
    if (!there) return create ? make() : Result<void>();
    if (there->id < part_.id) return {};  // ours is later, and a list that lags hides it
    if (lost_ && there->marker.run == job_.target.run) {
      take(there->id, there->url, Part::Outcome::created);
      made_ = true;
      lost_.reset();
    }
    if (is_hidden(seen)) return make();
    WEIR_TRY(const auto missing, missing_of(*there));
    if (missing) return edit(*there, *missing);
    // Annotations of a run before this one cannot be taken off it.
    return create && !made_ ? make() : Result<void>();
  }

  [[nodiscard]] bool green() const { return is_green(check_.conclusion); }

  // A green waits while another pull request of the same head and base is red.
  Result<void> hold(const SeenChecks& seen) {
    check_ = job_.texts.check;
    held_ = false;
    if (!green()) return {};
    WEIR_TRY(const auto other, says_otherwise(job_.api, job_.target, seen));
    if (!other) return {};
    held_ = true;
    check_.conclusion = "failure";
    check_.title = one_line(
        fmt::format(
            "{}pull request {} has the same commit and base, and its check is red \u00b7 {}",
            report::k_not_judged, *other, check_.title),
        250);
    return {};
  }

  // GitHub shows the latest of a name, which is another pull request's and says otherwise.
  [[nodiscard]] bool is_hidden(const SeenChecks& seen) const {
    return std::ranges::any_of(seen.others, [&](const SeenCheck& other) {
      return other.id > std::max(seen.own->id, part_.id) &&
             (green() ? other.marker.held : other.green());
    });
  }

  // Which of ours it lacks; nothing where it has others.
  Result<std::optional<std::vector<report::CheckAnnotation>>> missing_of(const SeenCheck& there) {
    std::vector<report::CheckAnnotation> missing = job_.texts.check.annotations;
    if (there.annotations == 0) return missing;
    WEIR_TRY(const Json list,
             job_.api.list(at("/check-runs/{}/annotations", there.id), k_most_annotations));
    for (const Json& json : list) {
      const auto found = std::ranges::find_if(
          missing, [&](const report::CheckAnnotation& ours) { return same(json, ours); });
      if (found == missing.end()) return std::nullopt;
      missing.erase(found);
    }
    return missing;
  }

  [[nodiscard]] Json request(const std::vector<report::CheckAnnotation>& annotations,
                             std::size_t from) const {
    Json batch = Json::array();
    const std::size_t end = std::min(annotations.size(), from + report::k_annotations_in_request);
    for (std::size_t i = from; i < end; ++i) batch.push_back(to_json(annotations[i]));
    // An empty text takes away what an earlier verdict could be allowed.
    Json output = {{"title", check_.title}, {"summary", check_.summary}, {"text", check_.text}};
    if (!batch.empty()) output["annotations"] = std::move(batch);
    Json body = {{"name", check_name(marker())},
                 {"external_id", held_marker().text()},
                 {"status", "completed"},
                 {"conclusion", check_.conclusion},
                 {"output", std::move(output)}};
    if (!job_.target.run_url.empty()) body["details_url"] = job_.target.run_url;
    return body;
  }

  [[nodiscard]] Marker held_marker() const {
    Marker own = marker();
    own.held = held_;
    return own;
  }

  Result<void> make() {
    const auto& annotations = job_.texts.check.annotations;
    Json body = request(annotations, 0);
    body["head_sha"] = job_.target.sha;
    const auto answer = job_.api.send("POST", at("/check-runs"), std::move(body));
    if (!answer) {  // it may have been made: look() finds out
      unsettled_ = true;
      lost_ = answer.error();
      return {};
    }
    lost_.reset();
    if (!fine(*answer)) {
      return refused(*answer,
                     " (check runs need the token of an app, such as the runner's own, with "
                     "checks: write; the commit status says the same)");
    }
    made_ = unsettled_ = true;
    take(number_in(answer->body, "id"), link_in(answer->body, "html_url"), Part::Outcome::created);
    return send_rest(part_.id, annotations);
  }

  Result<void> edit(const SeenCheck& there, const std::vector<report::CheckAnnotation>& missing) {
    const bool as_it_is = missing.empty() && there.marker.text() == held_marker().text() &&
                          there.conclusion == check_.conclusion && there.title == check_.title &&
                          there.summary == check_.summary && there.text == check_.text &&
                          (job_.target.run_url.empty() || there.details_url == job_.target.run_url);
    if (as_it_is) {
      if (part_.id != there.id) take(there.id, there.url, Part::Outcome::unchanged);
      return {};
    }
    WEIR_TRY(const ApiResponse answer, job_.api.call(patch(there.id, request(missing, 0))));
    if (answer.status == 403 || answer.status == 404) return made_ ? Result<void>() : make();
    if (!fine(answer)) return refused(answer);
    if (part_.id != there.id) take(there.id, there.url, Part::Outcome::edited);
    unsettled_ = looks_ == 0 || unsettled_;
    return send_rest(there.id, missing);
  }

  Result<void> send_rest(std::int64_t id, const std::vector<report::CheckAnnotation>& annotations) {
    constexpr std::size_t k_each = report::k_annotations_in_request;
    for (std::size_t from = k_each; from < annotations.size(); from += k_each) {
      const auto answer = job_.api.call(patch(id, request(annotations, from)));
      if (answer && fine(*answer)) continue;
      return fail(Code::unavailable, "annotations from the {}th on are not there: {}", from + 1,
                  answer ? refusal(*answer) : answer.error().message);
    }
    return {};
  }

  [[nodiscard]] ApiRequest patch(std::int64_t id, Json body) const {
    // Sent twice, its annotations would stand there twice.
    const bool adds = body["output"].contains("annotations");
    return {
        .method = "PATCH", .path = at("/check-runs/{}", id), .body = std::move(body), .once = adds};
  }

  report::CheckText check_ = job_.texts.check;  // as it is said: held_ or not
  bool held_ = false;
  std::optional<Error> lost_, trouble_;  // lost_: of a creation whose answer never came
  bool made_ = false;
  int looks_ = 0;
};

}  // namespace

Result<SeenChecks> seen_checks(Api& api, const Target& target, const Marker& marker,
                               std::string_view app) {
  const std::string name = check_name(marker);
  WEIR_TRY(
      const ApiResponse answer,
      api.get(fmt::format("/repos/{}/commits/{}/check-runs?check_name={}&filter=all&per_page=100",
                          target.repository, target.sha, percent_encoded(name))));
  SeenChecks found;
  if (!fine(answer)) return found;  // may not be read: whether it may be written is seen there
  std::map<std::int64_t, SeenCheck> latest;  // by pull request, 0 where there is none
  for (const Json& json : list_in(answer.body, "check_runs")) {
    const auto read = parse_marker(text_in(json, "external_id"));
    const std::int64_t id = number_in(json, "id");
    const bool of_name = read && id > 0 && text_in(json, "name") == name &&
                         text::lower(text_in(json, "head_sha")) == target.sha &&
                         text_in(below(json, "app"), "slug") == app;
    if (!of_name) continue;
    SeenCheck& place = latest[read->pull_request.value_or(0)];
    if (place.id >= id) continue;
    const Json& output = below(json, "output");
    place = SeenCheck{id,
                      number_in(output, "annotations_count"),
                      *read,
                      text_in(json, "conclusion"),
                      text_in(output, "title"),
                      text_in(output, "summary"),
                      text_in(output, "text"),
                      text_in(json, "details_url"),
                      link_in(json, "html_url")};
  }
  for (auto& [pull, check] : latest) {
    if (check.marker.of_the_same(marker)) {
      found.own = std::move(check);
    } else {
      found.others.push_back(std::move(check));
    }
  }
  return found;
}

Result<std::optional<std::int64_t>> says_otherwise(Api& api, const Target& target,
                                                   const SeenChecks& checks) {
  for (const SeenCheck& other : checks.others) {
    if (other.green() || other.marker.held || !other.marker.pull_request) continue;
    WEIR_TRY(const ApiResponse answer, api.get(fmt::format("/repos/{}/pulls/{}", target.repository,
                                                           *other.marker.pull_request)));
    if (!fine(answer) && answer.status != 404) {
      return fail(Code::unavailable, "pull request {}: {}", *other.marker.pull_request,
                  refusal(answer));
    }
    const Json& pull = answer.body;
    // One that is closed, went on or is for another branch now waits for no check of this name.
    if (fine(answer) && text_in(pull, "state") == "open" &&
        text::lower(text_in(below(pull, "head"), "sha")) == target.sha &&
        text_in(below(pull, "base"), "ref") == target.base) {
      return other.marker.pull_request;
    }
  }
  return std::optional<std::int64_t>();
}

std::unique_ptr<Poster> check_poster(const Job& job) { return std::make_unique<CheckPoster>(job); }

}  // namespace weir::publish

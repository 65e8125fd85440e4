// Posts the check run.
//
// GitHub shows the latest check run of a name. Each request adds annotations to those that are
// there, and none can be removed. So a check run is edited if its annotations are among ours, and
// otherwise another one takes its place.
#include <algorithm>
#include <map>

#include "gate/base/encode.hpp"
#include "gate/base/text.hpp"
#include "gate/publish/api.hpp"
#include "gate/publish/parts.hpp"

namespace weir::publish {
namespace {

constexpr std::size_t k_max_annotations = 10'000;

Json to_json(const report::CheckAnnotation& annotation) {
  Json json = {{"path", annotation.path},
               {"start_line", annotation.line},
               {"end_line", annotation.line},
               {"annotation_level", annotation.level},
               {"message", annotation.message}};
  if (!annotation.title.empty()) json["title"] = annotation.title;
  return json;
}

bool is_same_annotation(const Json& there, const report::CheckAnnotation& ours) {
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
    record_result(settle(/*create=*/true));
  }

  void look() override {
    ++looks_;
    // After an edit one more look is enough: of posters that race only the newest has to stay.
    if (!made_ && !lost_) unsettled_ = false;
    record_result(settle(/*create=*/lost_ && looks_ >= 2));
  }

  [[nodiscard]] Part part() const override {
    Part part = part_;
    const std::optional<Error>& problem = error_ ? error_ : lost_;
    if (!problem) return part;
    if (part.id > 0) {  // a check run with the verdict is there
      part.warnings.push_back(problem->message);
    } else {
      part.outcome = Part::Outcome::failed;
      part.reason = problem->message;
    }
    return part;
  }

 private:
  // Keeps the error of the last step; a step that succeeds clears it.
  void record_result(const Result<void>& result) {
    error_ = result ? std::nullopt : std::optional<Error>(result.error());
  }

  // Makes our latest check run show this verdict, unless it shows a newer one. `may_create`: a new
  // check run may be made if there is none to edit.
  Result<void> settle(bool may_create) {
    WEIR_TRY(const ExistingChecks checks,
             find_checks(job_.api, job_.target, marker(), job_.options.app));
    const std::optional<ExistingCheck>& there = checks.own;
    if (there && is_superseded(there->marker.run, there->id, there->url)) return {};
    WEIR_CHECK(hold_back(checks));
    if (!there) return may_create ? create() : Result<void>();
    if (there->id < part_.id) return {};  // ours is later, but missing from a list that lags
    if (lost_ && there->marker.run == job_.target.run) {
      take(there->id, there->url, Part::Outcome::created);
      made_ = true;
      lost_.reset();
    }
    if (is_hidden(checks)) return create();
    WEIR_TRY(const auto missing, find_missing(*there));
    if (missing) return edit(*there, *missing);
    // Annotations of an earlier run can't be removed, so make another check run.
    return may_create && !made_ ? create() : Result<void>();
  }

  [[nodiscard]] bool is_green() const { return is_green_conclusion(check_.conclusion); }

  // Chooses the conclusion and the title. A green check is shown as red while another pull request
  // of the same head and base is red, because GitHub shows one check of a name.
  Result<void> hold_back(const ExistingChecks& checks) {
    check_ = job_.texts.check;
    held_ = false;
    if (!is_green()) return {};
    WEIR_TRY(const auto other, find_red_pull_request(job_.api, job_.target, checks));
    if (!other) return {};
    held_ = true;
    check_.conclusion = "failure";
    check_.title = printable_line(
        fmt::format(
            "{}pull request {} has the same commit and base, and its check is red \u00b7 {}",
            report::k_not_judged, *other, check_.title),
        250);
    return {};
  }

  // Returns true if GitHub shows another pull request's check run, because it is later than ours,
  // and it has the opposite conclusion.
  [[nodiscard]] bool is_hidden(const ExistingChecks& checks) const {
    return std::ranges::any_of(checks.others, [&](const ExistingCheck& other) {
      return other.id > std::max(checks.own->id, part_.id) &&
             (is_green() ? other.marker.is_held : other.is_green());
    });
  }

  // Returns those of our annotations that the check run lacks; nothing if it has others.
  Result<std::optional<std::vector<report::CheckAnnotation>>> find_missing(
      const ExistingCheck& there) {
    std::vector<report::CheckAnnotation> missing = job_.texts.check.annotations;
    if (there.annotations == 0) return missing;
    WEIR_TRY(const Json list,
             job_.api.list(at("/check-runs/{}/annotations", there.id), k_max_annotations));
    for (const Json& json : list) {
      const auto ours =
          std::ranges::find_if(missing, [&](const report::CheckAnnotation& candidate) {
            return is_same_annotation(json, candidate);
          });
      if (ours == missing.end()) return std::nullopt;
      missing.erase(ours);
    }
    return missing;
  }

  // Returns the body of a request with the next annotations, those from index `from` on.
  [[nodiscard]] Json request(const std::vector<report::CheckAnnotation>& annotations,
                             std::size_t from) const {
    Json batch = Json::array();
    const std::size_t end = std::min(annotations.size(), from + report::k_annotations_in_request);
    for (std::size_t i = from; i < end; ++i) batch.push_back(to_json(annotations[i]));
    // An empty text withdraws what could be waived of an earlier verdict.
    Json output = {{"title", check_.title}, {"summary", check_.summary}, {"text", check_.text}};
    if (!batch.empty()) output["annotations"] = std::move(batch);
    Json body = {{"name", check_name(marker())},
                 {"external_id", own_marker().text()},
                 {"status", "completed"},
                 {"conclusion", check_.conclusion},
                 {"output", std::move(output)}};
    if (!job_.target.run_url.empty()) body["details_url"] = job_.target.run_url;
    return body;
  }

  [[nodiscard]] Marker own_marker() const {
    Marker own = marker();
    own.is_held = held_;
    return own;
  }

  // Makes a new check run with all annotations. An answer that is lost leaves it to look() to find
  // out if the check run is there.
  Result<void> create() {
    const auto& annotations = job_.texts.check.annotations;
    Json body = request(annotations, 0);
    body["head_sha"] = job_.target.sha;
    const auto answer = job_.api.send("POST", at("/check-runs"), std::move(body));
    if (!answer) {
      unsettled_ = true;
      lost_ = answer.error();
      return {};
    }
    lost_.reset();
    if (!is_success(*answer)) {
      return refusal_error(*answer,
                           " (check runs need the token of an app, such as the runner's own, with "
                           "checks: write; the commit status says the same)");
    }
    made_ = true;
    unsettled_ = true;
    take(number_in(answer->body, "id"), link_in(answer->body, "html_url"), Part::Outcome::created);
    return send_rest(part_.id, annotations);
  }

  // Edits a check run so that it shows this verdict. Makes a new one if we may not edit it.
  Result<void> edit(const ExistingCheck& there,
                    const std::vector<report::CheckAnnotation>& missing) {
    const bool is_up_to_date =
        missing.empty() && there.marker.text() == own_marker().text() &&
        there.conclusion == check_.conclusion && there.title == check_.title &&
        there.summary == check_.summary && there.text == check_.text &&
        (job_.target.run_url.empty() || there.details_url == job_.target.run_url);
    if (is_up_to_date) {
      if (part_.id != there.id) take(there.id, there.url, Part::Outcome::unchanged);
      return {};
    }
    WEIR_TRY(const ApiResponse answer, job_.api.call(patch(there.id, request(missing, 0))));
    const bool may_not_edit = answer.status == 403 || answer.status == 404;
    if (may_not_edit && made_) return {};
    if (may_not_edit) return create();
    if (!is_success(answer)) return refusal_error(answer);
    if (part_.id != there.id) take(there.id, there.url, Part::Outcome::edited);
    if (looks_ == 0) unsettled_ = true;
    return send_rest(there.id, missing);
  }

  // Sends the annotations after the first request, as many a request as GitHub takes.
  Result<void> send_rest(std::int64_t id, const std::vector<report::CheckAnnotation>& annotations) {
    constexpr std::size_t k_each = report::k_annotations_in_request;
    for (std::size_t from = k_each; from < annotations.size(); from += k_each) {
      const auto answer = job_.api.call(patch(id, request(annotations, from)));
      if (answer && is_success(*answer)) continue;
      return fail(Code::unavailable, "annotations from the {}th on are not there: {}", from + 1,
                  answer ? refusal_text(*answer) : answer.error().message);
    }
    return {};
  }

  [[nodiscard]] ApiRequest patch(std::int64_t id, Json body) const {
    // A request sent twice would add its annotations twice.
    const bool once = body["output"].contains("annotations");
    return {
        .method = "PATCH", .path = at("/check-runs/{}", id), .body = std::move(body), .once = once};
  }

  report::CheckText check_ = job_.texts.check;  // with the conclusion and title that are shown
  bool held_ = false;           // green, but shown as red because of another pull request
  std::optional<Error> lost_;   // error of a creation whose answer never came
  std::optional<Error> error_;  // error of the last step
  bool made_ = false;           // this poster made a check run
  int looks_ = 0;
};

}  // namespace

// Finds weir's check runs of this name on the commit: the newest one of each pull request. The
// marker in a run says which gate and pull request it is of. Empty if the token may not read them.
Result<ExistingChecks> find_checks(Api& api, const Target& target, const Marker& marker,
                                   std::string_view app) {
  const std::string name = check_name(marker);
  WEIR_TRY(
      const ApiResponse answer,
      api.get(fmt::format("/repos/{}/commits/{}/check-runs?check_name={}&filter=all&per_page=100",
                          target.repository, target.sha, percent_encode(name))));
  ExistingChecks checks;
  // A token that may not read check runs may still write them.
  if (!is_success(answer)) return checks;
  std::map<std::int64_t, ExistingCheck> latest;  // by pull request; 0: none
  for (const Json& json : list_or_empty(answer.body, "check_runs")) {
    const auto found_marker = parse_marker(text_in(json, "external_id"));
    const std::int64_t id = number_in(json, "id");
    const bool is_ours = found_marker && id > 0 && text_in(json, "name") == name &&
                         text::lower(text_in(json, "head_sha")) == target.sha &&
                         text_in(member_or_null(json, "app"), "slug") == app;
    if (!is_ours) continue;
    ExistingCheck& check = latest[found_marker->pull_request.value_or(0)];
    if (check.id >= id) continue;
    const Json& output = member_or_null(json, "output");
    check = ExistingCheck{id,
                          number_in(output, "annotations_count"),
                          *found_marker,
                          text_in(json, "conclusion"),
                          text_in(output, "title"),
                          text_in(output, "summary"),
                          text_in(output, "text"),
                          text_in(json, "details_url"),
                          link_in(json, "html_url")};
  }
  for (auto& [pull, check] : latest) {
    if (check.marker.is_same_place(marker)) {
      checks.own = std::move(check);
    } else {
      checks.others.push_back(std::move(check));
    }
  }
  return checks;
}

// Returns another open pull request with the same commit and base whose check failed; nullopt if
// there is none. Checks that wait for approval don't count.
Result<std::optional<std::int64_t>> find_red_pull_request(Api& api, const Target& target,
                                                          const ExistingChecks& checks) {
  for (const ExistingCheck& other : checks.others) {
    if (other.is_green() || other.marker.is_held || !other.marker.pull_request) continue;
    WEIR_TRY(const ApiResponse answer, api.get(fmt::format("/repos/{}/pulls/{}", target.repository,
                                                           *other.marker.pull_request)));
    if (!is_success(answer) && answer.status != 404) {
      return fail(Code::unavailable, "pull request {}: {}", *other.marker.pull_request,
                  refusal_text(answer));
    }
    const Json& pull = answer.body;
    // A pull request that is closed, or has another head or base now, waits for no check of this
    // name.
    if (is_success(answer) && text_in(pull, "state") == "open" &&
        text::lower(text_in(member_or_null(pull, "head"), "sha")) == target.sha &&
        text_in(member_or_null(pull, "base"), "ref") == target.base) {
      return other.marker.pull_request;
    }
  }
  return std::optional<std::int64_t>();
}

std::unique_ptr<Poster> check_poster(const Job& job) { return std::make_unique<CheckPoster>(job); }

}  // namespace weir::publish

// The check run. GitHub shows the latest of a name, adds the annotations of each request to those
// that are there and removes none: so a check run is edited where its annotations are among ours,
// and else another one takes its place.
#include <algorithm>

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
  // What a later look mends is no trouble any more.
  void note(const Result<void>& result) {
    trouble_ = result ? std::nullopt : std::optional<Error>(result.error());
  }

  // Makes the latest check run of this gate say what is to be said, unless it is newer.
  Result<void> settle(bool create) {
    WEIR_TRY(const std::optional<SeenCheck> there,
             latest_check(job_.api, job_.target.repository, job_.target.sha, job_.options.gate));
    if (there && is_superseded(there->marker.run, there->id, there->url)) return {};
    if (!there) return create ? make() : Result<void>();
    if (there->id < part_.id) return {};  // ours is later, and a list that lags hides it
    if (lost_ && there->marker.run == job_.target.run) {
      take(there->id, there->url, Part::Outcome::created);
      made_ = true;
      lost_.reset();
    }
    WEIR_TRY(const auto missing, missing_of(*there));
    if (missing) return edit(*there, *missing);
    // Annotations of a run before this one cannot be taken off it.
    return create && !made_ ? make() : Result<void>();
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
    const report::CheckText& check = job_.texts.check;
    Json batch = Json::array();
    const std::size_t end = std::min(annotations.size(), from + report::k_annotations_in_request);
    for (std::size_t i = from; i < end; ++i) batch.push_back(to_json(annotations[i]));
    Json output = {{"title", check.title}, {"summary", check.summary}};
    // An empty one takes away what an earlier verdict could be allowed.
    output["text"] = check.text;
    if (!batch.empty()) output["annotations"] = std::move(batch);
    Json body = {{"name", check_name(job_.options.gate)},
                 {"external_id", marker().text()},
                 {"status", "completed"},
                 {"conclusion", check.conclusion},
                 {"output", std::move(output)}};
    if (!job_.target.run_url.empty()) body["details_url"] = job_.target.run_url;
    if (!job_.options.now.empty()) body["completed_at"] = job_.options.now;
    return body;
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
    return send_rest(part_.id, annotations, report::k_annotations_in_request);
  }

  Result<void> edit(const SeenCheck& there, const std::vector<report::CheckAnnotation>& missing) {
    const report::CheckText& check = job_.texts.check;
    const bool as_it_is = missing.empty() && there.marker.run == job_.target.run &&
                          there.conclusion == check.conclusion && there.title == check.title &&
                          there.summary == check.summary && there.text == check.text &&
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
    return send_rest(there.id, missing, report::k_annotations_in_request);
  }

  Result<void> send_rest(std::int64_t id, const std::vector<report::CheckAnnotation>& annotations,
                         std::size_t from) {
    for (; from < annotations.size(); from += report::k_annotations_in_request) {
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

  std::optional<Error> lost_, trouble_;  // lost_: of a creation whose answer never came
  bool made_ = false;
  int looks_ = 0;
};

}  // namespace

Result<std::optional<SeenCheck>> latest_check(Api& api, const std::string& repository,
                                              const std::string& sha, const std::string& gate,
                                              std::string_view app) {
  WEIR_TRY(
      const ApiResponse answer,
      api.get(fmt::format("/repos/{}/commits/{}/check-runs?check_name={}&filter=all&per_page=100",
                          repository, sha, percent_encoded(check_name(gate)))));
  std::optional<SeenCheck> found;
  if (!fine(answer)) return found;  // may not be read: whether it may be written is seen there
  for (const Json& json : list_in(answer.body, "check_runs")) {
    const auto marker = parse_marker(text_in(json, "external_id"));
    const std::int64_t id = number_in(json, "id");
    const bool ours = marker && marker->gate == gate && id > 0 &&
                      text_in(json, "name") == check_name(gate) &&
                      text::lower(text_in(json, "head_sha")) == sha &&
                      (app.empty() || text_in(below(json, "app"), "slug") == app);
    if (!ours || (found && found->id >= id)) continue;
    const Json& output = below(json, "output");
    found = SeenCheck{id,
                      number_in(output, "annotations_count"),
                      *marker,
                      text_in(json, "status"),
                      text_in(json, "conclusion"),
                      text_in(json, "completed_at"),
                      text_in(output, "title"),
                      text_in(output, "summary"),
                      text_in(output, "text"),
                      text_in(json, "details_url"),
                      link_in(json, "html_url")};
  }
  return found;
}

std::unique_ptr<Poster> check_poster(const Job& job) { return std::make_unique<CheckPoster>(job); }

}  // namespace weir::publish

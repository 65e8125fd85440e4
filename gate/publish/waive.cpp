// Answers comments that ask to waive changes or to measure a commit.
#include "gate/publish/waive.hpp"

#include "gate/base/encode.hpp"
#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/publish/parts.hpp"
#include "gate/publish/post.hpp"
#include "gate/report/check.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/words.hpp"

namespace weir::publish {

namespace {

// The reason why a request is refused, one line for its author; nothing if it isn't.
using Refusal = std::optional<std::string>;

// Returns true for the name of a branch that a script or workflow can pass on as it is.
bool is_plain_branch(const std::string& name) {
  const auto fits = [](char c) { return text::is_alphanumeric(c) || holds("._/-", c); };
  return !name.starts_with('-') && std::ranges::all_of(name, fits);
}

// Returns the report in a check's summary with the sign of waived changes in its heading: its words
// say what was measured.
std::string waived_summary(std::string summary) {
  const std::string red =
      fmt::format("### {} weir", report::outcome_look(verdict::Outcome::fail).sign);
  if (!summary.starts_with(red)) return summary;
  const std::size_t headline = summary.find(": ");
  if (headline < summary.find('\n')) summary.insert(headline, ": waived");
  return fmt::format("### {} weir", report::outcome_look(verdict::Outcome::waived).sign) +
         summary.substr(red.size());
}

// Checks one comment and does what it asks for.
class Answering {
 public:
  Answering(Api& api, const CommentEvent& event, const WaiveOptions& options)
      : api_(api), event_(event), options_(options) {}

  Result<Answer> answer() {
    const Command command = parse_command(event_.body);
    answer_.pull_request = event_.number;
    if (const char* reason = reason_to_ignore(command); reason != nullptr) {
      answer_.why = reason;
      return answer_;
    }
    using Step = Result<Refusal> (Answering::*)();
    for (const Step step :
         {&Answering::check_permission, &Answering::check_comment, &Answering::look_at_head}) {
      WEIR_TRY(const Refusal refusal, (this->*step)());
      if (refusal) return refuse(*refusal);
    }
    WEIR_TRY(const Refusal refusal,
             command.kind == Command::Kind::run ? run(command.word) : waive(command));
    if (refusal) return refuse(*refusal);
    return answer_;
  }

 private:
  Answer refuse(const std::string& why) {
    answer_.kind = Answer::Kind::refused;
    answer_.why = why;
    answer_.sha.clear();
    answer_.base.clear();
    answer_.changes.clear();
    return answer_;
  }

  // Returns why the comment asks for nothing that counts, or null.
  [[nodiscard]] const char* reason_to_ignore(const Command& command) const {
    if (command.kind == Command::Kind::none) return "the comment asks weir for nothing";
    if (!event_.created) return "only a comment as it is written counts, not one that was edited";
    if (!event_.on_pull_request) return "the comment is on no pull request";
    if (event_.bot) return "the comment was written by a program";
    return nullptr;
  }

  Result<ApiResponse> get(const std::string& path) {
    return api_.get("/repos/" + event_.repository + path);
  }

  // Refuses authors who may not write to the repository.
  Result<Refusal> check_permission() {
    WEIR_TRY(const ApiResponse answer,
             get("/collaborators/" + percent_encode(event_.login) + "/permission"));
    const std::string permission = is_success(answer) ? text_in(answer.body, "permission") : "";
    if (permission == "admin" || permission == "maintain" || permission == "write")
      return Refusal();
    return Refusal(fmt::format("{} may not write here", printable_line(event_.login, 100)));
  }

  // Refuses a comment that GitHub has in another form now: it was edited or moved meanwhile.
  Result<Refusal> check_comment() {
    WEIR_TRY(const ApiResponse answer, get(fmt::format("/issues/comments/{}", event_.comment)));
    if (!is_success(answer)) return Refusal("the comment is there no more");
    const Json& there = answer.body;
    const bool same =
        text_in(there, "body") == event_.body &&
        text_in(member_or_null(there, "user"), "login") == event_.login &&
        text_in(there, "issue_url").ends_with(fmt::format("/issues/{}", event_.number));
    return same ? Refusal() : Refusal("the comment was edited since: write another one");
  }

  // Reads head, base and author of the pull request; refuses one that is not open.
  Result<Refusal> look_at_head() {
    WEIR_TRY(const ApiResponse answer, get(fmt::format("/pulls/{}", event_.number)));
    if (!is_success(answer)) return Refusal("there is no such pull request");
    if (text_in(answer.body, "state") != "open") return Refusal("the pull request is closed");
    const Json& head = member_or_null(answer.body, "head");
    answer_.sha = text::lower(text_in(head, "sha"));
    if (!is_sha(answer_.sha)) return Refusal("the pull request has no head");
    target_ = {event_.repository, event_.number, answer_.sha, {}, ""};
    target_.base = text_in(member_or_null(answer.body, "base"), "ref");
    author_ = text_in(member_or_null(answer.body, "user"), "login");
    if (is_plain_branch(target_.base)) answer_.base = target_.base;
    if (target_.base.empty() || author_.empty()) {
      return Refusal("GitHub does not say who wrote the pull request, and for which branch");
    }
    answer_.fork = text::lower(text_in(member_or_null(head, "repo"), "full_name")) !=
                   text::lower(event_.repository);
    return Refusal();
  }

  // Allows to measure the head if the comment names it in full. Another commit with the same first
  // digits can be made in minutes.
  Result<Refusal> run(const std::string& sha) {
    if (sha != answer_.sha) {
      return Refusal(
          fmt::format("{}. To measure the head as it is now, once you have read it: "
                      "/weir run {}",
                      is_sha(sha) ? "the pull request has another head by now"
                                  : "name the whole commit that you have read",
                      answer_.sha));
    }
    if (answer_.base.empty()) {
      return Refusal(fmt::format("{}: a workflow cannot pass on the name of this branch",
                                 printable_line(target_.base, 100)));
    }
    answer_.kind = Answer::Kind::run;
    answer_.why = fmt::format("{} asks to measure {}", printable_line(event_.login, 100),
                              text::short_commit(answer_.sha));
    return Refusal();
  }

  // Waives the changes that the check run lists, if the comment has their code and a reason.
  // Writes waivers, and turns the check green if it still shows the same verdict.
  Result<Refusal> waive(const Command& command) {
    const Marker marker = target_.marker(options_.gate);
    WEIR_TRY(const ExistingChecks checks, find_checks(api_, target_, marker, options_.app));
    const std::optional<ExistingCheck>& check = checks.own;
    if (!check) {
      return Refusal(
          fmt::format("weir has posted no verdict of {}, the head of the pull request "
                      "now, for {}",
                      text::short_commit(answer_.sha), printable_line(target_.base, 100)));
    }
    if (check->is_green()) return Refusal("the check is green: nothing to waive");
    const auto waivable = verdict::parse_waivable_text(check->text);
    if (!waivable || waivable->changes.empty()) {
      return Refusal("the check run shows nothing that could be waived");
    }
    const std::string code = waiver_code(target_, options_.gate, *waivable);
    const bool own = text::lower(author_) == text::lower(event_.login);
    if (own && !(waivable->rules && waivable->rules->waive_own)) {
      return Refusal(fmt::format(
          "{} wrote this pull request: somebody else has to waive its changes "
          "(gate.waive_own of {}), by the comment: {}",
          printable_line(event_.login, 100), printable_line(target_.base, 100), waiver_line(code)));
    }
    if (command.word != code || command.reason.empty()) {
      return Refusal(fmt::format(
          "{}. Look at the verdict of {} for {}, then comment: {}",
          command.word == code ? "say why" : "that is no code of what stands there now",
          text::short_commit(answer_.sha), printable_line(target_.base, 100), waiver_line(code)));
    }
    if (options_.claimed && options_.claimed->changes != waivable->changes) {
      return Refusal(
          "the verdict file says other things than the check run that was posted: it is "
          "not the one that was looked at");
    }
    std::vector<verdict::Waiver> waivers;
    for (const verdict::Waivable& change : waivable->changes) {
      waivers.push_back({change, event_.number, answer_.sha, command.reason, event_.login,
                         options_.until, target_.base});
      if (const auto problem = verdict::waiver_problem(waivers.back())) {
        return Refusal("what the check run shows cannot be waived: it " + *problem);
      }
    }
    WEIR_CHECK(write_waivers(
        api_, event_.repository, options_.branch, event_.number, waivers,
        fmt::format("Waive {} of pull request {}, as {} asked",
                    text::plural(waivers.size(), "change"), event_.number, event_.login)));
    answer_.kind = Answer::Kind::waived;
    answer_.changes = waivable->changes;
    answer_.why =
        fmt::format("waived by {} until {}: {}", event_.login, options_.until, command.reason);
    if (!waivable->beyond.empty()) {
      answer_.notes.push_back("the check stays as it is: " + text::join(waivable->beyond, "; "));
      return Refusal();
    }
    // Writing takes a while. The check turns green only if it still shows the verdict that was
    // waived.
    WEIR_TRY(const ExistingChecks current, find_checks(api_, target_, marker, options_.app));
    if (!current.own || current.own->id != check->id || current.own->text != check->text ||
        current.own->marker.text() != check->marker.text()) {
      answer_.notes.push_back("the check shows another verdict by now, and stays as it is");
      return Refusal();
    }
    WEIR_TRY(const auto other, find_red_pull_request(api_, target_, current));
    WEIR_CHECK(turn_green(*check, marker, other));
    return Refusal();
  }

  // Edits the check run to green and posts a green status. If pull request `other` of the same head
  // and base is red, the check stays red and is marked as held: GitHub shows one check of a name.
  Result<void> turn_green(const ExistingCheck& check, const Marker& marker,
                          const std::optional<std::int64_t>& other) {
    Marker new_marker = check.marker;
    new_marker.is_held = other.has_value();
    std::string title = printable_line(answer_.why, 200);
    if (other) {
      title = fmt::format(
          "waits for pull request {}, whose check of the same commit and base is "
          "red: {}",
          *other, title);
      answer_.notes.push_back(title);
    }
    std::string summary = fmt::format(
        "**{}**\n\nThis holds for commit {} and {} alone.\n\n", report::markdown_text(title, 400),
        text::short_commit(answer_.sha), report::markdown_text(target_.base, 100));
    const std::string measured = other ? check.summary : waived_summary(check.summary);
    if (summary.size() + measured.size() <= report::k_check_summary_limit) summary += measured;
    Json body = {{"name", check_name(marker)},
                 {"external_id", new_marker.text()},
                 {"status", "completed"},
                 {"conclusion", other ? "failure" : "success"},
                 {"output", {{"title", title}, {"summary", summary}, {"text", check.text}}}};
    WEIR_TRY(ApiResponse answer,
             api_.send("PATCH", fmt::format("/repos/{}/check-runs/{}", event_.repository, check.id),
                       std::move(body)));
    answer_.green = is_success(answer) && !other;
    if (!is_success(answer)) {
      answer_.notes.push_back("the check run could not be turned green: " + refusal_text(answer));
    }
    Json status = {{"state", "success"},
                   {"description", printable_line(answer_.why, 130)},
                   {"context", status_context(marker)}};
    if (!check.url.empty()) status["target_url"] = check.url;
    WEIR_TRY(answer,
             api_.send("POST", fmt::format("/repos/{}/statuses/{}", event_.repository, answer_.sha),
                       std::move(status)));
    if (!is_success(answer)) {
      answer_.notes.push_back("the commit status could not be turned green: " +
                              refusal_text(answer));
    }
    return {};
  }

  Api& api_;
  const CommentEvent& event_;
  const WaiveOptions& options_;
  Target target_;
  std::string author_;
  Answer answer_;
};

}  // namespace

std::string_view to_string(Answer::Kind kind) {
  constexpr std::string_view k_names[] = {"nothing", "refused", "waived", "run"};
  return k_names[static_cast<std::size_t>(kind)];
}

Result<Answer> answer_comment(Api& api, const CommentEvent& event, const WaiveOptions& options) {
  return Answering(api, event, options).answer();
}

namespace {

// Makes the branch with one commit, without history, that has `text` as the file `path`. Returns
// GitHub's answer, which may be a refusal.
Result<ApiResponse> make_branch(Api& api, const std::string& repository, const std::string& branch,
                                const std::string& path, const std::string& text,
                                const std::string& message) {
  const std::string git_path = fmt::format("/repos/{}/git/", repository);
  const Json file = {{"path", path}, {"mode", "100644"}, {"type", "blob"}, {"content", text}};
  WEIR_TRY(const ApiResponse tree,
           api.send("POST", git_path + "trees", {{"tree", Json::array({file})}}));
  if (!is_success(tree)) return tree;
  WEIR_TRY(const ApiResponse commit, api.send("POST", git_path + "commits",
                                              {{"message", message},
                                               {"tree", text_in(tree.body, "sha")},
                                               {"parents", Json::array()}}));
  if (!is_success(commit)) return commit;
  return api.send("POST", git_path + "refs",
                  {{"ref", "refs/heads/" + branch}, {"sha", text_in(commit.body, "sha")}});
}

}  // namespace

// Adds waivers (changes that one pull request may make) to the pull request's file on the branch.
// Tries again if somebody else wrote it meanwhile.
Result<void> write_waivers(Api& api, const std::string& repository, const std::string& branch,
                           std::int64_t pull_request, const std::vector<verdict::Waiver>& added,
                           const std::string& message) {
  constexpr int k_max_tries = 6;
  const std::string file_path = verdict::waiver_path(pull_request);
  const std::string path = fmt::format("/repos/{}/contents/{}", repository, file_path);
  std::string last_refusal;
  for (int i = 0; i < k_max_tries; ++i) {
    // The full name: a short one could be a tag's.
    WEIR_TRY(const ApiResponse file,
             api.get(path + "?ref=" + percent_encode("refs/heads/" + branch)));
    std::vector<verdict::Waiver> all;
    if (is_success(file)) {
      const auto text = decode_base64(text_in(file.body, "content"));
      if (!text) return fail(Code::data, "{} of {}: cannot be read", path, branch);
      WEIR_TRY(all, verdict::parse_waivers(*text, pull_request));
    } else if (file.status != 404) {
      return fail(Code::unavailable, "{} of {}: {}", path, branch, refusal_text(file));
    }
    const std::string text =
        verdict::to_text(pull_request, verdict::with_waivers(std::move(all), added));
    Json body = {{"message", message}, {"content", base64(text)}, {"branch", branch}};
    if (is_success(file)) body["sha"] = text_in(file.body, "sha");
    WEIR_TRY(ApiResponse written, api.send("PUT", path, std::move(body)));
    if (written.status == 404) {  // there is no such branch
      WEIR_TRY_SET(written, make_branch(api, repository, branch, file_path, text, message));
    }
    if (is_success(written)) return {};
    last_refusal = refusal_text(written);
    // 409 and 422: somebody else wrote the file or made the branch meanwhile, so try again.
    if (written.status != 409 && written.status != 422) break;
  }
  return fail(Code::unavailable, "{} of {} could not be written: {}", path, branch, last_refusal);
}

}  // namespace weir::publish

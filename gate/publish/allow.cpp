#include "gate/publish/allow.hpp"

#include "gate/base/encode.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/publish/parts.hpp"
#include "gate/publish/post.hpp"
#include "gate/publish/target.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/formats.hpp"

namespace weir::publish {

namespace {

constexpr std::size_t k_longest_reason = 500;

// The first word of `line`, which then begins behind it.
std::string_view take_word(std::string_view& line) {
  line = text::trim(line);
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line = text::trim(line.substr(word.size()));
  return word;
}

// What a person who may not is told, and one whose comment comes too late: one line.
using Refusal = std::optional<std::string>;

class Answering {
 public:
  Answering(Api& api, const CommentEvent& event, const AllowOptions& options)
      : api_(api), event_(event), options_(options) {}

  Result<Answer> answer() {
    const Command command = parse_command(event_.body);
    answer_.pull_request = event_.number;
    if (const char* why = why_none(command); why != nullptr) {
      answer_.why = why;
      return answer_;
    }
    using Step = Result<Refusal> (Answering::*)();
    for (const Step step :
         {&Answering::check_permission, &Answering::check_comment, &Answering::look_at_head}) {
      WEIR_TRY(const Refusal refusal, (this->*step)());
      if (refusal) return refused(*refusal);
    }
    WEIR_TRY(const Refusal refusal,
             command.kind == Command::Kind::run ? run() : accept(command.reason));
    if (refusal) return refused(*refusal);
    return answer_;
  }

 private:
  Answer refused(const std::string& why) {
    answer_.kind = Answer::Kind::refused;
    answer_.why = why;
    answer_.sha.clear();
    answer_.changes.clear();
    return answer_;
  }

  [[nodiscard]] const char* why_none(const Command& command) const {
    if (command.kind == Command::Kind::none) return "the comment asks weir for nothing";
    if (!event_.created) return "only a comment as it is written counts, not one that was edited";
    if (!event_.on_pull_request) return "the comment is on no pull request";
    if (event_.bot) return "the comment was written by a program";
    return nullptr;
  }

  Result<ApiResponse> get(const std::string& path) {
    return api_.get("/repos/" + event_.repository + path);
  }

  Result<Refusal> check_permission() {
    WEIR_TRY(const ApiResponse answer,
             get("/collaborators/" + percent_encoded(event_.login) + "/permission"));
    const std::string permission = fine(answer) ? text_in(answer.body, "permission") : "";
    if (permission == "admin" || permission == "maintain" || permission == "write")
      return Refusal();
    return Refusal(fmt::format("{} may not write here", one_line(event_.login, 100)));
  }

  // As GitHub has it now: who edited it meanwhile asks for something else.
  Result<Refusal> check_comment() {
    WEIR_TRY(const ApiResponse answer, get(fmt::format("/issues/comments/{}", event_.comment)));
    if (!fine(answer)) return Refusal("the comment is there no more");
    const Json& there = answer.body;
    const bool same =
        text_in(there, "body") == event_.body &&
        text_in(below(there, "user"), "login") == event_.login &&
        text_in(there, "created_at") == event_.created_at &&
        text_in(there, "updated_at") == event_.created_at &&
        text_in(there, "issue_url").ends_with(fmt::format("/issues/{}", event_.number));
    if (!same) return Refusal("the comment was edited since: write another one");
    return Refusal();
  }

  Result<Refusal> look_at_head() {
    WEIR_TRY(const ApiResponse answer, get(fmt::format("/pulls/{}", event_.number)));
    if (!fine(answer)) return Refusal("there is no such pull request");
    if (text_in(answer.body, "state") != "open") return Refusal("the pull request is closed");
    const Json& head = below(answer.body, "head");
    answer_.sha = text::lower(text_in(head, "sha"));
    if (!is_sha(answer_.sha)) return Refusal("the pull request has no head");
    answer_.fork =
        text::lower(text_in(below(head, "repo"), "full_name")) != text::lower(event_.repository);
    return Refusal();
  }

  // A commit that GitHub knew of when the comment was written.
  Result<Refusal> run() {
    WEIR_TRY(const ApiResponse answer,
             get("/commits/" + answer_.sha + "/check-suites?per_page=100"));
    for (const Json& suite : list_in(answer.body, "check_suites")) {
      const std::string made = text_in(suite, "created_at");
      if (!is_time(made) || made >= event_.created_at) continue;
      answer_.kind = Answer::Kind::run;
      answer_.why = fmt::format("{} asks to measure {}", one_line(event_.login, 100),
                                answer_.sha.substr(0, 7));
      return Refusal();
    }
    return Refusal(
        fmt::format("{} was pushed after the comment, or nothing ran for it yet: comment "
                    "again",
                    answer_.sha.substr(0, 7)));
  }

  Result<Refusal> accept(const std::string& reason) {
    if (reason.empty()) return Refusal("say why: /weir accept REASON");
    WEIR_TRY(const std::optional<SeenCheck> check,
             latest_check(api_, event_.repository, answer_.sha, options_.gate, options_.app));
    const std::string head = answer_.sha.substr(0, 7);
    if (!check || check->status != "completed" || !is_time(check->completed_at) ||
        check->completed_at >= event_.created_at) {
      return Refusal(fmt::format(
          "the comment was written before there was a verdict of {}, the head of the pull request "
          "now: it was pushed or measured after it. Look at its verdict, and comment again",
          head));
    }
    if (check->conclusion == "success") return Refusal("the check is green: nothing to accept");
    const auto take = verdict::parse_allowable_text(check->text);
    if (!take || take->changes.empty()) {
      return Refusal("the check run shows nothing that could be accepted");
    }
    if (options_.claimed && options_.claimed->changes != take->changes) {
      return Refusal(
          "the verdict file says other things than the check run that was posted: it is "
          "not the one that was looked at");
    }
    std::vector<verdict::Allowance> allowances;
    for (const verdict::Allowable& what : take->changes) {
      allowances.push_back(
          {what, event_.number, answer_.sha, reason, event_.login, options_.until});
      if (const auto problem = verdict::problem_of(allowances.back())) {
        return Refusal("what the check run shows cannot be accepted: it " + *problem);
      }
    }
    WEIR_CHECK(write_allowances(
        api_, event_.repository, options_.branch, event_.number, allowances,
        fmt::format("Allow {} change{} of pull request {}, as {} asked", allowances.size(),
                    allowances.size() == 1 ? "" : "s", event_.number, event_.login)));
    answer_.kind = Answer::Kind::accepted;
    answer_.changes = take->changes;
    answer_.why = fmt::format("accepted by {} until {}: {}", event_.login, options_.until, reason);
    if (!take->beyond.empty()) {
      answer_.notes.push_back("the check stays as it is: " + text::join(take->beyond, "; "));
      return Refusal();
    }
    WEIR_CHECK(turn_green(*check));
    return Refusal();
  }

  Result<void> turn_green(const SeenCheck& check) {
    const std::string title = one_line(answer_.why, 200);
    std::string summary = fmt::format("**{}**\n\nThis holds for commit {} alone.\n\n",
                                      report::markdown_text(title, 400), answer_.sha.substr(0, 7));
    if (summary.size() + check.summary.size() <= report::k_check_summary_limit) {
      summary += check.summary;
    }
    Json body = {{"name", check_name(options_.gate)},
                 {"status", "completed"},
                 {"conclusion", "success"},
                 {"output", {{"title", title}, {"summary", summary}, {"text", check.text}}}};
    if (is_time(options_.now)) body["completed_at"] = options_.now;
    WEIR_TRY(ApiResponse answer,
             api_.send("PATCH", fmt::format("/repos/{}/check-runs/{}", event_.repository, check.id),
                       body));
    answer_.green = fine(answer);
    if (!answer_.green) {
      answer_.notes.push_back("the check run could not be turned green: " + refusal(answer));
    }
    Json status = {{"state", "success"},
                   {"description", one_line(answer_.why, 130)},
                   {"context", status_context(options_.gate)}};
    if (!check.url.empty()) status["target_url"] = check.url;
    WEIR_TRY(answer,
             api_.send("POST", fmt::format("/repos/{}/statuses/{}", event_.repository, answer_.sha),
                       std::move(status)));
    if (!fine(answer)) {
      answer_.notes.push_back("the commit status could not be turned green: " + refusal(answer));
    }
    return {};
  }

  Api& api_;
  const CommentEvent& event_;
  const AllowOptions& options_;
  Answer answer_;
};

}  // namespace

Command parse_command(std::string_view body) {
  std::string_view line;
  for (const std::string& one : text::lines(body)) {
    if (text::trim(one).empty()) continue;
    // Indented by four it is code.
    const std::size_t at = body.find(one);
    line = body.substr(at, one.size());
    break;
  }
  if (!line.starts_with("/weir")) return {};
  if (take_word(line) != "/weir") return {};
  const std::string_view verb = take_word(line);
  if (verb == "run") return {Command::Kind::run, ""};
  if (verb != "accept") return {};
  std::string reason = text::printable(line.substr(0, k_longest_reason));
  return {Command::Kind::accept, std::string(text::trim(reason))};
}

bool is_time(std::string_view text) { return text::has_form(text, "0000-00-00T00:00:00Z"); }

Result<CommentEvent> read_comment_event(std::string_view text, std::string_view repository,
                                        std::string_view where) {
  WEIR_TRY(const Json json,
           parse_json(text, {.bytes = k_largest_event, .depth = 64}).map_error([&](Error error) {
             return with_context(where, std::move(error));
           }));
  const Json& comment = below(json, "comment");
  const Json& issue = below(json, "issue");
  CommentEvent event;
  event.repository = text_in(below(json, "repository"), "full_name");
  event.number = number_in(issue, "number");
  event.on_pull_request = below(issue, "pull_request").is_object();
  event.created = text_in(json, "action") == "created";
  event.comment = number_in(comment, "id");
  event.body = text_in(comment, "body");
  event.login = text_in(below(comment, "user"), "login");
  event.bot = text_in(below(comment, "user"), "type") != "User";
  event.created_at = text_in(comment, "created_at");
  const char* missing = !is_repository(event.repository) ? "repository.full_name"
                        : event.number <= 0              ? "issue.number"
                        : event.comment <= 0             ? "comment.id"
                        : event.login.empty()            ? "comment.user.login"
                        : !is_time(event.created_at)     ? "comment.created_at"
                                                         : nullptr;
  if (missing != nullptr) {
    return fail(Code::data, "{}: no event of a comment: {} is not what it should be", where,
                missing);
  }
  if (!repository.empty() && text::lower(repository) != text::lower(event.repository)) {
    return fail(Code::data, "{}: of {}, and this is {}", where, event.repository, repository);
  }
  return event;
}

std::string_view to_string(Answer::Kind kind) {
  constexpr std::string_view k_words[] = {"nothing", "refused", "accepted", "run"};
  return k_words[static_cast<std::size_t>(kind)];
}

Result<Answer> answer_comment(Api& api, const CommentEvent& event, const AllowOptions& options) {
  return Answering(api, event, options).answer();
}

Result<void> write_allowances(Api& api, const std::string& repository, const std::string& branch,
                              std::int64_t pull_request,
                              const std::vector<verdict::Allowance>& added,
                              const std::string& message) {
  constexpr int k_tries = 6;
  const std::string path =
      fmt::format("/repos/{}/contents/{}", repository, verdict::allowance_path(pull_request));
  std::string last;
  for (int i = 0; i < k_tries; ++i) {
    WEIR_TRY(const ApiResponse there, api.get(path + "?ref=" + percent_encoded(branch)));
    std::vector<verdict::Allowance> all;
    if (fine(there)) {
      const auto text = base64_decoded(text_in(there.body, "content"));
      if (!text) return fail(Code::data, "{} of {}: cannot be read", path, branch);
      WEIR_TRY(all, verdict::parse_allowances(*text, pull_request));
    } else if (there.status != 404) {
      return fail(Code::unavailable, "{} of {}: {}", path, branch, refusal(there));
    }
    const std::string text =
        verdict::to_text(pull_request, verdict::with_allowances(std::move(all), added));
    Json body = {{"message", message}, {"content", base64(text)}, {"branch", branch}};
    if (fine(there)) body["sha"] = text_in(there.body, "sha");
    const auto written = api.send("PUT", path, std::move(body));
    if (!written) return tl::unexpected(written.error());
    if (fine(*written)) return {};
    last = refusal(*written);
    if (written->status == 404) {
      return fail(Code::unavailable,
                  "{}: {}; is there a branch {}? weir allow and weir baseline accept "
                  "--baselines-ref make one",
                  repository, last, branch);
    }
    if (written->status != 409 && written->status != 422) break;  // else somebody was faster
  }
  return fail(Code::unavailable, "{} of {} could not be written: {}", path, branch, last);
}

}  // namespace weir::publish

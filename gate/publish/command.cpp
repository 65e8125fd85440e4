#include "gate/publish/command.hpp"

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/publish/answers.hpp"
#include "gate/publish/event.hpp"

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

bool is_time(std::string_view text) {
  constexpr std::string_view k_form = "0000-00-00T00:00:00Z";
  if (text.size() != k_form.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (k_form[i] == '0' ? !digit : text[i] != k_form[i]) return false;
  }
  return true;
}

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

}  // namespace weir::publish

// Parses comments that ask weir for something, and makes the code of a waiver.
#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/publish/waive.hpp"
#include "gate/sys/digest.hpp"

namespace weir::publish {

namespace {

constexpr std::size_t k_longest_reason = 500;

// Takes the first word off `line` and returns it.
std::string_view take_word(std::string_view& line) {
  line = text::trim(line);
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line = text::trim(line.substr(word.size()));
  return word;
}

}  // namespace

std::string waiver_code(const Target& target, const std::string& gate,
                        const verdict::NeededWaivers& take) {
  const Json all = {{"head", target.sha},
                    {"base", target.base},
                    {"pull_request", target.pull_request.value_or(0)},
                    {"gate", gate},
                    {"waivable", write_fields(take)}};
  return sys::sha256_hex(dump_json(all)).substr(0, 40);
}

std::string waiver_line(const std::string& code) {
  return fmt::format("/weir waive {} REASON", code);
}

// Parses a comment that begins with "/weir run WORD" or "/weir waive CODE REASON". Any other is
// `Kind::none`.
Command parse_command(std::string_view body) {
  const auto lines = text::lines(body);
  const auto* first_line =
      find_first(lines, [](const std::string& line) { return !text::trim(line).empty(); });
  // An indented line is code or part of a list.
  if (first_line == nullptr || !first_line->starts_with("/weir")) return {};
  std::string_view line = *first_line;
  if (take_word(line) != "/weir") return {};
  const std::string_view verb = take_word(line);
  // People also write "accept", the verb of baselines.
  const bool is_waive = verb == "waive" || verb == "accept";
  if (verb != "run" && !is_waive) return {};
  const std::string word = text::lower(take_word(line).substr(0, 100));
  if (verb == "run") return {Command::Kind::run, word, ""};
  std::string reason = text::printable(line.substr(0, k_longest_reason));
  return {Command::Kind::waive, word, std::string(text::trim(reason))};
}

// Reads GitHub's issue_comment event; `where` is its file, for errors. Fails if a part is missing,
// or if it is of another repository ("" takes any).
Result<CommentEvent> read_comment_event(std::string_view text, std::string_view repository,
                                        std::string_view where) {
  WEIR_TRY(const Json json, parse_json(text, {.bytes = k_largest_event, .depth = 64})
                                .map_error(with_prefix(std::string(where))));
  const Json& comment = member_or_null(json, "comment");
  const Json& issue = member_or_null(json, "issue");
  CommentEvent event;
  event.repository = text_in(member_or_null(json, "repository"), "full_name");
  event.number = number_in(issue, "number");
  event.on_pull_request = member_or_null(issue, "pull_request").is_object();
  event.created = text_in(json, "action") == "created";
  event.comment = number_in(comment, "id");
  event.body = text_in(comment, "body");
  event.login = text_in(member_or_null(comment, "user"), "login");
  event.bot = text_in(member_or_null(comment, "user"), "type") != "User";
  const char* malformed = nullptr;
  if (!is_repository(event.repository)) {
    malformed = "repository.full_name";
  } else if (event.number <= 0) {
    malformed = "issue.number";
  } else if (event.comment <= 0) {
    malformed = "comment.id";
  } else if (event.login.empty()) {
    malformed = "comment.user.login";
  }
  if (malformed != nullptr) {
    return fail(Code::data, "{}: no event of a comment: {} is not what it should be", where,
                malformed);
  }
  if (!repository.empty() && text::lower(repository) != text::lower(event.repository)) {
    return fail(Code::data, "{}: of {}, and this is {}", where, event.repository, repository);
  }
  return event;
}

}  // namespace weir::publish

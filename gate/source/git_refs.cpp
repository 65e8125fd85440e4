// Resolves the name of a commit to exactly one ref.
//
// git itself takes the first ref of that name, tags before branches, and only warns. Pushing a tag
// needs no review, so it would let anybody with write access choose what judges.
#include <algorithm>
#include <map>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/source/git.hpp"

namespace weir::source {
namespace {

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

// Refs of git's own for the last fetch and merge. They are files beside HEAD.
bool is_pseudo_ref(std::string_view name) {
  return name == "FETCH_HEAD" || name == "ORIG_HEAD" || name == "MERGE_HEAD";
}

// A name and the steps from its commit: "main" and "~2^2".
struct Steps {
  std::string name, steps;
};

// Splits the steps from a name; nothing if git would read more into them ("^{/text}").
std::optional<Steps> split_steps(std::string text) {
  for (const std::string_view peel : {"^{commit}", "^{}"}) {
    if (text.ends_with(peel)) text.resize(text.size() - peel.size());
  }
  const std::size_t at = std::min(text.find_first_of("~^"), text.size());
  Steps result{text.substr(0, at), text.substr(at)};
  if (result.name.empty()) return std::nullopt;
  if (result.steps.find_first_not_of("~^0123456789") != std::string::npos) return std::nullopt;
  return result;
}

// Lists the refs that git could mean by a name.
std::vector<std::string> possible_refs(const std::string& name) {
  if (name.starts_with("refs/")) return {name};
  return {"refs/" + name, "refs/tags/" + name, "refs/heads/" + name, "refs/remotes/" + name,
          "refs/remotes/" + name + "/HEAD"};
}

// Returns the full name to suggest: a branch rather than a tag.
std::string suggested_name(const std::vector<std::string>& names) {
  for (const char* folder : {"refs/remotes/", "refs/heads/"}) {
    const auto* branch =
        find_first(names, [&](const std::string& name) { return name.starts_with(folder); });
    if (branch != nullptr) return *branch;
  }
  return names.back();
}

tl::unexpected<Error> ambiguous(const std::string& name, const std::vector<std::string>& names) {
  return fail(Code::config, "{}: ambiguous, it names {}; write {} if that is meant",
              text::printable(name), text::printable(text::join(names, " and ")),
              text::printable(suggested_name(names)));
}

}  // namespace

bool is_full_id(std::string_view text) {
  return is_hex(text) && (text.size() == 40 || text.size() == 64);
}

// Lists the refs (branches, tags, …) that a short name may mean, in git's order.
Result<std::vector<Git::Ref>> Git::refs_named(const std::string& name) const {
  const std::vector<std::string> possible = possible_refs(name);
  std::vector<std::string> question{"for-each-ref", "--format=%(refname) %(objectname)"};
  question.insert(question.end(), possible.begin(), possible.end());
  WEIR_TRY(const std::string out, call_checked(std::move(question)));
  // git takes the names for patterns, so they are compared here.
  std::map<std::string, std::string> objects;
  for (const std::string& line : text::lines(out)) {
    const std::size_t space = std::min(line.find(' '), line.size() - 1);
    objects.emplace(line.substr(0, space), line.substr(space + 1));
  }
  std::vector<Ref> refs;
  for (const std::string& full_name : possible) {
    if (const std::string* object = look_up(objects, full_name))
      refs.push_back({full_name, *object});
  }
  return refs;
}

// Returns true if an abbreviated id is that of a commit, or of a tag's object.
Result<bool> Git::abbreviates_commit(const std::string& name) const {
  WEIR_TRY(const Answer objects, call({"rev-parse", "--disambiguate=" + name}));
  for (const std::string& object : text::lines(objects.out)) {
    WEIR_TRY(const Answer type, call({"cat-file", "-t", object}));
    if (type.out == "commit\n" || type.out == "tag\n") return true;
  }
  return false;
}

// Returns the full name of a branch's upstream, for "main@{upstream}"; the name itself without such
// an end. Fails for other "@{…}", which mean what a name was in this clone at some time.
Result<std::optional<std::string>> Git::follow_upstream(const std::string& name) const {
  const std::size_t at = name.find("@{");
  if (at == std::string::npos) return std::optional(name);
  const std::string mark = name.substr(at);
  if (mark != "@{u}" && mark != "@{upstream}" && mark != "@{push}") {
    return fail(Code::config,
                "{}: only @{{upstream}} and @{{push}} can be followed; write the commit's id",
                text::printable(name));
  }
  const std::string branch = name.substr(0, at);
  WEIR_TRY(const Answer answer,
           call({"rev-parse", "--symbolic-full-name", "--verify", "--quiet", "--end-of-options",
                 (branch == "HEAD" ? "" : branch) + mark}));
  const std::string full_name = text::first_line(answer.out);
  if (answer.exit_code != 0 || !full_name.starts_with("refs/")) return std::optional<std::string>();
  return std::optional(full_name);
}

// Returns what git is asked for in place of `name`: an object's id, or a name that means one thing.
// Nullopt if it means nothing; fails if it is ambiguous.
Result<std::optional<std::string>> Git::resolve_name(const std::string& name) const {
  if (name == "HEAD" || name == "@") return std::optional<std::string>("HEAD");
  if (is_full_id(name)) return std::optional(name);
  WEIR_TRY(const std::vector<Ref> refs, refs_named(name));
  std::vector<std::string> names = collect<std::string>(refs, &Ref::name);
  if (is_pseudo_ref(name)) {
    if (refs.empty()) return std::optional(name);
    names.insert(names.begin(), name);
    return ambiguous(name, names);
  }
  if (name.size() >= 4 && is_hex(name)) {
    WEIR_TRY(const bool is_commit_id, abbreviates_commit(name));
    if (refs.empty()) return is_commit_id ? std::optional(name) : std::nullopt;
    if (is_commit_id) names.insert(names.begin(), "a commit's id");
  }
  if (names.size() > 1) return ambiguous(name, names);
  if (refs.empty()) return std::optional<std::string>();
  const std::string remote = name.substr(0, name.find('/'));
  if (remote.size() < name.size() && has_remote(remote) &&
      !refs[0].name.starts_with("refs/remotes/")) {
    return fail(Code::config,
                "{}: reads like a branch of the remote {}, but is {}; write {} for that, or fetch "
                "refs/remotes/{}",
                text::printable(name), text::printable(remote), text::printable(refs[0].name),
                text::printable(refs[0].name), text::printable(name));
  }
  return std::optional(refs[0].object);
}

// Returns the id of the commit that `text` means: an id, HEAD, or the name of a ref, with ~N and ^N
// after it. Nullopt if there is none.
Result<std::optional<std::string>> Git::resolve_commit(const std::string& text) const {
  const auto steps = text.starts_with('-') ? std::nullopt : split_steps(text);
  if (!steps) return std::optional<std::string>();
  WEIR_TRY(const std::optional<std::string> name, follow_upstream(steps->name));
  if (!name) return std::optional<std::string>();
  WEIR_TRY(const std::optional<std::string> resolved, resolve_name(*name));
  if (!resolved) return std::optional<std::string>();
  WEIR_TRY(const Answer answer, call({"rev-parse", "--verify", "--quiet", "--end-of-options",
                                      *resolved + steps->steps + "^{commit}"}));
  const std::string commit = text::first_line(answer.out);
  // In a repository whose ids have another length, a full id could be the name of a ref.
  if (answer.exit_code != 0 || !is_full_id(commit)) return std::optional<std::string>();
  if (is_full_id(*resolved) && commit.size() != resolved->size())
    return std::optional<std::string>();
  return std::optional(commit);
}

}  // namespace weir::source

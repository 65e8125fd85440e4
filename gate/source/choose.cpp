#include "gate/source/choose.hpp"

#include <algorithm>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"

namespace weir::source {
namespace {

constexpr std::uint64_t k_event_bytes = std::uint64_t{32} << 20;
constexpr std::string_view k_fetch_all =
    "history is cut off here: fetch all of it (`fetch-depth: 0` of actions/checkout, "
    "`git fetch --unshallow` elsewhere)";

std::string value_of(const char* name) { return sys::environment_value(name).value_or(""); }

bool names_base_branch(const std::string& ref, const PullRequest& pull) {
  if (pull.base_branch.empty()) return false;
  for (const char* before : {"", "origin/", "heads/", "refs/heads/", "refs/remotes/origin/"}) {
    if (ref == before + pull.base_branch) return true;
  }
  return false;
}

Result<Chosen> first_parent(const Git& git, const std::string& ref, const std::string& parent,
                            const std::optional<std::string>& meant) {
  Chosen chosen;
  chosen.commit = parent;
  WEIR_TRY(const std::string words, git.words(parent));
  chosen.words = fmt::format("first parent of GitHub's merge commit, {}", words);
  if (meant && *meant != parent) {
    chosen.notes.push_back(fmt::format("{} is {} here; the merge commit was made onto {}",
                                       text::printable(ref), short_commit(*meant),
                                       short_commit(parent)));
  }
  return chosen;
}

// Nothing is known by that name.
tl::unexpected<Error> unknown(const Git& git, const std::string& ref) {
  std::string hint;
  const auto remote = git.commit("origin/" + ref);
  const auto shallow = git.shallow();
  if (remote && *remote) {
    hint = fmt::format("did you mean origin/{}?", ref);
  } else if (shallow && *shallow) {
    hint = std::string(k_fetch_all);
  } else {
    hint = "is it fetched? (`git fetch origin`)";
  }
  return fail(Code::config, "--against {}: neither a folder nor a commit that is known here; {}",
              text::printable(ref), text::printable(hint));
}

}  // namespace

PullRequest read_pull_request(const sys::Files& files) {
  PullRequest pull;
  const std::string ref = value_of("GITHUB_REF");
  pull.merge = ref.starts_with("refs/pull/") && ref.ends_with("/merge");
  if (!pull.merge) return pull;
  pull.built = value_of("GITHUB_SHA");
  pull.base_branch = value_of("GITHUB_BASE_REF");
  const auto event = files.read(value_of("GITHUB_EVENT_PATH"), k_event_bytes);
  if (!event) return pull;
  const auto json = parse_json(*event);
  if (!json || !json->is_object()) return pull;
  const Json::json_pointer place("/pull_request/base/sha");
  if (json->contains(place) && (*json)[place].is_string()) {
    pull.base_commit = (*json)[place].get<std::string>();
  }
  return pull;
}

Result<Chosen> choose_base(const Git& git, const std::string& ref, const std::string& head,
                           bool dirty, const PullRequest& pull) {
  WEIR_TRY(const std::optional<std::string> meant, git.commit(ref));
  const bool means_base =
      names_base_branch(ref, pull) ||
      (!pull.base_commit.empty() && (ref == pull.base_commit || meant == pull.base_commit));
  // A job may have checked out something else than the merge commit, whose parents mean nothing.
  if (pull.merge && means_base && (pull.built.empty() || pull.built == head)) {
    WEIR_TRY(const std::vector<std::string> parents, git.parents(head));
    if (parents.size() == 2) return first_parent(git, ref, parents[0], meant);
  }
  if (!meant) return unknown(git, ref);

  WEIR_TRY(const std::vector<std::string> bases, git.merge_bases(head, *meant));
  WEIR_TRY(const bool shallow, git.shallow());
  if (bases.empty() && shallow) {
    return fail(Code::config, "--against {}: no common ancestor of it and HEAD is known; {}",
                text::printable(ref), k_fetch_all);
  }
  if (bases.empty()) {
    return fail(Code::config,
                "--against {}: HEAD and it have no common ancestor; to compare with it all the "
                "same, check it out and build it in a folder of its own and give that folder",
                text::printable(ref));
  }
  Chosen chosen;
  chosen.commit = bases.front();
  WEIR_TRY(const std::string words, git.words(chosen.commit));
  if (head == *meant) {
    chosen.words = fmt::format("HEAD, {}", words);
  } else {
    chosen.words = fmt::format("merge-base of HEAD and {}, {}", text::printable(ref), words);
  }
  if (bases.size() > 1) {
    chosen.notes.push_back(fmt::format(
        "there are {} merge-bases; this is the one that git names first", bases.size()));
  }
  if (shallow) {
    chosen.notes.emplace_back(
        "history is cut off here: with all of it the merge-base may be a newer commit");
  }
  if (chosen.commit == head && !dirty) {
    chosen.notes.push_back(
        head == *meant
            ? std::string("nothing differs from HEAD: the program is compared with itself (A/A)")
            : fmt::format("HEAD is contained in {} and nothing differs from it: the program is "
                          "compared with itself (A/A)",
                          text::printable(ref)));
  }
  return chosen;
}

}  // namespace weir::source

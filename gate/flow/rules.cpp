// Reads the rules of a commit, and applies them in place of a pull request's own.
#include "gate/flow/rules.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/rules.hpp"
#include "gate/flow/configure.hpp"
#include "gate/flow/input_edits.hpp"
#include "gate/flow/redacted.hpp"
#include "gate/source/tree_files.hpp"
#include "gate/sys/digest.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr std::size_t k_max_held_cells = 100'000;

std::string rename_note(const verdict::BaseCell& required_cell, const std::string& new_name) {
  return fmt::format("{} is the base's {} under a new name: its limits and baselines judge it",
                     new_name, required_cell.shown);
}

// Returns the folder at or above `folder`, as named there, that is the top of the repository.
Result<std::string> find_named_top(const Repository& repository, const std::string& folder) {
  std::string top = folder;
  while (sys::real_path(top) != repository.git().top()) {
    if (top == "/" || top.empty()) {
      return fail(Code::config, "--rules-from: {} does not lead to its repository's top", folder);
    }
    top = sys::folder_of(top);
  }
  return top;
}

// Fails if a link or a nested repository lies between `top` and `path`: a pull request could add
// one to redirect or suppress the rules that we read from the base commit.
Result<void> check_no_link_between(const std::string& top, const std::string& path,
                                   const sys::Files& files) {
  if (!(path + "/").starts_with(top == "/" ? top : top + "/")) return {};
  for (std::string current = path; current.size() > top.size(); current = sys::folder_of(current)) {
    if (files.kind(current) == sys::Kind::absent) continue;
    const auto above = sys::real_path(sys::folder_of(current));
    const bool is_plain =
        above && sys::real_path(current) == sys::join_path(*above, sys::file_name_of(current));
    const bool is_repository = files.kind(sys::join_path(current, ".git")) != sys::Kind::absent;
    if (is_plain && !is_repository) continue;
    return fail(Code::config,
                "--rules-from: {} is a link or a repository of its own: what is read in the base "
                "would be the pull request's choice",
                text::printable(current));
  }
  return {};
}

// Returns `path` (absolute, as named) relative to the top of the repository; nothing if it lies
// outside. Fails if links or other repositories lie on the way.
Result<std::optional<std::string>> path_in_repository(const Repository& repository,
                                                      const std::string& config_folder,
                                                      const std::string& path,
                                                      const sys::Files& files) {
  WEIR_TRY(const std::string top, find_named_top(repository, config_folder));
  WEIR_CHECK(check_no_link_between(top, config_folder, files));
  WEIR_CHECK(check_no_link_between(top, path, files));
  if (path == top) return std::optional<std::string>("");
  if (!path.starts_with(top + "/")) return std::optional<std::string>();
  return std::optional<std::string>(path.substr(top.size() + 1));
}

// Fails if a configuration of the base, other than `inner`, lay in a folder that is a link to this
// one in the work tree: whoever starts weir in that folder would be judged by other rules.
Result<void> check_no_link_to(const Repository& repository, const std::string& commit,
                              const std::string& inner, const sys::Files& files) {
  if (inner.empty()) return {};
  const source::Git& git = repository.git();
  const std::string folder = sys::folder_of(sys::join_path(git.top(), inner));
  const auto real_folder = sys::real_path(folder);
  WEIR_TRY(const std::vector<std::string> names, git.files_of(commit));
  for (const std::string& name : names) {
    if (name == inner || sys::file_name_of(name) != sys::file_name_of(inner)) continue;
    const std::string other = sys::folder_of(sys::join_path(git.top(), name));
    if (other == folder || files.kind(other) == sys::Kind::absent) continue;
    if (sys::real_path(other) != real_folder) continue;
    return fail(
        Code::config,
        "--rules-from: {} is a link to {} here, and the base has {}: make it a folder again",
        text::printable(other), text::printable(folder), text::printable(name));
  }
  return {};
}

// Reads the configuration of the base commit. Without one the pull request's own rules hold.
Result<void> read_base_config(const std::string& ref, const Job& job, Rules& rules) {
  const std::string path = sys::absolute(job.selection.config);
  WEIR_TRY(const auto repository, Repository::containing(job.world, sys::folder_of(path)));
  WEIR_TRY(const std::string commit, repository->commit("--rules-from", ref));
  WEIR_TRY(const std::optional<std::string> below,
           path_in_repository(*repository, sys::folder_of(path), path, job.files()));
  const std::string inner = below.value_or("");
  WEIR_CHECK(check_no_link_to(*repository, commit, inner, job.files()));
  if (inner.find('/') != std::string::npos) rules.config_place = sys::folder_of(inner);
  rules.used.from = verdict::RulesFrom{ref, commit};
  WEIR_TRY(const std::optional<std::string> text,
           source::file_of(repository->git(), commit, inner, k_largest_config));
  if (!text) return {};
  rules.used.config_text = *text;
  rules.used.from->text_hash = sys::sha256_hex(*text);
  const std::string file_name =
      fmt::format("{} of {}", job.selection.config, text::short_commit(commit));
  WEIR_TRY(BaseSettings base, parse_base_settings(rules.used.config_text, file_name,
                                                  config_context(job.world, job.selection.config))
                                  .map_error(with_prefix("--rules-from " + ref)));
  rules.settings = std::make_unique<config::Settings>(std::move(base.settings));
  rules.used.from->waive_own = rules.settings->gate.waive_own;
  rules.used.notes = std::move(base.notes);
  return {};
}

// Uses the baselines in `folder` of `commit`, which `ref` names. Reports name `named_commit`.
Result<void> use_folder(const std::string& ref, const std::string& commit,
                        const std::string& folder, const std::string& named_commit, const Job& job,
                        Rules& rules) {
  const source::Git& git = rules.repository->git();
  WEIR_TRY(rules.baselines, source::TreeFiles::open(git, commit, folder, job.selection.baselines));
  rules.used.baselines_commit = commit;
  WEIR_TRY(const std::string commit_text, git.words(named_commit));
  rules.used.baselines_words =
      fmt::format("stored baselines of {}, {}", text::printable(ref), commit_text);
  return {};
}

// Uses the folder of --baselines as it is in the commit of --rules-from.
Result<void> use_base_baselines(const std::string& ref, const Job& job, Rules& rules) {
  const std::string& commit = rules.used.from->commit;
  const std::string config_folder = job.folder();
  WEIR_TRY(rules.repository, Repository::containing(job.world, config_folder));
  WEIR_TRY(const std::optional<std::string> inner,
           path_in_repository(*rules.repository, config_folder,
                              sys::absolute(job.selection.baselines), job.files()));
  if (!inner) {
    rules.used.notes.push_back(
        fmt::format("{} lies outside of this repository: its baselines are used as they are there",
                    job.selection.baselines));
    return {};
  }
  rules.baselines_folder = *inner;
  return use_folder(ref, commit, *inner, commit, job, rules);
}

// Uses the baselines of REF or REF:PATH. The commits of waivers on the same branch changed none.
Result<void> use_branch(const std::string& wanted, const Job& job, Rules& rules) {
  WEIR_TRY(rules.repository, Repository::containing(job.world, job.folder()));
  WEIR_TRY(const BaselinesPlace place, baselines_place(wanted));
  WEIR_TRY(const std::string commit, rules.repository->commit("--baselines-ref", place.ref));
  WEIR_TRY(const std::string folder, baselines_folder(rules.repository->git(), commit, place));
  WEIR_TRY(const std::optional<std::string> last,
           rules.repository->git().last_change(commit, folder));
  return use_folder(wanted, commit, folder, last.value_or(commit), job, rules);
}

}  // namespace

Result<BaseSettings> parse_base_settings(const std::string& text, const std::string& file_name,
                                         config::Supported context) {
  const std::string today = context.today;
  context.today.clear();
  BaseSettings base;
  WEIR_TRY(base.settings, config::parse_settings(text, file_name, context));
  base.notes = config::remove_expired_limits(base.settings, today);
  return base;
}

// Parses REF or REF:PATH of --baselines-ref.
Result<BaselinesPlace> baselines_place(const std::string& wanted) {
  // The name of a ref contains no ':'.
  const std::size_t colon = wanted.find(':');
  BaselinesPlace place{wanted.substr(0, colon), {}};
  if (colon != std::string::npos) {
    std::string path = wanted.substr(colon + 1);
    while (path.ends_with('/')) path.pop_back();
    const bool is_outside =
        std::ranges::any_of(text::split(path, '/'), [](const std::string& part) {
          return part.empty() || part == "." || part == ".." || part == ".git";
        });
    if (is_outside && !path.empty()) {
      return fail(Code::usage, "--baselines-ref {}: the path is counted from the top of the branch",
                  text::printable(wanted));
    }
    place.path = path;
  }
  if (place.ref.empty()) {
    return fail(Code::usage, "--baselines-ref {}: takes REF or REF:PATH", text::printable(wanted));
  }
  return place;
}

Result<std::string> baselines_folder(const source::Git& git, const std::string& commit,
                                     const BaselinesPlace& place) {
  if (place.path) return *place.path;
  WEIR_TRY(const auto entries, git.entries(commit, {"baselines"}));
  return std::string(entries.empty() ? "" : "baselines");
}

Result<std::shared_ptr<const Rules>> read_rules(const RulesOptions& wanted, const Job& job) {
  if (!wanted.rules_from && !wanted.baselines_ref) return std::shared_ptr<const Rules>();
  auto rules = std::make_shared<Rules>();
  if (wanted.rules_from) WEIR_CHECK(read_base_config(*wanted.rules_from, job, *rules));
  if (wanted.baselines_ref) {
    WEIR_CHECK(use_branch(*wanted.baselines_ref, job, *rules));
  } else {
    WEIR_CHECK(use_base_baselines(*wanted.rules_from, job, *rules));
  }
  return rules;
}

Result<std::shared_ptr<const Rules>> read_branch_rules(const std::string& wanted, const Job& job) {
  WEIR_TRY(const BaselinesPlace place, baselines_place(wanted));
  WEIR_TRY(const auto repository, Repository::containing(job.world, job.folder()));
  WEIR_TRY(const BranchStart start, find_branch_start(*repository, place.ref));
  if (!start.parent) return std::shared_ptr<const Rules>();
  const std::string ref = *start.parent + (place.path ? ":" + *place.path : std::string());
  return read_rules({std::nullopt, ref}, job);
}

StoredBaselines stored_baselines(const Job& job) {
  if (job.rules && job.rules->baselines) {
    return {*job.rules->baselines, job.selection.baselines, job.rules->used.baselines_words};
  }
  return {job.files(), job.selection.baselines};
}

// Reads or writes the rules of a run as JSON.
void fields(Fields& io, AppliedRules& used) {
  io("baselines", used.baselines_words);
  io("baselines_commit", used.baselines_commit);
  io("config_text", used.config_text);
  io.limit_items("proposals", verdict::k_max_proposals + 1, "has too many proposals");
  io("proposals", used.proposals);
  io.always("not_judged", used.not_judged);
  io.always("notes", used.notes);
  io.limit_items("held", k_max_held_cells, "holds too many cells");
  io.optional("held", used.required_cells, "held");
  io.optional("no_reference", used.no_reference);
  io.optional("from", used.from);
}

config::FormerNames former_names(const AppliedRules& used) {
  config::FormerNames former;
  for (const verdict::BaseCell& required_cell : used.required_cells) {
    const auto base_key = profile::CellKey::parse(required_cell.cell),
               key = profile::CellKey::parse(required_cell.current_name);
    if (!base_key || !key || *base_key == *key) continue;
    former.emplace(key->str(), *base_key);
    former.emplace(key->line().str(), base_key->line());
  }
  return former;
}

namespace {

// Returns the first word of a cell's command or environment that names something in the repository:
// a program, a script or a library. A pull request could bring its own.
std::optional<std::string> find_word_in_repository(const config::Cell& cell, const Job& job,
                                                   const std::string& top) {
  const auto is_inside = [&](const std::string& path) {
    const auto real = sys::real_path(path);
    return real && (*real + "/").starts_with(top + "/");
  };
  std::vector<std::string> words = cell.command;
  for (const auto& [name, value] : cell.env) words.push_back(value);
  for (const auto& [name, value] : cell.counted_run_env) words.push_back(value);
  if (!words.empty()) {
    const auto program =
        sys::find_program(job.files(), words.front(), job.folder(), job.variable("PATH"));
    if (program && is_inside(*program)) return words.front();
  }
  for (std::string& word : words) {
    std::string pieces = word;
    std::ranges::replace_if(
        pieces, [](char c) { return c == '=' || c == ','; }, ':');
    for (const std::string& piece : text::split(pieces, ':')) {
      // Placeholders are filled with files that the fingerprint covers.
      const bool is_path = !piece.empty() && piece.find('{') == std::string::npos;
      if (is_path && is_inside(sys::join_path(job.folder(), piece))) return word;
    }
  }
  return std::nullopt;
}

// Returns why the base's reference workload may not tell how fast the machine is; "" if it may.
// Where a pull request builds it, it could be as much slower as the cells that it excuses.
std::string find_reference_problem(const std::string& reference, const Job& job,
                                   const config::Matrix& matrix,
                                   const std::vector<verdict::BaseCell>& base_cells) {
  const config::Cell* cell = find_first(matrix.cells, [&](const config::Cell& candidate) {
    return candidate.key.str() == reference;
  });
  if (cell == nullptr) return "";
  const bool is_edited =
      std::ranges::any_of(base_cells, [&](const verdict::BaseCell& required_cell) {
        return required_cell.current_name == reference && !required_cell.edited.empty();
      });
  if (is_edited) return "the pull request edits it";
  const std::string top = job.rules->repository ? job.rules->repository->git().top() : "";
  if (top.empty()) return "";
  const auto word = find_word_in_repository(*cell, job, top);
  return word
             ? fmt::format("{} lies in this repository, so it may be the pull request's own", *word)
             : "";
}

}  // namespace

void drop_reference_cell(const std::string& why, config::Settings& settings, AppliedRules& used) {
  if (!settings.gate.reference) return;
  used.no_reference = true;
  used.notes.push_back(
      fmt::format("gate.reference {} is not used, times are compared as they are: {}",
                  *settings.gate.reference, why));
  settings.gate.reference.reset();
}

namespace {

// Baselines of two states, and the files that differ.
struct BaselineEdits {
  std::vector<std::string> names;              // relative to the folder of baselines
  std::shared_ptr<sys::Files> base;            // never null
  std::shared_ptr<sys::Files> head = nullptr;  // null for the work tree
};

// Returns the paths as they are counted from `folder`, which all of them lie below.
std::vector<std::string> names_below(const std::string& folder, std::vector<std::string> paths) {
  const std::size_t start = sys::join_path(folder, "x").size() - 1;
  for (std::string& path : paths) path.erase(0, start);
  return paths;
}

// Lists the baselines that the judged commit, or the work tree, edits. A judged commit is compared
// with its merge base with the rules' commit. So later commits of the base do not count as edits.
Result<BaselineEdits> list_baseline_edits(const Job& job) {
  const Rules& rules = *job.rules;
  const source::Git& git = rules.repository->git();
  const std::string& rules_commit = rules.used.from->commit;
  const std::string& folder = *rules.baselines_folder;
  WEIR_TRY(const JudgedCommit judged_commit, find_judged_commit(job, git));
  if (!judged_commit.problem.empty()) return fail(Code::config, "{}", judged_commit.problem);
  if (!judged_commit.commit) {
    WEIR_TRY(std::vector<std::string> edited_paths, git.changed_files(rules_commit, folder));
    return BaselineEdits{.names = names_below(folder, std::move(edited_paths)),
                         .base = rules.baselines};
  }
  WEIR_TRY(const std::vector<std::string> merge_bases,
           git.merge_bases(rules_commit, *judged_commit.commit));
  // Without a merge base, or with several, the commit of the rules is the base.
  const std::string& base_commit = merge_bases.size() == 1 ? merge_bases.front() : rules_commit;
  const std::string& shown_folder = job.selection.baselines;
  WEIR_TRY(auto base, source::TreeFiles::open(git, base_commit, folder, shown_folder));
  WEIR_TRY(auto head, source::TreeFiles::open(git, *judged_commit.commit, folder, shown_folder));
  std::vector<std::string> edited_paths = base->differing(*head);
  return BaselineEdits{.names = names_below(shown_folder, std::move(edited_paths)),
                       .base = std::move(base),
                       .head = std::move(head)};
}

// Returns as proposals the edits of baseline files; none where the rules' commit has no baselines
// that judge.
Result<std::vector<verdict::Proposal>> find_baseline_edits(const Job& job) {
  const Rules& rules = *job.rules;
  std::vector<verdict::Proposal> proposals;
  if (!rules.baselines_folder) return proposals;
  WEIR_TRY(const BaselineEdits edits, list_baseline_edits(job));
  const StoredBaselines base(*edits.base, job.selection.baselines),
      head(edits.head ? *edits.head : job.files(), job.selection.baselines);
  for (const std::string& name : edits.names) {
    const auto cell = profile::CellKey::parse(sys::folder_of(name));
    if (!cell || !name.ends_with(".json")) continue;
    const std::string file = sys::file_name_of(name),
                      device_class = file.substr(0, file.size() - 5);
    WEIR_TRY(const auto before, base.of_class(*cell, device_class));
    const auto after = head.of_class(*cell, device_class);
    if (!after) {  // a file that the pull request broke judges nothing
      verdict::Proposal unreadable{
          "baseline file " + text::printable(name) + ", which cannot be read", "", "",
          verdict::Proposal::Effect::changed};
      unreadable.about({cell->str()});
      proposals.push_back(std::move(unreadable));
      continue;
    }
    for (verdict::Proposal& proposal :
         verdict::compare_baselines(before ? &*before : nullptr, *after ? &**after : nullptr)) {
      proposals.push_back(std::move(proposal));
    }
  }
  return proposals;
}

}  // namespace

// Replaces the rules in `head` by those of a commit. Returns the changes that a pull request
// proposes, and the cells that it removed or renamed.
Result<AppliedRules> apply_rules(const Job& job, const config::Matrix& matrix,
                                 const config::Redactor& redactor, config::Settings& head) {
  const Rules& rules = *job.rules;
  AppliedRules used = rules.used;
  auto baseline_edits = find_baseline_edits(job);
  // A run of others is judged by the base's baselines whether it edits some or not.
  const bool is_claimed = job.selection.claimed_commit.has_value();
  if (!baseline_edits && !is_claimed) return tl::unexpected(std::move(baseline_edits).error());
  if (baseline_edits) {
    used.proposals = *std::move(baseline_edits);
  } else {
    used.not_judged.push_back("which baselines it edits: " +
                              text::first_line(baseline_edits.error().message));
  }
  if (rules.settings) {
    const auto base_cells = config::expand(*rules.settings);
    const config::Matrix empty_matrix;
    if (!base_cells) {
      used.not_judged.emplace_back("which cells of the base are gone");
      used.notes.push_back("the base's matrix: " + base_cells.error().message);
    }
    constexpr std::size_t k_digits = 40;  // as of the code of an acceptance
    const auto digest = [](std::string_view text) {
      return sys::sha256_hex(text).substr(0, k_digits);
    };
    const config::Matrix& cells = base_cells ? *base_cells : empty_matrix;
    WEIR_TRY(const config::FileEdits file_edits, find_input_edits(job, cells, digest));
    config::Edits edits =
        config::compare_rules(*rules.settings, cells, head, matrix, digest, file_edits);
    const std::string reference = rules.settings->gate.reference.value_or(""),
                      reference_problem =
                          find_reference_problem(reference, job, matrix, edits.cells);
    const auto is_selected = [&](const std::string& name) {
      const auto key = profile::CellKey::parse(name);
      return key && job.selection.wants_any(config::selecting_names(*key, redactor));
    };
    used.required_cells = std::move(edits.cells);
    std::erase_if(used.required_cells, [&](const verdict::BaseCell& required_cell) {
      return !is_selected(required_cell.cell) && !is_selected(required_cell.current_name);
    });
    for (verdict::BaseCell& required_cell : used.required_cells) {
      required_cell.shown = redactor.cell_name(required_cell.cell);
      required_cell.edited = redactor.text(required_cell.edited);
      if (required_cell.current_name.empty() || required_cell.current_name == required_cell.cell)
        continue;
      used.notes.push_back(
          rename_note(required_cell, redactor.cell_name(required_cell.current_name)));
    }
    for (verdict::Proposal& proposal : edits.proposals)
      used.proposals.push_back(std::move(proposal));
    for (verdict::Proposal& proposal : used.proposals) hide(proposal, redactor);
    config::copy_rules(*rules.settings, head);
    if (!reference_problem.empty())
      drop_reference_cell(redactor.text(reference_problem), head, used);
  }
  used.proposals = verdict::in_order(std::move(used.proposals));
  return used;
}

std::string baselines_in_run(const std::string& run_folder) {
  return sys::join_path(run_folder, "rules/baselines");
}

// Copies the stored baselines of these cells into the run's folder.
Result<void> keep_baselines(const Rules& rules, const Job& job,
                            const std::vector<profile::CellKey>& cells,
                            const std::string& run_folder) {
  if (!rules.baselines) return {};
  const StoredBaselines from = stored_baselines(job);
  StoredBaselines run_baselines(job.files(), baselines_in_run(run_folder));
  const auto copy_cell = [&](const profile::CellKey& cell) -> Result<void> {
    WEIR_TRY(const std::vector<baseline::Baseline> stored, from.of_cell(cell));
    for (const baseline::Baseline& baseline : stored) WEIR_CHECK(run_baselines.put(baseline));
    return {};
  };
  for (const profile::CellKey& cell : cells) {
    WEIR_CHECK(copy_cell(cell));
    if (cell.depth) WEIR_CHECK(copy_cell(cell.line()));
  }
  return {};
}

}  // namespace weir::flow

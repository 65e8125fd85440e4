#include "gate/flow/rules.hpp"

#include "gate/base/text.hpp"
#include "gate/config/rules.hpp"
#include "gate/flow/configure.hpp"
#include "gate/flow/redacted.hpp"
#include "gate/probes/read/locate.hpp"
#include "gate/source/tree_files.hpp"
#include "gate/sys/digest.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr std::size_t k_most_held = 100'000;

std::string renamed_words(const verdict::HeldCell& held, const std::string& now) {
  return fmt::format("{} is the base's {} under a new name: its limits and baselines judge it", now,
                     held.shown);
}

// Edits of the stored files in the working tree, held against the commit's.
Result<void> compare_stored(Rules& rules, const std::string& commit, const std::string& inner,
                            const Job& job) {
  const source::Git& git = rules.repository->git();
  WEIR_TRY(const std::vector<std::string> changed, git.changed_files(commit, inner));
  const StoredBaselines base(*rules.baselines, job.asked.baselines),
      head(job.files(), job.asked.baselines);
  for (const std::string& path : changed) {
    const std::string name = inner.empty() ? path : path.substr(inner.size() + 1);
    const auto cell = profile::CellKey::parse(sys::folder_of(name));
    if (!cell || !name.ends_with(".json")) continue;
    const std::string file = sys::file_name_of(name),
                      device_class = file.substr(0, file.size() - 5);
    WEIR_TRY(const auto before, base.of_class(*cell, device_class));
    const auto after = head.of_class(*cell, device_class);
    if (!after) {  // what the pull request left there is no baseline: it judges nothing here
      verdict::Proposal broken{"baseline file " + text::printable(name) + ", which cannot be read",
                               "", "", verdict::Proposal::Effect::changed};
      broken.about({cell->str()});
      rules.used.proposals.push_back(std::move(broken));
      continue;
    }
    for (verdict::Proposal& one :
         verdict::compare_baselines(before ? &*before : nullptr, *after ? &**after : nullptr)) {
      rules.used.proposals.push_back(std::move(one));
    }
  }
  return {};
}

// `path` (absolute, as it was named) from the top of the repository that the configuration lies in;
// nothing where it does not lie below. A link or another repository on the way is Code::config:
// with one the pull request would choose what is read in the base, or that nothing is.
Result<std::optional<std::string>> place_below(const Repository& repository,
                                               const std::string& config_folder,
                                               const std::string& path, const sys::Files& files) {
  std::string top = config_folder;
  while (sys::real_path(top) != repository.git().top()) {
    if (top == "/" || top.empty()) {
      return fail(Code::config, "--rules-from: {} does not lead to its repository's top",
                  config_folder);
    }
    top = sys::folder_of(top);
  }
  for (const std::string& end : {config_folder, path}) {
    if (!(end + "/").starts_with(top == "/" ? top : top + "/")) continue;
    for (std::string at = end; at.size() > top.size(); at = sys::folder_of(at)) {
      if (files.kind(at) == sys::Kind::absent) continue;
      const auto above = sys::real_path(sys::folder_of(at));
      const bool plain =
          above && sys::real_path(at) == sys::join_path(*above, sys::file_name_of(at));
      if (!plain || files.kind(sys::join_path(at, ".git")) != sys::Kind::absent) {
        return fail(
            Code::config,
            "--rules-from: {} is a link or a repository of its own: what is read in the base "
            "would be the pull request's choice",
            text::printable(at));
      }
    }
  }
  if (path == top) return std::optional<std::string>("");
  if (!path.starts_with(top + "/")) return std::optional<std::string>();
  return std::optional<std::string>(path.substr(top.size() + 1));
}

Result<void> read_config(const std::string& ref, const Job& job, Rules& rules) {
  const std::string path = sys::absolute(job.asked.config);
  WEIR_TRY(const auto repository, Repository::around(job.world, sys::folder_of(path)));
  WEIR_TRY(const std::string commit, repository->commit("--rules-from", ref));
  WEIR_TRY(const std::optional<std::string> below,
           place_below(*repository, sys::folder_of(path), path, job.files()));
  const std::string inner = below.value_or("");
  rules.used.from = verdict::RulesFrom{ref, commit};
  WEIR_TRY(const std::optional<std::string> text,
           source::file_of(repository->git(), commit, inner, k_largest_config));
  if (!text) {
    rules.used.proposals.push_back(
        {fmt::format("all of {}: {} has no such file, so that its rules are "
                     "those of the pull request itself",
                     job.asked.config, source::short_commit(commit)),
         "", "", verdict::Proposal::Effect::looser, true});
    return {};
  }
  rules.used.config_text = *text;
  rules.used.from->text_hash = sys::sha256_hex(*text);
  const std::string shown = fmt::format("{} of {}", job.asked.config, source::short_commit(commit));
  WEIR_TRY(BaseSettings base, parse_base_settings(rules.used.config_text, shown,
                                                  known_now(job.world, job.asked.config))
                                  .map_error(in_context("--rules-from " + ref)));
  rules.settings = std::make_unique<config::Settings>(std::move(base.settings));
  rules.used.from->accept_own = rules.settings->gate.accept_own;
  rules.used.notes = std::move(base.notes);
  return {};
}

// Baselines are those of the folder as the commit has it, which `ref` names.
Result<void> take_folder(const std::string& ref, const std::string& commit,
                         const std::string& folder, const Job& job, Rules& rules) {
  const source::Git& git = rules.repository->git();
  WEIR_TRY(rules.baselines, source::TreeFiles::open(git, commit, folder, job.asked.baselines));
  rules.used.baselines_commit = commit;
  WEIR_TRY(const std::string words, git.words(commit));
  rules.used.baselines_words =
      fmt::format("stored baselines of {}, {}", text::printable(ref), words);
  return {};
}

// The folder of --baselines, as the commit of --rules-from has it.
Result<void> take_baselines(const std::string& ref, const Job& job, Rules& rules) {
  const std::string& commit = rules.used.from->commit;
  const std::string config_folder = job.folder();
  WEIR_TRY(rules.repository, Repository::around(job.world, config_folder));
  WEIR_TRY(const std::optional<std::string> inner,
           place_below(*rules.repository, config_folder, sys::absolute(job.asked.baselines),
                       job.files()));
  if (!inner) {
    rules.used.notes.push_back(
        fmt::format("{} lies outside of this repository: its baselines are used as they are there",
                    job.asked.baselines));
    return {};
  }
  WEIR_CHECK(take_folder(ref, commit, *inner, job, rules));
  return compare_stored(rules, commit, *inner, job);
}

// REF or REF:PATH.
Result<void> take_branch(const std::string& wanted, const Job& job, Rules& rules) {
  WEIR_TRY(rules.repository, Repository::around(job.world, job.folder()));
  WEIR_TRY(const BaselinesPlace place, baselines_place(wanted));
  WEIR_TRY(const std::string commit, rules.repository->commit("--baselines-ref", place.ref));
  WEIR_TRY(const std::string folder, baselines_folder(rules.repository->git(), commit, place));
  return take_folder(wanted, commit, folder, job, rules);
}

}  // namespace

Result<BaseSettings> parse_base_settings(const std::string& text, const std::string& shown,
                                         config::Known known) {
  const std::string today = known.today;
  known.today.clear();
  BaseSettings base;
  WEIR_TRY(base.settings, config::parse_settings(text, shown, known));
  base.notes = config::drop_expired(base.settings, today);
  return base;
}

Result<BaselinesPlace> baselines_place(const std::string& wanted) {
  // A ref's name has no ':' in it.
  const std::size_t colon = wanted.find(':');
  BaselinesPlace place{wanted.substr(0, colon), {}};
  if (colon != std::string::npos) {
    std::string path = wanted.substr(colon + 1);
    while (path.ends_with('/')) path.pop_back();
    const bool odd = std::ranges::any_of(text::split(path, '/'), [](const std::string& part) {
      return part.empty() || part == "." || part == ".." || part == ".git";
    });
    if (odd && !path.empty()) {
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

Result<std::shared_ptr<const Rules>> read_rules(const RulesWanted& wanted, const Job& job) {
  if (!wanted.rules_from && !wanted.baselines_ref) return std::shared_ptr<const Rules>();
  auto rules = std::make_shared<Rules>();
  if (wanted.rules_from) WEIR_CHECK(read_config(*wanted.rules_from, job, *rules));
  if (wanted.baselines_ref) {
    WEIR_CHECK(take_branch(*wanted.baselines_ref, job, *rules));
  } else {
    WEIR_CHECK(take_baselines(*wanted.rules_from, job, *rules));
  }
  return rules;
}

Result<std::shared_ptr<const Rules>> rules_of_branch(const std::string& wanted, const Job& job) {
  WEIR_TRY(const BaselinesPlace place, baselines_place(wanted));
  WEIR_TRY(const auto repository, Repository::around(job.world, job.folder()));
  WEIR_TRY(const BranchStart start, start_of(*repository, place.ref));
  if (!start.parent) return std::shared_ptr<const Rules>();
  const std::string there = *start.parent + (place.path ? ":" + *place.path : std::string());
  return read_rules({std::nullopt, there}, job);
}

StoredBaselines baselines_of(const Job& job) {
  if (job.rules && job.rules->baselines) {
    return {*job.rules->baselines, job.asked.baselines, job.rules->used.baselines_words};
  }
  return {job.files(), job.asked.baselines};
}

void fields(Fields& io, RulesUsed& used) {
  io("baselines", used.baselines_words);
  io("baselines_commit", used.baselines_commit);
  io("config_text", used.config_text);
  io.at_most("proposals", verdict::k_most_proposals + 1, "has too many proposals");
  io("proposals", used.proposals);
  io.always("not_judged", used.not_judged);
  io.always("notes", used.notes);
  io.at_most("held", k_most_held, "holds too many cells");
  io.sparse("held", used.held, "held");
  io.sparse("from", used.from);
}

RulesUsed apply_rules(const Rules& rules, const config::Matrix& matrix,
                      const std::string& config_folder, const std::vector<std::string>& globs,
                      config::Settings& head) {
  RulesUsed used = rules.used;
  if (rules.settings) {
    const auto base_cells = config::expand(*rules.settings);
    const config::Matrix none;
    if (!base_cells) {
      used.not_judged.emplace_back("which cells of the base are gone");
      used.notes.push_back("the base's matrix: " + base_cells.error().message);
    }
    config::Edits edits = config::compare_rules(*rules.settings, base_cells ? *base_cells : none,
                                                head, matrix, probes::probe_devices());
    // What is private there may stand in the head's own text no more.
    const config::Redactor redactor(*rules.settings, config_folder);
    used.held = std::move(edits.cells);
    std::erase_if(used.held, [&](const verdict::HeldCell& one) {
      return !matches(globs, one.cell) && (one.now.empty() || !matches(globs, one.now));
    });
    for (verdict::HeldCell& one : used.held) {
      one.shown = redactor.cell_name(one.cell);
      if (one.now.empty() || one.now == one.cell) continue;
      used.notes.push_back(renamed_words(one, redactor.cell_name(one.now)));
    }
    for (verdict::Proposal& one : edits.proposals) used.proposals.push_back(std::move(one));
    for (verdict::Proposal& one : used.proposals) hide(one, redactor);
    config::take_rules(*rules.settings, head);
  }
  used.proposals = verdict::in_order(std::move(used.proposals));
  return used;
}

Result<void> find_renamed(RulesUsed& used, const std::vector<profile::Profile>& profiles,
                          const StoredBaselines& stored) {
  std::set<std::string> taken;
  for (const verdict::HeldCell& held : used.held) taken.insert({held.cell, held.now});
  for (verdict::HeldCell& held : used.held) {
    if (!held.now.empty()) continue;
    WEIR_TRY(const profile::CellKey key, profile::CellKey::parse(held.cell));
    WEIR_TRY(const std::vector<baseline::Baseline> known, stored.of_cell(key));
    const auto found = std::ranges::find_if(profiles, [&](const profile::Profile& profile) {
      const profile::Provenance& from = profile.provenance;
      return !taken.contains(profile.cell.str()) &&
             std::ranges::any_of(known, [&](const baseline::Baseline& one) {
               return one.fingerprint == from.fingerprint && one.device_class == from.device_class;
             });
    });
    if (found == profiles.end()) continue;
    held.now = found->cell.str();
    taken.insert(held.now);
    used.notes.push_back(renamed_words(held, held.now));
  }
  return {};
}

std::string baselines_in_run(const std::string& run_folder) {
  return sys::join_path(run_folder, "rules/baselines");
}

Result<void> keep_baselines(const Rules& rules, const Job& job,
                            const std::vector<profile::CellKey>& cells,
                            const std::string& run_folder) {
  if (!rules.baselines) return {};
  const StoredBaselines from = baselines_of(job);
  StoredBaselines to(job.files(), baselines_in_run(run_folder));
  const auto keep = [&](const profile::CellKey& cell) -> Result<void> {
    WEIR_TRY(const std::vector<baseline::Baseline> stored, from.of_cell(cell));
    for (const baseline::Baseline& one : stored) WEIR_CHECK(to.put(one));
    return {};
  };
  for (const profile::CellKey& cell : cells) {
    WEIR_CHECK(keep(cell));
    if (cell.depth) WEIR_CHECK(keep(cell.line()));
  }
  return {};
}

}  // namespace weir::flow


#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/parse.hpp"
#include "gate/flow/configure.hpp"
#include "gate/flow/trend.hpp"
#include "gate/source/tree_files.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr std::size_t k_most_tracked = 100'000;
constexpr std::uint64_t k_largest_baseline = std::uint64_t{16} << 20;
constexpr const char* k_config_name = "weir.yaml";

// The configuration whose private names count: the one that was named, or the nearest above.
Result<std::string> config_for(const TrendFolder& where, const std::string& top,
                               const sys::Files& files) {
  if (!where.config.empty()) {
    if (files.exists(where.config)) return where.config;
    return fail(Code::config, "{}: no such file", where.config);
  }
  for (std::string folder = sys::absolute(where.folder);; folder = sys::folder_of(folder)) {
    const std::string config = sys::join_path(folder, k_config_name);
    if (files.exists(config)) return config;
    if (folder == "/" || folder == top) break;
  }
  return fail(Code::config,
              "{}: no {} here or above it: baselines go by true names, and what is private stays "
              "at home. -c FILE names the configuration",
              where.folder, k_config_name);
}

// What a configuration says is private; Code::config where it cannot be read and may say so.
Result<config::Redactor> redactor_from(const std::string& text, const std::string& config,
                                       const sys::World& world) {
  config::Known known = known_now(world, config);
  known.today.clear();  // what has expired since is private all the same
  auto made = configured(text, config, known);
  if (made) return std::move(made->redactor);
  if (text.find("private") == std::string::npos) return config::Redactor();
  return fail(Code::config, "it cannot be read, so what is private in it is not known");
}

// Aliases in place of what any of these calls private.
void hide(const std::vector<config::Redactor>& redactors, baseline::Baseline& one) {
  auto cell = profile::CellKey::parse(one.cell);
  for (const config::Redactor& redactor : redactors) {
    if (cell) cell = redactor.cell(*std::move(cell));
    for (auto& [machine, sessions] : one.sessions) {
      for (baseline::Session& session : sessions) {
        session.engine_build = redactor.text(session.engine_build);
      }
    }
  }
  if (cell) one.cell = cell->str();
}

using Objects = std::map<std::string, std::string>;  // path -> object

// ENGINE/MODEL/BACKEND/PROMPT/CLASS.json, wherever the folder of baselines lies.
bool may_be_baseline(const source::Git::TreeEntry& entry) {
  return entry.kind == source::Git::TreeEntry::Kind::file && entry.path.ends_with(".json") &&
         std::ranges::count(entry.path, '/') >= 4;
}

class BaselineHistory {
 public:
  BaselineHistory(const source::Git& git, std::string folder, std::string config,
                  config::Redactor redactor, const sys::World& world, const Warn& warn)
      : git_(git),
        folder_(std::move(folder)),
        config_(std::move(config)),
        redactor_(std::move(redactor)),
        world_(world),
        warn_(warn) {}

  // What `commit` changed against the one before it.
  Result<std::vector<history::BaselineChange>> changes(const std::string& commit) {
    WEIR_TRY(const auto entries, git_.entries_below(commit, folder_, k_most_tracked));
    Objects now;
    for (const source::Git::TreeEntry& entry : entries) {
      if (may_be_baseline(entry)) now[entry.path] = entry.object;
    }
    std::vector<history::BaselineChange> changes;
    const std::optional<std::vector<config::Redactor>> redactors = redactors_of(commit);
    for (const auto& [path, object] : now) {
      const std::string* old = look_up(before_, path);
      if (old != nullptr && *old == object) continue;
      WEIR_TRY(auto after, read(commit, path, object));
      if (!after) continue;
      std::optional<baseline::Baseline> known;
      if (old != nullptr) WEIR_SET(known, read(commit, path, *old));
      if (!redactors) {
        warn_(
            fmt::format("{}: its {} cannot be read, so what is private in it is not known; "
                        "left out",
                        source::short_commit(commit), k_config_name));
        break;
      }
      hide(*redactors, *after);
      if (known) hide(*redactors, *known);
      changes.push_back({std::move(known), *std::move(after)});
    }
    before_ = std::move(now);
    return changes;
  }

 private:
  // Nothing where it is no baseline: other JSON may lie in the folder.
  Result<std::optional<baseline::Baseline>> read(const std::string& commit, const std::string& path,
                                                 const std::string& object) {
    WEIR_TRY(const std::string text, git_.content(object, k_largest_baseline));
    if (text.find(baseline::k_schema) == std::string::npos) return std::nullopt;
    auto parsed = baseline::parse(text);
    if (parsed) return *std::move(parsed);
    warn_(fmt::format("{} {}: left out: {}", source::short_commit(commit),
                      redactor_.text(text::printable(path)),
                      redactor_.text(parsed.error().message)));
    return std::nullopt;
  }

  // Now's, and that of the commit: what was private then is so still. Nothing where the commit's
  // cannot be read.
  std::optional<std::vector<config::Redactor>> redactors_of(const std::string& commit) {
    std::vector<config::Redactor> redactors{redactor_};
    const auto text = source::file_of(git_, commit, config_, k_largest_config);
    if (!text) return std::nullopt;
    if (!*text) return redactors;  // it had none
    if (**text == last_text_) return last_redactors_;
    auto redactor = redactor_from(**text, sys::join_path(git_.top(), config_), world_);
    last_text_ = **text;
    last_redactors_.reset();
    if (redactor) {
      redactors.push_back(*std::move(redactor));
      last_redactors_ = std::move(redactors);
    }
    return last_redactors_;
  }

  const source::Git& git_;
  std::string folder_, config_;
  config::Redactor redactor_;
  const sys::World& world_;
  const Warn& warn_;
  Objects before_;
  std::string last_text_;
  std::optional<std::vector<config::Redactor>> last_redactors_;
};

}  // namespace

Result<void> trend_parts_of_baselines(const Job& job, const TrendFolder& where,
                                      const TrendFacts& facts, const TakePart& take,
                                      const Warn& warn) {
  const auto repository = Repository::around(job.world, sys::absolute(where.folder));
  if (!repository) return {};  // runs alone: nothing says when a baseline was stored
  const source::Git& git = (*repository)->git();
  const std::string inner = git.place();
  WEIR_TRY(const std::vector<source::CommitFacts> commits, git.commits_that_changed(inner));
  if (commits.empty()) return {};
  WEIR_TRY(const auto entries, git.entries_below(commits.back().name, inner, k_most_tracked));
  const bool some = std::ranges::any_of(entries, [&](const source::Git::TreeEntry& entry) {
    if (!may_be_baseline(entry)) return false;
    const auto text = git.content(entry.object, k_largest_baseline);
    return text && text->find(baseline::k_schema) != std::string::npos;
  });
  if (!some) return {};
  if (git.shallow().value_or(false)) {
    warn("this clone is shallow: what was stored before it begins is not seen");
  }
  WEIR_TRY(const std::string config, config_for(where, git.top(), job.files()));
  WEIR_TRY(const std::string text, job.files().read(config, k_largest_config));
  WEIR_TRY(config::Redactor redactor,
           redactor_from(text, config, job.world).map_error(in_context(config)));
  const std::string shown = sys::real_path(config).value_or(sys::absolute(config));
  const std::string config_in_git =
      shown.starts_with(git.top() + "/") ? shown.substr(git.top().size() + 1) : k_config_name;
  BaselineHistory history(git, inner, config_in_git, std::move(redactor), job.world, warn);
  WEIR_TRY(const auto head, git.head());
  for (const source::CommitFacts& commit : commits) {
    WEIR_TRY(const auto changes, history.changes(commit.name));
    if (changes.empty()) continue;
    history::RunFacts run;
    run.project = facts.project;
    run.commit = commit.name;
    run.commit_time = commit.time;
    run.branch = facts.branch ? facts.branch : head ? head->branch : std::nullopt;
    if (run.branch) run.branch = history::stored_name(*run.branch);
    run.time = commit.time;
    if (facts.machine) run.machine = history::stored_name(*facts.machine);
    TrendPart part{"baselines of " + source::short_commit(commit.name), {}, {}};
    part.batch.runs = history::runs_of(run, changes);
    if (!part.batch.runs.empty()) WEIR_CHECK(take(std::move(part)));
  }
  return {};
}

}  // namespace weir::flow

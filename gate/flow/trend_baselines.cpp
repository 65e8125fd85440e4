// Reads the history of stored baselines out of git, as parts of weir's own history.
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/parse.hpp"
#include "gate/flow/configure.hpp"
#include "gate/flow/trend.hpp"
#include "gate/source/tree_files.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr std::size_t k_max_tracked_files = 100'000;
constexpr std::uint64_t k_largest_baseline = std::uint64_t{16} << 20;
constexpr const char* k_config_name = "weir.yaml";

// Returns the configuration whose private names are hidden: the named one, else the nearest
// weir.yaml above.
Result<std::string> find_config(const TrendFolder& folder_options, const std::string& top,
                                const sys::Files& files) {
  if (!folder_options.config.empty()) {
    if (files.exists(folder_options.config)) return folder_options.config;
    return fail(Code::config, "{}: no such file", folder_options.config);
  }
  for (std::string folder = sys::absolute(folder_options.folder);;
       folder = sys::folder_of(folder)) {
    const std::string config = sys::join_path(folder, k_config_name);
    if (files.exists(config)) return config;
    if (folder == "/" || folder == top) break;
  }
  return fail(Code::config,
              "{}: no {} here or above it: baselines go by true names, and what is private stays "
              "at home. -c FILE names the configuration",
              folder_options.folder, k_config_name);
}

// Returns a redactor of the configuration's private names. Code::config if it cannot be read, but
// mentions private names.
Result<config::Redactor> read_redactor(const std::string& text, const std::string& config,
                                       const sys::World& world) {
  config::Supported context = config_context(world, config);
  context.today.clear();  // an expired limit does not make its configuration public
  auto configuration = parse_configuration(text, config, context);
  if (configuration) return std::move(configuration->redactor);
  if (text.find("private") == std::string::npos) return config::Redactor();
  return fail(Code::config, "it cannot be read, so what is private in it is not known");
}

// Replaces the names in a baseline that any of the redactors calls private by their aliases.
void hide(const std::vector<config::Redactor>& redactors, baseline::Baseline& stored) {
  auto cell = profile::CellKey::parse(stored.cell);
  for (const config::Redactor& redactor : redactors) {
    if (cell) cell = redactor.cell(*std::move(cell));
    for (auto& [machine, sessions] : stored.sessions) {
      for (baseline::Session& session : sessions) {
        session.engine_build = redactor.text(session.engine_build);
      }
    }
  }
  if (cell) stored.cell = cell->str();
}

using Objects = std::map<std::string, std::string>;  // path -> object

// Returns true for a path like ENGINE/MODEL/BACKEND/PROMPT/CLASS.json, in any folder.
bool may_be_baseline(const source::Git::TreeEntry& entry) {
  return entry.kind == source::Git::TreeEntry::Kind::file && entry.path.ends_with(".json") &&
         std::ranges::count(entry.path, '/') >= 4;
}

// Walks through the commits of a repository, oldest first, and finds the baselines that each
// changed.
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

  // Returns the baselines that `commit` changed since the call before.
  Result<std::vector<history::BaselineChange>> changes(const std::string& commit) {
    WEIR_TRY(const auto entries, git_.entries_below(commit, folder_, k_max_tracked_files));
    Objects objects;
    for (const source::Git::TreeEntry& entry : entries) {
      if (may_be_baseline(entry)) objects[entry.path] = entry.object;
    }
    std::vector<history::BaselineChange> changes;
    const std::optional<std::vector<config::Redactor>> redactors = redactors_at(commit);
    for (const auto& [path, object] : objects) {
      const std::string* old_object = look_up(before_, path);
      if (old_object != nullptr && *old_object == object) continue;
      WEIR_TRY(auto after, read(commit, path, object));
      if (!after) continue;
      std::optional<baseline::Baseline> before;
      if (old_object != nullptr) WEIR_TRY_SET(before, read(commit, path, *old_object));
      if (!redactors) {
        warn_(
            fmt::format("{}: its {} cannot be read, so what is private in it is not known; "
                        "left out",
                        text::short_commit(commit), k_config_name));
        break;
      }
      hide(*redactors, *after);
      if (before) hide(*redactors, *before);
      changes.push_back({std::move(before), *std::move(after)});
    }
    before_ = std::move(objects);
    return changes;
  }

 private:
  // Reads a file of a commit; nothing if it is no baseline, as other JSON may lie in the folder.
  Result<std::optional<baseline::Baseline>> read(const std::string& commit, const std::string& path,
                                                 const std::string& object) {
    WEIR_TRY(const std::string text, git_.content(object, k_largest_baseline));
    if (text.find(baseline::k_schema) == std::string::npos) return std::nullopt;
    auto parsed = baseline::parse(text);
    if (parsed) return *std::move(parsed);
    warn_(fmt::format("{} {}: left out: {}", text::short_commit(commit),
                      redactor_.text(text::printable(path)),
                      redactor_.text(parsed.error().message)));
    return std::nullopt;
  }

  // Returns the redactors of the present configuration and of the commit's: names that were private
  // then stay so. Nothing if the commit's cannot be read.
  std::optional<std::vector<config::Redactor>> redactors_at(const std::string& commit) {
    std::vector<config::Redactor> redactors{redactor_};
    const auto text = source::file_of(git_, commit, config_, k_largest_config);
    if (!text) return std::nullopt;
    if (!*text) return redactors;  // it had none
    if (**text == last_text_) return last_redactors_;
    auto redactor = read_redactor(**text, sys::join_path(git_.top(), config_), world_);
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

// Reads each version of the baselines in git as one part of a history. Returns without any if no
// repository has baselines.
Result<void> read_baseline_parts(const Job& job, const TrendFolder& folder_options,
                                 const TrendFacts& facts, const TakePart& take, const Warn& warn) {
  const auto repository = Repository::containing(job.world, sys::absolute(folder_options.folder));
  if (!repository) return {};  // runs alone: nothing says when a baseline was stored
  const source::Git& git = (*repository)->git();
  const std::string inner = git.place();
  WEIR_TRY(const std::vector<source::CommitFacts> commits, git.commits_that_changed(inner));
  if (commits.empty()) return {};
  WEIR_TRY(const auto entries, git.entries_below(commits.back().name, inner, k_max_tracked_files));
  const bool has_baselines = std::ranges::any_of(entries, [&](const source::Git::TreeEntry& entry) {
    if (!may_be_baseline(entry)) return false;
    const auto text = git.content(entry.object, k_largest_baseline);
    return text && text->find(baseline::k_schema) != std::string::npos;
  });
  if (!has_baselines) return {};
  if (git.shallow().value_or(false)) {
    warn("this clone is shallow: what was stored before it begins is not seen");
  }
  WEIR_TRY(const std::string config, find_config(folder_options, git.top(), job.files()));
  WEIR_TRY(const std::string text, job.files().read(config, k_largest_config));
  WEIR_TRY(config::Redactor redactor,
           read_redactor(text, config, job.world).map_error(with_prefix(config)));
  const std::string config_path = sys::real_path(config).value_or(sys::absolute(config));
  const std::string config_in_git = config_path.starts_with(git.top() + "/")
                                        ? config_path.substr(git.top().size() + 1)
                                        : k_config_name;
  BaselineHistory history(git, inner, config_in_git, std::move(redactor), job.world, warn);
  WEIR_TRY(const auto head, git.head());
  for (const source::CommitFacts& commit : commits) {
    WEIR_TRY(const auto changes, history.changes(commit.name));
    if (changes.empty()) continue;
    history::RunFacts run;
    run.project = facts.project;
    run.commit = commit.name;
    run.commit_time = commit.time;
    if (head) run.branch = head->branch;
    if (facts.branch) run.branch = facts.branch;
    if (run.branch) run.branch = history::stored_name(*run.branch);
    run.time = commit.time;
    if (facts.machine) run.machine = history::stored_name(*facts.machine);
    TrendPart part{"baselines of " + text::short_commit(commit.name), {}, {}};
    part.batch.runs = history::make_baseline_runs(run, changes);
    if (!part.batch.runs.empty()) WEIR_CHECK(take(std::move(part)));
  }
  return {};
}

}  // namespace weir::flow

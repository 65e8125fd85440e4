#include "gate/app/trend_sources.hpp"

#include <algorithm>

#include "gate/app/repository.hpp"
#include "gate/app/session.hpp"
#include "gate/app/veiled.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/history/documents.hpp"
#include "gate/run/journal.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

constexpr std::uint64_t k_largest_header = std::uint64_t{16} << 20;
constexpr std::size_t k_deepest = 8, k_most_entries = 200'000;
constexpr const char* k_verdict_name = "verdict.json";

// What stays the same however often a run is gone on with or judged: the line its journal begins
// with.
Result<std::string> id_of_run(const std::string& journal, const sys::Files& files) {
  WEIR_TRY(const std::string head, files.read_prefix(journal, k_largest_header));
  return hash_hex("run\n" + head.substr(0, head.find('\n')));
}

std::optional<std::string> name_or_nothing(const std::optional<std::string>& text) {
  return text && !text->empty() ? std::optional(history::kept_name(*text)) : std::nullopt;
}

// Of the commit that the command line names, where a repository here knows it.
std::optional<double> time_of_commit(const std::string& commit) {
  const auto repository = Repository::around(sys::absolute("."));
  if (!repository) return std::nullopt;
  return (*repository)->git().time_of(commit).value_or(std::nullopt);
}

// Which commit a run measured: what the command line says, what it ran beside a base as, what its
// header says of the checkout.
void take_commit(const Measured& measured, const run::RunHeader& header, const TrendFacts& given,
                 history::RunFacts& facts) {
  JsonReader extra(header.extra, "extra");
  if (extra.has("source")) {
    JsonReader source(extra.object("source"), "source");
    facts.commit = source.optional_string("commit");
    facts.commit_time = source.optional_number("time");
    facts.dirty = source.optional_boolean("dirty").value_or(false);
  }
  facts.branch = extra.optional_string("branch");
  if (measured.beside && measured.beside->facts.candidate_commit) {
    const BaseFacts& beside = measured.beside->facts;
    if (facts.commit != beside.candidate_commit) {
      facts.commit = beside.candidate_commit;
      facts.commit_time.reset();
    }
    facts.dirty = beside.candidate_dirty;
  }
  if (given.commit && given.commit != facts.commit) {
    facts.commit = given.commit;
    facts.commit_time.reset();
    facts.dirty = false;
  }
  if (given.branch) facts.branch = given.branch;
  facts.commit = name_or_nothing(facts.commit);
  if (facts.branch) facts.branch = measured.veil.text(*facts.branch);
  facts.branch = name_or_nothing(facts.branch);
  if (facts.commit && !facts.commit_time) facts.commit_time = time_of_commit(*facts.commit);
}

Result<verdict::GateVerdict> verdict_in_file(const std::string& path, const sys::Files& files) {
  WEIR_TRY(const std::string text, files.read(path, history::k_largest_verdict));
  WEIR_TRY(const Json json, parse_json(text));
  WEIR_TRY(verdict::GateVerdict verdict, verdict::verdict_from_json(json));
  return verdict;
}

Result<TrendPart> part_of_run(const std::string& path, const TrendFacts& given, sys::Files& files) {
  const bool folder = files.kind(path) == sys::Kind::folder;
  const std::string home = folder ? path : sys::folder_of(path);
  const std::string journal =
      folder ? sys::join_path(path, std::string(run::k_journal_name)) : path;
  CommonOptions options;
  WEIR_TRY(Measured measured, read_measured(options, home, files));
  if (!measured.interrupted.empty()) {
    return fail(Code::usage, "{}", measured.veil.text(measured.interrupted));
  }
  WEIR_TRY(const run::RunFile file, run::read_run(files, home));
  history::RunFacts facts;
  facts.project = given.project;
  WEIR_TRY(facts.id, id_of_run(journal, files));
  facts.source = history::Source::run;
  facts.time = given.time.value_or(file.header.started_at);
  facts.machine = given.machine ? history::kept_name(*given.machine)
                                : history::machine_of(file.header.machine.name());
  facts.weir_version = name_or_nothing(file.header.weir_version).value_or("");
  take_commit(measured, file.header, given, facts);
  veil_profiles(measured);

  TrendPart part{path, {}, {}};
  const std::string verdict_path = sys::join_path(home, k_verdict_name);
  if (files.kind(verdict_path) == sys::Kind::file) {
    auto verdict = verdict_in_file(verdict_path, files);
    if (verdict) {
      part.batch.verdicts.push_back(history::stored_verdict(
          facts, facts.id, veiled(*std::move(verdict), measured.veil), sys::RealClock().now()));
    } else {
      part.warnings.push_back(
          fmt::format("{}: left out: {}", verdict_path, verdict.error().message));
    }
  }
  part.batch.runs.push_back(history::run_of(std::move(facts), measured.profiles));
  if (part.batch.runs.front().points.empty()) {
    part.warnings.push_back(fmt::format("{}: nothing was measured in it", path));
  }
  return part;
}

Result<TrendPart> part_of_verdict(const std::string& path, const TrendFacts& given,
                                  const sys::Files& files) {
  WEIR_TRY(const verdict::GateVerdict verdict, verdict_in_file(path, files));
  history::Around around;
  around.now = sys::RealClock().now();
  around.time_of_commit = time_of_commit;
  TrendPart part{path, {}, {}};
  WEIR_TRY(part.batch, history::batch_of(verdict, given, around).map_error([&](Error error) {
    return error.code == Code::usage ? with_context(path, std::move(error)) : error;
  }));
  return part;
}

bool is_run(const std::string& folder, const sys::Files& files) {
  return files.kind(sys::join_path(folder, std::string(run::k_journal_name))) == sys::Kind::file;
}

bool looks_like_verdict(const std::string& path, const sys::Files& files) {
  constexpr std::uint64_t k_whole = std::uint64_t{16} << 20;
  if (!path.ends_with(".json")) return false;
  const auto text = files.read(path, k_whole);
  return text && text->find("\"weir.verdict/1\"") != std::string::npos;
}

// Runs and verdicts below a folder, in the order of their names.
Result<void> find_artefacts(const std::string& folder, std::size_t depth, const sys::Files& files,
                            std::vector<std::string>& found, std::size_t& entries) {
  if (is_run(folder, files)) {
    found.push_back(folder);
    return {};
  }
  if (depth == k_deepest) return {};
  WEIR_TRY(const std::vector<std::string> names, files.list(folder));
  // As the Action leaves them: the run has its verdict within, and would count twice.
  const bool beside_run = is_run(sys::join_path(folder, "run"), files);
  for (const std::string& name : names) {
    if (++entries > k_most_entries) {
      return fail(Code::data, "{}: more than {} files; name a smaller folder", folder,
                  k_most_entries);
    }
    if (name == ".git" || name == ".weir") continue;
    const std::string path = sys::join_path(folder, name);
    const sys::Kind kind = files.kind(path);
    if (kind == sys::Kind::folder) {
      WEIR_CHECK(find_artefacts(path, depth + 1, files, found, entries));
    } else if (kind == sys::Kind::file && looks_like_verdict(path, files) && !beside_run) {
      found.push_back(path);
    }
  }
  return {};
}

}  // namespace

Result<TrendPart> trend_part_of(const std::string& path, const TrendFacts& facts,
                                sys::Files& files) {
  const sys::Kind kind = files.kind(path);
  if (kind == sys::Kind::absent) return fail(Code::usage, "{}: no such run", path);
  if (kind == sys::Kind::folder && !is_run(path, files)) {
    return fail(Code::usage, "{}: no run (it has no {}); --from-dir looks below a folder", path,
                run::k_journal_name);
  }
  if (kind == sys::Kind::folder || sys::file_name_of(path) == run::k_journal_name) {
    return part_of_run(path, facts, files);
  }
  return part_of_verdict(path, facts, files).map_error([&](Error error) {
    return error.code == Code::data
               ? with_context(fmt::format("{}: neither a run nor a verdict", path),
                              std::move(error))
               : error;
  });
}

Result<void> trend_parts_below(const TrendFolder& where, const TrendFacts& facts, sys::Files& files,
                               const std::function<Result<void>(TrendPart)>& take,
                               const std::function<void(const std::string&)>& warn) {
  if (files.kind(where.folder) != sys::Kind::folder) {
    return fail(Code::usage, "--from-dir {}: no such folder", where.folder);
  }
  std::vector<std::string> found;
  std::size_t entries = 0;
  WEIR_CHECK(find_artefacts(where.folder, 0, files, found, entries));
  for (const std::string& path : found) {
    auto part = trend_part_of(path, facts, files);
    if (!part && part.error().code == Code::interrupted) {
      return tl::unexpected(std::move(part).error());
    }
    if (!part) {
      warn(fmt::format("{}: left out: {}", path, part.error().message));
      continue;
    }
    WEIR_CHECK(take(*std::move(part)));
  }
  return trend_parts_of_baselines(where, facts, files, take, warn);
}

}  // namespace weir::app

// Changes that are waived for one pull request: reads them, adds them, and accepts them when
// merged.
#include "gate/flow/allowances.hpp"

#include "gate/base/text.hpp"
#include "gate/flow/accept.hpp"
#include "gate/flow/judge.hpp"
#include "gate/publish/allow.hpp"
#include "gate/publish/target.hpp"
#include "gate/report/layout.hpp"
#include "gate/source/tree_files.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"
#include "gate/verdict/removed.hpp"

namespace weir::flow {
namespace {

constexpr std::uint64_t k_largest_file = std::uint64_t{8} << 20;

// Returns the pull request that a CI system builds, and its head; empty outside CI.
Result<publish::Event> read_ci_event(const Job& job) {
  const std::string path = job.variable("GITHUB_EVENT_PATH");
  if (path.empty()) return publish::Event{};
  WEIR_TRY(const std::string text, job.files().read(path, publish::k_largest_event));
  publish::CiVariables context;
  context.event_name = job.variable("GITHUB_EVENT_NAME");
  context.repository = job.variable("GITHUB_REPOSITORY");
  return publish::read_event(text, context, path);
}

// Returns HEAD; in a merge commit that CI made for the run, the head that was merged.
Result<std::string> find_head(const source::Git& git, const Job& job) {
  WEIR_TRY(const std::optional<std::string> head, git.resolve_commit("HEAD"));
  if (!head || !job.variable("GITHUB_REF").ends_with("/merge")) return head.value_or("");
  WEIR_TRY(const std::vector<std::string> parents, git.parents(*head));
  return parents.size() == 2 ? parents[1] : *head;
}

// Returns the allowances of one pull request that the branch has at `commit`.
Result<std::vector<verdict::Allowance>> read_allowances(const source::Git& git,
                                                        const std::string& commit,
                                                        std::int64_t pull_request) {
  const std::string path = verdict::allowance_path(pull_request);
  WEIR_TRY(const std::optional<std::string> text,
           source::file_of(git, commit, path, k_largest_file));
  if (!text) return std::vector<verdict::Allowance>();
  return verdict::parse_allowances(*text, pull_request)
      .map_error(with_prefix(fmt::format("{} of {}", path, text::short_commit(commit))));
}

}  // namespace

Result<std::string> event_head(const Job& job) {
  return read_ci_event(job).map([](const publish::Event& event) { return event.sha; });
}

Result<std::string> event_base(const Job& job) {
  return read_ci_event(job).map([](const publish::Event& event) { return event.base_sha; });
}

// Reads what the pull request is allowed from the branch of allowances. Null without
// --allowances-ref; a note if nothing is allowed.
Result<std::shared_ptr<const Allowed>> load_allowances(const AllowanceOptions& options,
                                                       const Job& job) {
  if (!options.ref) {
    if (!options.pull_request) return std::shared_ptr<const Allowed>();
    return fail(Code::usage, "--pr is for --allowances-ref: whose allowances hold");
  }
  auto allowed = std::make_shared<Allowed>();
  const publish::Event event = read_ci_event(job).value_or(publish::Event{});
  const auto number = options.pull_request ? options.pull_request : event.pull_request;
  if (!number) {
    allowed->notes.emplace_back("nothing is allowed here: no pull request is known (--pr N)");
    return allowed;
  }
  WEIR_TRY(const auto repository, Repository::containing(job.world, job.folder()));
  allowed->pull_request = *number;
  allowed->today = sys::date_of(job.world.clock.now());
  const bool is_event_pull_request = event.pull_request == number;
  if (is_event_pull_request) {
    allowed->head = event.sha;
    allowed->base = event.base;
  }
  if (!options.base.empty()) allowed->base = options.base;
  if (allowed->head.empty()) WEIR_SET(allowed->head, find_head(repository->git(), job));
  WEIR_TRY(const std::optional<std::string> commit,
           repository->find_branch("--allowances-ref", *options.ref));
  if (!commit) {
    allowed->notes.push_back(
        fmt::format("nothing is allowed here: {} is not known", text::printable(*options.ref)));
    return allowed;
  }
  WEIR_TRY(allowed->list, read_allowances(repository->git(), *commit, *number));
  return allowed;
}

// Reads or writes allowances as JSON. The list itself is stored as the text of its file.
void fields(Fields& io, Allowed& allowed) {
  io("pull_request", allowed.pull_request);
  io("head", allowed.head);
  io("today", allowed.today);
  io.optional("base", allowed.base);
  io.always("notes", allowed.notes);
  std::string list = verdict::to_text(allowed.pull_request, allowed.list);
  io("list", list);
  if (!io.is_reading() || io.problem()) return;
  auto parsed = verdict::parse_allowances(list, allowed.pull_request);
  if (!parsed) return io.refuse(std::move(parsed).error());
  allowed.list = *std::move(parsed);
}

namespace {

using verdict::Allowance;

// Returns the cell's true name: allowances made from reports hold an alias for a private cell.
std::string find_true_name(const std::string& reported_name, const LoadedConfig* loaded) {
  if (loaded == nullptr) return reported_name;
  for (const config::Cell& cell : loaded->cells) {
    if (loaded->configuration.redactor.cell(cell.key).str() == reported_name) return cell.key.str();
  }
  return reported_name;
}

// Puts one allowed change into all stored baselines of its cell, and reports if any had the old
// value.
Result<void> store_allowance(const Allowance& allowance, const std::string& reason,
                             const LoadedConfig* loaded, StoredBaselines& stored,
                             Acceptance& acceptance) {
  verdict::Allowable change = allowance.what;
  change.cell = find_true_name(change.cell, loaded);
  WEIR_TRY(const profile::CellKey cell, profile::CellKey::parse(change.cell));
  WEIR_TRY(const std::vector<baseline::Baseline> baselines, stored.of_cell(cell));
  // Allowing a cell's removal removes its stored baselines, where there are any. Allowing its edit
  // stores nothing.
  const bool is_edited =
      change.metric == verdict::k_cell_metric && change.to.starts_with(verdict::k_edited);
  const bool is_removed = change.metric == verdict::k_cell_metric && !is_edited;
  std::size_t files = is_edited || (is_removed && baselines.empty()) ? 1 : 0;
  for (const baseline::Baseline& stored_baseline : baselines) {
    if (is_removed &&
        (change.device_class.empty() || change.device_class == stored_baseline.device_class)) {
      WEIR_TRY(const std::string path, baseline::path_of(cell, stored_baseline.device_class));
      WEIR_CHECK(stored.remove({sys::join_path(stored.folder(), path), stored_baseline}));
      ++files;
    }
    auto accepted = verdict::apply_to_baseline(change, stored_baseline);
    if (!accepted) continue;
    accepted->reason = reason.empty() ? allowance.reason : reason;
    WEIR_CHECK(stored.put(*accepted));
    ++files;
  }
  const std::string title =
      fmt::format("{} of {}: {} → {}", change.metric, allowance.what.cell, change.from, change.to);
  const std::string_view outcome = files > 0 ? "accepted" : "left out";
  acceptance.text += fmt::format(
      "{:<8}  {}{}\n", outcome, text::printable(title),
      files > 0 ? "" : "\n    no exact count of that value is stored: measure and accept it");
  acceptance.cells.push_back({{"cell", allowance.what.cell},
                              {"outcome", outcome},
                              {"changes", change.metric + " " + change.from + " → " + change.to}});
  if (files > 0) {
    ++acceptance.accepted;
  } else {
    ++acceptance.left_out;
  }
  return {};
}

}  // namespace

// Makes the changes that a merged pull request was allowed the baseline. Removes their file if all
// of them could be stored on its branch.
Result<Answer> accept_allowed(const Job& job, const AcceptOptions& options) {
  const std::int64_t pull_request = *options.allowances;
  WEIR_TRY(const auto repository, Repository::containing(job.world, job.folder()));
  const source::Git& git = repository->git();
  const std::string& ref = options.allowances_ref;
  WEIR_TRY(const std::optional<std::string> from, repository->find_branch("--allowances-ref", ref));
  if (!from)
    return fail(Code::config, "--allowances-ref {}: is not known here", text::printable(ref));
  WEIR_TRY(const std::vector<Allowance> allowances, read_allowances(git, *from, pull_request));
  if (allowances.empty()) {
    return fail(Code::usage, "{}: pull request {} was allowed nothing", text::printable(ref),
                pull_request);
  }
  std::optional<LoadedConfig> loaded;
  if (job.files().exists(job.selection.config)) WEIR_SET(loaded, load_config(job));
  const auto store = [&](StoredBaselines& stored) -> Result<Acceptance> {
    Acceptance acceptance;
    for (const Allowance& allowance : allowances) {
      WEIR_CHECK(store_allowance(allowance, options.reason, loaded ? &*loaded : nullptr, stored,
                                 acceptance));
    }
    return acceptance;
  };
  const auto finish = [&](const std::string& branch, const std::optional<std::string>& parent,
                          const Acceptance& acceptance, BranchEdit& edit) -> Result<void> {
    if (!parent) return fail(Code::config, "{}: there is no such branch", branch);
    edit.message = fmt::format("Accept what pull request {} was allowed", pull_request);
    const std::string path = verdict::allowance_path(pull_request);
    if (branch != ref || acceptance.left_out > 0) return {};
    WEIR_TRY(const auto files, git.entries(*parent, {path}));
    if (!files.empty()) edit.changes[path] = std::nullopt;
    return {};
  };
  WEIR_TRY(Acceptance acceptance, store_baselines(job, options.baselines_ref, store, finish));
  const std::string summary = fmt::format("{} of {} allowances are the baseline now\n",
                                          acceptance.accepted, allowances.size());
  return acceptance_answer(std::move(acceptance), summary);
}

namespace {

// Returns --until, else a date in 30 days.
std::string expiry_date(const Job& job, const AllowOptions& options) {
  constexpr double k_days = 30, k_day_seconds = 24 * 3600;
  if (!options.until.empty()) return options.until;
  return sys::date_of(job.world.clock.now() + k_days * k_day_seconds);
}

Result<verdict::NeededAllowances> read_allowable_fails(const std::string& path,
                                                       const sys::Files& files) {
  WEIR_TRY(const std::string file, find_verdict(path, files));
  return read_verdict(file, files).map(verdict::needed_allowances);
}

std::string change_lines(const std::vector<verdict::Allowable>& changes) {
  std::string text;
  for (const verdict::Allowable& change : changes) {
    text += text::printable(
        fmt::format("    {} of {}: {} → {}\n", change.metric, change.cell, change.from, change.to));
  }
  return text;
}

Json changes_json(const std::vector<verdict::Allowable>& changes) {
  Json list = Json::array();
  for (const verdict::Allowable& change : changes) list.push_back(write_fields(change));
  return list;
}

// Returns the changes to allow by hand: the one in the options, or all fails of a verdict.
Result<verdict::NeededAllowances> changes_to_allow(const AllowOptions& options,
                                                   const sys::Files& files) {
  const bool has_change = !options.cell.empty() || !options.metric.empty() ||
                          !options.from.empty() || !options.to.empty();
  const bool has_verdict = !options.verdict.empty();
  if (has_verdict == has_change) {
    return fail(Code::usage,
                "what is allowed? --cell C --metric M --from A --to B, or a verdict.json (or a "
                "run's folder) whose fails all are");
  }
  if (has_verdict) {
    WEIR_TRY(verdict::NeededAllowances fails, read_allowable_fails(options.verdict, files));
    if (fails.changes.empty()) {
      return fail(Code::usage, "{}: no fail in it that could be allowed", options.verdict);
    }
    return fails;
  }
  if (options.metric == "kernels") {
    return fail(Code::usage, "kernels are allowed each by its name: from a verdict.json");
  }
  return verdict::NeededAllowances{{{options.cell, options.metric, options.from, options.to}}, {}};
}

// Adds allowances to a local branch.
Result<Answer> allow_by_hand(const Job& job, const AllowOptions& options) {
  if (!options.pull_request) return fail(Code::usage, "for which pull request? --pr N");
  WEIR_TRY(const verdict::NeededAllowances changes, changes_to_allow(options, job.files()));
  const std::int64_t number = *options.pull_request;
  const auto head = options.sha.empty() ? std::nullopt : std::optional(text::lower(options.sha));
  std::vector<verdict::Allowance> added;
  for (const verdict::Allowable& change : changes.changes) {
    added.push_back({change, number, head, options.reason, options.who, expiry_date(job, options)});
    if (const auto problem = verdict::allowance_problem(added.back())) {
      return fail(Code::usage, "an allowance {}", *problem);
    }
  }
  WEIR_TRY(const auto repository, Repository::containing(job.world, job.folder()));
  const auto edit = [&](const std::optional<std::string>& parent) -> Result<BranchEdit> {
    std::vector<verdict::Allowance> allowances;
    if (parent) WEIR_SET(allowances, read_allowances(repository->git(), *parent, number));
    const std::string before = verdict::to_text(number, allowances);
    const std::string text = verdict::to_text(number, verdict::with_allowances(allowances, added));
    BranchEdit branch_edit;
    if (text != before || allowances.empty())
      branch_edit.changes[verdict::allowance_path(number)] = text;
    branch_edit.message =
        fmt::format("Allow {} of pull request {}", text::plural(added.size(), "change"), number);
    return branch_edit;
  };
  WEIR_TRY(const std::string commit, edit_branch(*repository, options.branch, edit));
  std::string text =
      fmt::format("allowed for pull request {}{} until {}:\n", number,
                  head ? " at " + text::short_commit(*head) : "", expiry_date(job, options)) +
      change_lines(changes.changes);
  for (const std::string& reason : changes.beyond) {
    text += fmt::format("not allowed: {}\n", text::printable(reason));
  }
  return Answer{text + written_text(options.branch, commit),
                json_document({{"schema", "weir.allowed/1"},
                               {"pull_request", number},
                               {"commit", commit},
                               {"changes", changes_json(changes.changes)},
                               {"beyond", changes.beyond}})};
}

// Writes the outputs that a workflow continues with. No value is free text.
Result<void> write_workflow_outputs(const Job& job, const publish::Answer& answer) {
  const std::string file = job.variable("GITHUB_OUTPUT");
  if (file.empty()) return {};
  return append_text(file, fmt::format("command={}\nsha={}\nfork={}\npull-request={}\ngreen={}\n",
                                       publish::to_string(answer.kind), answer.sha, answer.fork,
                                       answer.pull_request, answer.green));
}

// Answers a comment on GitHub: checks who wrote it, and adds allowances by the API.
Result<Answer> allow_by_comment(const Job& job, const AllowOptions& allow_options) {
  for (const std::string* option :
       {&allow_options.cell, &allow_options.metric, &allow_options.from, &allow_options.to,
        &allow_options.reason, &allow_options.who, &allow_options.sha}) {
    if (!option->empty() || allow_options.pull_request) {
      return fail(Code::usage,
                  "--event takes all of that from the comment and the check run: leave it out");
    }
  }
  WEIR_TRY(const std::string body,
           job.files().read(allow_options.event_file, publish::k_largest_event));
  WEIR_TRY(const publish::CommentEvent event,
           publish::read_comment_event(body, job.variable("GITHUB_REPOSITORY"),
                                       allow_options.event_file));
  publish::AllowOptions options;
  options.gate = publish::gate_name(allow_options.gate);
  options.branch = allow_options.branch;
  options.until = expiry_date(job, allow_options);
  options.app = allow_options.access.app;
  if (!allow_options.verdict.empty())
    WEIR_SET(options.claimed, read_allowable_fails(allow_options.verdict, job.files()));
  publish::Answer answer;
  if (publish::parse_command(event.body).kind == publish::Command::Kind::none) {
    answer.why = "the comment asks weir for nothing";  // most comments: this needs no token
    answer.pull_request = event.number;
  } else {
    WEIR_TRY(const auto github, Github::open(job, allow_options.access,
                                             "with --pr N it is done by hand, without one"));
    WEIR_TRY(answer, publish::answer_comment(github->api(), event, options));
  }
  for (const std::string& note : answer.notes) job.log("weir: " + text::printable(note));
  WEIR_CHECK(write_workflow_outputs(job, answer));
  return Answer{
      fmt::format("{}: {}\n", publish::to_string(answer.kind), text::printable(answer.why)) +
          change_lines(answer.changes),
      json_document({{"schema", "weir.answer/1"},
                     {"command", publish::to_string(answer.kind)},
                     {"why", answer.why},
                     {"pull_request", answer.pull_request},
                     {"sha", answer.sha.empty() ? Json() : Json(answer.sha)},
                     {"fork", answer.fork},
                     {"green", answer.green},
                     {"changes", changes_json(answer.changes)},
                     {"notes", answer.notes}}),
      answer.kind == publish::Answer::Kind::refused ? ExitCode::fail : ExitCode::pass};
}

}  // namespace

Result<Answer> allow(const Job& job, const AllowOptions& options) {
  return options.event_file.empty() ? allow_by_hand(job, options) : allow_by_comment(job, options);
}

}  // namespace weir::flow

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

// The pull request that a CI system builds, and its head.
publish::Event event_here(const Job& job) {
  const std::string path = job.variable("GITHUB_EVENT_PATH");
  if (path.empty()) return {};
  const auto text = job.files().read(path, publish::k_largest_event);
  if (!text) return {};
  publish::Surroundings here;
  here.event_name = job.variable("GITHUB_EVENT_NAME");
  here.repository = job.variable("GITHUB_REPOSITORY");
  return publish::read_event(*text, here, path).value_or(publish::Event{});
}

// Of a work tree: HEAD, or of a merge commit made for the run what was merged.
Result<std::string> head_here(const source::Git& git, const Job& job) {
  WEIR_TRY(const std::optional<std::string> head, git.commit("HEAD"));
  if (!head || !job.variable("GITHUB_REF").ends_with("/merge")) return head.value_or("");
  WEIR_TRY(const std::vector<std::string> parents, git.parents(*head));
  return parents.size() == 2 ? parents[1] : *head;
}

// Those of one pull request, as `commit` has them.
Result<std::vector<verdict::Allowance>> allowances_of(const source::Git& git,
                                                      const std::string& commit,
                                                      std::int64_t pull_request) {
  const std::string path = verdict::allowance_path(pull_request);
  WEIR_TRY(const std::optional<std::string> text,
           source::file_of(git, commit, path, k_largest_file));
  if (!text) return std::vector<verdict::Allowance>();
  return verdict::parse_allowances(*text, pull_request)
      .map_error(in_context(fmt::format("{} of {}", path, source::short_commit(commit))));
}

}  // namespace

Result<std::shared_ptr<const Allowed>> read_allowed(const AllowedWanted& wanted, const Job& job) {
  if (!wanted.ref) {
    if (!wanted.pull_request) return std::shared_ptr<const Allowed>();
    return fail(Code::usage, "--pr is for --allowances-ref: whose allowances hold");
  }
  auto allowed = std::make_shared<Allowed>();
  const publish::Event event = event_here(job);
  const auto number = wanted.pull_request ? wanted.pull_request : event.pull_request;
  if (!number) {
    allowed->notes.emplace_back("nothing is allowed here: no pull request is known (--pr N)");
    return allowed;
  }
  WEIR_TRY(const auto repository, Repository::around(job.world, job.folder()));
  allowed->pull_request = *number;
  allowed->today = sys::date_of(job.world.clock.now());
  const bool of_event = event.pull_request == number;
  allowed->head = of_event ? event.sha : "";
  allowed->base = !wanted.base.empty() ? wanted.base : of_event ? event.base : "";
  if (allowed->head.empty()) WEIR_SET(allowed->head, head_here(repository->git(), job));
  WEIR_TRY(const std::optional<std::string> commit, repository->git().commit(*wanted.ref));
  if (!commit) {
    allowed->notes.push_back(
        fmt::format("nothing is allowed here: {} is not known", text::printable(*wanted.ref)));
    return allowed;
  }
  WEIR_TRY(allowed->list, allowances_of(repository->git(), *commit, *number));
  return allowed;
}

void fields(Fields& io, Allowed& allowed) {
  io("pull_request", allowed.pull_request);
  io("head", allowed.head);
  io("today", allowed.today);
  io.sparse("base", allowed.base);
  io.always("notes", allowed.notes);
  std::string list = verdict::to_text(allowed.pull_request, allowed.list);
  io("list", list);
  if (!io.reads() || io.problem()) return;
  auto parsed = verdict::parse_allowances(list, allowed.pull_request);
  if (!parsed) return io.refuse(std::move(parsed).error());
  allowed.list = *std::move(parsed);
}

namespace {

using verdict::Allowance;

// The cell's true name: allowances made from reports have an alias where it is private.
std::string true_name(const std::string& shown, const Loaded* loaded) {
  if (loaded == nullptr) return shown;
  for (const config::Cell& cell : loaded->cells) {
    if (loaded->known.redactor.cell(cell.key).str() == shown) return cell.key.str();
  }
  return shown;
}

Result<void> store_one(const Allowance& allowance, const std::string& reason, const Loaded* loaded,
                       StoredBaselines& stored, Acceptance& acceptance) {
  verdict::Allowable what = allowance.what;
  what.cell = true_name(what.cell, loaded);
  WEIR_TRY(const profile::CellKey cell, profile::CellKey::parse(what.cell));
  WEIR_TRY(const std::vector<baseline::Baseline> known, stored.of_cell(cell));
  // A cell that may go takes what is stored of it along, where anything is.
  const bool goes = what.metric == verdict::k_cell_metric;
  std::size_t files = goes && known.empty() ? 1 : 0;
  for (const baseline::Baseline& one : known) {
    if (goes && (what.device_class.empty() || what.device_class == one.device_class)) {
      WEIR_TRY(const std::string path, baseline::path_of(cell, one.device_class));
      WEIR_CHECK(stored.remove({sys::join_path(stored.folder(), path), one}));
      ++files;
    }
    auto now = verdict::accepted_into(what, one);
    if (!now) continue;
    now->reason = reason.empty() ? allowance.reason : reason;
    WEIR_CHECK(stored.put(*now));
    ++files;
  }
  const std::string title =
      fmt::format("{} of {}: {} → {}", what.metric, allowance.what.cell, what.from, what.to);
  const std::string_view outcome = files > 0 ? "accepted" : "left out";
  acceptance.said += fmt::format(
      "{:<8}  {}{}\n", outcome, text::printable(title),
      files > 0 ? "" : "\n    no exact count of that value is stored: measure and accept it");
  acceptance.cells.push_back({{"cell", allowance.what.cell},
                              {"outcome", outcome},
                              {"changes", what.metric + " " + what.from + " → " + what.to}});
  if (files > 0) {
    ++acceptance.accepted;
  } else {
    ++acceptance.left_out;
  }
  return {};
}

}  // namespace

Result<Answer> accept_allowed(const Job& job, const AcceptOptions& options) {
  const std::int64_t pull_request = *options.allowances;
  WEIR_TRY(const auto repository, Repository::around(job.world, job.folder()));
  const source::Git& git = repository->git();
  const std::string& ref = options.allowances_ref;
  // A branch as it is here, or as it was fetched.
  WEIR_TRY(std::optional<std::string> from, git.commit(ref));
  if (!from) WEIR_SET(from, git.commit("refs/remotes/origin/" + ref));
  if (!from)
    return fail(Code::config, "--allowances-ref {}: is not known here", text::printable(ref));
  WEIR_TRY(const std::vector<Allowance> all, allowances_of(git, *from, pull_request));
  if (all.empty()) {
    return fail(Code::usage, "{}: pull request {} was allowed nothing", text::printable(ref),
                pull_request);
  }
  std::optional<Loaded> loaded;
  if (job.files().exists(job.asked.config)) WEIR_SET(loaded, load_config(job));
  const auto store = [&](StoredBaselines& stored) -> Result<Acceptance> {
    Acceptance acceptance;
    for (const Allowance& one : all) {
      WEIR_CHECK(store_one(one, options.reason, loaded ? &*loaded : nullptr, stored, acceptance));
    }
    return acceptance;
  };
  const auto finish = [&](const std::string& branch, const std::optional<std::string>& parent,
                          const Acceptance& acceptance, BranchEdit& edit) -> Result<void> {
    if (!parent) return fail(Code::config, "{}: there is no such branch", branch);
    edit.message = fmt::format("Accept what pull request {} was allowed", pull_request);
    const std::string path = verdict::allowance_path(pull_request);
    if (branch != ref || acceptance.left_out > 0) return {};
    WEIR_TRY(const auto there, git.entries(*parent, {path}));
    if (!there.empty()) edit.changes[path] = std::nullopt;
    return {};
  };
  WEIR_TRY(Acceptance acceptance, store_baselines(job, options.baselines_ref, store, finish));
  const std::string summary =
      fmt::format("{} of {} allowances are the baseline now\n", acceptance.accepted, all.size());
  return answer_of(std::move(acceptance), summary);
}

namespace {

std::string until_of(const Job& job, const AllowOptions& words) {
  constexpr double k_days = 30, k_day_seconds = 24 * 3600;
  if (!words.until.empty()) return words.until;
  return sys::date_of(job.world.clock.now() + k_days * k_day_seconds);
}

Result<verdict::WouldTake> read_fails(const std::string& place, const sys::Files& files) {
  WEIR_TRY(const std::string file, find_verdict(place, files));
  return read_verdict(file, files).map(verdict::would_take);
}

std::string lines_of(const std::vector<verdict::Allowable>& changes) {
  std::string text;
  for (const verdict::Allowable& what : changes) {
    text += text::printable(
        fmt::format("    {} of {}: {} → {}\n", what.metric, what.cell, what.from, what.to));
  }
  return text;
}

Json json_of(const std::vector<verdict::Allowable>& changes) {
  Json list = Json::array();
  for (const verdict::Allowable& what : changes) list.push_back(write_fields(what));
  return list;
}

// All that is to be allowed by hand: what the options say, or what a verdict would take.
Result<verdict::WouldTake> wanted(const AllowOptions& words, const sys::Files& files) {
  const bool one =
      !words.cell.empty() || !words.metric.empty() || !words.from.empty() || !words.to.empty();
  if (words.verdict.empty() == !one) {
    return fail(Code::usage,
                "what is allowed? --cell C --metric M --from A --to B, or a verdict.json (or a "
                "run's folder) whose fails all are");
  }
  if (!words.verdict.empty()) {
    WEIR_TRY(verdict::WouldTake take, read_fails(words.verdict, files));
    if (take.changes.empty()) {
      return fail(Code::usage, "{}: no fail in it that could be allowed", words.verdict);
    }
    return take;
  }
  if (words.metric == "kernels") {
    return fail(Code::usage, "kernels are allowed each by its name: from a verdict.json");
  }
  return verdict::WouldTake{{{words.cell, words.metric, words.from, words.to}}, {}};
}

Result<Answer> by_hand(const Job& job, const AllowOptions& words) {
  if (!words.pull_request) return fail(Code::usage, "for which pull request? --pr N");
  WEIR_TRY(const verdict::WouldTake take, wanted(words, job.files()));
  const std::int64_t number = *words.pull_request;
  const auto head = words.sha.empty() ? std::nullopt : std::optional(text::lower(words.sha));
  std::vector<verdict::Allowance> added;
  for (const verdict::Allowable& what : take.changes) {
    added.push_back({what, number, head, words.reason, words.who, until_of(job, words)});
    if (const auto problem = verdict::problem_of(added.back())) {
      return fail(Code::usage, "an allowance {}", *problem);
    }
  }
  WEIR_TRY(const auto repository, Repository::around(job.world, job.folder()));
  const auto edit = [&](const std::optional<std::string>& parent) -> Result<BranchEdit> {
    std::vector<verdict::Allowance> there;
    if (parent) WEIR_SET(there, allowances_of(repository->git(), *parent, number));
    const std::string before = verdict::to_text(number, there);
    const std::string text = verdict::to_text(number, verdict::with_allowances(there, added));
    BranchEdit made;
    if (text != before || there.empty()) made.changes[verdict::allowance_path(number)] = text;
    made.message =
        fmt::format("Allow {} of pull request {}", report::plural(added.size(), "change"), number);
    return made;
  };
  WEIR_TRY(const std::string commit, edit_branch(*repository, words.branch, edit));
  std::string text = fmt::format("allowed for pull request {}{} until {}:\n", number,
                                 head ? " at " + head->substr(0, 7) : "", until_of(job, words)) +
                     lines_of(take.changes);
  for (const std::string& one : take.beyond) {
    text += fmt::format("not allowed: {}\n", text::printable(one));
  }
  return Answer{text + written_words(words.branch, commit),
                document({{"schema", "weir.allowed/1"},
                          {"pull_request", number},
                          {"commit", commit},
                          {"changes", json_of(take.changes)},
                          {"beyond", take.beyond}})};
}

// What a workflow goes on with. Nothing in it is anybody's free text.
Result<void> tell_workflow(const Job& job, const publish::Answer& answer) {
  const std::string file = job.variable("GITHUB_OUTPUT");
  if (file.empty()) return {};
  return append_text(file, fmt::format("command={}\nsha={}\nfork={}\npull-request={}\ngreen={}\n",
                                       publish::to_string(answer.kind), answer.sha, answer.fork,
                                       answer.pull_request, answer.green));
}

Result<Answer> by_comment(const Job& job, const AllowOptions& words) {
  for (const std::string* own : {&words.cell, &words.metric, &words.from, &words.to, &words.reason,
                                 &words.who, &words.sha}) {
    if (!own->empty() || words.pull_request) {
      return fail(Code::usage,
                  "--event takes all of that from the comment and the check run: leave it out");
    }
  }
  WEIR_TRY(const std::string body, job.files().read(words.event_file, publish::k_largest_event));
  WEIR_TRY(const publish::CommentEvent event,
           publish::read_comment_event(body, job.variable("GITHUB_REPOSITORY"), words.event_file));
  publish::AllowOptions options;
  options.gate = publish::gate_name(words.gate);
  options.branch = words.branch;
  options.until = until_of(job, words);
  options.app = words.access.app;
  if (!words.verdict.empty()) WEIR_SET(options.claimed, read_fails(words.verdict, job.files()));
  publish::Answer answered;
  if (publish::parse_command(event.body).kind == publish::Command::Kind::none) {
    answered.why = "the comment asks weir for nothing";  // most do: no token is needed to say so
    answered.pull_request = event.number;
  } else {
    WEIR_TRY(const auto github,
             Github::open(job, words.access, "with --pr N it is done by hand, without one"));
    WEIR_TRY(answered, publish::answer_comment(github->api(), event, options));
  }
  for (const std::string& note : answered.notes) job.talk("weir: " + text::printable(note));
  WEIR_CHECK(tell_workflow(job, answered));
  return Answer{
      fmt::format("{}: {}\n", publish::to_string(answered.kind), text::printable(answered.why)) +
          lines_of(answered.changes),
      document({{"schema", "weir.answer/1"},
                {"command", publish::to_string(answered.kind)},
                {"why", answered.why},
                {"pull_request", answered.pull_request},
                {"sha", answered.sha.empty() ? Json() : Json(answered.sha)},
                {"fork", answered.fork},
                {"green", answered.green},
                {"changes", json_of(answered.changes)},
                {"notes", answered.notes}}),
      answered.kind == publish::Answer::Kind::refused ? ExitCode::fail : ExitCode::pass};
}

}  // namespace

Result<Answer> allow(const Job& job, const AllowOptions& words) {
  return words.event_file.empty() ? by_hand(job, words) : by_comment(job, words);
}

}  // namespace weir::flow

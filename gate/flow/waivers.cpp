// Changes that are waived for one pull request: reads them, adds them, and makes them the
// baseline when merged.
#include "gate/flow/waivers.hpp"

#include "gate/base/text.hpp"
#include "gate/flow/accept.hpp"
#include "gate/flow/judge.hpp"
#include "gate/publish/target.hpp"
#include "gate/publish/waive.hpp"
#include "gate/report/layout.hpp"
#include "gate/source/tree_files.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/declared_metric.hpp"
#include "gate/verdict/removed.hpp"

namespace weir::flow {
namespace {

constexpr std::uint64_t k_max_waivers_bytes = std::uint64_t{8} << 20;

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

// Returns the waivers of one pull request that the branch has at `commit`.
Result<std::vector<verdict::Waiver>> read_waivers(const source::Git& git, const std::string& commit,
                                                  std::int64_t pull_request) {
  const std::string path = verdict::waiver_path(pull_request);
  WEIR_TRY(const std::optional<std::string> text,
           source::file_of(git, commit, path, k_max_waivers_bytes));
  if (!text) return std::vector<verdict::Waiver>();
  return verdict::parse_waivers(*text, pull_request)
      .map_error(with_prefix(fmt::format("{} of {}", path, text::short_commit(commit))));
}

}  // namespace

Result<std::string> event_head(const Job& job) {
  return read_ci_event(job).map([](const publish::Event& event) { return event.sha; });
}

Result<std::string> event_base(const Job& job) {
  return read_ci_event(job).map([](const publish::Event& event) { return event.base_sha; });
}

std::vector<verdict::Waiver> Waived::all() const {
  std::vector<verdict::Waiver> list;
  for (const WaivedPull& pull : pulls) {
    list.insert(list.end(), pull.waivers.begin(), pull.waivers.end());
  }
  return list;
}

verdict::WaiverContext Waived::context() const {
  verdict::WaiverContext context{.pull_request = pull_request, .today = today, .base = base};
  for (const WaivedPull& pull : pulls) {
    context.heads.emplace(pull.number, pull.head);
    if (pull.is_in_base) context.in_base.insert(pull.number);
  }
  return context;
}

namespace {

// Reads "12@COMMIT", the value of `option`.
Result<WaivedPull> parse_merged(const char* option, const std::string& text) {
  const std::size_t at = text.find('@');
  const auto number = text::to_int(text.substr(0, at));
  const std::string head = at == std::string::npos ? "" : text::lower(text.substr(at + 1));
  if (number.value_or(0) > 0 && text::is_commit(head)) return WaivedPull{*number, head};
  return fail(Code::usage,
              "{} {}: expected N@COMMIT, the number of a pull request and the full commit that was "
              "its head: git rev-parse {}",
              option, text::printable(text), head.empty() ? "HEAD" : text::printable(head));
}

// Returns the pull request that is judged: that of --pr, else of the CI system's event.
Result<std::optional<WaivedPull>> find_judged(const WaiverOptions& options,
                                              const publish::Event& event,
                                              const Repository& repository, const Job& job) {
  const auto number = options.pull_request ? options.pull_request : event.pull_request;
  if (!number) return std::optional<WaivedPull>();
  WaivedPull judged{*number, event.pull_request == number ? event.sha : ""};
  if (judged.head.empty()) WEIR_TRY_SET(judged.head, find_head(repository.git(), job));
  return std::optional(judged);
}

}  // namespace

// Reads the waivers (changes permitted to a pull request) from their branch. Null without
// --waivers-ref; a note if nothing is waived.
Result<std::shared_ptr<const Waived>> load_waivers(const WaiverOptions& options, const Job& job) {
  if (!options.ref) {
    const bool names_any =
        options.pull_request || !options.merged.empty() || !options.in_base.empty();
    if (!names_any) return std::shared_ptr<const Waived>();
    return fail(Code::usage, "--pr, --merged-pr and --base-pr are for --waivers-ref");
  }
  auto waived = std::make_shared<Waived>();
  const publish::Event event = read_ci_event(job).value_or(publish::Event{});
  WEIR_TRY(const auto repository, Repository::containing(job.world, job.folder()));
  WEIR_TRY(const auto judged, find_judged(options, event, *repository, job));
  if (judged) {
    waived->pull_request = judged->number;
    waived->pulls.push_back(*judged);
  }
  for (const std::string& text : options.merged) {
    WEIR_TRY(const WaivedPull merged, parse_merged("--merged-pr", text));
    if (merged.number != waived->pull_request) waived->pulls.push_back(merged);
  }
  for (const std::string& text : options.in_base) {
    WEIR_TRY(WaivedPull merged, parse_merged("--base-pr", text));
    merged.is_in_base = true;
    if (merged.number != waived->pull_request) waived->pulls.push_back(merged);
  }
  if (waived->pulls.empty()) {
    waived->notes.emplace_back("nothing is waived here: no pull request is known (--pr N)");
    return waived;
  }
  waived->today = sys::date_of(job.world.clock.now());
  const bool is_of_event = judged && event.pull_request == judged->number;
  if (is_of_event) waived->base = event.base;
  if (!options.base.empty()) waived->base = options.base;
  WEIR_TRY(const std::optional<std::string> commit,
           repository->find_branch("--waivers-ref", *options.ref));
  if (!commit) {
    waived->notes.push_back(
        fmt::format("nothing is waived here: {} is not known", text::printable(*options.ref)));
    return waived;
  }
  for (WaivedPull& pull : waived->pulls) {
    WEIR_TRY(pull.waivers, read_waivers(repository->git(), *commit, pull.number));
  }
  return waived;
}

// Reads or writes the waivers of a pull request; they are stored as the text of their file.
static void fields(Fields& io, WaivedPull& pull) {
  io("pull_request", pull.number);
  io("head", pull.head);
  io.optional("in_base", pull.is_in_base);
  std::string list = verdict::to_text(pull.number, pull.waivers);
  io("list", list);
  if (!io.is_reading() || io.problem()) return;
  auto parsed = verdict::parse_waivers(list, pull.number);
  if (!parsed) return io.refuse(std::move(parsed).error());
  pull.waivers = *std::move(parsed);
}

void fields(Fields& io, Waived& waived) {
  io("pulls", waived.pulls);
  io.optional("pull_request", waived.pull_request);
  io.optional("today", waived.today);
  io.optional("base", waived.base);
  io.always("notes", waived.notes);
}

namespace {

using verdict::Waiver;

// Returns the cell's true name: waivers made from reports hold an alias for a private cell.
std::string find_true_name(const std::string& reported_name, const LoadedConfig* loaded) {
  if (loaded == nullptr) return reported_name;
  for (const config::Cell& cell : loaded->cells) {
    if (loaded->configuration.redactor.cell(cell.key).str() == reported_name) return cell.key.str();
  }
  return reported_name;
}

// Returns true if `stored` holds a number that a waived change is about, whatever its value.
bool holds_number(const baseline::Baseline& stored, const verdict::Waivable& change) {
  if (!change.device_class.empty() && change.device_class != stored.device_class) return false;
  if (change.metric == "kernels") return stored.kernels.has_value();
  const auto* count = look_up(stored.counts, change.metric);
  return count != nullptr && count->exact.has_value();
}

// Puts one waived change into all stored baselines of its cell. A baseline that holds another value
// by now stays as it is, and the change is left out.
Result<void> store_waiver(const Waiver& waiver, const std::string& reason,
                          const LoadedConfig* loaded, StoredBaselines& stored,
                          Acceptance& acceptance) {
  verdict::Waivable change = waiver.what;
  change.cell = find_true_name(change.cell, loaded);
  WEIR_TRY(const profile::CellKey cell, profile::CellKey::parse(change.cell));
  WEIR_TRY(const std::vector<baseline::Baseline> baselines, stored.of_cell(cell));
  // A waived removal of a cell removes its stored baselines, where there are any. A waived edit
  // of one stores nothing.
  const bool is_edited =
      change.metric == verdict::k_cell_metric && change.to.starts_with(verdict::k_edited);
  const bool is_removed = change.metric == verdict::k_cell_metric && !is_edited;
  std::size_t files = 0, others = 0;
  for (const baseline::Baseline& stored_baseline : baselines) {
    if (is_removed &&
        (change.device_class.empty() || change.device_class == stored_baseline.device_class)) {
      WEIR_TRY(const std::string path, baseline::path_of(cell, stored_baseline.device_class));
      WEIR_CHECK(stored.remove({sys::join_path(stored.folder(), path), stored_baseline}));
      ++files;
    }
    auto accepted = verdict::apply_to_baseline(change, stored_baseline);
    if (!accepted) {
      others += holds_number(stored_baseline, change) ? 1 : 0;
      continue;
    }
    accepted->reason = reason.empty() ? waiver.reason : reason;
    WEIR_CHECK(stored.put(*accepted));
    ++files;
  }
  const std::string title =
      fmt::format("{} of {}: {} → {}", change.metric, waiver.what.cell, change.from, change.to);
  const bool is_left_out = files == 0 && others > 0;
  std::string_view outcome = "not stored";
  if (is_left_out) outcome = "left out";
  if (files > 0) outcome = "accepted";
  acceptance.text +=
      fmt::format("{:<10}  {}{}\n", outcome, text::printable(title),
                  is_left_out ? "\n    another value is stored by now: measure and accept it" : "");
  acceptance.cells.push_back({{"cell", waiver.what.cell},
                              {"outcome", outcome},
                              {"changes", change.metric + " " + change.from + " → " + change.to}});
  acceptance.accepted += files > 0 ? 1 : 0;
  acceptance.left_out += is_left_out ? 1 : 0;
  return {};
}

// Returns the files of the work tree with baselines that the waived changes would change.
std::set<std::string> find_outdated_baselines(const Job& job, const std::vector<Waiver>& waivers,
                                              const LoadedConfig* loaded) {
  const StoredBaselines tree(job.files(), job.selection.baselines);
  std::set<std::string> paths;
  for (const Waiver& waiver : waivers) {
    verdict::Waivable change = waiver.what;
    change.cell = find_true_name(change.cell, loaded);
    const auto cell = profile::CellKey::parse(change.cell);
    // An unreadable file is skipped: its baselines are only mentioned in a note.
    const auto baselines = cell ? tree.of_cell(*cell) : tl::unexpected(cell.error());
    for (const baseline::Baseline& old : baselines.value_or(std::vector<baseline::Baseline>())) {
      const auto updated = verdict::apply_to_baseline(change, old);
      const auto path = baseline::path_of(*cell, old.device_class);
      if (updated && path && baseline::to_text(*updated) != baseline::to_text(old)) {
        paths.insert(sys::join_path(tree.folder(), *path));
      }
    }
  }
  return paths;
}

// Returns a note that lists outdated baselines of the work tree; "" if there are none. They stay as
// they are, because updated baselines are stored elsewhere.
std::string describe_old_levels(const Job& job, const std::vector<Waiver>& waivers,
                                const LoadedConfig* loaded) {
  const std::set<std::string> paths = find_outdated_baselines(job, waivers, loaded);
  if (paths.empty()) return "";
  const std::vector<std::string> names(paths.begin(), paths.end());
  return fmt::format(
      "note: baselines in the tree keep the level from before, so that weir gate fails in a "
      "checkout: run weir baseline accept --counts-only there and commit ({})\n",
      text::printable(verdict::list_some(names)));
}

}  // namespace

// Makes the changes that were waived for a merged pull request the baseline. Removes their file if
// all of them could be stored on its branch.
Result<Answer> accept_waived(const Job& job, const AcceptOptions& options) {
  const std::int64_t pull_request = *options.waivers;
  WEIR_TRY(const auto repository, Repository::containing(job.world, job.folder()));
  const source::Git& git = repository->git();
  const std::string& ref = options.waivers_ref;
  WEIR_TRY(const std::optional<std::string> from, repository->find_branch("--waivers-ref", ref));
  if (!from) return fail(Code::config, "--waivers-ref {}: is not known here", text::printable(ref));
  WEIR_TRY(const std::vector<Waiver> waivers, read_waivers(git, *from, pull_request));
  if (waivers.empty()) {
    return fail(Code::usage, "{}: nothing was waived for pull request {}", text::printable(ref),
                pull_request);
  }
  std::optional<LoadedConfig> loaded;
  if (job.files().exists(job.selection.config)) WEIR_TRY_SET(loaded, load_config(job));
  const auto store = [&](StoredBaselines& stored) -> Result<Acceptance> {
    Acceptance acceptance;
    for (const Waiver& waiver : waivers) {
      WEIR_CHECK(
          store_waiver(waiver, options.reason, loaded ? &*loaded : nullptr, stored, acceptance));
    }
    return acceptance;
  };
  const auto finish = [&](const std::string& branch, const std::optional<std::string>& parent,
                          const Acceptance&, BranchEdit& edit) -> Result<void> {
    if (!parent) return fail(Code::config, "{}: there is no such branch", branch);
    edit.message = fmt::format("Accept what was waived for pull request {}", pull_request);
    const std::string path = verdict::waiver_path(pull_request);
    if (branch != ref) return {};
    WEIR_TRY(const auto files, git.entries(*parent, {path}));
    if (!files.empty()) edit.changes[path] = std::nullopt;
    return {};
  };
  WEIR_TRY(Acceptance acceptance, store_baselines(job, options.baselines_ref, store, finish));
  const bool is_stored = acceptance.accepted > 0 || acceptance.left_out > 0;
  const std::string summary =
      is_stored ? fmt::format("{} of {} waivers are the baseline now\n", acceptance.accepted,
                              waivers.size())
                : fmt::format("nothing is stored of {}: nothing to do; the waiver{} ended\n",
                              waivers.size() == 1 ? "it" : "them",
                              waivers.size() == 1 ? " has" : "s have");
  if (options.baselines_ref) {
    acceptance.text += describe_old_levels(job, waivers, loaded ? &*loaded : nullptr);
  }
  return acceptance_answer(std::move(acceptance), summary);
}

namespace {

// Returns --until, else a date in 30 days.
std::string expiry_date(const Job& job, const WaiveOptions& options) {
  constexpr double k_days = 30, k_day_seconds = 24 * 3600;
  if (!options.until.empty()) return options.until;
  return sys::date_of(job.world.clock.now() + k_days * k_day_seconds);
}

Result<verdict::NeededWaivers> read_waivable_fails(const std::string& path,
                                                   const sys::Files& files) {
  WEIR_TRY(const std::string file, find_verdict(path, files));
  return read_verdict(file, files).map(verdict::needed_waivers);
}

std::string change_lines(const std::vector<verdict::Waivable>& changes) {
  std::string text;
  for (const verdict::Waivable& change : changes) {
    text += text::printable(
        fmt::format("    {} of {}: {} → {}\n", change.metric, change.cell, change.from, change.to));
  }
  return text;
}

Json changes_json(const std::vector<verdict::Waivable>& changes) {
  Json list = Json::array();
  for (const verdict::Waivable& change : changes) list.push_back(write_fields(change));
  return list;
}

// Returns the changes to waive by hand: the one in the options, or all fails of a verdict.
Result<verdict::NeededWaivers> changes_to_waive(const WaiveOptions& options,
                                                const sys::Files& files) {
  const bool has_change = !options.cell.empty() || !options.metric.empty() ||
                          !options.from.empty() || !options.to.empty();
  const bool has_verdict = !options.verdict.empty();
  if (has_verdict == has_change) {
    return fail(Code::usage,
                "what is waived? --cell C --metric M --base-value A --waived-value B, or a "
                "verdict.json (or a run's folder) whose fails all are");
  }
  if (has_verdict) {
    WEIR_TRY(verdict::NeededWaivers fails, read_waivable_fails(options.verdict, files));
    if (fails.changes.empty()) {
      return fail(Code::usage, "{}: no fail in it that could be waived", options.verdict);
    }
    return fails;
  }
  if (options.metric == "kernels") {
    return fail(Code::usage, "kernels are waived each by its name: from a verdict.json");
  }
  const auto metric = unit::find_metric(options.metric);
  const std::string meant = unit::suggest_metric(options.metric);
  if (!metric && !meant.empty())
    return fail(Code::usage, "--metric: unknown metric \"{}\"{}", options.metric, meant);
  if (metric && metric->kind != unit::Kind::count && options.from != "0 %") {
    return fail(Code::usage,
                "{} is no count: a change of it is waived from \"0 %\" to the worst end of its "
                "interval (--base-value '0 %' --waived-value '-38.9 %')",
                options.metric);
  }
  std::string cell = options.cell;  // reports put spaces around each "/"
  std::erase(cell, ' ');
  return verdict::NeededWaivers{{{cell, options.metric, options.from, options.to}}, {}};
}

// Adds waivers to a local branch, and prints what they permit.
Result<Answer> waive_by_hand(const Job& job, const WaiveOptions& options) {
  if (!options.pull_request) return fail(Code::usage, "for which pull request? --pr N");
  WEIR_TRY(const verdict::NeededWaivers changes, changes_to_waive(options, job.files()));
  const std::int64_t number = *options.pull_request;
  const auto head = options.sha.empty() ? std::nullopt : std::optional(text::lower(options.sha));
  std::vector<verdict::Waiver> added;
  for (const verdict::Waivable& change : changes.changes) {
    added.push_back({change, number, head, options.reason, options.who, expiry_date(job, options)});
    if (!options.base.empty()) added.back().base = options.base;
    if (const auto problem = verdict::waiver_problem(added.back())) {
      return fail(Code::usage, "a waiver {}", *problem);
    }
  }
  WEIR_TRY(const auto repository, Repository::containing(job.world, job.folder()));
  const auto edit = [&](const std::optional<std::string>& parent) -> Result<BranchEdit> {
    std::vector<verdict::Waiver> waivers;
    if (parent) WEIR_TRY_SET(waivers, read_waivers(repository->git(), *parent, number));
    const std::string before = verdict::to_text(number, waivers);
    const std::string text = verdict::to_text(number, verdict::with_waivers(waivers, added));
    BranchEdit branch_edit;
    if (text != before || waivers.empty()) branch_edit.changes[verdict::waiver_path(number)] = text;
    branch_edit.message =
        fmt::format("Waive {} of pull request {}", text::plural(added.size(), "change"), number);
    return branch_edit;
  };
  WEIR_TRY(const std::string commit, edit_branch(*repository, options.branch, edit));
  std::string text =
      fmt::format("waived for pull request {}{} until {}:\n", number,
                  head ? " at " + text::short_commit(*head) : "", expiry_date(job, options)) +
      change_lines(changes.changes);
  for (const std::string& reason : changes.beyond) {
    text += fmt::format("not waived: {}\n", text::printable(reason));
  }
  text += written_text(options.branch, commit);
  text += fmt::format(
      "it holds where a gate reads it: in the workflows of weir init --ci once it is published, "
      "and here by the gate that was red, with\n    --waivers-ref {} --pr {}{}\n",
      text::shell_word(options.branch), number,
      options.base.empty() ? "" : " --base " + text::shell_word(options.base));
  return Answer{text, json_document({{"schema", "weir.waived/1"},
                                     {"pull_request", number},
                                     {"commit", commit},
                                     {"changes", changes_json(changes.changes)},
                                     {"beyond", changes.beyond}})};
}

// Writes the outputs that a workflow continues with. No value is free text.
Result<void> write_workflow_outputs(const Job& job, const publish::Answer& answer) {
  const std::string file = job.variable("GITHUB_OUTPUT");
  if (file.empty()) return {};
  return append_text(
      file, fmt::format("command={}\nsha={}\nbase={}\nfork={}\npull-request={}\ngreen={}\n",
                        publish::to_string(answer.kind), answer.sha, answer.base, answer.fork,
                        answer.pull_request, answer.green));
}

// Answers a comment on GitHub: checks who wrote it, and adds waivers by the API.
Result<Answer> waive_by_comment(const Job& job, const WaiveOptions& waive_options) {
  for (const std::string* option :
       {&waive_options.cell, &waive_options.metric, &waive_options.from, &waive_options.to,
        &waive_options.reason, &waive_options.who, &waive_options.sha, &waive_options.base}) {
    if (!option->empty() || waive_options.pull_request) {
      return fail(Code::usage,
                  "--event takes all of that from the comment and the check run: leave it out");
    }
  }
  WEIR_TRY(const std::string body,
           job.files().read(waive_options.event_file, publish::k_largest_event));
  WEIR_TRY(const publish::CommentEvent event,
           publish::read_comment_event(body, job.variable("GITHUB_REPOSITORY"),
                                       waive_options.event_file));
  publish::WaiveOptions options;
  options.gate = publish::gate_name(waive_options.gate);
  options.branch = waive_options.branch;
  options.until = expiry_date(job, waive_options);
  options.app = waive_options.access.app;
  if (!waive_options.verdict.empty())
    WEIR_TRY_SET(options.claimed, read_waivable_fails(waive_options.verdict, job.files()));
  publish::Answer answer;
  if (publish::parse_command(event.body).kind == publish::Command::Kind::none) {
    answer.why = "the comment asks weir for nothing";  // most comments: this needs no token
    answer.pull_request = event.number;
  } else {
    WEIR_TRY(const auto github, Github::open(job, waive_options.access,
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
                     {"base", answer.base.empty() ? Json() : Json(answer.base)},
                     {"fork", answer.fork},
                     {"green", answer.green},
                     {"changes", changes_json(answer.changes)},
                     {"notes", answer.notes}}),
      answer.kind == publish::Answer::Kind::refused ? ExitCode::fail : ExitCode::pass};
}

}  // namespace

Result<Answer> waive(const Job& job, const WaiveOptions& options) {
  return options.event_file.empty() ? waive_by_hand(job, options) : waive_by_comment(job, options);
}

}  // namespace weir::flow

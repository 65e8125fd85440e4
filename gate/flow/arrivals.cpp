// Judges the runs that come to weir serve, and posts their verdicts to GitHub.
#ifdef WEIR_SERVE
#include "gate/flow/arrivals.hpp"

#include <chrono>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/judge.hpp"
#include "gate/flow/reports.hpp"
#include "gate/publish/target.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

// Returns a job with the configuration and the baselines of a project's folder.
Job job_in(sys::World& world, const std::string& folder) {
  Job job{world};
  job.selection.config = sys::join_path(folder, "weir.yaml");
  job.selection.baselines = sys::join_path(folder, "baselines");
  return job;
}

}  // namespace

Result<std::unique_ptr<FolderJudge>> FolderJudge::make(
    sys::World& world, const std::vector<std::pair<std::string, std::string>>& folders) {
  auto judge = std::unique_ptr<FolderJudge>(new FolderJudge(world));
  for (const auto& [project, folder] : folders) {
    WEIR_CHECK(load_config(job_in(world, folder)).map_error(with_prefix("--gate " + project)));
    judge->folders_.emplace(project, folder);
  }
  return judge;
}

// Judges an uploaded run by its project's configuration and baselines; nullopt if the project has
// no folder here. Errors name no places of this machine.
Result<std::optional<verdict::GateVerdict>> FolderJudge::judge(
    const serve::Arrival& arrival, std::span<const profile::Profile> profiles) {
  const std::string* folder = look_up(folders_, arrival.project);
  if (folder == nullptr) return std::nullopt;
  const Job job = job_in(world_, *folder);
  auto loaded = load_config(job);
  // The error itself would name places of this machine.
  if (!loaded) return fail(Code::config, "the configuration of this project cannot be read here");
  MeasuredRun measured;
  measured.profiles.assign(profiles.begin(), profiles.end());
  // Uploads hold aliases of private names; baselines hold the true ones.
  std::map<std::string, profile::CellKey> true_names;
  for (const config::Cell& cell : loaded->cells) {
    true_names.emplace(loaded->configuration.redactor.cell(cell.key).str(), cell.key);
  }
  for (profile::Profile& profile : measured.profiles)
    profile.cell = look_up(true_names, profile.cell.str(), profile.cell);
  measured.is_selection = measured.profiles.size() < loaded->cells.size();
  measured.configuration = std::move(loaded->configuration);
  measured.configuration.notes.clear();
  measured.configuration.file = "weir.yaml";
  measured.configuration.file_path = job.selection.config;
  measured.commit = arrival.commit;
  const StoredBaselines stored(job.files(), job.selection.baselines,
                               "stored baselines of the service");
  auto verdict = judge_stored(measured, stored, gate_policy(measured, /*require_baseline=*/false),
                              world_.files);
  if (!verdict) return fail(Code::config, "a baseline of this project cannot be read here");
  verdict->run.reset();
  return redacted(*std::move(verdict), measured.configuration.redactor);
}

Poster::Poster(sys::World& world, std::map<std::string, std::string> repositories, MakeApi api,
               Say say, double settle_seconds)
    : world_(world),
      repositories_(std::move(repositories)),
      make_api_(std::move(api)),
      log_(std::move(say)),
      settle_seconds_(settle_seconds),
      thread_([this] { work(); }) {}

Poster::~Poster() {
  constexpr std::chrono::seconds k_last_posts{15};  // time to post when the service ends
  {
    std::unique_lock lock(mutex_);
    is_stopping_ = true;
    queue_changed_.notify_all();
    queue_changed_.wait_for(lock, k_last_posts, [&] { return queue_.empty(); });
  }
  stop_.request();
  thread_.join();
}

// Queues a verdict for posting to GitHub, if its project posts. Logs one that cannot be posted or
// finds the queue full.
void Poster::announce(const serve::Arrival& arrival, verdict::GateVerdict verdict) {
  if (!repositories_.contains(arrival.project)) return;
  const bool has_commit = arrival.commit && publish::is_sha(*arrival.commit);
  if (!has_commit && !arrival.pull_request) {
    log_(fmt::format("{}: not posted: the upload names no whole commit and no pull request",
                     arrival.project));
    return;
  }
  bool is_stopping = false;
  {
    const std::lock_guard lock(mutex_);
    is_stopping = is_stopping_;
    if (!is_stopping && queue_.size() < k_max_posts) {
      queue_.push_back({arrival, std::move(verdict)});
      queue_changed_.notify_all();
      return;
    }
  }
  log_(is_stopping ? fmt::format("{}: not posted: the service ends", arrival.project)
                   : fmt::format("{}: not posted: {} wait already", arrival.project, k_max_posts));
}

// Posts queued verdicts in order, until the poster ends and the queue is empty, or a stop is
// requested.
void Poster::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    queue_changed_.wait(lock, [&] { return is_stopping_ || !queue_.empty(); });
    if (queue_.empty() || stop_.requested()) return;
    const Waiting waiting = queue_.front();
    lock.unlock();
    post(waiting);
    lock.lock();
    queue_.pop_front();  // only now, so that an empty queue means that all is posted
    queue_changed_.notify_all();
  }
}

// Posts one verdict to its project's repository, and logs the outcome of each part (comment, check,
// status).
void Poster::post(const Waiting& waiting) {
  const std::string& repository = repositories_.at(waiting.arrival.project);
  auto api = make_api_(stop_);
  if (!api) return log_(fmt::format("{}: not posted: {}", repository, api.error().message));
  publish::Event event;
  event.repository = repository;
  event.pull_request = waiting.arrival.pull_request;
  const std::string commit = text::lower(waiting.arrival.commit.value_or(""));
  if (!waiting.arrival.is_merge && publish::is_sha(commit)) event.sha = commit;
  std::vector<std::string> notes;  // for people at a terminal; nobody reads them here
  auto checked = publish::look_up(**api, event, notes);
  if (checked && waiting.arrival.is_merge) checked = publish::check_merge(**api, event, commit);
  if (!checked) return log_(fmt::format("{}: not posted: {}", repository, checked.error().message));
  report::MarkdownStyle style;
  style.verbs = report_hints();
  const publish::Texts texts = publish::texts_of(waiting.verdict, style, /*run=*/{});
  publish::PostOptions options;
  // The project is part of the name, because gates of other projects may post there as well.
  options.gate = publish::gate_name(waiting.arrival.project);
  options.settle_seconds = settle_seconds_;
  const auto parts = publish::post(**api, event, texts, options, [&](double seconds) {
    (void)world_.pause.wait(seconds, stop_);
  });
  for (const publish::Part& part : parts) {
    if (part.outcome == publish::Part::Outcome::left_out) continue;
    log_(fmt::format("{}: {} {}{}", repository, part.name, publish::to_string(part.outcome),
                     text::prefix_if_any(": ", part.reason)));
  }
}

}  // namespace weir::flow

#endif

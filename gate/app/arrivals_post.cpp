#include "gate/app/arrivals.hpp"

#ifdef WEIR_SERVE
#include <chrono>

#include "gate/app/judging.hpp"
#include "gate/base/text.hpp"
#include "gate/publish/event.hpp"
#include "gate/publish/texts.hpp"
#include "gate/sys/clock.hpp"

namespace weir::app {
namespace {

constexpr std::chrono::seconds k_last_posts{15};  // when the service ends

}  // namespace

Poster::Poster(std::map<std::string, std::string> repositories, MakeApi api, Say say,
               double settle_seconds)
    : repositories_(std::move(repositories)),
      make_api_(std::move(api)),
      say_(std::move(say)),
      settle_seconds_(settle_seconds),
      thread_([this] { work(); }) {}

Poster::~Poster() {
  {
    std::unique_lock lock(mutex_);
    over_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, k_last_posts, [&] { return queue_.empty(); });
  }
  stop_.request();
  thread_.join();
}

void Poster::announce(const serve::Arrival& arrival, verdict::GateVerdict verdict) {
  if (!repositories_.contains(arrival.project)) return;
  const bool whole = arrival.commit && publish::is_sha(*arrival.commit);
  if (!whole && !arrival.pull_request) {
    say_(fmt::format("{}: not posted: the upload names no whole commit and no pull request",
                     arrival.project));
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (!over_ && queue_.size() < k_most_posts) {
      queue_.push_back({arrival, std::move(verdict)});
      changed_.notify_all();
      return;
    }
  }
  say_(fmt::format("not posted: {} wait already", k_most_posts));
}

void Poster::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return over_ || !queue_.empty(); });
    if (queue_.empty() || stop_.requested()) return;
    const Waiting one = queue_.front();
    lock.unlock();
    post(one);
    lock.lock();
    queue_.pop_front();  // only now: who waits for the last one sees it
    changed_.notify_all();
  }
}

void Poster::post(const Waiting& one) {
  const std::string& repository = repositories_.at(one.arrival.project);
  auto api = make_api_(stop_);
  if (!api) return say_(fmt::format("{}: not posted: {}", repository, api.error().message));
  publish::Target target;
  target.repository = repository;
  target.pull_request = one.arrival.pull_request;
  if (one.arrival.commit && publish::is_sha(*one.arrival.commit)) {
    target.sha = text::lower(*one.arrival.commit);
  }
  report::MarkdownStyle style;
  style.verbs = report_hints();
  const publish::Texts texts = publish::texts_of(one.verdict, style, std::nullopt);
  publish::PostOptions options;
  options.settle_seconds = settle_seconds_;
  options.now = sys::time_of(sys::RealClock().now());
  sys::RealPause pause;
  const auto parts = publish::post(**api, target, texts, options,
                                   [&](double seconds) { (void)pause.wait(seconds, stop_); });
  for (const publish::Part& part : parts) {
    if (part.outcome == publish::Part::Outcome::left_out) continue;
    say_(fmt::format("{}: {} {}{}{}", repository, part.name, publish::to_string(part.outcome),
                     part.reason.empty() ? "" : ": ", part.reason));
  }
}

}  // namespace weir::app
#endif

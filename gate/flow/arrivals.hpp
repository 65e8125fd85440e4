// What weir serve does besides answering: runs that come to it are judged by stored baselines, what
// came of it is posted to GitHub, and requests are logged.
#pragma once

#ifdef WEIR_SERVE

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <spdlog/logger.h>

#include "gate/flow/job.hpp"
#include "gate/publish/api.hpp"
#include "gate/serve/service.hpp"
#include "gate/sys/interrupts.hpp"

namespace weir::flow {

// By the weir.yaml and baselines that lie in a project's folder when a run comes.
class FolderJudge final : public serve::Judge {
 public:
  // Project and folder. Code::config where a folder has no weir.yaml that can be read.
  [[nodiscard]] static Result<std::unique_ptr<FolderJudge>> make(
      sys::World& world, const std::vector<std::pair<std::string, std::string>>& folders);

  [[nodiscard]] Result<std::optional<verdict::GateVerdict>> judge(
      const serve::Arrival& arrival, std::span<const profile::Profile> profiles) override;

 private:
  explicit FolderJudge(sys::World& world) : world_(world) {}

  sys::World& world_;
  std::map<std::string, std::string> folders_;
};

// A thread that posts, one verdict after the other. Bounded: at most k_most_posts wait, and what
// comes then is left out and told.
inline constexpr std::size_t k_most_posts = 100;

class Poster final : public serve::Announcer {
 public:
  using Say = std::function<void(const std::string&)>;
  // Makes access to GitHub; called on the posting thread, once a post.
  using MakeApi = std::function<Result<std::unique_ptr<publish::Api>>(const sys::Stop& stop)>;
  // `settle_seconds`: as PostOptions has it.
  Poster(sys::World& world, std::map<std::string, std::string> repositories, MakeApi api, Say say,
         double settle_seconds = 7);
  // Posts what waits, for `seconds` at most.
  ~Poster() override;

  void announce(const serve::Arrival& arrival, verdict::GateVerdict verdict) override;

 private:
  struct Waiting {
    serve::Arrival arrival;
    verdict::GateVerdict verdict;
  };
  void work();
  void post(const Waiting& one);

  sys::World& world_;
  std::map<std::string, std::string> repositories_;  // by project
  MakeApi make_api_;
  Say say_;
  double settle_seconds_;
  sys::Stop stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> queue_;  // under mutex_, as the next
  bool over_ = false;
  std::thread thread_;
};

// The log of weir serve: one line a request, on standard error. Nothing in it can begin a line of
// its own or say something to a terminal, and no token is in it.
enum class LogForm { text, json, none };

// Without a final newline. `now`: since the epoch.
[[nodiscard]] std::string log_line(const serve::RequestLine& line, double now, LogForm form);
[[nodiscard]] std::string log_line(const std::string& trouble, double now, LogForm form);

// To standard error; thread-safe. What the server says of itself (TLS) goes there too from now on.
[[nodiscard]] std::shared_ptr<spdlog::logger> make_log();

}  // namespace weir::flow

#endif

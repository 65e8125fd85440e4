// Runs that come to the service: judged by stored baselines, and what came of it posted to GitHub.
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

#include "gate/publish/api.hpp"
#include "gate/serve/service.hpp"
#include "gate/sys/interrupts.hpp"

namespace weir::app {

// By the weir.yaml and baselines that lie in a project's folder when a run comes.
class FolderJudge final : public serve::Judge {
 public:
  // Project and folder. Code::config where a folder has no weir.yaml that can be read.
  [[nodiscard]] static Result<std::unique_ptr<FolderJudge>> make(
      const std::vector<std::pair<std::string, std::string>>& folders);

  [[nodiscard]] Result<std::optional<verdict::GateVerdict>> judge(
      const serve::Arrival& arrival, std::span<const profile::Profile> profiles) override;

 private:
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
  Poster(std::map<std::string, std::string> repositories, MakeApi api, Say say,
         double settle_seconds = 7);
  // Posts what waits, for `seconds` at most.
  ~Poster() override;
  Poster(const Poster&) = delete;
  Poster& operator=(const Poster&) = delete;

  void announce(const serve::Arrival& arrival, verdict::GateVerdict verdict) override;

 private:
  struct Waiting {
    serve::Arrival arrival;
    verdict::GateVerdict verdict;
  };
  void work();
  void post(const Waiting& one);

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

}  // namespace weir::app
#endif

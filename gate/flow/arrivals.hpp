// The work of weir serve besides answering: judges uploaded runs by stored baselines, posts the
// verdicts to GitHub, and logs requests.
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

// Judges by the weir.yaml and the baselines in a project's folder at the time of the upload.
class FolderJudge final : public serve::Judge {
 public:
  // `folders`: pairs of project and folder. Code::config if a folder has no readable weir.yaml.
  [[nodiscard]] static Result<std::unique_ptr<FolderJudge>> make(
      sys::World& world, const std::vector<std::pair<std::string, std::string>>& folders);

  [[nodiscard]] Result<std::optional<verdict::GateVerdict>> judge(
      const serve::Arrival& arrival, std::span<const profile::Profile> profiles) override;

 private:
  explicit FolderJudge(sys::World& world) : world_(world) {}

  sys::World& world_;
  std::map<std::string, std::string> folders_;
};

// Posts one verdict after the other on its own thread. At most k_max_posts wait; later ones are
// left out and logged.
inline constexpr std::size_t k_max_posts = 100;

class Poster final : public serve::Announcer {
 public:
  using Say = std::function<void(const std::string&)>;
  // Makes access to GitHub; called on the posting thread, once a post.
  using MakeApi = std::function<Result<std::unique_ptr<publish::Api>>(const sys::Stop& stop)>;
  // `settle_seconds`: as PostOptions has it.
  Poster(sys::World& world, std::map<std::string, std::string> repositories, MakeApi api, Say say,
         double settle_seconds = 7);
  // Posts the waiting verdicts, for 15 s at most.
  ~Poster() override;

  void announce(const serve::Arrival& arrival, verdict::GateVerdict verdict) override;

 private:
  struct Waiting {
    serve::Arrival arrival;
    verdict::GateVerdict verdict;
  };
  void work();
  void post(const Waiting& waiting);

  sys::World& world_;
  std::map<std::string, std::string> repositories_;  // by project
  MakeApi make_api_;
  Say log_;
  double settle_seconds_;
  sys::Stop stop_;
  std::mutex mutex_;
  std::condition_variable queue_changed_;
  std::deque<Waiting> queue_;  // under mutex_, as the next
  bool is_stopping_ = false;
  std::thread thread_;
};

// The log of weir serve on standard error, one line a request. Text of clients cannot break lines
// or control a terminal, and no token appears.
enum class LogForm { text, json, none };

// Returns a line without a newline. `now`: seconds since the epoch.
[[nodiscard]] std::string log_line(const serve::RequestLine& line, double now, LogForm form);
[[nodiscard]] std::string log_line(const std::string& trouble, double now, LogForm form);

// Makes the thread-safe log on standard error, and sends the server's own messages (TLS) there too.
[[nodiscard]] std::shared_ptr<spdlog::logger> make_log();

}  // namespace weir::flow

#endif

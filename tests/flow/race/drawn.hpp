// GitHub, its pull requests and runners, with events that are drawn: also between any two requests
// of a post or of a comment's answer. The flows are weir's own; GitHub is the tests' own.
#pragma once

#include <array>
#include <random>
#include <string_view>

#include "gate/flow/post.hpp"

#include "tests/flow/race/earned.hpp"
#include "tests/flow/race/job.hpp"

namespace weir::tests::race {

// What the author of the pull requests tries.
enum class Attack {
  refs,   // pushes tags and branches named like the base, and commits folders named so
  cache,  // her engines change what a runner keeps for later jobs
  runs,   // commits runs where weir looks for runs, or has an engine copy them there
  all,
};
inline constexpr std::array<std::string_view, 4> k_attacks{"refs", "cache", "runs", "all"};

class Drawn : public sys::Http {
 public:
  Drawn(Jobs& jobs, unsigned seed);

  void act();
  // Posts and answers everything that still waits.
  void end();

  tl::expected<sys::HttpResponse, sys::HttpFailure> send(const sys::HttpRequest& request,
                                                         const sys::HttpLimits& limits,
                                                         const sys::Stop& stop) override;

  [[nodiscard]] Attack attack() const { return attack_; }
  std::string wrong;  // the first success that nobody earned
  // Counts of what could have been misled: jobs in a clone with her refs, jobs on a runner with a
  // cache of hers, and choices of a run in a checkout with runs of hers.
  int by_refs = 0, by_cache = 0, by_runs = 0;
  int waived = 0;
  [[nodiscard]] int greens() const { return earned_.greens(); }

 private:
  struct Pull {
    std::string head, base = "main", base_sha;
    bool fork = false, open = true;
  };
  // A run that ended and was not posted yet.
  struct Run {
    std::int64_t id = 0, pull = 0;
    Pull was;  // when it began
    enum class How {
      own_event,     // it posts itself, for the event that it began with, by its base's rules
      own_rules,     // the same, by the pull request's own
      second_stage,  // another run posts what it left: judged there by the base's rules
      forged,        // the same, but nobody judged: what it left says that all is well
      requested,     // by /weir run
    } how = How::own_event;
    const Done* job = nullptr;  // which measured
    bool own_workflow = false;  // the pull request chose what it was compared with
  };

  bool flip() { return random_() % 2 == 0; }
  template <class List>
  auto& choose(List& list) {
    return *std::next(list.begin(), static_cast<std::ptrdiff_t>(random_() % list.size()));
  }
  [[nodiscard]] const std::string& id(const std::string& name) const {
    return jobs_.origin().id(name);
  }
  [[nodiscard]] std::vector<std::string> ids(const std::vector<std::string>& names) const;
  [[nodiscard]] bool has_refs() const { return attack_ == Attack::refs || attack_ == Attack::all; }
  [[nodiscard]] static bool has_runs(const std::string& head) {
    return head == "runs" || head == "copies";
  }

  void choose_attack();
  void choose_names();
  void show();
  void push();
  void push_refs();
  void aim(Pull& pull);
  void second();
  void advance();
  void run();
  void measure(Run& run);
  void post();
  void post_run(const Run& run);
  void comment();
  void answer();

  [[nodiscard]] Inputs inputs_for(const std::string& head, const std::string& base) const;
  void in_world(const Json& event, const std::function<void(FakeWorld&, const flow::Job&)>& act_in);
  void post_newest(const Run& run, const Json& event, flow::PostOptions words);
  void note_post(const Result<flow::Answer>& posted);
  void check();

  Jobs& jobs_;
  std::mt19937 random_;
  Attack attack_ = Attack::refs;
  std::vector<std::string> heads_;   // a good one and two bad ones
  std::vector<std::string> pushed_;  // her refs
  Naming naming_ = Naming::full;     // they are like such names
  // The workflow, and its runner.
  Names names_;
  Steps steps_ = Steps::gate;
  bool takes_waivers_ = false, has_baselines_ = false;
  bool posts_newest_ = false;  // weir post names no run
  bool keeps_disk_ = false, trusts_cache_ = false;
  std::shared_ptr<const Disk> disk_;

  GithubStore store_;
  std::map<std::string, std::vector<std::string>> branches_;  // names of commits
  std::map<std::int64_t, Pull> pulls_;
  bool there_ = false;  // the second one
  std::vector<Run> runs_;
  std::vector<Comment> comments_;
  std::int64_t last_run_ = 0, last_event_ = 0;
  int depth_ = 0, left_ = 12;
  Earned earned_;
};

}  // namespace weir::tests::race

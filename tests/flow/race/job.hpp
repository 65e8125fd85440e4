// Jobs of workflows: their commands are weir's own flows, on a runner whose files and engines are
// fakes.
//
// A job's result follows from its inputs alone, so each is run once and its result remembered.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tests/flow/fake_world.hpp"
#include "tests/flow/race/origin.hpp"

namespace weir::tests::race {

// The files that a runner keeps from one job to the next: weir's cache.
struct Disk {
  Tree files;       // by their whole paths
  std::string key;  // the same for the same files
};

// How a workflow names a branch. The last three can name main alone.
enum class Naming { full, of_remote, local, id, short_id, fetched };
inline constexpr int k_namings = 6, k_namings_of_any_branch = 3;
[[nodiscard]] std::string name_of(Naming naming, const std::string& branch, const std::string& id);
// Returns refs that could be taken for such a name of main, whose commit is `id`, or of
// perf-baselines: of each kind those that are pushed together.
[[nodiscard]] std::vector<std::vector<std::string>> refs_like(Naming naming, const std::string& id);

// How a workflow names the base for --rules-from and for --against, and perf-baselines.
struct Names {
  Naming rules = Naming::full, base = Naming::full, baselines = Naming::full;
};

// The commands of a job that measures and judges.
enum class Steps {
  gate,          // weir gate --against --rules-from
  run_and_gate,  // weir run --against, weir gate --from (the newest run) --rules-from
  shards,        // weir run --shard, weir merge, weir gate --from (the newest run) --rules-from
  shards_into,   // the same, with weir merge --into and that run
  stored,        // weir gate --baselines-ref --rules-from
};

struct Inputs {
  std::string head{};                 // the commit that is checked out
  std::string branch{"main"};         // the base
  std::string tip{"main"};            // its commit
  std::vector<std::string> pushed{};  // refs of the clone besides the branches
  Names names{};
  Steps steps = Steps::gate;
  // Replaces the base of --against, and the newest run: the workflow is the pull request's own.
  std::string against{}, from{};
  std::int64_t pull = 0;       // takes the waivers for it (--waivers-ref); 0: none
  bool has_baselines = false;  // perf-baselines is there
  bool is_ci = true, trusts_cache = false;

  [[nodiscard]] std::string key() const;
};

// What a job leaves.
struct Done {
  std::string clone;  // what was checked out
  Refs refs;
  std::shared_ptr<sys::MemoryFiles> files;
  std::optional<std::string> verdict;  // as JSON; none where weir refused
  std::string run;                     // the run that was judged
  std::string error;                   // why weir refused
  bool passed = false;                 // by the exit code
  std::shared_ptr<const Disk> disk;
};

// The world of one job. Programs are git's answers, a build that copies, and an engine that prints
// its own source's count.
class Place {
 public:
  Place(Origin& origin, std::string clone, Refs refs,
        std::shared_ptr<sys::MemoryFiles> place_files);
  [[nodiscard]] flow::Job job() { return job(world_); }
  [[nodiscard]] flow::Job job(sys::World& world) const;
  // The same world with another network.
  [[nodiscard]] sys::World with(sys::Http& http);

  std::shared_ptr<sys::MemoryFiles> files;
  std::map<std::string, std::string> environment;
  run::FakeClock clock;
  std::function<void()> poison;  // run by an engine that "poisons"

 private:
  [[nodiscard]] sys::Finished start(const sys::ProcessSpec& spec);
  [[nodiscard]] sys::Finished start_engine(const std::string& source);

  Origin& origin_;
  const std::string clone_, checkout_;
  const Refs refs_;
  run::FakeProcesses processes_{[this](const sys::ProcessSpec& spec) { return start(spec); }};
  run::FakeLocks locks_;
  NoHttp http_;
  NoPause pause_;
  FixedCoin coin_;
  run::FakeLoad load_;
  FakeTerminal terminal_;
  sys::World world_;
};

// Returns a journal without the hash of the paths of programs: the end of the base's was drawn.
[[nodiscard]] std::string without_drawn(std::string journal);

class Jobs {
 public:
  // Makes the commits of scene.cpp.
  Jobs();

  // Runs the job on a runner that has this disk.
  const Done& measure(const Inputs& inputs, const std::shared_ptr<const Disk>& disk);
  const Done& measure(const Inputs& inputs) { return measure(inputs, fresh_); }
  // Judges the records of a job by the rules of a base, in a clone without files, as ci/post does.
  const Done& judge(const Done& measured, const Inputs& inputs);

  [[nodiscard]] Origin& origin() { return origin_; }
  [[nodiscard]] const std::shared_ptr<const Disk>& fresh() const { return fresh_; }
  // The disk as an engine that poisons leaves it: bases that count as much as the bad heads.
  [[nodiscard]] const std::shared_ptr<const Disk>& poisoned() const { return poisoned_; }

 private:
  void make_commits();
  void clone_head(const std::string& name, const Tree& tree, const std::string& parent);
  [[nodiscard]] std::map<int, Tree> make_baselines();
  [[nodiscard]] Tree make_waivers();
  [[nodiscard]] Tree run_of_good(Steps steps, double seconds_later);
  void make_poison();
  Done run(const Inputs& inputs, const Disk& disk);

  Origin origin_;
  std::shared_ptr<const Disk> fresh_ = std::make_shared<Disk>(), poisoned_ = fresh_;
  std::map<std::string, Done> done_;  // by what a job's result follows from
};

}  // namespace weir::tests::race

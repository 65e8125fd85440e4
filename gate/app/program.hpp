// The command line: the table of verbs, the words after "--", and how answers and errors leave the
// program.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gate/flow/job.hpp"

namespace weir::app {

class Program {
 public:
  using Words = std::vector<std::string>;
  // `words` are those after "--": a program and its arguments.
  using Action = std::function<Result<flow::Answer>(const Words& words)>;

  // The world must outlive it.
  explicit Program(sys::World& world) : world_(world) {}
  // Returns the exit code.
  [[nodiscard]] int run(int argc, const char* const* argv);

  [[nodiscard]] sys::World& world() const { return world_; }
  // Chooses the verb to run. Later calls have no effect.
  void choose(std::shared_ptr<const flow::Job> job, Action action, bool takes_words);

 private:
  [[nodiscard]] Result<verdict::ExitCode> act() const;

  sys::World& world_;
  Words words_;
  std::shared_ptr<const flow::Job> job_;
  Action action_;
  bool takes_words_ = false;
};

}  // namespace weir::app

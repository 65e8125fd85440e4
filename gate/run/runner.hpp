// Carries out a plan: counted steps side by side, timed steps one at a time, every result in the
// journal before it counts.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/config/settings.hpp"
#include "gate/profile/counts.hpp"
#include "gate/profile/record.hpp"
#include "gate/run/journal.hpp"
#include "gate/run/plan.hpp"
#include "gate/run/progress.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/http.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/lock.hpp"
#include "gate/sys/machine.hpp"
#include "gate/sys/page_cache.hpp"
#include "gate/sys/process.hpp"
#include "gate/sys/streams.hpp"

namespace weir::run {
class CodeStore;
class KernelCompiler;

// How probes get into an engine and their counts out of it; the app wires this to gate/probes.

// Thread-safe: counted processes run side by side.
class Probing {
 public:
  virtual ~Probing() = default;
  // Returns variables that make `probes` write into `folder` (which exists). Loader lists contain
  // only new entries: merge_environment() keeps the old ones. `inside`: the environment that the
  // engine begins with if it is not weir's own, as in a container; else nullptr.
  [[nodiscard]] virtual Result<config::Environment> attach(std::span<const std::string> probes,
                                                           const std::string& folder,
                                                           const config::Environment* inside) = 0;
  // The folder of the libraries, absolute.
  [[nodiscard]] virtual std::string folder() const = 0;
  // One entry for each probe that saw the engine do something, and for each further role.
  [[nodiscard]] virtual Result<std::vector<profile::ProbeCounts>> collect(
      std::span<const std::string> probes, const std::string& folder,
      std::span<const config::ProcessRole> roles) = 0;
};

// How engines that serve are spoken to: every step makes connections of its own, for steps may run
// side by side.
struct Connections {
  std::function<std::unique_ptr<sys::Streams>(const sys::Clock&)> streams =
      [](const sys::Clock& clock) {
        // Servers close connections that they kept a while (llama-server after 5 s), just when the
        // next request is on its way: each has one of its own.
        return sys::real_streams(clock, {.keep_connections = false});
      };
  std::function<std::unique_ptr<sys::Http>()> http = [] {
    return std::make_unique<sys::RealHttp>();
  };
  // True if a server could listen at that port of this machine.
  std::function<bool(int)> is_free = sys::is_free;
};

// All of it must outlive the runner.
struct Effects {
  sys::Processes& processes;
  sys::Files& files;
  const sys::Clock& clock;
  sys::Locks& locks;
  const sys::MachineLoad& load;
  Probing& probing;
  Progress& progress;
  const sys::Stop& stop;
  KernelCompiler* compiler = nullptr;  // null: no cell has kernels to compile
  const CodeStore* codes = nullptr;    // keeps the code of kernels, to compare it later
  Connections connections{};
  // Says before each process, and from several threads, why none may be started any more.
  std::function<Result<void>()> check{};
  // Reads a file into the system's cache.
  std::function<void(const std::string& path)> read_into_cache = sys::read_into_cache;
};

// Decides, once the plan is carried out, which further steps to run.
class Sequel {
 public:
  virtual ~Sequel() = default;
  struct Next {
    std::vector<Step> steps;               // `order` is filled in by the runner; none: the end
    std::optional<double> seconds_left{};  // for progress
  };
  // `fresh`: records that were not handed in before, those of the plan itself first. Counted steps
  // that are answered run side by side, timed ones one after the other in their order. An Error
  // ends the run.
  [[nodiscard]] virtual Result<Next> next(std::span<const profile::RunRecord> fresh) = 0;
};

class Runner {
 public:
  // `cores` counted processes run side by side at most.
  Runner(Effects effects, std::int64_t cores) : effects_(effects), cores_(cores) {}

  // Runs every step that journal.earlier() has no record of, and answers all records, earlier ones
  // included, by `order`. An engine that fails is a record with an error, never an Error here.
  // A cell's pass is given up after a time-out or two failures: the last record says how many
  // processes were left out.
  // Fails with Code::interrupted on a stop (no child is left, the journal can be resumed), Code::io
  // when the journal cannot be written or a process cannot be made.
  // Steps that `sequel` adds are declared in the journal before they are run; those that an
  // interrupted run declared and did not run come first.
  [[nodiscard]] Result<std::vector<profile::RunRecord>> run(const Plan& plan, Journal& journal,
                                                            Sequel* sequel = nullptr);

 private:
  Effects effects_;
  std::int64_t cores_;
};

}  // namespace weir::run

// Builds a small matrix without touching the machine, and fakes of the runner's effects.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gate/adapters/format.hpp"
#include "gate/config/matrix.hpp"
#include "gate/run/plan.hpp"
#include "gate/run/preflight.hpp"
#include "gate/run/runner.hpp"

#include "tests/support/memory_files.hpp"

namespace weir::run {

inline const std::string k_scene_yaml = R"(version: 1
engines:
  bench:
    command: [./bench, -m, "{model}", -p, "{prompt_tokens}", -n, "{tokens}", -r, "{repeats}"]
    output: llama-bench
    probes: [vulkan]
    cpu_ops_allowed:
      GET_ROWS: one look-up
      SOFT_MAX: {when: ne0 < 128, why: cheaper}
      ADD: {match: {backend: cpu}, why: never}
    timeout: 5s
models: {tiny: tiny.bin}
backends:
  cpu: {}
  vulkan: {env: {VK_LAYER_PATH: /config/layers, PLAIN: value}}
prompts:
  decode: {prompt_tokens: 0, tokens: 16}
gate: {runs: 3, repeats: 2}
)";

struct Scene {
  std::unique_ptr<config::Settings> settings;  // cells point into it
  std::vector<config::Cell> cells;
  sys::MemoryFiles files;
  Surroundings around;
};

inline std::unique_ptr<Scene> make_scene(const std::string& yaml = k_scene_yaml) {
  auto scene = std::make_unique<Scene>();
  config::Supported context;
  context.today = "2026-11-20";
  context.adapters = adapters::names();
  context.probes = {"vulkan", "instructions", "host"};
  context.apis = {"completions"};
  auto settings = config::parse_settings(yaml, "weir.yaml", context);
  if (!settings) throw std::runtime_error(settings.error().message);
  scene->settings = std::make_unique<config::Settings>(std::move(*settings));
  auto matrix = config::expand(*scene->settings);
  if (!matrix) throw std::runtime_error(matrix.error().message);
  scene->cells = std::move(matrix->cells);
  scene->files.put("/project/bench", "program");
  scene->files.set_executable("/project/bench");
  scene->files.put("/project/tiny.bin", "weights");
  scene->files.put("/out/.keep", "");
  scene->around.config_folder = "/project";
  scene->around.path_variable = "/usr/bin";
  scene->around.machine.cpu_model = "Test CPU";
  scene->around.machine.cpu_class = "cpu-x86-64-v3";
  scene->around.machine.usable_cores = 4;
  scene->around.machine.physical_cores = 4;
  scene->around.machine.memory_bytes = std::int64_t{8} << 30;
  scene->around.machine.os_release = "debian 12";
  scene->around.devices["vulkan"] = {"vulkan-1-2-3-4-5", "software", true, std::nullopt};
  scene->around.probe_devices = {
      {"vulkan", {"vulkan"}}, {"instructions", {"cpu"}}, {"host", {"cpu", "vulkan"}}};
  return scene;
}

inline Plan plan_scene(Scene& scene, const PlanOptions& options = {}) {
  auto prepared = preflight(scene.cells, scene.around, scene.files);
  if (!prepared) throw std::runtime_error(prepared.error().message);
  return make_plan(std::move(*prepared), *scene.settings, options);
}

// Returns the output that llama-bench would print for these arguments.
inline std::string bench_output(const std::vector<std::string>& argv) {
  const auto value = [&](const std::string& name) {
    for (std::size_t i = 0; i + 1 < argv.size(); ++i) {
      if (argv[i] == name) return std::stol(argv[i + 1]);
    }
    return 0L;
  };
  std::string samples;
  for (long i = 0; i < value("-r"); ++i) samples += (i > 0 ? ", " : "") + std::string("1000000");
  return fmt::format(
      "[{{\"n_prompt\": {}, \"n_gen\": {}, \"n_depth\": {}, \"n_gpu_layers\": 99, "
      "\"gpu_info\": \"x\", \"samples_ns\": [{}]}}]",
      value("-p"), value("-n"), value("-d"), samples);
}

class FakeProcesses final : public sys::Processes {
 public:
  using Engine = std::function<sys::Finished(const sys::ProcessSpec&)>;
  explicit FakeProcesses(Engine engine) : engine_(std::move(engine)) {}
  FakeProcesses() : FakeProcesses([](const sys::ProcessSpec& spec) { return good(spec); }) {}

  static sys::Finished good(const sys::ProcessSpec& spec) {
    sys::Finished finished;
    finished.out = bench_output(spec.argv);
    finished.wall_seconds = 2;
    finished.cpu_seconds = 3;
    finished.peak_rss_bytes = std::int64_t{50} << 20;
    return finished;
  }

  Result<sys::Finished> run(const sys::ProcessSpec& spec, const sys::Stop& stop) override {
    {
      const std::lock_guard hold(mutex_);
      started.push_back(spec);
      most = std::max(most, ++running_);
    }
    sys::Finished finished;
    finished.ended = sys::HowEnded::interrupted;
    if (!stop.requested()) finished = engine_(spec);
    const std::lock_guard hold(mutex_);
    --running_;
    return finished;
  }

  std::vector<sys::ProcessSpec> started;
  int most = 0;  // processes at the same time

 private:
  Engine engine_;
  std::mutex mutex_;
  int running_ = 0;
};

class FakeClock final : public sys::Clock {
 public:
  [[nodiscard]] double now() const override { return 1'800'000'000 + steady(); }
  [[nodiscard]] double steady() const override { return seconds; }
  double seconds = 0;
};

class FakeLocks final : public sys::Locks {
 public:
  Result<std::unique_ptr<sys::Held>> acquire(
      std::vector<sys::LockWanted> wanted, const sys::Stop&,
      const std::function<void(const std::string&)>&) override {
    const std::lock_guard hold(mutex_);
    all.push_back(std::move(wanted));
    return std::make_unique<sys::Held>();
  }
  std::vector<std::vector<sys::LockWanted>> all;

 private:
  std::mutex mutex_;
};

class FakeLoad final : public sys::MachineLoad {
 public:
  [[nodiscard]] std::optional<sys::CpuTicks> ticks() const override {
    // Each reading adds 100 ticks, 10 of them stolen.
    const std::uint64_t reading = ++readings_;
    return sys::CpuTicks{100 * reading, 10 * reading};
  }
  [[nodiscard]] std::optional<double> load_average() const override { return 0.5; }
  [[nodiscard]] std::optional<std::int64_t> memory_available() const override { return memory; }
  std::optional<std::int64_t> memory = std::int64_t{8} << 30;

 private:
  mutable std::atomic<std::uint64_t> readings_{0};
};

class FakeProbing final : public Probing {
 public:
  Result<config::Environment> attach(std::span<const std::string>, const std::string& folder,
                                     const config::Environment* inside) override {
    begun_inside = inside == nullptr ? std::nullopt : std::optional(*inside);
    if (refuse) return fail(Code::io, "no probe here");
    return config::Environment{{"WEIR_PROBE_DIR", folder}, {"VK_LAYER_PATH", "/probe/layers"}};
  }
  Result<std::vector<profile::ProbeCounts>> collect(std::span<const std::string> probes,
                                                    const std::string&,
                                                    std::span<const config::ProcessRole>) override {
    profile::ProbeCounts counts;
    counts.probe = probes.front();
    counts.counts["dispatches"] = 65;
    return std::vector{counts};
  }
  [[nodiscard]] std::string folder() const override { return "/probe"; }
  bool refuse = false;
  std::optional<config::Environment> begun_inside;
};

class FakeProgress final : public Progress {
 public:
  void show(const ProgressState& state) override {
    const std::lock_guard hold(mutex_);
    states.push_back(state);
  }
  void say(const std::string& line) override {
    const std::lock_guard hold(mutex_);
    lines.push_back(line);
  }
  void finish() override { finished = true; }
  std::vector<ProgressState> states;
  std::vector<std::string> lines;
  bool finished = false;

 private:
  std::mutex mutex_;
};

}  // namespace weir::run

// A world in memory: files, an engine that answers at once, a clock that stands still. What flows
// and verbs say is kept.
#pragma once

#include <map>
#include <string>

#include "gate/flow/job.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/http.hpp"

#include "tests/run/scene.hpp"

namespace weir::tests {

class FakeTerminal final : public sys::Terminal {
 public:
  void write(int stream, std::string_view text) override {
    if (stream == 1) {
      out += std::string(text);
    } else {
      err += std::string(text);
    }
  }
  [[nodiscard]] std::optional<int> columns(int) const override { return width; }
  [[nodiscard]] std::string read_input(std::size_t) override { return input; }
  std::string out, err, input;
  std::optional<int> width;  // of a terminal; nothing: a pipe
};

// Nobody answers.
class NoHttp final : public sys::Http {
 public:
  tl::expected<sys::HttpResponse, sys::HttpFailure> send(const sys::HttpRequest&,
                                                         const sys::HttpLimits&,
                                                         const sys::Stop&) override {
    return tl::unexpected(sys::HttpFailure{.message = "no network"});
  }
};

class NoPause final : public sys::Pause {
 public:
  [[nodiscard]] bool wait(double, const sys::Stop&) override { return true; }
};

class FixedCoin final : public sys::Coin {
 public:
  [[nodiscard]] bool flip() override { return heads = !heads; }
  bool heads = false;
};

// The folder /project has a weir.yaml, an engine and a model; probes are "installed" in /probes.
struct FakeWorld {
  explicit FakeWorld(const std::string& yaml) {
    files.put("/project/weir.yaml", yaml);
    files.put("/project/bench", "program");
    files.set_executable("/project/bench");
    files.put("/project/tiny.bin", "weights");
    files.put("/out/.keep", "");
    files.put("/probes/.keep", "");
  }
  [[nodiscard]] flow::Job job() {
    flow::Job job{world};
    job.selection.config = "/project/weir.yaml";
    job.selection.baselines = "/project/baselines";
    job.selection.runs_folder = "/out";
    job.output.quiet = true;
    return job;
  }

  sys::MemoryFiles files;
  run::FakeProcesses processes;
  run::FakeClock clock;
  run::FakeLocks locks;
  NoHttp http;
  NoPause pause;
  FixedCoin coin;
  run::FakeLoad load;
  FakeTerminal terminal;
  std::map<std::string, std::string> environment{{"WEIR_PROBES", "/probes"}};
  sys::World world{files,
                   processes,
                   clock,
                   locks,
                   http,
                   pause,
                   coin,
                   load,
                   terminal,
                   [this](const std::string& name) -> std::optional<std::string> {
                     const auto variable = environment.find(name);
                     if (variable == environment.end()) return std::nullopt;
                     return variable->second;
                   }};
};

// One engine on the CPU, that no probe sees: times alone.
inline const std::string k_timed_yaml = R"(version: 1
engines:
  bench:
    command: [./bench, -m, "{model}", -p, "{prompt_tokens}", -n, "{tokens}", -r, "{repeats}"]
    output: llama-bench
    timeout: 5s
models: {tiny: tiny.bin}
backends: {cpu: {}}
prompts:
  decode: {prompt_tokens: 0, tokens: 16}
  other: {prompt_tokens: 0, tokens: 8}
gate: {runs: 3, repeats: 2}
)";

}  // namespace weir::tests

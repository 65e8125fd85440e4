// Parses the command line of weir-engine.
#include "tools/engine/options.hpp"

#include <cstdio>
#include <cstdlib>

#include <CLI/CLI.hpp>

namespace weir::engine {

constexpr int k_max_positions = 1 << 20;

Result<Options> parse_options(int argc, char** argv) {
  Options options;
  Work& work = options.work;
  std::string backend = "cpu";
  bool no_batch = false;
  std::vector<std::string> faults;
  CLI::App app{"Greedy decoding of llama models: the engine that weir is tried on", "weir-engine"};
  app.add_option("-m,--model", options.model, "A GGUF file: F32, F16, Q8_0, Q4_0 (CPU: BF16, too)")
      ->required();
  app.add_option("--backend", backend, "Where it runs; never elsewhere")
      ->check(CLI::IsMember({"cpu", "vulkan"}))
      ->capture_default_str();
  app.add_option("--device", options.device, "Number of the Vulkan device")->capture_default_str();
  app.add_option("-t,--threads", options.threads, "Threads of the CPU backend")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--context", options.context, "Positions to make room for, at most")
      ->check(CLI::Range(1, k_max_positions))
      ->capture_default_str();
  auto* length =
      app.add_option("-p,--prompt-tokens", options.prompt_tokens, "Length of a made-up prompt")
          ->check(CLI::Range(0, k_max_positions));
  app.add_option("--tokens-in", work.prompt, "The prompt as token ids: 1,17,4")
      ->delimiter(',')
      ->excludes(length);
  app.add_option("-n,--tokens", work.tokens, "Tokens to generate; the prompt gives the first")
      ->check(CLI::Range(0, k_max_positions));
  app.add_option("-d,--depth", work.depth, "Positions to fill beforehand, untimed")
      ->check(CLI::Range(0, k_max_positions));
  app.add_option("-r,--repeats", work.repeats, "How often, from an empty cache each time")
      ->check(CLI::Range(1, k_max_positions))
      ->capture_default_str();
  app.add_flag("--no-batch", no_batch, "A dispatch for each product, where one would do");
  app.add_flag("--fused-ffn", options.switches.fused_ffn, "Gate, up and activation in one kernel");
  app.add_flag("--shares", options.switches.reports_probability, "Softmax of each chosen token");
  app.add_option("--inject", faults,
                 "A regression to bring in, for trying a gate on; repeatable; \"list\" shows them")
      ->envname("WEIR_ENGINE_PLANT")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->each([](const std::string& name) {
        if (name != "list") return;
        std::fputs(list_faults().c_str(), stdout);
        std::exit(0);
      });
  app.add_flag("--json", options.json, "Print weir.observed/1 instead of token ids");
  app.add_option("--logits", options.logits, "Write the logits of each position, 32-bit floats");
  app.footer(
      list_faults() +
      "\n--replay FILE, first of all: the ops of a recording (weir replay --on weir-engine)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    std::exit(app.exit(help));
  } catch (const CLI::ParseError& error) {
    return fail(Code::usage, "{}", error.what());
  }
  options.vulkan = backend == "vulkan";
  options.switches.batch = !no_batch;
  for (const std::string& name : faults) {
    WEIR_TRY(const Fault fault, parse_fault(name));
    options.faults.push_back(fault);
  }
  WEIR_CHECK(check_faults(options.faults, {options.vulkan, options.threads, options.switches}));
  return options;
}

}  // namespace weir::engine

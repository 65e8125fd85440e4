// Every saved output, and the format it is of.
#pragma once

#include <string>
#include <vector>

#include "gate/adapters/printed.hpp"

namespace weir::adapters {

struct SampleFile {
  const char* name;  // the name of its golden file
  const char* out;   // in data/; "" when there is none
  const char* err;
  const char* format;  // the format that recognises it; "" when none does
};

inline const std::vector<SampleFile>& samples() {
  static const std::vector<SampleFile> k_samples{
      {"agave-plain", "", "agave-plain.stderr.txt", "agave"},
      {"agave-profile", "", "agave-profile.stderr.txt", "agave"},
      {"agave-profile-debug", "", "agave-profile-debug.stderr.txt", "agave"},
      {"agave-profile-json", "agave-profile-json.stdout.txt", "agave-profile-json.stderr.txt",
       "agave"},
      {"agave-profile-sequential", "agave-profile-sequential.stdout.txt",
       "agave-profile-sequential.stderr.txt", "agave"},
      {"agave-profile-n1", "", "agave-profile-n1.stderr.txt", "agave"},
      {"agave-profile-quiet", "", "agave-profile-quiet.stderr.txt", "agave"},
      {"agave-profile-verbose", "", "agave-profile-verbose.stderr.txt", "agave"},
      {"agave-json", "agave-json.stdout.txt", "agave-json.stderr.txt", "agave"},
      {"agave-model-info", "agave-model-info-json.stdout.txt", "", "agave"},
      {"agave-backend-fallback-metal", "", "agave-backend-fallback-metal.stderr.txt", "agave"},
      {"agave-bench-e2e", "agave-bench-e2e.stdout.txt", "agave-bench-e2e.stderr.txt", "agave"},
      {"agave-bench-kernel", "agave-bench-kernel.stdout.txt", "", "agave"},
      {"agave-bench-error", "", "agave-bench-error.stderr.txt", "agave"},
      {"agave-error-missing-file", "", "agave-error-missing-file.stderr.txt", "agave"},
      {"agave-error-truncated", "", "agave-error-truncated.stderr.txt", "agave"},
      {"agave-error-unknown-backend", "", "agave-error-unknown-backend.stderr.txt", "agave"},
      {"agave-error-vulkan-q8-panic", "", "agave-error-vulkan-q8-panic.stderr.txt", "agave"},
      {"agave-error-vulkan-f32-segfault", "", "agave-error-vulkan-f32-segfault.stderr.txt",
       "agave"},
      {"agave-per-token", "constructed-agave-per-token.txt", "", "agave"},
      {"agave-metal-counters", "", "constructed-agave-metal-counters.stderr.txt", "agave"},
      {"llama-bench-json", "llama-bench.json", "llama-bench.stderr.txt", "llama-bench"},
      {"llama-bench-jsonl", "llama-bench.jsonl", "", "llama-bench"},
      {"llama-bench-csv", "llama-bench.csv", "", "llama-bench-table"},
      {"llama-bench-sql", "llama-bench.sql", "", "llama-bench-table"},
      {"llama-bench-md", "llama-bench.md.txt", "", "llama-bench-table"},
      {"llama-bench-error", "llama-bench-error-missing-model.stdout.txt",
       "llama-bench-error-missing-model.stderr.txt", "llama-bench"},
      {"llama-completion-perf", "", "llama-completion-perf.stderr.txt", "llama-perf"},
      {"llama-completion-error", "", "llama-completion-error-missing-model.stderr.txt",
       "llama-perf"},
      {"llama-perf-context-print", "", "llama-perf-context-print-excerpt.stderr.txt", "llama-perf"},
      {"llama-server-print-timing", "", "llama-server-print-timing.stderr.txt", "llama-perf"},
      {"llama-server-chat", "llama-server-chat.json", "", "llama-server"},
      {"llama-server-completion", "llama-server-completion.json", "", "llama-server"},
      {"llama-server-stream", "llama-server-stream.sse.txt", "", "llama-server"},
      {"llama-server-metrics", "llama-server-metrics.prom.txt", "", "prometheus"},
      {"vk-perf-logger", "", "vk-perf-logger.stderr.txt", "vk-perf-logger"},
      {"vk-perf-logger-concurrent", "", "vk-perf-logger-concurrent.stderr.txt", "vk-perf-logger"},
      {"vk-perf-logger-frequency4", "", "vk-perf-logger-frequency4.stderr.txt", "vk-perf-logger"},
      {"vk-sync-logger", "", "vk-sync-logger-excerpt.stderr.txt", "vk-sync-logger"},
      {"sched-debug-1", "", "sched-debug-1-excerpt.stderr.txt", "sched-debug"},
      {"sched-debug-2", "", "sched-debug-2-excerpt.stderr.txt", "sched-debug"},
      {"sched-debug-prefixed", "", "sched-debug-prefixed-excerpt.stderr.txt", "sched-debug"},
      {"ggml-profile-v2", "constructed-ggml-profile-v2.json", "", "ggml-profiler"},
      {"ggml-profile-v4", "constructed-ggml-profile-v4.json", "", "ggml-profiler"},
      {"ggml-profile-summary", "constructed-ggml-profile-summary.txt", "", "ggml-profiler-text"},
      {"ggml-profile-table", "constructed-ggml-profile.txt", "", "ggml-profiler-text"},
      {"ggml-profile-trace", "constructed-ggml-profile-chrome-trace.json", "", "chrome-trace"},
      {"test-backend-ops-perf", "test-backend-ops-perf-console.stdout.txt",
       "test-backend-ops-perf-console.stderr.txt", "test-backend-ops"},
      {"test-backend-ops-perf-csv", "test-backend-ops-perf.csv", "", "test-backend-ops"},
      {"test-backend-ops-perf-sql", "test-backend-ops-perf.sql", "", "test-backend-ops"},
      {"test-backend-ops-support-csv", "test-backend-ops-support.csv", "", "test-backend-ops"},
      {"test-backend-ops-test", "test-backend-ops-test-console.stdout.txt", "", "test-backend-ops"},
      {"test-backend-ops-unknown-backend", "test-backend-ops-unknown-backend.stdout.txt", "",
       "test-backend-ops"},
      {"test-backend-ops-malformed-line", "test-backend-ops-error-malformed-line.stdout.txt",
       "test-backend-ops-error-malformed-line.stderr.txt", "test-backend-ops"},
      {"test-backend-ops-missing-file", "test-backend-ops-error-missing-file.stdout.txt",
       "test-backend-ops-error-missing-file.stderr.txt", "test-backend-ops"},
      {"graph-ops", "graph-ops.txt", "", "graph-ops"},
      {"graph-ops-3", "graph-ops-3.txt", "", "graph-ops"},
      {"google-benchmark", "google-benchmark.json", "", "google-benchmark"},
      {"google-benchmark-aggregates", "google-benchmark-aggregates.json", "", "google-benchmark"},
      {"tracy", "constructed-tracy.csv", "", "tracy-csv"},
      {"tracy-unwrap", "constructed-tracy-unwrap.csv", "", "tracy-csv"},
      {"tracy-gpu", "constructed-tracy-gpu.csv", "", "tracy-csv"},
      {"hf2q", "", "constructed-hf2q.stderr.txt", "hf2q"},
      {"mlx-lm", "constructed-mlx-lm.txt", "", "mlx-lm"},
      {"ollama-generate", "constructed-ollama-generate.jsonl", "", "ollama"},
      {"ollama-verbose", "", "constructed-ollama-verbose.stderr.txt", "ollama"},
      {"vllm", "constructed-vllm.json", "", "vllm"},
      {"aiperf", "constructed-aiperf.json", "", "aiperf"},
      {"guidellm", "constructed-guidellm.json", "", "guidellm"},
      {"vllm-metrics", "constructed-vllm-metrics.prom.txt", "", "prometheus"},
      {"pytorch-trace", "constructed-pytorch-trace.json", "", "chrome-trace"},
      {"weir-timeline", "weir-timeline.json", "", "weir-timeline"},
      {"begin-end-trace", "constructed-begin-end-trace.json", "", "chrome-trace"},
      // Texts without results: the text a model wrote, a summary of an export.
      {"agave-plain-output", "agave-plain.stdout.txt", "", ""},
      {"graph-ops-export", "", "graph-ops-export.stderr.txt", ""},
  };
  return k_samples;
}

}  // namespace weir::adapters

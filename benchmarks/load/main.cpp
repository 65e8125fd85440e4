// Measures the load driver's timing error and processor time, on a server that sends tokens at
// known moments.
//
//   load_cost [RUNS [STREAMS]]     runs of each row (default 10), only rows with STREAMS streams.
// It prints Markdown tables.
//
// The driver runs on the first core that this process may use, the server's thread on the last.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sched.h>

#include "gate/load/load.hpp"
#include "gate/stats/quantile.hpp"

#include "benchmarks/load/bare_reader.hpp"
#include "tests/load/scripts.hpp"
#include "tests/load/stream_server.hpp"

namespace weir::benchmarks {
namespace {

using namespace tests;

struct Shape {
  int streams = 64;
  int tokens = 200;  // per stream
  double gap = 0.02;
  bool together = false;  // all streams' tokens at once, as a server that batches sends them
};

// The script of one stream. The first token comes after a quarter of a second, when all streams are
// connected. If not `together`, the streams are spread over the gap.
Script make_script(const Shape& shape, std::int64_t stream) {
  constexpr double k_first = 0.25;
  const double shift = shape.together ? 0 : shape.gap * static_cast<double>(stream) / shape.streams;
  Script script = scripts::well(scripts::llama(shape.tokens), k_first + shift, shape.gap);
  script.keeps_moments_as = stream;
  return script;
}

struct Run {
  std::vector<double> off_schedule, off_server;  // |measured gap − gap|, seconds
  double tokens_per_second = 0;
  double cpu_share = 0;  // processor time of the driver's thread over wall time
};

// Returns a load plan that sends one request on each stream at the same time.
load::LoadPlan make_plan(const Shape& shape, const StreamServer& server) {
  load::LoadPlan plan;
  plan.url = server.url();
  plan.api = "llama";
  // A prompt is the number of its stream, so that the server knows which one it answers.
  for (int i = 0; i < shape.streams; ++i) {
    plan.prompts.push_back({"p", std::to_string(i), shape.tokens});
  }
  plan.loop = load::ClosedLoop{shape.streams};
  plan.requests = shape.streams;
  return plan;
}

enum class Core { first, last };

// Binds this thread to the first or last core that the process may use. Threads that it starts
// inherit the core.
void bind_to_core(Core core) {
  static const cpu_set_t k_all = [] {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  int chosen = -1;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &k_all) && (core == Core::last || chosen < 0)) chosen = i;
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(chosen, &set);
  sched_setaffinity(0, sizeof set, &set);
}

// Runs weir's load driver once on all streams of a shape. Compares each gap between tokens with the
// schedule and with the moments at which the server really sent.
Run drive(const Shape& shape) {
  bind_to_core(Core::last);
  StreamServer server([&](const ReceivedPost& post) {
    const std::size_t prompt = post.body.find("\"prompt\":\"") + 10;
    return make_script(shape, std::atol(post.body.c_str() + prompt));
  });
  bind_to_core(Core::first);
  const sys::RealClock clock;
  const sys::Stop stop;
  const auto streams = sys::real_streams(clock);
  const double cpu_before = thread_cpu_seconds(), start = steady_seconds();
  const auto load = load::drive(make_plan(shape, server), *streams, clock, stop);
  const double seconds = steady_seconds() - start;
  Run run;
  run.cpu_share = (thread_cpu_seconds() - cpu_before) / seconds;
  if (!load) std::abort();
  const auto moments = server.moments();
  std::int64_t tokens = 0;
  double first = INFINITY, last = 0;
  for (const auto& request : load->requests) {
    if (request.failure) continue;
    tokens += request.counted_tokens;
    first = std::min(first, request.tokens.front().received_at);
    last = std::max(last, request.tokens.back().received_at);
    const std::vector<double>& sent = moments.at(request.number);
    for (std::size_t i = 1; i < request.tokens.size(); ++i) {
      const double gap = request.tokens[i].received_at - request.tokens[i - 1].received_at;
      run.off_schedule.push_back(std::fabs(gap - shape.gap));
      run.off_server.push_back(std::fabs(gap - (sent[i + 1] - sent[i])));  // sent[0]: the header
    }
  }
  run.tokens_per_second = static_cast<double>(tokens) / (last - first);
  return run;
}

double ms(const std::vector<double>& seconds, double share) {
  return 1e3 * stats::quantile(seconds, share).value_or(NAN);
}

int only_streams = 0;  // 0: all rows

// Measures a shape `runs` times and prints a row of the best run by its p99.
void print_gaps(const char* name, const Shape& shape, int runs) {
  if (only_streams != 0 && shape.streams != only_streams) return;
  std::vector<Run> results;
  for (int i = 0; i < runs; ++i) results.push_back(drive(shape));
  const auto best =
      std::min_element(results.begin(), results.end(), [](const Run& a, const Run& b) {
        return ms(a.off_schedule, 0.99) < ms(b.off_schedule, 0.99);
      });
  std::vector<double> p99s;
  for (const Run& run : results) p99s.push_back(ms(run.off_schedule, 0.99));
  fmt::print("| {} | {:.0f} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.0f} % |\n", name,
             best->tokens_per_second, ms(best->off_schedule, 0.5), ms(best->off_schedule, 0.99),
             ms(best->off_schedule, 1), ms(best->off_server, 0.99),
             stats::median(p99s).value_or(NAN), best->cpu_share * 100);
  std::fflush(stdout);
}

// Prints a row for each number of streams, gap, and whether streams send at once.
void print_gap_table(int runs) {
  fmt::print(
      "Gaps, best of {} runs by their p99 (ms); \"server\": against when it really sent\n\n"
      "| streams | tokens/s | p50 | p99 | max | p99, server | p99, median run | driver's core "
      "|\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
      runs);
  print_gaps("1, a token every 20 ms", {.streams = 1}, runs);
  print_gaps("64, every 20 ms, one after the other", {}, runs);
  print_gaps("64, every 20 ms, all at once", {.together = true}, runs);
  print_gaps("64, each 6.4 ms, one after the other", {.tokens = 500, .gap = 0.0064}, runs);
  print_gaps("64, each 6.4 ms, all at once", {.tokens = 500, .gap = 0.0064, .together = true},
             runs);
  print_gaps("64, each 3.2 ms, one after the other", {.tokens = 1000, .gap = 0.0032}, runs);
  print_gaps("256, each 25.6 ms, one after the other", {.streams = 256, .gap = 0.0256}, runs);
  print_gaps("256, each 25.6 ms, all at once", {.streams = 256, .gap = 0.0256, .together = true},
             runs);
}

// Prints tokens a second of the driver and of a reader that only reads. The server sends as fast as
// it can.
void print_throughput_table(int runs) {
  constexpr int k_tokens = 4000;
  const Shape shape{.streams = 64, .tokens = k_tokens, .gap = 0, .together = true};
  Script script = scripts::well(scripts::llama(k_tokens));
  std::int64_t bytes = 0;
  for (const auto& step : script.steps) bytes += static_cast<std::int64_t>(step.bytes.size());
  std::vector<double> bare, driven, bare_cpu, driven_cpu;
  for (int i = 0; i < runs; ++i) {
    bind_to_core(Core::last);
    StreamServer server([&](const ReceivedPost&) { return script; });
    bind_to_core(Core::first);
    const std::string post = "POST /completion HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
    const double tokens = 1.0 * k_tokens * shape.streams;
    const BareRead read = read_bare(server.port(), shape.streams, post, bytes);
    bare.push_back(tokens / read.seconds);
    bare_cpu.push_back(read.cpu_seconds / tokens * 1e6);

    const sys::RealClock clock;
    const sys::Stop stop;
    const auto streams = sys::real_streams(clock);
    const double cpu_before = thread_cpu_seconds(), start = steady_seconds();
    const auto load = load::drive(make_plan(shape, server), *streams, clock, stop);
    if (!load) std::abort();
    driven.push_back(tokens / (steady_seconds() - start));
    driven_cpu.push_back((thread_cpu_seconds() - cpu_before) / tokens * 1e6);
  }
  const auto row = [](const char* name, const std::vector<double>& rate,
                      const std::vector<double>& cpu_before) {
    fmt::print("| {} | {:.0f} | {:.0f} | {:.2f} |\n", name, stats::median(rate).value_or(NAN),
               *std::max_element(rate.begin(), rate.end()),
               stats::median(cpu_before).value_or(NAN));
  };
  fmt::print(
      "\nAs fast as it goes, 64 streams of {} tokens, {} runs interleaved\n\n"
      "| reader | tokens/s, median | best | its processor time per token, µs |\n"
      "| --- | ---: | ---: | ---: |\n",
      k_tokens, runs);
  row("a bare one: recv() alone", bare, bare_cpu);
  row("the driver", driven, driven_cpu);
}

}  // namespace
}  // namespace weir::benchmarks

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::max(std::atoi(argv[1]), 1) : 10;
  if (argc > 2) weir::benchmarks::only_streams = std::atoi(argv[2]);
  weir::benchmarks::print_gap_table(runs);
  if (argc <= 2) weir::benchmarks::print_throughput_table(runs);
}

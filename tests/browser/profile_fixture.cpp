// Writes a page of a profile that is made up.
//   profile_fixture PAGE OUT small|many [EVENTS]
// small: what the tests look at, by hand. many: so many events on eight tracks, as a run of an
// engine on a GPU has them, with arrows.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "gate/report/timeline_document.hpp"
#include "gate/sys/files.hpp"

namespace {

using weir::report::PageFacts;
using weir::report::TimelineDocument;
using Kind = TimelineDocument::Kind;
constexpr double k_us = 1e-6;
constexpr const char* k_hostile = "</script><!--<img src=x onerror=\"hostile=1\">";

// Times in microseconds; docs of the expected sums stand in profile_test.mjs.
TimelineDocument small() {
  PageFacts facts;
  facts.title = "engine, tiny model";
  facts.facts = {{"machine", "a machine"}, {"command", k_hostile}, {"weir", "0.1.0"}};
  facts.warnings = {fmt::format("a doubt {}", k_hostile)};
  facts.tables = {{"llama-bench",
                   "as it said",
                   {{"test", {}}, {"tok/s", "tok/s"}},
                   {{"pp16", 812.5}, {"tg8", 28.6}, {k_hostile, nullptr}}}};
  TimelineDocument page(facts);
  const auto process = page.process("engine (1)");
  const auto cpu = *page.track(process, Kind::cpu, "CPU thread 1");
  const auto gpu = *page.track(process, Kind::device, "vulkan queue 0.0, GPU");
  const auto copies = *page.track(process, Kind::copy, "vulkan queue 0.0 copies, GPU");
  const auto async = *page.track(process, Kind::async, "requests");
  const auto backend = *page.track(process, Kind::backend, "backend Vulkan0");
  const auto counter = *page.track(process, Kind::counter, "memory");
  for (int token = 0; token < 10; ++token) {
    const double at = token * 100 * k_us;
    const auto span = [&](double from, double to) {
      return weir::observed::Interval{at + from * k_us, at + to * k_us};
    };
    page.event(cpu, span(0, 90), "graph");
    page.event(cpu, span(5, 10), "submit");
    page.event(cpu, span(10, 80), "wait for fence");
    page.event(gpu, span(20, 50), "mul_mat",
               {{{"node", fmt::format("Qcur-{}", token % 2)}}, 4096, 2e6});
    page.event(gpu, span(50, 60), "rms_norm");
    page.event(copies, span(60, 70), "copy buffer", {{}, 2048, {}});
    page.arrow(cpu, at + 5 * k_us, gpu, at + 20 * k_us, "submit");
    page.arrow(backend, at + 60 * k_us, cpu, at + 80 * k_us, "get", {{}, 2048, {}});
  }
  page.event(async, {0, 300 * k_us}, "request 1");
  page.event(async, {100 * k_us, 500 * k_us}, "request 2");  // overlaps, is not nested
  page.event(async, {900 * k_us, 990 * k_us}, k_hostile);
  page.counter(counter, {{0, 1}, {500 * k_us, 3}, {700 * k_us, 2}});
  return page;
}

TimelineDocument many(std::size_t events) {
  PageFacts facts;
  facts.title = fmt::format("{} events", events);
  facts.facts = {{"machine", "made up"}};
  TimelineDocument page(facts);
  const auto process = page.process("engine (1)");
  std::vector<std::uint32_t> tracks;
  for (int i = 0; i < 2; ++i)
    tracks.push_back(*page.track(process, Kind::cpu, fmt::format("CPU thread {}", i)));
  for (int i = 0; i < 4; ++i)
    tracks.push_back(*page.track(process, Kind::device, fmt::format("queue {}", i)));
  for (int i = 0; i < 2; ++i)
    tracks.push_back(*page.track(process, Kind::copy, fmt::format("queue {} copies", i)));
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back(fmt::format("kernel_{}_q{}_f32", i, i % 8));
  // Lengths and gaps from a generator of its own (MINSTD), so that every machine has the same ones.
  std::uint64_t random = 1;
  const auto next = [&](std::uint64_t most) {
    return (random = random * 48271 % 2147483647) % most;
  };
  const std::size_t each = events / tracks.size();
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    double at = 0;
    const std::size_t count = t == 0 ? events - each * (tracks.size() - 1) : each;
    for (std::size_t i = 0; i < count; ++i) {
      const double length = static_cast<double>(500 + next(40'000)) * 1e-9;
      weir::report::PageDetail detail;
      if (t >= 2) detail.words = {{"node", fmt::format("blk.{}.{}", next(80), i % 7)}};
      if (t >= 6) detail.bytes = 256 << next(8);
      if (t < 2 && i % 10 == 0) {  // ten lie within it
        page.event(tracks[t], {at, at + 300e-6}, "graph");
        continue;
      }
      page.event(tracks[t], {at, at + length * (t < 2 ? 0.7 : 1)},
                 t < 2 ? "submit" : names[next(names.size())], detail);
      if (t < 2 && i % 10 == 1)
        page.arrow(tracks[t], at, tracks[2 + next(4)], at + 20e-6, "submit");
      at += t < 2 ? 31e-6 : length + static_cast<double>(next(10'000)) * 1e-9;
    }
  }
  return page;
}

}  // namespace

int main(int count, char** words) {
  const std::string scene = count > 3 ? words[3] : "";
  const std::size_t number = count > 4 ? std::strtoul(words[4], nullptr, 10) : 0;
  if (count < 4 || (scene != "small" && (scene != "many" || number < 8))) return 2;
  weir::sys::RealFiles files;
  const auto page = files.read(words[1], 1 << 20);
  const auto document = page.and_then([&](const std::string& text) {
    return weir::report::timeline_page(text, scene == "small" ? small() : many(number));
  });
  const auto written = document.and_then(
      [&](const std::string& text) { return files.write_atomic(words[2], text); });
  if (written) return 0;
  std::fprintf(stderr, "profile_fixture: %s\n", written.error().message.c_str());
  return 1;
}

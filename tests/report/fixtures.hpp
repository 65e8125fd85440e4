// Builds the gate verdicts of the report tests and their golden files. The counts are those of a
// small llama model on a software Vulkan device: 65 dispatches, 46 barriers and 1 sync a token. One
// fusion off adds 12 to the first two. Times are invented.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gate/report/document.hpp"
#include "gate/verdict/removed.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::report::fixtures {

using verdict::CellVerdict;
using verdict::GateVerdict;
using verdict::Judgement;
using verdict::Outcome;

struct Case {
  std::string name;
  GateVerdict gate;
};

inline profile::CellKey key(std::string model, std::string backend, std::string prompt) {
  profile::CellKey cell;
  cell.engine = "llama.cpp";
  cell.model = std::move(model);
  cell.backend = std::move(backend);
  cell.prompt = std::move(prompt);
  return cell;
}

inline Judgement count(const std::string& name, Outcome outcome, std::int64_t baseline,
                       std::int64_t current) {
  Judgement judgement;
  judgement.metric = unit::find_metric(name).value();
  judgement.nature = profile::Nature::exact;
  judgement.source = "vulkan";
  judgement.verdict = outcome;
  judgement.baseline = static_cast<double>(baseline);
  judgement.current = static_cast<double>(current);
  judgement.baseline_text = std::to_string(baseline);
  judgement.current_text = std::to_string(current);
  if (baseline != 0) {
    judgement.change = static_cast<double>(current - baseline) / static_cast<double>(baseline);
  }
  judgement.limit.exact = judgement.metric.scope != unit::Scope::fixed;
  judgement.reason = baseline == current ? "unchanged" : "changed; an exact count must not";
  return judgement;
}

// A change with its interval, as ratios.
struct Interval {
  double change, low, high;
};

inline Judgement rate(const std::string& name, Outcome outcome, double baseline, double current,
                      Interval interval) {
  Judgement judgement;
  judgement.metric = unit::find_metric(name).value();
  judgement.source = "llama-bench";
  judgement.verdict = outcome;
  judgement.baseline = baseline;
  judgement.current = current;
  judgement.change = interval.change;
  judgement.low = interval.low;
  judgement.high = interval.high;
  judgement.samples = 10;
  judgement.baseline_sessions = 3;
  judgement.limit.max_drop = verdict::MaxChange{{0.05, true}, {0.025, true}};
  return judgement;
}

// Keeps the first `count` metrics, and everything that is no metric.
inline void keep_metrics(CellVerdict& cell, std::ptrdiff_t count) {
  const auto first = cell.judgements.begin();
  cell.judgements.erase(first + count, first + std::ssize(cell.metrics()));
}

inline CellVerdict passing(profile::CellKey cell) {
  CellVerdict judged;
  judged.cell = std::move(cell);
  judged.device = judged.cell.backend;
  judged.verdict = Outcome::pass;
  judged.device_class = "vulkan-10005-0-d-1-0a1b2c3d";
  judged.device_name = "llvmpipe (LLVM 15.0.6, 256 bits)";
  judged.machine_class = "vulkan-10005-0-d-1-0a1b2c3d-cpu-2-8-debian-12";
  judged.machine_name = "Example CPU, 2 cores, 8 GiB";
  judged.base = "same device class";
  const std::string scope = judged.cell.prompt == "prefill" ? "_per_prefill" : "_per_token";
  for (const auto& [base, value] : {std::pair{"dispatches", 65},
                                    {"barriers", 46},
                                    {"syncs", 1},
                                    {"copies", 1},
                                    {"submits", 1}}) {
    judged.judgements.push_back(count(base + scope, Outcome::pass, value, value));
  }
  judged.judgements.push_back(rate(
      judged.cell.prompt == "prefill" ? "prefill_tokens_per_second" : "decode_tokens_per_second",
      Outcome::pass, 28.6, 28.4, {-0.007, -0.021, 0.008}));
  judged.judgements.push_back(count("dispatches_fixed", Outcome::info, 65, 65));
  judged.judgements.back().limit.exact = false;
  judged.put("kernels").verdict = Outcome::pass;
  judged.put("placement").verdict = Outcome::pass;
  return judged;
}

// A gate of two models, two backends, two prompts: eight cells that pass.
inline GateVerdict green() {
  GateVerdict gate;
  gate.verdict = Outcome::pass;
  gate.exit_code = verdict::ExitCode::pass;
  gate.weir_version = "0.1.0";
  gate.config = "weir.yaml";
  gate.commit = "a1b2c3d";
  gate.base_commit = "e4f5a6b";
  gate.base_origin = "stored baselines in baselines";
  for (const char* model : {"tiny-llama", "tiny-gemma3"}) {
    for (const char* backend : {"cpu", "vulkan"}) {
      for (const char* prompt : {"prefill", "decode"}) {
        gate.cells.push_back(passing(key(model, backend, prompt)));
      }
    }
  }
  gate.metrics_judged = 48;
  gate.totals["pass"] = 8;
  gate.decision_rule =
      "Counts must equal the baseline's. Throughput fails when the whole 95 % interval of its "
      "change lies beyond the limit.";
  gate.seconds = 41;
  gate.profiling_cost = 0.013;
  gate.run = "weir-out/20260102-030405";
  return gate;
}

inline CellVerdict& decode_on_vulkan(GateVerdict& gate) { return gate.cells[3]; }

inline verdict::Changed changed(std::string name, std::optional<std::int64_t> baseline,
                                std::optional<std::int64_t> current) {
  const auto rational = [](std::optional<std::int64_t> value) {
    return value ? std::optional<Rational>(*value) : std::nullopt;
  };
  return {std::move(name), rational(baseline), rational(current)};
}

// A gate that fails: a lost fusion, found by counts alone, 65 → 77 dispatches.
inline GateVerdict red() {
  GateVerdict gate = green();
  CellVerdict& cell = decode_on_vulkan(gate);
  cell.verdict = Outcome::fail;
  cell.judgements[0] = count("dispatches_per_token", Outcome::fail, 65, 77);
  cell.judgements[1] = count("barriers_per_token", Outcome::fail, 46, 58);
  cell.judgements[5] =
      rate("decode_tokens_per_second", Outcome::pass, 28.6, 27.9, {-0.024, -0.041, -0.006});
  cell.judgements[5].samples = 28;
  cell.judgements[5].pairs = 14;
  cell.put("kernels").verdict = Outcome::fail;
  cell.put("kernels").reason = "three kernels are not those of the baseline";
  cell.put("kernels").changed = {changed("rms_norm_f32", std::nullopt, 12),
                                 changed("mul_f32", std::nullopt, 12),
                                 changed("rms_norm_mul_f32", 12, std::nullopt)};
  gate.verdict = Outcome::fail;
  gate.exit_code = verdict::ExitCode::fail;
  return gate;
}

// A gate that fails: the same number of dispatches by other kernels, and ops on the CPU that should
// run on the GPU. Syncs fell, and nothing shows where the work went.
inline GateVerdict moved() {
  GateVerdict gate = green();
  CellVerdict& other_kernels = decode_on_vulkan(gate);
  other_kernels.verdict = Outcome::fail;
  other_kernels.put("kernels").verdict = Outcome::fail;
  other_kernels.put("kernels").reason = "65 dispatches as before, by other kernels";
  other_kernels.put("kernels").changed = {
      changed("flash_attn_f32_f16_aligned_cm1", std::nullopt, 4),
      changed("flash_attn_f32_f16_aligned", 4, std::nullopt)};
  CellVerdict& fewer = gate.cells[7];
  fewer.verdict = Outcome::fail;
  fewer.judgements[2] = count("syncs_per_token", Outcome::fail, 1, 0);
  fewer.judgements[2].reason = "fewer syncs, and nothing here sees where the work went";
  CellVerdict& on_cpu = gate.cells[6];
  on_cpu.verdict = Outcome::fail;
  on_cpu.put("placement").verdict = Outcome::fail;
  on_cpu.put("placement").reason =
      "asked for vulkan: 45 ops a prefill ran on the CPU: MUL_MAT 29 times (256x768,256x16->768x16 "
      "and 3 more), ADD 8 times (256x16,256x16->256x16), ROPE 8 times (64x4x16,16->64x4x16), which "
      "cpu_ops_allowed does not name";
  on_cpu.put("placement").changed = {changed("MUL_MAT", std::nullopt, 29),
                                     changed("ROPE", std::nullopt, 8),
                                     changed("ADD", std::nullopt, 8)};
  on_cpu.ran_elsewhere = true;
  on_cpu.not_allowed = {"ADD", "MUL_MAT", "ROPE"};
  gate.verdict = Outcome::fail;
  gate.exit_code = verdict::ExitCode::fail;
  return gate;
}

inline GateVerdict undecided() {
  GateVerdict gate = green();
  CellVerdict& cell = gate.cells[1];
  cell.verdict = Outcome::inconclusive;
  cell.judgements[5] =
      rate("decode_tokens_per_second", Outcome::inconclusive, 112, 108, {-0.036, -0.080, 0.011});
  cell.judgements[5].reason =
      "Not sure yet: the change may lie on either side of the limit. About 45 more runs would "
      "settle it.";
  cell.warnings = {"11 % steal time during 6 of 60 runs"};
  gate.verdict = Outcome::inconclusive;
  gate.not_judged = {"throughput not decided in 1 of 8 cells"};
  return gate;
}

inline void absent_device(CellVerdict& cell) {
  cell.verdict = Outcome::error;
  cell.judgements.clear();
  cell.device_class = cell.device_name = "";
  cell.base.reset();
  cell.reason =
      "asked for Vulkan: this machine has no Vulkan device, so nothing was run.\n"
      "Install mesa-vulkan-drivers for a software device, or take \"vulkan\" out of the matrix.";
}

inline GateVerdict errors() {
  GateVerdict gate = green();
  absent_device(decode_on_vulkan(gate));
  CellVerdict& crash = gate.cells[4];
  absent_device(crash);
  crash.reason = "counted: 1 of 3 runs: exit 139 (SIGSEGV) after 2.1 s";
  for (int line = 1; line <= 20; ++line) {
    crash.stderr_tail += "llama_model_loader: - kv " + std::to_string(line) + "\n";
  }
  crash.stderr_tail +=
      "ggml_vulkan: 0 = llvmpipe (LLVM 15.0.6, 256 bits) | uma: 0 | fp16: 1 | warp size: 8 | int "
      "dot: 1\n\x1b[31mGGML_ASSERT(n > 0) failed\x1b[0m\n";
  // The cell has times but no counts.
  crash.judgements = {
      rate("prefill_tokens_per_second", Outcome::pass, 512, 508, {-0.008, -0.02, 0.01})};
  gate.verdict = Outcome::error;
  gate.exit_code = verdict::ExitCode::unmeasured;
  return gate;
}

// A gate with many kinds of cells. Two have no baseline, one has times of another machine, one has
// no probe, one has a neighbouring driver version. Then an improvement and a waived change.
inline GateVerdict mixed() {
  GateVerdict gate = green();
  for (const std::size_t at : {std::size_t{0}, std::size_t{1}}) {
    CellVerdict& fresh = gate.cells[at];
    fresh.verdict = Outcome::new_;
    fresh.reason = "no baseline is stored";
    fresh.base.reset();
    for (Judgement& metric : fresh.metrics()) {
      if (metric.verdict == Outcome::pass) metric.verdict = Outcome::new_;
      metric.baseline.reset();
      metric.baseline_text.reset();
      metric.change.reset();
      metric.low.reset();
      metric.high.reset();
      metric.baseline_sessions.reset();
      metric.reason = "nothing to compare with";
    }
    fresh.put("kernels").verdict = Outcome::new_;
  }
  CellVerdict& times = gate.cells[2];
  times.judgements[5].verdict = Outcome::new_;
  times.judgements[5].reason = "stored samples are of another machine class";
  CellVerdict& skipped = gate.cells[4];
  skipped.verdict = Outcome::skipped;
  skipped.reason = "no probe sees cpu";
  keep_metrics(skipped, 0);
  CellVerdict& nearest = gate.cells[5];
  nearest.base = "nearest: vulkan-10005-0-d-2-0a1b2c3d (another driver version)";
  nearest.warnings = {"kernel table overflowed: 12 kernels counted as (other)"};
  CellVerdict& better = gate.cells[6];
  better.verdict = Outcome::improved;
  better.judgements[0] = count("dispatches_per_prefill", Outcome::improved, 133, 125);
  better.judgements[0].baseline_text = "133/2";
  better.judgements[0].baseline = 66.5;
  better.judgements[0].current_text = "191/3";
  better.judgements[0].current = 191.0 / 3;
  better.judgements[0].reason = "8 dispatches fewer, with every op where it was";
  better.put("kernels").changed = {changed("mul_f32", 8, std::nullopt)};
  CellVerdict& reported = gate.cells[7];
  reported.judgements[5].verdict = Outcome::info;
  reported.judgements[5].limit.mode = verdict::Mode::report;
  reported.judgements[5].current = 25.1;
  reported.judgements[5].change = -0.122;
  reported.judgements[5].low = -0.14;
  reported.judgements[5].high = -0.1;
  reported.judgements[5].reason = "reported, not gated: new, being observed";
  gate.verdict = Outcome::new_;
  gate.not_judged = {"throughput not decided in 3 of 8 cells", "2 cells new",
                     "1 skipped: no probe sees cpu"};
  return gate;
}

inline GateVerdict all_skipped() {
  GateVerdict gate = green();
  for (CellVerdict& cell : gate.cells) {
    cell.verdict = Outcome::skipped;
    cell.reason = "no probe sees cpu";
    keep_metrics(cell, 0);
  }
  gate.verdict = Outcome::skipped;
  gate.not_judged = {"8 skipped: no probe sees cpu"};
  return gate;
}

// Text that tries to be markup, a link, a command or a way out of its place.
inline const std::string& evil() {
  static const std::string k_evil =
      "</script><img src=x onerror=alert(1)> | `a` ![i](https://evil.example/p.png) @octocat #123 "
      "GH-7 www.evil.example ]]> &amp; \"'\\ <!-- ::error title=x::y ##[error] %0A $x$ **b** "
      "_i_\r\n"
      "::set-output name=a::b\x1b[2J\x07\xff\xfe\xe2\x80\xae\xef\xbf\xbf end";
  return k_evil;
}

inline GateVerdict hostile() {
  GateVerdict gate = red();
  const std::string long_name = std::string(300, 'n') + evil();
  gate.config = evil();
  gate.base_origin = evil();
  gate.commit = evil();
  gate.base_commit = evil();
  gate.run = evil();
  gate.weir_version = evil();
  gate.decision_rule = evil();
  gate.notes = {evil(), long_name};
  gate.not_judged = {evil()};
  CellVerdict& cell = decode_on_vulkan(gate);
  cell.cell.engine = evil();
  cell.cell.model = long_name;
  cell.cell.prompt = evil();
  cell.reason = evil() + "\n" + evil();
  cell.device_name = cell.device_class = cell.machine_name = evil();
  cell.base = evil();
  cell.put("kernels").changed = {changed(evil(), 1, 2), changed(long_name, 2, 1),
                                 changed("```", 1, 9)};
  cell.put("kernels").reason = evil();
  cell.put("placement").verdict = Outcome::fail;
  cell.put("placement").reason = evil();
  cell.put("placement").changed = {changed(evil(), std::nullopt, 2)};
  cell.warnings = {evil()};
  cell.notes = {evil()};
  cell.judgements[2].verdict = Outcome::fail;
  cell.judgements[2].metric =
      unit::custom_metric(evil(), unit::Kind::count, unit::Unit::count, unit::Better::lower);
  cell.judgements[2].reason = evil();
  cell.judgements[2].warnings = {evil()};
  cell.judgements[3].baseline = 1e300;
  cell.judgements[3].baseline_text = evil();
  CellVerdict& error = gate.cells[4];
  absent_device(error);
  error.reason = evil();
  error.stderr_tail =
      "``````\n" + evil() + "\n" + std::string(5000, 'w') + "\n</pre>\n</details>\n";
  CellVerdict& fresh = gate.cells[5];
  fresh.verdict = Outcome::new_;
  fresh.reason = evil();
  CellVerdict& skipped = gate.cells[6];
  skipped.verdict = Outcome::skipped;
  skipped.reason = evil();
  return gate;
}

// A gate of `cells` cells that all fail.
inline GateVerdict many(std::size_t cells) {
  GateVerdict gate = red();
  const CellVerdict broken = decode_on_vulkan(gate);
  gate.cells.clear();
  for (std::size_t i = 0; i < cells; ++i) {
    gate.cells.push_back(broken);
    gate.cells.back().cell.model = "model-" + std::to_string(i);
  }
  return gate;
}

// A gate of cells that each fail in a different way.
inline GateVerdict unlike(std::size_t cells) {
  GateVerdict gate = many(cells);
  for (std::size_t i = 0; i < cells; ++i) {
    gate.cells[i].judgements[0] =
        count("dispatches_per_token", Outcome::fail, 65, static_cast<std::int64_t>(100 + i));
  }
  return gate;
}

// A gate of twelve cells. Four fail alike; one of them has more in its first line, one has a kernel
// and an explanation of its own. Three improved alike, and nine share a warning.
inline GateVerdict alike() {
  GateVerdict gate = green();
  const std::vector<CellVerdict> fine = gate.cells;
  const GateVerdict broken = many(4), mix = mixed();
  gate.cells = broken.cells;
  gate.cells[3].judgements[0] = count("dispatches_per_token", Outcome::fail, 101, 113);
  // Message as the gate words it, with the values.
  for (CellVerdict& cell : gate.cells) {
    Judgement& failed = cell.judgements[0];
    failed.reason =
        fmt::format("{} to {} (+12), must not change", *failed.baseline_text, *failed.current_text);
  }
  gate.cells[2].put("kernels").changed.push_back(
      changed("flash_attn_f32_f16_aligned_cm1", std::nullopt, 4));
  for (CellVerdict& cell : gate.cells) cell.findings = {{}};
  for (std::size_t i = 0; i < 4; ++i) {
    gate.cells[i].findings[0].headline =
        i == 2 ? "Another kernel does the same work." : "Fusion lost: mul and rms_norm run apart.";
  }
  for (std::size_t i = 0; i < 3; ++i) {
    gate.cells.push_back(mix.cells[6]);
    gate.cells.back().cell.model = "better-" + std::to_string(i);
    keep_metrics(gate.cells.back(), 1);
  }
  gate.cells.insert(gate.cells.end(), fine.begin(), fine.begin() + 5);
  gate.verdict = Outcome::fail;
  gate.exit_code = verdict::ExitCode::fail;
  for (std::size_t i = 0; i < 9; ++i) gate.cells[i].warnings = {"the file of kernels is cut short"};
  return gate;
}

// A gate whose pull request drops a cell, detaches a probe of another and renames a third.
inline GateVerdict removed() {
  GateVerdict gate = green();
  gate.rules = verdict::RulesFrom{"origin/main", "1a2b3c4d5e6f7a8b9c0d1a2b3c4d5e6f7a8b9c0d",
                                  std::string(64, 'e')};
  const std::string name = gate.cells[7].cell.str();
  gate.cells.pop_back();
  gate.cells.push_back(
      verdict::removed_cell({name, name, "", "", "", {"weir.yaml of 1a2b3c4:31:5"}}));
  CellVerdict& cell = decode_on_vulkan(gate);
  cell.verdict = Outcome::fail;
  verdict::Judgement& lost = cell.judgements[2];
  lost.verdict = Outcome::fail;
  lost.current.reset();
  lost.current_text = verdict::k_not_measured;
  lost.reason = "not measured any more: the baseline holds 1; the pull request has no probe vulkan";
  gate.notes = {
      "llama.cpp/small/cpu/decode is the base's llama.cpp/tiny-llama/cpu/decode under a new name: "
      "its limits and baselines judge it"};
  gate.not_judged = {"1 cell of the base's matrix not measured"};
  gate.totals = {{"fail", 2}, {"pass", 6}};
  gate.verdict = Outcome::fail;
  gate.exit_code = verdict::ExitCode::fail;
  return gate;
}

// A gate of llama.cpp with its KV cache on the host: 40 cells (2 models, 5 backends, 4 prompts).
// Each moves one op per layer and cache to the CPU, and waits for each. Every cell fails in
// different numbers.
inline GateVerdict cache_on_host() {
  GateVerdict gate = green();
  gate.cells.clear();
  const std::vector<std::string> models{"tiny-llama", "tiny-gemma3"};
  const std::vector<std::string> backends{"vulkan", "rx7900", "rtx4090", "arc-a770", "adreno-750"};
  const std::vector<std::string> prompts{"prefill", "decode", "chat", "long"};
  verdict::Cause cause;
  cause.kind = "op_on_cpu";
  cause.headline = "Work moved to the CPU: SET_ROWS, 8 to 16 times a token.";
  cause.ops = {"SET_ROWS"};
  for (std::size_t model = 0; model < models.size(); ++model) {
    for (std::size_t backend = 0; backend < backends.size(); ++backend) {
      for (std::size_t prompt = 0; prompt < prompts.size(); ++prompt) {
        CellVerdict cell = passing(key(models[model], backends[backend], prompts[prompt]));
        const std::string scope = prompt == 0 ? "_per_prefill" : "_per_token";
        const auto moved = static_cast<std::int64_t>(8 * (model + 1));        // 4 layers, 8 layers
        const auto offset = static_cast<std::int64_t>(4 * backend + prompt);  // e.g. copies
        const auto grown = [&](const char* base, std::int64_t from, std::int64_t by) {
          return count(base + scope, Outcome::fail, from, from + by);
        };
        cell.judgements[0] = grown("dispatches", 65 + offset, -moved);
        cell.judgements[0].reason = "fewer dispatches: SET_ROWS ran on the CPU";
        cell.judgements[1] = grown("barriers", 46 + offset, moved);
        cell.judgements[2] = grown("syncs", 1, moved);
        cell.judgements[3] = grown("copies", 1, 2 * moved + offset);
        cell.judgements[4] = grown("submits", 1, moved);
        cell.judgements.insert(cell.judgements.begin(), grown("cpu_ops", 0, moved));
        cell.verdict = cell.put("placement").verdict = Outcome::fail;
        cell.put("placement").reason = fmt::format(
            "asked for {}: SET_ROWS ran on the CPU {} times, which cpu_ops_allowed does not name",
            backends[backend], moved);
        cell.put("placement").changed = {changed("SET_ROWS", std::nullopt, moved)};
        cell.findings = {{}};
        cell.findings[0].kind = cause.kind;
        cell.findings[0].headline =
            fmt::format("Work moved to the CPU: SET_ROWS, {} times a token.", moved);
        cause.cells.push_back(cell.cell.str());
        gate.cells.push_back(std::move(cell));
      }
    }
  }
  cause.carriers = {{"cpu_ops_per_token", 8, 16, 30},
                    {"syncs_per_token", 8, 16, 30},
                    {"copies_per_token", 17, 51, 30}};
  cause.follow = 9;
  cause.cause = "Weights or the cache are kept in memory that the GPU does not read.";
  cause.look_at = "the engine's log for buffers and fallbacks, and the op's supports check.";
  cause.beside = {"Another kernel does the same work"};
  gate.causes = {cause};
  gate.verdict = Outcome::fail;
  gate.exit_code = verdict::ExitCode::fail;
  gate.totals = {{"fail", 40}};
  gate.metrics_judged = 280;
  return gate;
}

// The same gate with a fusion lost in half of the cells. Throughput fell in two cells without a
// known reason.
inline GateVerdict two_causes() {
  GateVerdict gate = cache_on_host();
  verdict::Cause lost;
  lost.kind = "fusion_lost";
  lost.headline = "Fusion lost: mul and rms_norm run apart, 12 times a token.";
  for (std::size_t i = 0; i < gate.cells.size(); i += 2) {
    CellVerdict& cell = gate.cells[i];
    for (const std::size_t at : {std::size_t{1}, std::size_t{2}}) {  // dispatches, barriers
      const auto from = static_cast<std::int64_t>(*cell.judgements[at].baseline);
      cell.judgements[at] = count(cell.judgements[at].metric.name, Outcome::fail, from, from + 12);
    }
    lost.cells.push_back(cell.cell.str());
  }
  lost.carriers = {{"dispatches_per_token", 12, 12, 10}, {"barriers_per_token", 12, 12, 10}};
  lost.follow = 1;
  lost.look_at = "the fusion's conditions, and environment variables that turn it off.";
  gate.causes.push_back(lost);
  verdict::Unexplained slower{"decode_tokens_per_second", {}};
  for (const std::size_t at : {std::size_t{1}, std::size_t{6}}) {
    gate.cells[at].judgements[6] =
        rate(slower.what, Outcome::fail, 28.6, 25.1, {-0.122, -0.14, -0.1});
    slower.cells.push_back(gate.cells[at].cell.str());
  }
  gate.unexplained = {slower};
  return gate;
}

inline std::vector<Case> all() {
  return {{"cache_on_host", cache_on_host()},
          {"removed", removed()},
          {"alike", alike()},
          {"green", green()},
          {"red", red()},
          {"moved", moved()},
          {"undecided", undecided()},
          {"errors", errors()},
          {"mixed", mixed()},
          {"skipped", all_skipped()},
          {"hostile", hostile()}};
}

}  // namespace weir::report::fixtures

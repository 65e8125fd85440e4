// Histories that the tests of the trend site are made from. All numbers are invented, the same
// every time.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gate/base/json.hpp"
#include "gate/site/site.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::site::scene {

inline constexpr double k_first_night = 1'767'225'600;  // 2026-01-01
inline constexpr double k_day = 86'400;
// Text that would run, end a script or reorder a line if it were not made inert.
inline const std::string k_hostile =
    "</script><img src=x onerror=\"hostile=1\">\xe2\x80\xa8"
    "'\"`${hostile}\\";

// 0…1, by a small generator of its own, so that every standard library gives the same.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : state_(seed) {}
  double next() {
    state_ = state_ * 6'364'136'223'846'793'005ULL + 1'442'695'040'888'963'407ULL;
    return static_cast<double>(state_ >> 11) / 9'007'199'254'740'992.0;
  }
  double around() { return next() + next() + next() - 1.5; }  // sd 0.5

 private:
  std::uint64_t state_;
};

inline std::string commit_of(std::size_t night) {
  const std::uint64_t mixed = 0x9e3779b97f4a7c15ULL * (night + 1);
  return fmt::format("{:016x}{:016x}{:08x}", mixed, ~mixed, night);
}

inline history::RunFacts night_run(std::size_t night, const std::string& machine) {
  history::RunFacts run;
  run.id = fmt::format("{}-{}", night, machine);
  run.commit = commit_of(night);
  run.branch = "main";
  run.time = k_first_night + static_cast<double>(night) * k_day;
  run.commit_time = run.time - 3600;
  run.machine = machine;
  run.weir_version = "0.1.0";
  return run;
}

struct SeriesSpec {
  std::string cell, metric, machine;
  std::vector<double> values;
  std::size_t samples = 0;    // beside each value
  std::size_t first_run = 0;  // the first run of `values`, one run a point
  std::size_t place = 0, place_from = 0, later_place = 0;  // `later_place` from there on
};

inline history::Series make_series(const SeriesSpec& what) {
  history::Series series{
      "default", what.cell, history::metric_named(what.metric), what.machine, {}};
  Noise noise(what.values.size() + what.metric.size());
  for (std::size_t i = 0; i < what.values.size(); ++i) {
    history::SeriesPoint point;
    point.value = what.values[i];
    point.run = static_cast<std::uint32_t>(what.first_run + i);
    point.place = static_cast<std::uint32_t>(
        what.place_from > 0 && i >= what.place_from ? what.later_place : what.place);
    if (what.samples == 0) {
      point.nature = profile::Nature::exact;
      point.exact = Rational::make(static_cast<std::int64_t>(point.value * 2), 2);
    }
    for (std::size_t k = 0; k < what.samples; ++k) {
      point.samples.push_back(point.value * (1 + 0.02 * noise.around()));
    }
    series.points.push_back(std::move(point));
  }
  return series;
}

inline std::vector<double> noisy(std::size_t count, double level, double spread) {
  Noise noise(count * 31 + static_cast<std::uint64_t>(level));
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(level * (1 + spread * noise.around()));
  return values;
}

inline history::SeriesChange step(std::size_t index, double before, double after,
                                  bool relative = true) {
  history::SeriesChange change;
  change.index = index;
  change.before = before;
  change.after = after;
  change.relative = relative;
  change.size = relative ? after / before - 1 : after - before;
  change.low = relative ? change.size - 0.01 : change.size;
  change.high = relative ? change.size + 0.01 : change.size;
  return change;
}

inline verdict::CellVerdict cell_with_dispatches(const std::string& cell, verdict::Outcome outcome,
                                                 double now, double base = 65) {
  verdict::CellVerdict judged;
  judged.cell = profile::CellKey::parse(cell).value();
  judged.device = "vulkan";
  judged.device_class = "vulkan-10005-0";
  judged.verdict = outcome;
  judged.put("kernels").verdict = judged.put("placement").verdict = verdict::Outcome::pass;
  verdict::Judgement metric;
  metric.metric = unit::find_metric("dispatches_per_token").value();
  metric.nature = profile::Nature::exact;
  metric.verdict = outcome;
  metric.baseline = base;
  metric.current = now;
  metric.baseline_text = fmt::format("{}", base);
  metric.current_text = fmt::format("{}", now);
  metric.limit.exact = true;
  metric.reason = outcome == verdict::Outcome::fail ? "changed; an exact count must not" : "";
  judged.judgements.insert(judged.judgements.begin(), std::move(metric));
  return judged;
}

inline history::StoredVerdict stored(std::size_t night, std::vector<verdict::CellVerdict> cells,
                                     const std::string& machine) {
  const verdict::GateVerdict gate = verdict::judge_gate(std::move(cells), {});
  history::StoredVerdict record;
  const history::RunFacts run = night_run(night, machine);
  record.run = run.id;
  record.commit = run.commit;
  record.branch = run.branch;
  record.time = run.time;
  record.kept_at = run.time + 60;
  record.outcome = std::string(verdict::to_string(gate.verdict));
  record.text = dump_json(write_fields(gate));
  record.id = fmt::format("v{}-{}", night, record.outcome);
  return record;
}

// 90 nights on two machines: a step, a drift, another driver, what is known, red and waived
// gates, baselines, and hostile names wherever a name can stand.
inline SiteModel small_scene() {
  constexpr std::size_t k_nights = 90;
  const std::string vulkan = "llama.cpp/tiny-llama/vulkan/decode",
                    cpu = "llama.cpp/tiny-llama/cpu/decode", box = "EPYC box", laptop = "laptop";
  SiteModel model;
  model.title = "engine trends";
  model.repo_url = "https://git.example/engine";
  history::History& history = model.history;
  for (const std::string& machine : {box, laptop}) {
    for (std::size_t night = 0; night < k_nights; ++night) {
      history.runs.push_back(night_run(night, machine));
      model.subjects[commit_of(night)] = fmt::format("vulkan: change number {}", night);
    }
  }
  history.runs[40].branch = k_hostile;
  model.subjects[commit_of(89)] = k_hostile;
  history.places = {
      {"vulkan-10005-0-a", "llvmpipe (Mesa 22.3.6)", "m1", "EPYC box, debian 12", "b1"},
      {"vulkan-10005-0-b", "llvmpipe (Mesa 24.0.1)", "m1", "EPYC box, debian 12", "b2"},
      {"cpu", "", "m2", "laptop, debian 12", "b1"}};
  const auto add = [&](const SeriesSpec& what, std::vector<history::SeriesChange> changes) {
    history.series.push_back(make_series(what));
    model.changes.push_back(std::move(changes));
  };
  const auto shaped = [&](double level, double spread, auto factor) {
    std::vector<double> values = noisy(k_nights, level, spread);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] *= factor(i);
    return values;
  };
  add({cpu, "decode_tokens_per_second", box,
       shaped(112, 0.02,
              [](std::size_t i) {
                return i < 30 ? 1.0 : i < 60 ? 1 - 0.003 * static_cast<double>(i - 30) : 0.91;
              }),
       10},
      {[] {
        history::SeriesChange drift = step(30, 112, 102);
        drift.kind = stats::ChangeKind::drift;
        drift.end = 60;
        return drift;
      }()});
  SeriesSpec on_laptop{cpu,     "decode_tokens_per_second", laptop, noisy(k_nights, 61, 0.03), 4,
                       k_nights};
  on_laptop.place = 2;
  add(on_laptop, {});
  history::SeriesChange cache_change = step(45, 2.1e8, 2.4e8);
  cache_change.acknowledgement.emplace();
  cache_change.acknowledgement->reason = "bigger cache: " + k_hostile;
  cache_change.acknowledgement->who = "ada";
  cache_change.acknowledgement->acknowledged_at = k_first_night + 50 * k_day;
  add({cpu, "peak_rss_bytes", box,
       shaped(2.1e8, 0.001, [](std::size_t i) { return i < 45 ? 1.0 : 1.143; }), 3},
      {cache_change});
  SeriesSpec rates{
      vulkan, "decode_tokens_per_second", box,
      shaped(28.6, 0.015, [](std::size_t i) { return i < 20   ? 1.0
                                                     : i < 62 ? 1.08
                                                              : 0.98; }), 10};
  rates.place_from = 20;
  rates.later_place = 1;
  history::SeriesChange driver = step(20, 28.6, 30.9);
  driver.new_class.emplace();
  driver.new_class->device_class_before = "vulkan-10005-0-a";
  driver.new_class->device_class = "vulkan-10005-0-b";
  driver.low = driver.high = driver.size;
  add(rates, {driver, step(62, 30.9, 28.0)});
  std::vector<double> dispatches(k_nights, 65);
  for (std::size_t i = 62; i < 70; ++i) dispatches[i] = 77;
  add({vulkan, "dispatches_per_token", box, dispatches},
      {step(62, 65, 77, false), step(70, 77, 65, false)});
  add({vulkan, "syncs_per_token", box, std::vector<double>(k_nights, 1)}, {});
  add({vulkan, k_hostile, box, noisy(k_nights, 3, 0.1)}, {step(10, 3, 3.2)});
  add({k_hostile, "load_seconds", box, noisy(k_nights, 0.0021, 0.05), 5}, {});
  history.runs[5].source = history.runs[50].source = history::Source::baseline;

  using verdict::Outcome;
  verdict::CellVerdict red = cell_with_dispatches(vulkan, Outcome::fail, 77);
  red.put("kernels").verdict = Outcome::fail;
  red.put("kernels").reason = "other kernels";
  red.put("kernels").changed = {{"rms_norm_f32", std::nullopt, Rational::make(12, 1)},
                                {"mul_f32" + k_hostile, std::nullopt, Rational::make(12, 1)},
                                {"rms_norm_mul_f32", Rational::make(12, 1), std::nullopt}};
  model.verdicts = {stored(61, {cell_with_dispatches(vulkan, Outcome::pass, 65)}, box),
                    stored(62, {red}, box),
                    stored(70, {cell_with_dispatches(vulkan, Outcome::pass, 65)}, box),
                    stored(80, {cell_with_dispatches(vulkan, Outcome::fail, 66)}, box),
                    stored(89, {cell_with_dispatches(vulkan, Outcome::fail, 66)}, box)};
  return model;
}

// Changes of four commits (weir.changes/1): a new sync, a fusion, a commit that could not run.
// Hostile text stands wherever text may stand.
inline std::string changes_lines() {
  Json lines = Json::array({{{"schema", "weir.changes/1"}, {"repeat", "count {commit} {cell}"}}});
  const auto cell = [](const char* backend, const char* prompt = "decode") {
    return fmt::format("llama.cpp/tiny-llama/{}/{}", backend, prompt);
  };
  const auto counted = [&](const char* commit, const std::string& name, Json kernels) {
    lines.push_back({{"commit", commit}, {"cell", name}, {"kernels", std::move(kernels)}});
  };
  const auto changed = [&](const char* commit, const char* before, const std::string& name,
                           Json values, const char* kind, const std::string& text) {
    lines.push_back({{"commit", commit},
                     {"before", before},
                     {"cell", name},
                     {"values", std::move(values)},
                     {"findings", {{{"kind", kind}, {"text", text + "\nin full"}}}}});
  };
  const Json unfused{{"mul_f32", 12}, {"rms_norm_f32", 12}, {"main@0123456789abcdef", 1}};
  const Json fused{{"rms_norm_mul_f32", 12}, {k_hostile, 1}};
  for (const char* commit : {"b1", "b2"}) {
    for (const char* backend : {"vulkan", "rx7900"}) counted(commit, cell(backend), unfused);
    lines.push_back(
        {{"commit", commit}, {"cell", cell("vulkan", "prefill")}, {"words", k_hostile}});
  }
  const std::string waits = "The CPU waits for the GPU more often in a token.";
  for (const char* backend : {"vulkan", "rx7900"}) {
    counted("b3", cell(backend), fused);
    changed("b3", "b2", cell(backend),
            {{"syncs_per_token", {1, 2}}, {"dispatches_per_token", {77, "65"}}}, "sync_added",
            waits);
    counted("b4", cell(backend), fused);
  }
  lines.back()["kernels"]["rms_norm_mul_f32"] = 13;
  changed("b4", "b3", cell("rx7900"), {{"dispatches_per_token", {65, 66}}}, "op_added", k_hostile);
  lines.back()["causes"] = {
      {{"text", "A norm more. " + k_hostile}, {"pulls", {123}}, {"sure", "plausible"}}};
  changed("b4", "b3", cell("vulkan"), {{"syncs_fixed", {3, 39}}, {k_hostile, {1, 2}}},
          "fixed_cost_changed", "Loading waits.");
  counted("b4", cell("vulkan", "prefill"), fused);
  std::string text;
  for (const Json& line : lines) text += dump_json(line) + "\n";
  return text;
}

// One cell with one series of so many points, each with five samples, and some changes.
inline SiteModel long_scene(std::size_t points) {
  SiteModel model;
  model.title = "long";
  for (std::size_t i = 0; i < points; ++i) model.history.runs.push_back(night_run(i, "box"));
  model.history.places.emplace_back();
  std::vector<double> values = noisy(points, 0.035, 0.02);
  for (std::size_t i = 0; i < points; ++i)
    values[i] *= 1 + 0.05 * static_cast<double>(i * 10 / points % 3);
  model.history.series.push_back(
      make_series({"llama.cpp/m/cpu/decode", "time_per_output_token_seconds", "box", values, 5}));
  std::vector<history::SeriesChange> changes;
  for (std::size_t k = 1; k < 10; ++k) {
    const auto level = [](std::size_t at) {
      return 0.035 * (1 + 0.05 * static_cast<double>(at % 3));
    };
    changes.push_back(step(k * points / 10, level(k - 1), level(k)));
  }
  model.changes.push_back(std::move(changes));
  return model;
}

// So many cells with three metrics each.
inline SiteModel wide_scene(std::size_t cells) {
  SiteModel model;
  model.title = "wide";
  for (std::size_t i = 0; i < 30; ++i) model.history.runs.push_back(night_run(i, "box"));
  model.history.places.emplace_back();
  for (std::size_t c = 0; c < cells; ++c) {
    for (const char* metric :
         {"barriers_per_token", "decode_tokens_per_second", "dispatches_per_token"}) {
      std::vector<double> values = noisy(30, 100 + static_cast<double>(c % 7), 0.02);
      model.history.series.push_back(make_series(
          {fmt::format("engine/model-{:05}/vulkan/decode", c), metric, "box", values, 3}));
      model.changes.emplace_back();
      if (c % 100 == 7) model.changes.back().push_back(step(12, 100, 110));
    }
  }
  return model;
}

}  // namespace weir::site::scene

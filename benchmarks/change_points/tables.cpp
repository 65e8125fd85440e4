#include "benchmarks/change_points/tables.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <optional>

#include <fmt/format.h>

#include "gate/stats/trend_rule.hpp"

#include "benchmarks/change_points/otava.hpp"

namespace weir::changes {
namespace {

constexpr std::size_t k_before = 100;  // points in front of a change, in the table of shapes

std::string percent(double share) { return fmt::format("{:.2f}", 100 * share); }

std::vector<std::string> known_noises(const Bench& bench) {
  std::vector<std::string> names = bench.noises.empty() ? noises() : bench.noises;
  if (bench.times.empty()) std::erase_if(names, needs_recorded);
  return names;
}

// Of one watched series with a change at `place`: the alert that is about it, as it was first told
// and as it is now.
struct Watched {
  std::size_t behind = 0;  // points from `place` on when it was told; 0: never
  stats::ChangeKind first = stats::ChangeKind::step;
  std::optional<stats::Change> now;
  std::size_t more = 0;  // other alerts since
};

stats::ChangeKind kind_of(const stats::Alert& alert) {
  return alert.kind == stats::Alert::Kind::step ? stats::ChangeKind::step
                                                : stats::ChangeKind::drift;
}

Watched watch(std::span<const double> values, std::size_t place, double offset = 0,
              bool drifts = false) {
  Watched seen;
  stats::TrendRule rule(offset);
  const std::vector<double> nights = stats::scaled(values).values;
  std::size_t which = 0;
  for (std::size_t i = 0; i < nights.size(); ++i) {
    rule.add(nights[i]);
    if (i < place || seen.behind > 0 || rule.alerts().empty()) continue;
    const stats::Alert& last = rule.alerts().back();
    // A slope that is seen at last may be told from the first night on.
    const bool anywhere = drifts && kind_of(last) == stats::ChangeKind::drift;
    const bool elsewhere = !anywhere && last.place + 8 < place;
    if (last.night != i || elsewhere) continue;
    seen.behind = i + 1 - place;
    seen.first = kind_of(last);
    which = rule.alerts().size() - 1;
  }
  if (seen.behind == 0) return seen;
  seen.more = rule.alerts().size() - 1 - which;
  const std::size_t told = std::max<std::size_t>(1, rule.alerts()[which].place);
  const stats::Changes changes = stats::find_changes(values, {.offset = offset}).value();
  for (const stats::Change& change : changes.changes) {
    if (change.index == told) seen.now = change;
  }
  return seen;
}

bool is_near(const stats::Change& change, std::size_t place, std::size_t off) {
  return change.index + off >= place && change.index <= place + off;
}

}  // namespace

std::string unchanged_table(const Bench& bench, std::size_t trials) {
  const Method theirs = otava_method();
  std::string text =
      "| noise | 0.1 % | 0.5 % | 2 % | 5 % | a second year, 2 % | Otava, one analysis at 365 | "
      "Otava, 365 nightly analyses |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const std::string& noise : known_noises(bench)) {
    text += fmt::format("| `{}` |", noise);
    const bool own = needs_recorded(noise) || noise == "lognormal";  // a spread of its own
    for (const char* spread : {"0.001", "0.005", "0.02", "0.05"}) {
      const bool once = own && spread != std::string_view("0.02");
      const std::string name = own ? noise : fmt::format("{}@{}", noise, spread);
      text += once ? " |"
                   : fmt::format(" {} |", percent(shown_unchanged(bench, weir_method(), name, 365,
                                                                  true, trials)));
    }
    const double later = share(bench, noise + " later", trials / 5, [&](Random& random) {
      const auto values = make_series(noise, 730, {}, bench.times, random);
      stats::TrendRule rule;
      for (const double value : stats::scaled(values).values) rule.add(value);
      return std::ranges::any_of(rule.alerts(),
                                 [](const stats::Alert& one) { return one.night >= 365; });
    });
    text += fmt::format(" {} | {} | {} |\n", percent(later),
                        percent(shown_unchanged(bench, theirs, noise, 365, false, trials / 4)),
                        percent(shown_unchanged(bench, theirs, noise, 365, true, trials / 100)));
  }
  return text;
}

std::string sensitivity_table(const Bench& bench, std::size_t trials) {
  std::string text =
      "| sensitivity | normal | `t3` | `spikes` | `normal-0.6` | `t3-0.6` | 3 σ within 3 | 4 | 5 | "
      "8 "
      "|\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (int sensitivity = 0; sensitivity <= 4; ++sensitivity) {
    text += fmt::format("| {} |", sensitivity);
    for (const char* noise : {"normal", "t3", "spikes", "normal-0.6", "t3-0.6"}) {
      text += fmt::format(
          " {} |", percent(shown_unchanged(bench, weir_method(sensitivity),
                                           fmt::format("{}@0.005", noise), 365, true, trials)));
    }
    const auto found = shares(bench, "sensitivity", trials / 5, 4, [&](Random& random) {
      const auto values =
          make_series("normal@0.005", k_before + 8, {{k_before, -3}}, bench.times, random);
      const std::size_t behind =
          watch(values, k_before, stats::k_offset_of_sensitivity * sensitivity).behind;
      Held held;
      for (const std::size_t points : {3U, 4U, 5U, 8U}) {
        held.push_back(behind > 0 && behind <= points);
      }
      return held;
    });
    for (const double one : found) text += fmt::format(" {} |", percent(one));
    text += "\n";
  }
  return text;
}

std::string step_table(const Bench& bench, std::size_t trials) {
  constexpr std::size_t k_within[] = {2, 3, 4, 5, 8, 12, 24};
  constexpr std::size_t k_behind = 41;  // 24, and the nights in which a kind is corrected
  struct Row {
    std::string noise;
    std::size_t history;
    double size, drift, growth;
  };
  std::vector<Row> rows;
  for (const char* noise : {"normal", "normal-0.6", "t3", "t3-0.6", "spikes", "spikes-0.6"}) {
    for (const std::size_t history : {40U, 100U}) {
      for (const double size : {-3.0, -10.0}) {
        rows.push_back({fmt::format("{}@0.005", noise), history, size, 0, 0});
      }
    }
  }
  for (const double drift : {-0.0005, -0.002}) {
    for (const double size : {-3.0, -10.0}) {
      rows.push_back({"normal@0.003", 100, size, drift, 0});
      rows.push_back({"normal@0.003", 100, size, 0, drift});
    }
  }
  std::string text =
      "| noise | points before | size | drift | 2 | 3 | 4 | 5 | 8 | 12 | 24 | place | step at once "
      "| "
      "later | Otava, one analysis, 12 after |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | "
      "---: "
      "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const Row& row : rows) {
    const auto values_of = [&](std::size_t behind, Random& random) {
      return make_series(row.noise, row.history + behind,
                         {{row.history, row.size}, {0, 0, row.drift, row.growth}}, bench.times,
                         random);
    };
    const auto found = shares(bench, row.noise, trials, 11, [&](Random& random) {
      const Watched seen = watch(values_of(k_behind, random), row.history);
      Held held;
      for (const std::size_t points : k_within) {
        held.push_back(seen.behind > 0 && seen.behind <= points);
      }
      const bool in_time = held.back();
      held.push_back(in_time && seen.now && is_near(*seen.now, row.history, 3));
      held.push_back(in_time && seen.first == stats::ChangeKind::step);
      held.push_back(in_time && seen.now && seen.now->kind == stats::ChangeKind::step);
      const Places other = otava(values_of(12, random));
      held.push_back(std::ranges::any_of(other, [&](std::size_t place) {
        return place + k_near >= row.history && place <= row.history + k_near;
      }));
      return held;
    });
    text += fmt::format("| `{}` | {} | {:.0f} σ | {:g} %{} |", row.noise, row.history, -row.size,
                        100 * (row.drift + row.growth), row.growth != 0 ? ", compound" : "");
    for (std::size_t i = 0; i < 7; ++i) text += fmt::format(" {:.0f} |", 100 * found[i]);
    const double each = std::max(found[6], 1e-9);
    for (std::size_t i = 7; i < 10; ++i) text += fmt::format(" {:.0f} |", 100 * found[i] / each);
    text += fmt::format(" {:.0f} |\n", 100 * found[10]);
  }
  return text;
}

std::string pelt_table(const Bench& bench, std::size_t trials) {
  const Method method = pelt_method();
  const std::size_t few = std::max<std::size_t>(1, trials / 20);
  std::string text =
      "| noise | unchanged, one look at 365 | 365 nightly looks | 2 σ: one look, 8 behind | "
      "nightly, "
      "12 behind |\n| --- | ---: | ---: | ---: | ---: |\n";
  for (const std::string& noise : known_noises(bench)) {
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", noise,
                        percent(shown_unchanged(bench, method, noise, 365, false, trials)),
                        percent(shown_unchanged(bench, method, noise, 365, true, few)),
                        percent(found_step(bench, method, {noise, 200, 8, 2}, false, trials)),
                        percent(found_step(bench, method, {noise, 200, 12, 2}, true, few)));
  }
  return text;
}

std::string drift_table(const Bench& bench, std::size_t trials) {
  std::string text =
      "| noise | level nights before | found by night 40 | 80 | 120 | of these: told as drift | "
      "one "
      "alert alone |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const char* noise : {"normal@0.003", "normal@0.005", "normal@0.02", "normal-0.6@0.005",
                            "spikes@0.005", "t3@0.005"}) {
    for (const std::size_t history : {1U, 60U}) {
      const auto found = shares(bench, noise, trials, 5, [&](Random& random) {
        const auto values =
            make_series(noise, history + 137, {{history, 0, -0.001}}, bench.times, random);
        const Watched seen = watch(values, history, 0, true);
        Held held;
        for (const std::size_t night : {40U, 80U, 120U}) {
          held.push_back(seen.behind > 0 && seen.behind <= night);
        }
        held.push_back(held.back() && seen.now && seen.now->kind == stats::ChangeKind::drift);
        held.push_back(held[2] && seen.more == 0);
        return held;
      });
      const double each = std::max(found[2], 1e-9);
      text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", noise,
                          history == 1 ? 0 : history, percent(found[0]), percent(found[1]),
                          percent(found[2]), percent(found[3] / each), percent(found[4] / each));
    }
  }
  return text;
}

std::string shape_table(const Bench& bench, std::size_t trials) {
  std::string text =
      "| what | points behind its start | found | of these: told as it is | place at most 2 off | "
      "interval holds the size | more than one change |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  struct Row {
    double step, drift;
    std::size_t behind;
  };
  constexpr Row k_rows[] = {{3, 0, 12},  {3, 0, 30},     {3, 0, 100},     {5, 0, 12},
                            {5, 0, 100}, {0, 0.001, 60}, {0, 0.001, 120}, {0, 0.002, 60}};
  for (const Row& row : k_rows) {
    const double size =
        row.drift > 0 ? row.drift * static_cast<double>(row.behind) : row.step * 0.02;
    const auto kind = row.drift > 0 ? stats::ChangeKind::drift : stats::ChangeKind::step;
    // The change that is nearest to the true place.
    const auto told =
        [&](const std::function<bool(const stats::Changes&, const stats::Change&)>& is) {
          return share(bench, "shape", trials, [&](Random& random) {
            const auto values = make_series("normal", k_before + row.behind,
                                            {{k_before, row.step, row.drift}}, bench.times, random);
            const stats::Changes changes = stats::find_changes(values).value();
            const auto off = [](const stats::Change& change) {
              return std::abs(static_cast<double>(change.index) - static_cast<double>(k_before));
            };
            const auto nearest =
                std::min_element(changes.changes.begin(), changes.changes.end(),
                                 [&](const auto& a, const auto& b) { return off(a) < off(b); });
            return nearest != changes.changes.end() && is(changes, *nearest);
          });
        };
    const double found = told([](const auto&, const auto&) { return true; });
    const double each = std::max(found, 1e-9);
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} |\n",
        row.drift > 0 ? fmt::format("drift of {:.1f} % a night", 100 * row.drift)
                      : fmt::format("step of {:.0f} σ", row.step),
        row.behind, percent(found),
        percent(told([&](const auto&, const auto& c) { return c.kind == kind; }) / each),
        percent(told([&](const auto&, const auto& c) {
                  return c.index + 2 >= k_before && c.index <= k_before + 2;
                }) /
                each),
        percent(told([&](const auto&, const auto& c) { return c.low <= size && size <= c.high; }) /
                each),
        percent(told([](const auto& all, const auto&) { return all.changes.size() > 1; }) / each));
  }
  return text;
}

std::string speed_table(const Bench& bench) {
  std::string text =
      "| 1 000 series of 1 000 points | weir, a look a night | sorting them | Otava, one look |\n"
      "| --- | ---: | ---: | ---: |\n";
  const auto seconds = [](const std::function<void()>& work) {
    const std::clock_t begin = std::clock();
    work();
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  struct Row {
    const char* name;
    std::string_view noise;
    std::vector<Event> events;
  };
  const std::vector<Row> rows{
      {"normal, nothing changes", "normal", {}},
      {"normal, steps at 500 and 800", "normal", {{500, 2, 0}, {800, 3, 0}}},
      {"AR(1) 0.7, nothing changes", "normal-0.7", {}}};
  for (const Row& row : rows) {
    std::vector<std::vector<double>> all;
    for (std::size_t i = 0; i < 1000; ++i) {
      Random random(quality::key_of(bench.seed, i));
      all.push_back(make_series(row.noise, 1000, row.events, bench.times, random));
    }
    const Method other = otava_method();
    const auto over = [&](const std::function<void(std::vector<double>&)>& work) {
      return seconds([&] {
        for (std::vector<double> values : all) work(values);
      });
    };
    text += fmt::format("| {} | {:.2f} s | {:.2f} s | {:.2f} s |\n", row.name,
                        over([](auto& values) { (void)stats::find_changes(values); }),
                        over([](auto& values) { std::sort(values.begin(), values.end()); }),
                        over([&](auto& values) { (void)other.once(values); }));
  }
  return text;
}

}  // namespace weir::changes

// Measures the methods and writes the tables of docs/evidence/change-points.md.
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

constexpr std::size_t k_before = 100;  // points before a change, where a table has no other number

std::string percent(double share) { return fmt::format("{:.2f}", 100 * share); }

// The noises that are asked for, without those that need recordings if there are none.
std::vector<std::string> selected_noises(const Bench& bench) {
  std::vector<std::string> names = bench.noises.empty() ? noise_names() : bench.noises;
  if (bench.recordings.empty()) std::erase_if(names, needs_recording);
  return names;
}

// How the trend rule detected the change of one series.
struct Detection {
  std::size_t delay = 0;  // points from the change on when it was first reported; 0: never
  stats::ChangeKind first_kind = stats::ChangeKind::step;  // as first reported
  std::optional<stats::Change> final_change;               // by find_changes on the whole series
  std::size_t later_changes = 0;                           // that it still shows
};

stats::ChangeKind change_kind(const stats::Alert& alert) {
  return alert.kind == stats::Alert::Kind::step ? stats::ChangeKind::step
                                                : stats::ChangeKind::drift;
}

// Feeds the values to the trend rule night by night and returns the first alert about the change at
// `place`. Its place may be at most 8 points before. With `drifts`, an alert of a drift counts at
// any place. A delay of 0 means no alert.
Detection detect_change(std::span<const double> values, std::size_t place, double offset = 0,
                        bool drifts = false) {
  Detection detection;
  stats::TrendRule rule(offset);
  const std::vector<double> nights = stats::scaled(values).values;
  std::size_t alert = 0;  // index of the first alert about the change
  for (std::size_t i = 0; i < nights.size(); ++i) {
    rule.add(nights[i]);
    if (i < place || detection.delay > 0 || rule.alerts().empty()) continue;
    const stats::Alert& last = rule.alerts().back();
    // A slope may be reported as beginning with the first night.
    const bool any_place_counts = drifts && change_kind(last) == stats::ChangeKind::drift;
    const bool is_elsewhere = !any_place_counts && last.place + 8 < place;
    if (last.night != i || is_elsewhere) continue;
    detection.delay = i + 1 - place;
    detection.first_kind = change_kind(last);
    alert = rule.alerts().size() - 1;
  }
  if (detection.delay == 0) return detection;
  const std::size_t found_at = rule.alerts()[alert].night;
  const stats::Changes changes = stats::find_changes(values, {.offset = offset}).value();
  for (const stats::Change& change : changes.changes) {
    if (change.found_at == found_at) detection.final_change = change;
    if (change.found_at > found_at) ++detection.later_changes;
  }
  return detection;
}

bool is_within(const Detection& detection, std::size_t points) {
  return detection.delay > 0 && detection.delay <= points;
}

bool is_near(const stats::Change& change, std::size_t place, std::size_t tolerance) {
  return change.index + tolerance >= place && change.index <= place + tolerance;
}

bool has_kind(const std::optional<stats::Change>& change, stats::ChangeKind kind) {
  return change && change->kind == kind;
}

// Returns the change whose index is nearest to `place`; there must be one.
const stats::Change& nearest_change(const std::vector<stats::Change>& changes, std::size_t place) {
  const auto distance = [place](const stats::Change& change) {
    return change.index > place ? change.index - place : place - change.index;
  };
  return *std::min_element(changes.begin(), changes.end(),
                           [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
}

}  // namespace

// Returns the table of false alarms: the share of series without a change in which weir shows one
// within a year. Columns: four spreads of the noise, a second year, and Otava.
std::string unchanged_table(const Bench& bench, std::size_t trials) {
  const Method otava = otava_method();
  std::string text =
      "| noise | 0.1 % | 0.5 % | 2 % | 5 % | a second year, 2 % | Otava, one analysis at 365 | "
      "Otava, 365 nightly analyses |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const std::string& noise : selected_noises(bench)) {
    text += fmt::format("| `{}` |", noise);
    const bool has_own_spread = needs_recording(noise) || noise == "lognormal";
    for (const char* spread : {"0.001", "0.005", "0.02", "0.05"}) {
      if (has_own_spread && spread != std::string_view("0.02")) {
        text += " |";  // one column is enough
        continue;
      }
      const std::string name = has_own_spread ? noise : fmt::format("{}@{}", noise, spread);
      const double alarms =
          false_alarm_share(bench, weir_method(), name, 365, Analysis::after_each_night, trials);
      text += fmt::format(" {} |", percent(alarms));
    }
    const double second_year =
        measure_share(bench, noise + " later", trials / 5, [&](Random& random) {
          const auto values = make_series(noise, 730, {}, bench.recordings, random);
          stats::TrendRule rule;
          for (const double value : stats::scaled(values).values) rule.add(value);
          return std::ranges::any_of(rule.alerts(),
                                     [](const stats::Alert& alert) { return alert.night >= 365; });
        });
    const double on_whole_series =
        false_alarm_share(bench, otava, noise, 365, Analysis::on_whole_series, trials / 4);
    const double every_night =
        false_alarm_share(bench, otava, noise, 365, Analysis::after_each_night, trials / 100);
    text += fmt::format(" {} | {} | {} |\n", percent(second_year), percent(on_whole_series),
                        percent(every_night));
  }
  return text;
}

// Returns the table of sensitivities 0 to 4: false alarms a year on five noises, and detected steps
// of 3 standard deviations. Steps count if they are detected within 3, 4, 5 and 8 points.
std::string sensitivity_table(const Bench& bench, std::size_t trials) {
  std::string text =
      "| sensitivity | normal | `t3` | `spikes` | `normal-0.6` | `t3-0.6` | 3 σ within 3 | 4 | 5 | "
      "8 "
      "|\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (int sensitivity = 0; sensitivity <= 4; ++sensitivity) {
    text += fmt::format("| {} |", sensitivity);
    for (const char* noise : {"normal", "t3", "spikes", "normal-0.6", "t3-0.6"}) {
      const double alarms =
          false_alarm_share(bench, weir_method(sensitivity), fmt::format("{}@0.005", noise), 365,
                            Analysis::after_each_night, trials);
      text += fmt::format(" {} |", percent(alarms));
    }
    const auto detected = measure_shares(bench, "sensitivity", trials / 5, 4, [&](Random& random) {
      const auto values =
          make_series("normal@0.005", k_before + 8, {{k_before, -3}}, bench.recordings, random);
      const Detection detection =
          detect_change(values, k_before, stats::k_offset_of_sensitivity * sensitivity);
      Answers answers;
      for (const std::size_t points : {3U, 4U, 5U, 8U}) {
        answers.push_back(is_within(detection, points));
      }
      return answers;
    });
    for (const double share : detected) text += fmt::format(" {} |", percent(share));
    text += "\n";
  }
  return text;
}

// Table of steps: how soon each is detected, and whether its place and kind are right.
std::string step_table(const Bench& bench, std::size_t trials) {
  constexpr std::size_t k_within[] = {2, 3, 4, 5, 8, 12, 24};
  constexpr std::size_t k_behind = 41;  // 24, and the nights in which weir may correct a kind
  struct Row {
    std::string noise;
    std::size_t points_before_step;
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
    const auto make_values = [&](std::size_t behind, Random& random) {
      return make_series(row.noise, row.points_before_step + behind,
                         {{row.points_before_step, row.size}, {0, 0, row.drift, row.growth}},
                         bench.recordings, random);
    };
    // Answers 0 to 6: detected within k_within points. 7 to 9, of those within 24: place, kind at
    // once, kind later. 10: detected by Otava.
    const auto shares = measure_shares(bench, row.noise, trials, 11, [&](Random& random) {
      const Detection detection =
          detect_change(make_values(k_behind, random), row.points_before_step);
      Answers answers;
      for (const std::size_t points : k_within) answers.push_back(is_within(detection, points));
      const bool in_time = answers.back();
      const std::optional<stats::Change>& change = detection.final_change;
      answers.push_back(in_time && change && is_near(*change, row.points_before_step, 3));
      answers.push_back(in_time && detection.first_kind == stats::ChangeKind::step);
      answers.push_back(in_time && has_kind(change, stats::ChangeKind::step));
      const Places otava_places = otava(make_values(12, random));
      answers.push_back(std::ranges::any_of(otava_places, [&](std::size_t place) {
        return place + k_max_place_error >= row.points_before_step &&
               place <= row.points_before_step + k_max_place_error;
      }));
      return answers;
    });
    text +=
        fmt::format("| `{}` | {} | {:.0f} σ | {:g} %{} |", row.noise, row.points_before_step,
                    -row.size, 100 * (row.drift + row.growth), row.growth != 0 ? ", compound" : "");
    for (std::size_t i = 0; i < 7; ++i) text += fmt::format(" {:.0f} |", 100 * shares[i]);
    const double in_time = std::max(shares[6], 1e-9);
    for (std::size_t i = 7; i < 10; ++i) {
      text += fmt::format(" {:.0f} |", 100 * shares[i] / in_time);
    }
    text += fmt::format(" {:.0f} |\n", 100 * shares[10]);
  }
  return text;
}

// Returns the table of PELT: false alarms without a change, and detected steps of 2 standard
// deviations.
std::string pelt_table(const Bench& bench, std::size_t trials) {
  const Method method = pelt_method();
  const std::size_t nightly_trials = std::max<std::size_t>(1, trials / 20);
  std::string text =
      "| noise | unchanged, one look at 365 | 365 nightly looks | 2 σ: one look, 8 behind | "
      "nightly, "
      "12 behind |\n| --- | ---: | ---: | ---: | ---: |\n";
  for (const std::string& noise : selected_noises(bench)) {
    const double alarms_once =
        false_alarm_share(bench, method, noise, 365, Analysis::on_whole_series, trials);
    const double alarms_nightly =
        false_alarm_share(bench, method, noise, 365, Analysis::after_each_night, nightly_trials);
    const double step_once =
        detection_share(bench, method, {noise, 200, 8, 2}, Analysis::on_whole_series, trials);
    const double step_nightly = detection_share(bench, method, {noise, 200, 12, 2},
                                                Analysis::after_each_night, nightly_trials);
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", noise, percent(alarms_once),
                        percent(alarms_nightly), percent(step_once), percent(step_nightly));
  }
  return text;
}

// Returns the table of drifts of -0.1 % a night: the share detected by night 40, 80 and 120. Also
// whether the kind is right and no other alert followed.
std::string drift_table(const Bench& bench, std::size_t trials) {
  std::string text =
      "| noise | level nights before | found by night 40 | 80 | 120 | of these: told as drift | "
      "one "
      "alert alone |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const char* noise : {"normal@0.003", "normal@0.005", "normal@0.02", "normal-0.6@0.005",
                            "spikes@0.005", "t3@0.005"}) {
    for (const std::size_t history : {1U, 60U}) {
      const auto shares = measure_shares(bench, noise, trials, 5, [&](Random& random) {
        const auto values =
            make_series(noise, history + 137, {{history, 0, -0.001}}, bench.recordings, random);
        const Detection detection = detect_change(values, history, /*offset=*/0, /*drifts=*/true);
        Answers answers;
        for (const std::size_t night : {40U, 80U, 120U}) {
          answers.push_back(is_within(detection, night));
        }
        const bool in_time = answers.back();
        answers.push_back(in_time && has_kind(detection.final_change, stats::ChangeKind::drift));
        answers.push_back(in_time && detection.later_changes == 0);
        return answers;
      });
      const double in_time = std::max(shares[2], 1e-9);
      text +=
          fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", noise, history == 1 ? 0 : history,
                      percent(shares[0]), percent(shares[1]), percent(shares[2]),
                      percent(shares[3] / in_time), percent(shares[4] / in_time));
    }
  }
  return text;
}

// Table of steps and drifts that find_changes analyzes once: whether it finds the kind, place and
// size.
std::string shape_table(const Bench& bench, std::size_t trials) {
  std::string text =
      "| what | points behind its start | found | of these: told as it is | place at most 2 off | "
      "interval holds the size | more than one change |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  struct Row {
    double step, drift;
    std::size_t points_after_step;
  };
  constexpr Row k_rows[] = {{3, 0, 12},  {3, 0, 30},     {3, 0, 100},     {5, 0, 12},
                            {5, 0, 100}, {0, 0.001, 60}, {0, 0.001, 120}, {0, 0.002, 60}};
  constexpr double k_sigma = 0.02;  // standard deviation of the noise, as a share of the values
  // Kind, place and interval are those of the change that is nearest to the true place.
  enum Question {
    is_found,
    is_kind_right,
    is_place_right,
    is_size_in_interval,
    has_several,
    k_questions
  };
  for (const Row& row : k_rows) {
    const double size =
        row.drift > 0 ? row.drift * static_cast<double>(row.points_after_step) : row.step * k_sigma;
    const auto kind = row.drift > 0 ? stats::ChangeKind::drift : stats::ChangeKind::step;
    const auto shares = measure_shares(bench, "shape", trials, k_questions, [&](Random& random) {
      const auto values = make_series("normal", k_before + row.points_after_step,
                                      {{k_before, row.step, row.drift}}, bench.recordings, random);
      const stats::Changes changes = stats::find_changes(values).value();
      Answers answers(k_questions, false);
      if (changes.changes.empty()) return answers;
      const stats::Change& change = nearest_change(changes.changes, k_before);
      answers[is_found] = true;
      answers[is_kind_right] = change.kind == kind;
      answers[is_place_right] = is_near(change, k_before, 2);
      answers[is_size_in_interval] = change.low <= size && size <= change.high;
      answers[has_several] = changes.changes.size() > 1;
      return answers;
    });
    const double any_change = std::max(shares[is_found], 1e-9);
    const std::string shape = row.drift > 0
                                  ? fmt::format("drift of {:.1f} % a night", 100 * row.drift)
                                  : fmt::format("step of {:.0f} σ", row.step);
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", shape, row.points_after_step,
                        percent(shares[is_found]), percent(shares[is_kind_right] / any_change),
                        percent(shares[is_place_right] / any_change),
                        percent(shares[is_size_in_interval] / any_change),
                        percent(shares[has_several] / any_change));
  }
  return text;
}

// Returns the table of drifts that ended: whether there is one change, and whether its interval
// contains the size. A drift of one night is a step.
std::string end_table(const Bench& bench, std::size_t trials) {
  constexpr std::size_t k_level_nights = 60;
  std::string text =
      "| noise | nights of drift | level nights after | size | found | of these: one change | "
      "interval holds the size | a change the other way |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const char* noise :
       {"normal@0.005", "normal@0.02", "normal-0.6@0.005", "spikes@0.005", "t3@0.005"}) {
    for (const std::size_t nights : {1U, 20U, 70U, 150U}) {
      for (const std::size_t after : {20U, 80U}) {
        for (const double size : {0.03, 0.08}) {
          const double drift = size / static_cast<double>(nights);
          // Answers: any change; one alone; its interval holds the size; one the other way.
          const auto shares = measure_shares(bench, noise, trials, 4, [&](Random& random) {
            const auto values =
                make_series(noise, k_level_nights + nights + after,
                            {{k_level_nights, 0, -drift}, {k_level_nights + nights, 0, drift}},
                            bench.recordings, random);
            const auto changes = stats::find_changes(values).value().changes;
            if (changes.empty()) return Answers(4, false);
            const stats::Change& change = nearest_change(changes, k_level_nights);
            const bool has_rise = std::ranges::any_of(
                changes, [](const stats::Change& other) { return other.size > 0; });
            return Answers{true, changes.size() == 1, change.low <= -size && -size <= change.high,
                           has_rise};
          });
          const double any_change = std::max(shares[0], 1e-9);
          text +=
              fmt::format("| `{}` | {} | {} | -{:g} % | {} | {} | {} | {} |\n", noise, nights,
                          after, 100 * size, percent(shares[0]), percent(shares[1] / any_change),
                          percent(shares[2] / any_change), percent(shares[3] / any_change));
        }
      }
    }
  }
  return text;
}

// Returns the table of processor seconds for 1 000 series of 1 000 points: weir, sorting them,
// Otava.
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
    std::vector<std::vector<double>> series;
    for (std::size_t i = 0; i < 1000; ++i) {
      Random random(quality::derive_key(bench.seed, i));
      series.push_back(make_series(row.noise, 1000, row.events, bench.recordings, random));
    }
    const Method otava = otava_method();
    const auto seconds_for_all = [&](const std::function<void(std::vector<double>&)>& work) {
      return seconds([&] {
        for (std::vector<double> values : series) work(values);
      });
    };
    text +=
        fmt::format("| {} | {:.2f} s | {:.2f} s | {:.2f} s |\n", row.name,
                    seconds_for_all([](auto& values) { (void)stats::find_changes(values); }),
                    seconds_for_all([](auto& values) { std::ranges::sort(values); }),
                    seconds_for_all([&](auto& values) { (void)otava.on_whole_series(values); }));
  }
  return text;
}

}  // namespace weir::changes

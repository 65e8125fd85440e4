#include "benchmarks/change_points/tables.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>

#include <fmt/format.h>

#include "gate/stats/change_search.hpp"

namespace weir::changes {
namespace {

constexpr std::size_t k_before = 100;  // points in front of a change, in the table of shapes

std::string percent(double share) { return fmt::format("{:.2f}", 100 * share); }

std::vector<std::string> known_noises(const Bench& bench) {
  std::vector<std::string> names = noises();
  if (bench.times.empty()) std::erase_if(names, needs_recorded);
  return names;
}

stats::Changes changes_of(std::span<const double> values, std::size_t first_look) {
  stats::ChangePolicy policy;
  policy.first_look = first_look;
  return stats::find_changes(values, {}, policy).value();
}

}  // namespace

std::string unchanged_table(const Bench& bench, std::size_t trials) {
  const Method mine = weir_method(), theirs = otava_method();
  std::string text =
      "| noise | one look at 100 | 200 | 365 | 365 nightly looks | Otava, one look at 365 | "
      "Otava, 365 nightly looks |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const std::string& noise : known_noises(bench)) {
    text += fmt::format("| `{}` |", noise);
    for (const std::size_t nights : {100U, 200U, 365U}) {
      text +=
          fmt::format(" {} |", percent(shown_unchanged(bench, mine, noise, nights, false, trials)));
    }
    text += fmt::format(" {} | {} | {} |\n",
                        percent(shown_unchanged(bench, mine, noise, 365, true, trials)),
                        percent(shown_unchanged(bench, theirs, noise, 365, false, trials)),
                        percent(shown_unchanged(bench, theirs, noise, 365, true, trials / 100)));
  }
  return text;
}

std::string step_table(const Bench& bench, std::size_t trials) {
  const Method mine = weir_method(), theirs = otava_method();
  std::string text =
      "| noise | points before | one look, 8 behind | nightly, 12 behind | 3 σ: one look | nightly "
      "| "
      "Otava: one look | nightly |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const std::string& noise : known_noises(bench)) {
    for (const std::size_t history : {30U, 60U, 100U, 200U, 365U}) {
      const bool wanted = noise == "normal" || history == 100 || history == 200;
      if (!wanted) continue;
      const StepTrial eight{noise, history, 8, 2}, twelve{noise, history, 12, 2};
      const StepTrial big_eight{noise, history, 8, 3}, big_twelve{noise, history, 12, 3};
      text += fmt::format(
          "| `{}` | {} | {} | {} | {} | {} | {} | {} |\n", noise, history,
          percent(found_step(bench, mine, eight, false, trials)),
          percent(found_step(bench, mine, twelve, true, trials)),
          percent(found_step(bench, mine, big_eight, false, trials)),
          percent(found_step(bench, mine, big_twelve, true, trials)),
          percent(found_step(bench, theirs, eight, false, trials)),
          percent(found_step(bench, theirs, twelve, true, std::max<std::size_t>(1, trials / 10))));
    }
  }
  return text;
}

std::string told_table(const Bench& bench, std::size_t trials) {
  const Method told = weir_method(0);
  std::string text =
      "| points before | one look, 8 behind | nightly, 12 behind |\n| ---: | ---: | ---: |\n";
  for (const std::size_t history : {30U, 60U, 100U, 200U}) {
    text += fmt::format("| {} | {} | {} |\n", history,
                        percent(found_step(bench, told, {"normal", history, 8, 2}, false, trials)),
                        percent(found_step(bench, told, {"normal", history, 12, 2}, true, trials)));
  }
  text += fmt::format("\nUnchanged: {} at one look at 100, {} in 365 nightly looks.\n",
                      percent(shown_unchanged(bench, told, "normal", 100, false, 5 * trials)),
                      percent(shown_unchanged(bench, told, "normal", 365, true, 5 * trials)));
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
      "| points before | one look: found | told as drift | nightly: found | told as drift on day "
      "59 | "
      "ever by then |\n| ---: | ---: | ---: | ---: | ---: | ---: |\n";
  const auto is_drift = [](const stats::Changes& changes) {
    return std::any_of(changes.changes.begin(), changes.changes.end(), [](const auto& change) {
      return change.kind == stats::ChangeKind::drift && change.size > 0;
    });
  };
  constexpr std::size_t k_days = 59;
  for (const std::size_t history : {0U, 30U, 60U, 100U, 200U}) {
    const auto drifting = [&](Random& random) {
      return make_series("normal", history + k_days, {{history, 0, 0.001}}, bench.times, random);
    };
    const auto row = [&](const std::function<bool(const std::vector<double>&)>& holds) {
      return percent(
          share(bench, "drift", trials, [&](Random& random) { return holds(drifting(random)); }));
    };
    const auto ever = [&](const std::vector<double>& values) {
      for (std::size_t night = history; night <= values.size(); ++night) {
        if (is_drift(changes_of(std::span(values).first(night), 0))) return true;
      }
      return false;
    };
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} |\n", history,
        row([](const auto& v) { return !changes_of(v, stats::k_one_look).changes.empty(); }),
        row([&](const auto& v) { return is_drift(changes_of(v, stats::k_one_look)); }),
        row([](const auto& v) { return !changes_of(v, 0).changes.empty(); }),
        row([&](const auto& v) { return is_drift(changes_of(v, 0)); }), row(ever));
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
  constexpr Row k_rows[] = {{2, 0, 12},     {2, 0, 30},      {2, 0, 100},   {3, 0, 12},
                            {3, 0, 30},     {3, 0, 100},     {5, 0, 12},    {5, 0, 100},
                            {0, 0.001, 60}, {0, 0.001, 120}, {0, 0.002, 60}};
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
            const stats::Changes changes = changes_of(values, 0);
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

std::string threshold_table(const Bench& bench, std::size_t trials) {
  std::string text =
      "| level | one look at 60 | 100 | 200 | 365 | 1000 | 365 nights | 1000 nights, per 365 |\n"
      "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const double level : {0.1, 0.01, 0.001}) {
    text += fmt::format("| {} % |", 100 * level);
    const auto put = [&](double crossed, double fewer) {
      text += fmt::format(" {:.3f} |", 100 * crossed / fewer);
    };
    const auto values = [&](std::size_t points, Random& random) {
      return stats::orders_of(make_series("normal", points, {}, bench.times, random));
    };
    for (const std::size_t points : {60U, 100U, 200U, 365U, 1000U}) {
      put(share(bench, "threshold", trials,
                [&](Random& random) {
                  return !stats::look_once(values(points, random), points, level, {}).empty();
                }),
          1);
    }
    for (const std::size_t nights : {365U, 1000U}) {
      put(share(bench, "threshold", trials,
                [&](Random& random) {
                  std::vector<std::size_t> found;
                  stats::look_nightly(values(nights, random), 0, nights, level / 365, found);
                  return !found.empty();
                }),
          static_cast<double>(nights) / 365);
    }
    text += "\n";
  }
  return text;
}

std::string speed_table(const Bench& bench) {
  std::string text =
      "| 1 000 series of 1 000 points | weir, nightly looks | weir, one look | sorting them | "
      "Otava, one "
      "look |\n| --- | ---: | ---: | ---: | ---: |\n";
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
      {"AR(1) 0.7, nothing changes", "ar1-0.7", {}}};
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
    text += fmt::format("| {} | {:.2f} s | {:.2f} s | {:.2f} s | {:.2f} s |\n", row.name,
                        over([](auto& values) { (void)changes_of(values, 0); }),
                        over([](auto& values) { (void)changes_of(values, stats::k_one_look); }),
                        over([](auto& values) { std::sort(values.begin(), values.end()); }),
                        over([&](auto& values) { (void)other.once(values); }));
  }
  return text;
}

}  // namespace weir::changes

#include "gate/verdict/over_depth.hpp"

#include "gate/base/hash.hpp"
#include "gate/profile/marginal.hpp"
#include "gate/stats/theil_sen.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

using profile::NumberPair;
using profile::PairedMetric;
using profile::PairedRuns;
using unit::Scope;

// A time per token, and where it comes from: an engine reports it, or a rate that is its inverse.
struct TimePerToken {
  const char* time;
  const char* rate;
};
constexpr TimePerToken k_times[] = {
    {"time_per_output_token_seconds", "decode_tokens_per_second"},
    {"time_per_prompt_token_seconds", "prefill_tokens_per_second"},
};
// What a line says, each a metric.
using Line = stats::SlopeAndIntercept;
struct Part {
  Scope scope;
  const char* ending;  // of the metric's name
  double Line::*number;
};
constexpr Part k_parts[] = {{Scope::at_zero_context, "_at_zero_context", &Line::intercept},
                            {Scope::per_context_token, "_per_context_token", &Line::slope}};

constexpr std::string_view k_needs_every_depth = "the line over depths needs every one of them";

template <class T>
std::vector<const T*> pick(const DepthGroup& group, std::span<const T> from) {
  return collect<const T*>(group.members, [&](std::size_t i) { return &from[i]; });
}

unit::Metric fitted_metric(const TimePerToken& of, const Part& part) {
  return *unit::find_metric(std::string(of.time) + part.ending);
}

// The line over `depths`, one time each; absent where a process did not end, or gave no time.
std::optional<Line> line_over(const std::vector<std::int64_t>& depths,
                              const std::vector<std::optional<double>>& times) {
  std::vector<stats::Point> points;
  for (std::size_t i = 0; i < depths.size(); ++i) {
    if (!times[i] || !(*times[i] > 0) || !std::isfinite(*times[i])) return std::nullopt;
    points.push_back({static_cast<double>(depths[i]), *times[i]});
  }
  return stats::theil_sen(points);
}

using Counts = std::map<std::string, Measurement>;

struct FittedCounts {
  Counts counts;
  std::vector<std::string> notes;
};

// One count over all depths.
void fit_count(const DepthGroup& group, const std::vector<const Counts*>& at_depths,
               const unit::Metric& metric, FittedCounts& fitted) {
  std::vector<profile::ExactPoint> seen;
  std::vector<std::string> words;
  std::string source;
  bool anywhere = false;
  for (std::size_t i = 0; i < at_depths.size(); ++i) {
    const Measurement* found = look_up(*at_depths[i], metric.name);
    if (found != nullptr && found->nature == profile::Nature::sampled) return;
    anywhere = anywhere || found != nullptr;
    if (found == nullptr || !found->exact) continue;
    seen.push_back({group.depths[i], *found->exact});
    words.push_back(seen.back().value.str());
    source = found->source;
  }
  if (!anywhere) return;
  const std::string depths = fmt::format("{}", fmt::join(group.depths, ", "));
  if (seen.size() < at_depths.size()) {
    fitted.notes.push_back(fmt::format("{}: not one number at each of the depths {}: no line",
                                       unit::label(metric), depths));
    return;
  }
  const auto line = profile::line_through(seen);
  if (!line) {
    fitted.notes.push_back(
        fmt::format("{}: {} at depths {} lie on no straight line: each depth is compared alone",
                    unit::label(metric), text::join(words), depths));
    return;
  }
  for (const auto& [scope, value] : {std::pair(Scope::at_zero_context, line->intercept),
                                     std::pair(Scope::per_context_token, line->slope)}) {
    const unit::Metric over = unit::count_metric(metric.base, scope);
    fitted.counts[over.name] = profile::exact_measurement(over, source, value);
  }
}

FittedCounts fit_counts(const DepthGroup& group, const std::vector<const Counts*>& at_depths) {
  FittedCounts fitted;
  for (const std::string& base : unit::count_bases()) {
    if (base == "instructions") continue;
    for (const Scope scope : {Scope::per_token, Scope::per_prefill}) {
      fit_count(group, at_depths, unit::count_metric(base, scope), fitted);
    }
  }
  return fitted;
}

// What a token of context costs must be seen before a limit on it can mean something.
std::optional<std::string> hidden_in_noise(const std::vector<stats::Point>& points,
                                           const unit::Metric& metric) {
  constexpr double k_level = 0.05;
  constexpr std::size_t k_most = 400;  // more say no more, and pairs grow with their square
  const auto lies =
      stats::slope_interval(std::span(points).first(std::min(points.size(), k_most)), k_level);
  if (!lies || lies->low > 0) return std::nullopt;
  return fmt::format("what a token of context costs is not seen above the noise ({} to {})",
                     unit::show(metric, lies->low), unit::show(metric, lies->high));
}

void fit_time(const DepthGroup& group, const std::vector<const Profile*>& members,
              const TimePerToken& of, Profile& fit) {
  const auto all_have = [&](const char* name) {
    return std::ranges::all_of(members,
                               [&](const Profile* one) { return one->metrics.contains(name); });
  };
  const bool reported = all_have(of.time);
  if (!reported && !all_have(of.rate)) return;
  std::vector<const Measurement*> measured;
  std::size_t processes = SIZE_MAX;
  for (const Profile* one : members) {
    measured.push_back(&one->metrics.at(reported ? of.time : of.rate));
    processes = std::min(processes, measured.back()->samples.size());
  }
  std::vector<Line> lines;
  std::vector<stats::Point> points;
  for (std::size_t k = 0; k < processes; ++k) {
    std::vector<std::optional<double>> times;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const double sample = measured[i]->samples[k];
      times.emplace_back(reported ? sample : 1 / sample);
      points.push_back({static_cast<double>(group.depths[i]), *times.back()});
    }
    const auto line = line_over(group.depths, times);
    if (!line) return;
    lines.push_back(*line);
  }
  if (processes == 0) return;
  for (const Part& part : k_parts) {
    Measurement made;
    made.metric = fitted_metric(of, part);
    made.source = measured.front()->source;
    for (const Line& line : lines) made.samples.push_back(line.*part.number);
    if (part.scope == Scope::per_context_token) {
      if (auto hidden = hidden_in_noise(points, made.metric)) made.warnings = {std::move(*hidden)};
    }
    fit.metrics[made.metric.name] = std::move(made);
  }
  fit.timed_runs = static_cast<std::int64_t>(processes);
}

// Of all members: a change at any depth is one of the line.
void set_provenance(const DepthGroup& group, const std::vector<const Profile*>& members,
                    Profile& fit) {
  fit.provenance = members.front()->provenance;
  fit.provenance.lengths.clear();
  std::map<std::string, std::string> parts;
  std::string all;
  for (const Profile* one : members) {
    all += one->provenance.fingerprint + "\n";
    for (const auto& [name, hash] : one->provenance.fingerprint_parts) parts[name] += hash + "\n";
  }
  for (auto& [name, hashes] : parts) hashes = short_hash(hashes);
  const std::string depths = fmt::format("{}", fmt::join(group.depths, " "));
  parts["depths"] = short_hash(depths);
  const auto& of_one = fit.provenance.fingerprint_parts;
  if (const auto* known = look_up(of_one, profile::k_variables))
    parts[profile::k_variables] = *known;
  fit.provenance.fingerprint_parts = std::move(parts);
  fit.provenance.fingerprint = short_hash(depths + "\n" + all, 16);
}

template <class Has>
bool all_shown(const std::vector<const Has*>& members) {
  return std::ranges::all_of(members, [](const Has* one) {
    return one->placement.state == profile::Placement::State::shown;
  });
}

// The same metric of every depth; empty where one has none.
struct AtDepths {
  std::vector<const PairedMetric*> metrics;
  bool reported = false;  // as a time; else as a rate
};

AtDepths find_times(const std::vector<const PairedRuns*>& members, const TimePerToken& of) {
  for (const char* name : {of.time, of.rate}) {
    AtDepths found{{}, name == of.time};
    for (const PairedRuns* one : members) {
      const PairedMetric* metric = of_metric(one->metrics, name);
      if (metric != nullptr) found.metrics.push_back(metric);
    }
    if (found.metrics.size() == members.size()) return found;
  }
  return {};
}

struct TwoLines {
  std::optional<Line> base, candidate;
  bool base_first = false;
};

// Of the pairs that `at` takes from each depth's metric.
template <class At>
TwoLines lines_of(const std::vector<std::int64_t>& depths, const AtDepths& found, const At& at) {
  const auto line = [&](std::optional<double> NumberPair::*side) {
    std::vector<std::optional<double>> times;
    for (const PairedMetric* metric : found.metrics) {
      const std::optional<double> value = at(*metric).*side;
      times.push_back(value && !found.reported ? std::optional(1 / *value) : value);
    }
    return line_over(depths, times);
  };
  return {line(&NumberPair::base), line(&NumberPair::candidate),
          at(*found.metrics.front()).base_first};
}

NumberPair numbers_of(const TwoLines& lines, const Part& part) {
  const auto number = [&](const std::optional<Line>& line) {
    return line ? std::optional((*line).*part.number) : std::nullopt;
  };
  return {number(lines.base), number(lines.candidate), lines.base_first};
}

// About the size of `part`, for evidence to lay its bets in. Where context costs nearly nothing, a
// hundredth of what a token takes.
double unit_of(const Line& warm, double deepest, const Part& part) {
  constexpr double k_least_share = 0.01;
  const double least = k_least_share * std::fabs(warm.intercept + warm.slope * deepest);
  return std::max(std::fabs(warm.*part.number),
                  part.scope == Scope::per_context_token ? least / deepest : least);
}

}  // namespace

std::vector<DepthGroup> depth_groups(std::span<const profile::CellKey> cells) {
  std::vector<DepthGroup> groups;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!cells[i].depth) continue;
    const profile::CellKey fit = cells[i].line();
    DepthGroup* known = first_of(groups, [&](const DepthGroup& group) { return group.fit == fit; });
    (known != nullptr ? *known : groups.emplace_back(DepthGroup{fit, {}, {}})).members.push_back(i);
  }
  std::erase_if(groups, [](const DepthGroup& group) { return group.members.size() < 2; });
  for (DepthGroup& group : groups) {
    std::ranges::sort(group.members, [&](std::size_t a, std::size_t b) {
      return cells[a].depth < cells[b].depth;
    });
    for (const std::size_t i : group.members) group.depths.push_back(*cells[i].depth);
  }
  return groups;
}

Profile fit_profile(const DepthGroup& group, std::span<const Profile> profiles) {
  const auto members = pick(group, profiles);
  Profile fit;
  fit.cell = group.fit;
  fit.device = members.front()->device;
  set_provenance(group, members, fit);
  for (const Profile* one : members) {
    if (one->errors.empty()) continue;
    fit.errors.push_back(
        fmt::format("{} could not be measured: {}", one->cell.prompt_part(), k_needs_every_depth));
    return fit;
  }
  fit.work = members.front()->work;
  if (all_shown(members)) fit.placement.state = profile::Placement::State::shown;
  std::vector<const Counts*> counts;
  fit.counted_runs = INT64_MAX;
  for (const Profile* one : members) {
    counts.push_back(&one->metrics);
    fit.counted_runs = std::min(fit.counted_runs, one->counted_runs);
    if (!fit.counts_skipped) fit.counts_skipped = one->counts_skipped;
  }
  FittedCounts fitted = fit_counts(group, counts);
  fit.metrics = std::move(fitted.counts);
  fit.warnings = std::move(fitted.notes);
  for (const TimePerToken& of : k_times) fit_time(group, members, of, fit);
  return fit;
}

baseline::Choice fit_choice(const DepthGroup& group, const Profile& candidate,
                            std::span<const baseline::Choice> choices) {
  using Choice = baseline::Choice;
  Choice made;
  made.match = Choice::Match::same;
  std::vector<const Counts*> counts;
  std::vector<const baseline::Baseline*> bases;
  for (const Choice* one : pick(group, choices)) {
    if (one->match < Choice::Match::nearest || !one->baseline) {
      made.match = Choice::Match::none;
      made.reason = fmt::format("{}; {}", one->reason, k_needs_every_depth);
      return made;
    }
    made.match = std::min(made.match, one->match);
    if (made.reason.empty()) made.reason = one->reason;
    counts.push_back(&one->baseline->counts);
    bases.push_back(&*one->baseline);
  }
  baseline::Baseline line;
  line.cell = candidate.cell.str();
  line.fingerprint = candidate.provenance.fingerprint;
  line.fingerprint_parts = candidate.provenance.fingerprint_parts;
  line.device_class = bases.front()->device_class;
  line.device_name = bases.front()->device_name;
  line.counts = fit_counts(group, counts).counts;
  line.work = bases.front()->work;
  if (all_shown(bases)) line.placement.state = profile::Placement::State::shown;
  made.baseline = std::move(line);
  return made;
}

std::vector<Profile> with_fits(std::vector<Profile> profiles) {
  const auto keys = collect<profile::CellKey>(profiles, &Profile::cell);
  std::map<std::size_t, Profile> behind;
  for (const DepthGroup& group : depth_groups(keys)) {
    const std::size_t last = *std::ranges::max_element(group.members);
    behind[last] = fit_profile(group, profiles);
  }
  std::vector<Profile> all;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    all.push_back(std::move(profiles[i]));
    if (Profile* fit = look_up(behind, i)) all.push_back(std::move(*fit));
  }
  return all;
}

PairedRuns fit_pairs(const DepthGroup& group, std::span<const PairedRuns> runs) {
  const auto members = pick(group, runs);
  PairedRuns fit;
  fit.warm = true;
  fit.pairs = members.front()->pairs;
  for (const PairedRuns* one : members) {
    fit.warm = fit.warm && one->warm;
    fit.pairs = std::min(fit.pairs, one->pairs);
    fit.seconds += one->seconds;
    if (one->error && !fit.error) {
      fit.error = fmt::format("{}: {}", k_needs_every_depth, *one->error);
    }
  }
  for (const TimePerToken& of : k_times) {
    const AtDepths found = find_times(members, of);
    if (found.metrics.empty()) continue;
    const TwoLines warm =
        lines_of(group.depths, found, [](const PairedMetric& metric) { return metric.warm_up; });
    if (!warm.base || !warm.candidate) continue;
    std::vector<TwoLines> rounds;
    for (std::size_t k = 0; k < static_cast<std::size_t>(fit.pairs); ++k) {
      rounds.push_back(lines_of(group.depths, found,
                                [&](const PairedMetric& metric) { return metric.pairs[k]; }));
    }
    for (const Part& part : k_parts) {
      PairedMetric made{fitted_metric(of, part),
                        found.metrics.front()->source,
                        numbers_of(warm, part),
                        {},
                        unit_of(*warm.base, static_cast<double>(group.depths.back()), part)};
      for (const TwoLines& round : rounds) made.pairs.push_back(numbers_of(round, part));
      fit.metrics.push_back(std::move(made));
    }
  }
  return fit;
}

}  // namespace weir::verdict

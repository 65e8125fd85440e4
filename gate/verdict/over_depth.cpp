// Fits the line over a prompt's list of depths: counts, times, baselines and pairs.
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

// A time per token as an engine reports it, and the rate that is its inverse.
struct TokenTimeNames {
  const char* time;
  const char* rate;
};
constexpr TokenTimeNames k_times_per_token[] = {
    {"time_per_output_token_seconds", "decode_tokens_per_second"},
    {"time_per_prompt_token_seconds", "prefill_tokens_per_second"},
};
// The two numbers of a line, each of which is a metric.
using Line = stats::SlopeAndIntercept;
struct Part {
  Scope scope;
  const char* ending;  // end of the metric's name
  double Line::*number;
};
constexpr Part k_parts[] = {{Scope::at_zero_context, "_at_zero_context", &Line::intercept},
                            {Scope::per_context_token, "_per_context_token", &Line::slope}};

constexpr std::string_view k_needs_every_depth = "the line over depths needs every one of them";

template <class T>
std::vector<const T*> select_members(const DepthGroup& group, std::span<const T> from) {
  return collect<const T*>(group.members, [&](std::size_t i) { return &from[i]; });
}

unit::Metric line_metric(const TokenTimeNames& of, const Part& part) {
  return *unit::find_metric(std::string(of.time) + part.ending);
}

// Returns the line over `depths`, with one time each. Nothing if a process did not end or reported
// no time.
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

// Adds a count's line over all depths: its value without context, and its growth for each token of
// context. Adds a note instead if the points lie on no line.
void fit_count(const DepthGroup& group, const std::vector<const Counts*>& at_depths,
               const unit::Metric& metric, FittedCounts& fitted) {
  std::vector<profile::ExactPoint> points;
  std::vector<std::string> values;
  std::string source;
  bool is_counted_anywhere = false;
  for (std::size_t i = 0; i < at_depths.size(); ++i) {
    const Measurement* count = look_up(*at_depths[i], metric.name);
    // A count that varies from run to run has no line and needs no note: its depths say so.
    if (count != nullptr && count->nature == profile::Nature::sampled) return;
    is_counted_anywhere = is_counted_anywhere || count != nullptr;
    if (count == nullptr || !count->exact) continue;
    points.push_back({group.depths[i], *count->exact});
    values.push_back(points.back().value.str());
    source = count->source;
  }
  if (!is_counted_anywhere) return;
  const std::string depths = fmt::format("{}", fmt::join(group.depths, ", "));
  if (points.size() < at_depths.size()) {
    fitted.notes.push_back(fmt::format("{}: not one number at each of the depths {}: no line",
                                       unit::display_name(metric), depths));
    return;
  }
  const auto line = profile::line_through(points);
  if (!line) {
    fitted.notes.push_back(
        fmt::format("{}: {} at depths {} lie on no straight line: each depth is compared alone",
                    unit::display_name(metric), text::join(values), depths));
    return;
  }
  for (const auto& [scope, value] : {std::pair(Scope::at_zero_context, line->intercept),
                                     std::pair(Scope::per_context_token, line->slope)}) {
    const unit::Metric line_metric = unit::count_metric(metric.base, scope);
    fitted.counts[line_metric.name] = profile::exact_measurement(line_metric, source, value);
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

// Returns a warning if the cost of a token of context is within the noise: a limit on it would mean
// nothing.
std::optional<std::string> noise_warning(const std::vector<stats::Point>& points,
                                         const unit::Metric& metric) {
  constexpr double k_level = 0.05;
  constexpr std::size_t k_max_points = 400;  // more say no more, and pairs grow with their square
  const auto interval = stats::slope_interval(
      std::span(points).first(std::min(points.size(), k_max_points)), k_level);
  if (!interval || interval->low > 0) return std::nullopt;
  return fmt::format("what a token of context costs is not seen above the noise ({} to {})",
                     unit::show(metric, interval->low), unit::show(metric, interval->high));
}

// Adds a time's line over all depths: line k goes through the k-th process of every depth. Nothing
// is added if a depth lacks the time and the rate.
void fit_time(const DepthGroup& group, const std::vector<const Profile*>& members,
              const TokenTimeNames& names, Profile& fit) {
  const auto all_have = [&](const char* name) {
    return std::ranges::all_of(
        members, [&](const Profile* profile) { return profile->metrics.contains(name); });
  };
  const bool has_times = all_have(names.time);
  if (!has_times && !all_have(names.rate)) return;
  std::vector<const Measurement*> measured;
  std::size_t process_count = SIZE_MAX;
  for (const Profile* profile : members) {
    measured.push_back(&profile->metrics.at(has_times ? names.time : names.rate));
    process_count = std::min(process_count, measured.back()->samples.size());
  }
  std::vector<Line> lines;
  std::vector<stats::Point> points;
  for (std::size_t process = 0; process < process_count; ++process) {
    std::vector<std::optional<double>> times;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const double sample = measured[i]->samples[process];
      times.emplace_back(has_times ? sample : 1 / sample);
      points.push_back({static_cast<double>(group.depths[i]), *times.back()});
    }
    const auto line = line_over(group.depths, times);
    if (!line) return;
    lines.push_back(*line);
  }
  if (process_count == 0) return;
  for (const Part& part : k_parts) {
    Measurement number;
    number.metric = line_metric(names, part);
    number.source = measured.front()->source;
    for (const Line& line : lines) number.samples.push_back(line.*part.number);
    if (part.scope == Scope::per_context_token) {
      if (auto warning = noise_warning(points, number.metric)) {
        number.warnings = {std::move(*warning)};
      }
    }
    fit.metrics[number.metric.name] = std::move(number);
  }
  fit.timed_runs = static_cast<std::int64_t>(process_count);
}

// Sets the fingerprint of the line, a hash of what it was measured with. It covers all depths, so
// a change at any one changes it.
void set_provenance(const DepthGroup& group, const std::vector<const Profile*>& members,
                    Profile& fit) {
  fit.provenance = members.front()->provenance;
  fit.provenance.lengths.clear();
  std::map<std::string, std::string> parts;
  std::string fingerprints;
  for (const Profile* profile : members) {
    fingerprints += profile->provenance.fingerprint + "\n";
    for (const auto& [name, hash] : profile->provenance.fingerprint_parts)
      parts[name] += hash + "\n";
  }
  for (auto& [name, hashes] : parts) hashes = short_hash(hashes);
  const std::string depths = fmt::format("{}", fmt::join(group.depths, " "));
  parts["depths"] = short_hash(depths);
  const auto& first_parts = fit.provenance.fingerprint_parts;
  if (const auto* variables = look_up(first_parts, profile::k_variables)) {
    parts[profile::k_variables] = *variables;
  }
  fit.provenance.fingerprint_parts = std::move(parts);
  fit.provenance.fingerprint = short_hash(depths + "\n" + fingerprints, 16);
}

template <class Has>
bool have_all_shown_placement(const std::vector<const Has*>& members) {
  return std::ranges::all_of(members, [](const Has* member) {
    return member->placement.state == profile::Placement::State::shown;
  });
}

// The same metric of every depth; empty if a depth lacks it.
struct AtDepths {
  std::vector<const PairedMetric*> metrics;
  bool reported = false;  // true: as a time; false: as a rate
};

AtDepths find_times(const std::vector<const PairedRuns*>& members, const TokenTimeNames& of) {
  for (const char* name : {of.time, of.rate}) {
    AtDepths times{{}, name == of.time};
    for (const PairedRuns* runs : members) {
      const PairedMetric* metric = find_by_metric(runs->metrics, name);
      if (metric != nullptr) times.metrics.push_back(metric);
    }
    if (times.metrics.size() == members.size()) return times;
  }
  return {};
}

// The lines of the two programs over the same pairs.
struct PairOfLines {
  std::optional<Line> base, candidate;
  bool base_first = false;
};

// Fits a line for the base and one for the candidate, through one pair of each depth.
// `select_pair` takes that pair from a depth's metric.
PairOfLines fit_lines(const std::vector<std::int64_t>& depths, const AtDepths& at_depths,
                      const auto& select_pair) {
  const auto fit_side = [&](std::optional<double> NumberPair::*side) {
    std::vector<std::optional<double>> times;
    for (const PairedMetric* metric : at_depths.metrics) {
      const std::optional<double> value = select_pair(*metric).*side;
      times.push_back(value && !at_depths.reported ? std::optional(1 / *value) : value);
    }
    return line_over(depths, times);
  };
  return {fit_side(&NumberPair::base), fit_side(&NumberPair::candidate),
          select_pair(*at_depths.metrics.front()).base_first};
}

// The intercept or slope of both lines.
NumberPair part_of_lines(const PairOfLines& lines, const Part& part) {
  const auto number = [&](const std::optional<Line>& line) {
    return line ? std::optional((*line).*part.number) : std::nullopt;
  };
  return {number(lines.base), number(lines.candidate), lines.base_first};
}

// The typical size of `part`, in which the paired test measures effects. If context costs nearly
// nothing, it is a hundredth of what a token takes.
double line_unit(const Line& warm, double deepest, const Part& part) {
  constexpr double k_min_share = 0.01;
  const double min_amount = k_min_share * std::fabs(warm.intercept + warm.slope * deepest);
  return std::max(std::fabs(warm.*part.number),
                  part.scope == Scope::per_context_token ? min_amount / deepest : min_amount);
}

}  // namespace

// Groups cells that differ in context depth alone, two or more of them, each group by rising
// depth. Members are indices into `cells`.
std::vector<DepthGroup> depth_groups(std::span<const profile::CellKey> cells) {
  std::vector<DepthGroup> groups;
  std::map<profile::CellKey, std::size_t> group_index;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!cells[i].depth) continue;
    const profile::CellKey common_name = cells[i].line();
    const auto [match, is_new] = group_index.try_emplace(common_name, groups.size());
    if (is_new) groups.push_back({common_name, {}, {}});
    groups[match->second].members.push_back(i);
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

// Returns the profile of the line over a group's depths. If a depth could not be measured, the
// profile has an error and no metrics.
Profile fit_profile(const DepthGroup& group, std::span<const Profile> profiles) {
  const auto members = select_members(group, profiles);
  Profile fit;
  fit.cell = group.fit;
  fit.device = members.front()->device;
  set_provenance(group, members, fit);
  for (const Profile* profile : members) {
    if (profile->errors.empty()) continue;
    fit.errors.push_back(fmt::format("{} could not be measured: {}", profile->cell.prompt_part(),
                                     k_needs_every_depth));
    return fit;
  }
  fit.work = members.front()->work;
  if (have_all_shown_placement(members)) fit.placement.state = profile::Placement::State::shown;
  std::vector<const Counts*> counts;
  fit.counted_runs = INT64_MAX;
  for (const Profile* profile : members) {
    counts.push_back(&profile->metrics);
    fit.counted_runs = std::min(fit.counted_runs, profile->counted_runs);
    if (!fit.counts_skip_reason) fit.counts_skip_reason = profile->counts_skip_reason;
  }
  FittedCounts fitted = fit_counts(group, counts);
  fit.metrics = std::move(fitted.counts);
  fit.warnings = std::move(fitted.notes);
  for (const TokenTimeNames& names : k_times_per_token) fit_time(group, members, names, fit);
  return fit;
}

// Fits a line through the baselines of all depths, and returns it as a baseline. Its match is the
// worst of theirs; without a comparable baseline at each depth, it is Match::none.
baseline::BaselineChoice fit_baseline(const DepthGroup& group, const Profile& candidate,
                                      std::span<const baseline::BaselineChoice> choices) {
  using Choice = baseline::BaselineChoice;
  Choice choice;
  choice.match = Choice::Match::same;
  std::vector<const Counts*> counts;
  std::vector<const baseline::Baseline*> bases;
  for (const Choice* depth_choice : select_members(group, choices)) {
    if (depth_choice->match < Choice::Match::nearest || !depth_choice->baseline) {
      choice.match = Choice::Match::none;
      choice.reason = fmt::format("{}; {}", depth_choice->reason, k_needs_every_depth);
      return choice;
    }
    choice.match = std::min(choice.match, depth_choice->match);  // worse matches are lower
    if (choice.reason.empty()) choice.reason = depth_choice->reason;
    counts.push_back(&depth_choice->baseline->counts);
    bases.push_back(&*depth_choice->baseline);
  }
  baseline::Baseline line;
  line.cell = candidate.cell.str();
  line.fingerprint = candidate.provenance.fingerprint;
  line.fingerprint_parts = candidate.provenance.fingerprint_parts;
  line.device_class = bases.front()->device_class;
  line.device_name = bases.front()->device_name;
  line.counts = fit_counts(group, counts).counts;
  line.work = bases.front()->work;
  if (have_all_shown_placement(bases)) line.placement.state = profile::Placement::State::shown;
  choice.baseline = std::move(line);
  return choice;
}

// Returns the profiles with one more for each group of depths, the line over them, after the
// group's last member.
std::vector<Profile> add_depth_fits(std::vector<Profile> profiles) {
  const auto keys = collect<profile::CellKey>(profiles, &Profile::cell);
  std::map<std::size_t, Profile> fit_after;
  for (const DepthGroup& group : depth_groups(keys)) {
    const std::size_t last = *std::ranges::max_element(group.members);
    fit_after[last] = fit_profile(group, profiles);
  }
  std::vector<Profile> all;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    all.push_back(std::move(profiles[i]));
    if (Profile* fit = look_up(fit_after, i)) all.push_back(std::move(*fit));
  }
  return all;
}

// Returns the paired runs of the line: pair k is fitted through pair k of every depth. A depth
// that failed makes them fail.
PairedRuns fit_pairs(const DepthGroup& group, std::span<const PairedRuns> runs) {
  const auto members = select_members(group, runs);
  PairedRuns fit;
  fit.warm = true;
  fit.pairs = members.front()->pairs;
  for (const PairedRuns* member : members) {
    fit.warm = fit.warm && member->warm;
    fit.pairs = std::min(fit.pairs, member->pairs);
    fit.seconds += member->seconds;
    if (member->error && !fit.error) {
      fit.error = fmt::format("{}: {}", k_needs_every_depth, *member->error);
    }
  }
  for (const TokenTimeNames& names : k_times_per_token) {
    const AtDepths times = find_times(members, names);
    if (times.metrics.empty()) continue;
    const PairOfLines warm =
        fit_lines(group.depths, times, [](const PairedMetric& metric) { return metric.warm_up; });
    if (!warm.base || !warm.candidate) continue;
    std::vector<PairOfLines> pair_lines;
    for (std::size_t pair_index = 0; pair_index < static_cast<std::size_t>(fit.pairs);
         ++pair_index) {
      pair_lines.push_back(fit_lines(group.depths, times, [&](const PairedMetric& metric) {
        return metric.pairs[pair_index];
      }));
    }
    for (const Part& part : k_parts) {
      const double effect_unit =
          line_unit(*warm.base, static_cast<double>(group.depths.back()), part);
      PairedMetric metric{line_metric(names, part),
                          times.metrics.front()->source,
                          part_of_lines(warm, part),
                          {},
                          effect_unit};
      for (const PairOfLines& pair : pair_lines) metric.pairs.push_back(part_of_lines(pair, part));
      fit.metrics.push_back(std::move(metric));
    }
  }
  return fit;
}

}  // namespace weir::verdict

// Decides whether the work ran on the device that was asked for, from probes that saw it and from
// the engine itself.
#include <cmath>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/passes.hpp"

namespace weir::profile {
namespace {

bool is_refuted(const Profile& profile) {
  return profile.placement.state == Placement::State::ran_elsewhere;
}

// Rejects the cell's placement if the engine's own marks name another device than the cell asked
// for, and not that one.
void place_by_engine_marks(const CellFacts& facts, const Records& counted_runs, Profile& profile) {
  std::vector<std::string> other_devices;
  bool is_on_device = false;
  for (const ProbedDevice& device : find_devices(k_engine_marks, counted_runs)) {
    is_on_device = is_on_device || device.api == facts.device;
    if (device.api != facts.device) add_once(other_devices, device.name);
  }
  // An engine on a GPU may use the CPU as well; ops show how much.
  if (other_devices.empty() || (is_on_device && facts.device != "cpu")) return;
  reject_placement(profile, fmt::format("asked for {}: the engine reports that it worked on {}",
                                        facts.device, text::join(other_devices)));
}

// Decides placement by the device's own probe: if the device was opened, and if it got work.
void place_by_device_probe(const CellFacts& facts, std::string_view probe,
                           const Records& counted_runs, Profile& profile) {
  if (is_refuted(profile)) return;
  if (probe == k_engine_marks) place_by_engine_marks(facts, counted_runs, profile);
  if (facts.device == "cpu" || is_refuted(profile)) return;
  const std::string device_name = !profile.provenance.device_name.empty() &&
                                          !find_api_devices(facts.device, counted_runs).empty()
                                      ? profile.provenance.device_name
                                      : facts.device_present.value_or("");
  const std::string advice = text::prefix_if_any(".\n  ", facts.device_cure);
  if (probe.empty()) {
    const bool has_marks_probe = std::ranges::any_of(counted_runs, [](const RunRecord* record) {
      return find_probe(*record, k_engine_marks) != nullptr;
    });
    if (!has_marks_probe && facts.device_present && !facts.counts_skip_reason &&
        !has_counts(profile)) {
      reject_placement(
          profile,
          fmt::format("asked for {}: the engine ran and never opened it, though {} is there{}",
                      facts.device, device_name, advice));
    }
    return;
  }
  std::int64_t dispatches = 0;
  for (const RunRecord* record : counted_runs) {
    dispatches = std::max(dispatches, count_of(*find_probe(*record, probe), "dispatches"));
  }
  const Measurement* slope = look_up(profile.metrics, "dispatches_per_prefill");
  if (slope == nullptr) slope = look_up(profile.metrics, "dispatches_per_token");
  const bool is_idle = slope != nullptr && slope->exact == Rational(0);
  if (dispatches == 0) {
    reject_placement(
        profile,
        device_name.empty()
            ? fmt::format("asked for {}: the engine ran and made no such device{}", facts.device,
                          advice)
            : fmt::format("asked for {}: the engine ran and gave it no work, though {} is there{}",
                          facts.device, device_name, advice));
  } else if (is_idle) {
    reject_placement(
        profile, fmt::format("asked for {}: all its {} dispatches belong to the start, none to the "
                             "work itself",
                             facts.device, dispatches));
  } else {
    profile.placement.state = Placement::State::seen;
  }
}

std::string times_text(double count) {
  if (count == 1) return "once";
  if (count == 2) return "twice";
  return fmt::format("{:.4g} times", count);
}

// Ops of one name that ran in one place, regardless of shapes.
struct OpGroup {
  std::string op, backend;
  double per_unit = 0;
  std::vector<std::string> shapes;  // the most frequent first
};

// Groups ops by name and backend, the most frequent first, each with its different shapes.
// `per_unit` counts an op per token, prefill or request.
std::vector<OpGroup> group_ops(std::vector<OpRate> ops) {
  std::ranges::stable_sort(
      ops, [](const OpRate& a, const OpRate& b) { return a.per_unit > b.per_unit; });
  std::vector<OpGroup> groups;
  std::map<std::pair<std::string, std::string>, std::size_t> group_index;  // by op and backend
  std::set<std::pair<std::size_t, std::string>> seen_shapes;               // by group
  for (const OpRate& rate : ops) {
    const auto [match, is_new] = group_index.try_emplace({rate.op, rate.backend}, groups.size());
    if (is_new) groups.push_back({rate.op, rate.backend, 0, {}});
    OpGroup& group = groups[match->second];
    group.per_unit += rate.per_unit.value();
    // Shapes are empty if the probe could not read them; one shape may come with several types.
    if (rate.shape.empty()) continue;
    const bool is_new_shape = seen_shapes.insert({match->second, rate.shape}).second;
    if (is_new_shape) group.shapes.push_back(rate.shape);
  }
  std::ranges::stable_sort(
      groups, [](const OpGroup& a, const OpGroup& b) { return a.per_unit > b.per_unit; });
  return groups;
}

// Returns "MUL_MAT 256x768,256->768 ran on the CPU 4 times a token" for one op, or a list of the
// eight most frequent.
std::string describe_ops(const std::vector<OpRate>& ops, std::string_view where,
                         std::string_view unit) {
  constexpr std::size_t k_max_kinds_listed = 8;
  const std::vector<OpGroup> groups = group_ops(ops);
  if (groups.size() == 1 && groups.front().shapes.size() <= 1) {
    const OpGroup& group = groups.front();
    std::string op = group.op;
    if (!group.shapes.empty()) op += " " + group.shapes.front();
    return fmt::format("{} ran on {} {} {}", op, where, times_text(group.per_unit), unit);
  }
  double sum = 0;
  std::vector<std::string> parts;
  for (const OpGroup& group : groups) {
    sum += group.per_unit;
    if (parts.size() == k_max_kinds_listed) continue;
    std::string shapes = group.shapes.empty() ? "" : " (" + group.shapes.front();
    if (group.shapes.size() > 1) shapes += fmt::format(" and {} more", group.shapes.size() - 1);
    if (!shapes.empty()) shapes += ")";
    parts.push_back(fmt::format("{} {}{}", group.op, times_text(group.per_unit), shapes));
  }
  if (groups.size() > k_max_kinds_listed) {
    parts.push_back(fmt::format("{} more kinds of ops", groups.size() - k_max_kinds_listed));
  }
  return fmt::format("{:.4g} ops {} ran on {}: {}", sum, unit, where, text::join(parts));
}

std::vector<OpRate> select_ops(const OpWork& work,
                               const std::function<bool(const OpRate&)>& is_selected) {
  std::vector<OpRate> ops;
  std::ranges::copy_if(work.ops, std::back_inserter(ops), is_selected);
  return ops;
}

// Decides placement of a CPU cell by ops. If ops went to a device that the engine saw, the cell
// measured that device.
void place_on_cpu(const OpWork& work, Profile& profile) {
  const auto elsewhere = select_ops(work, [](const OpRate& rate) { return !rate.on_cpu; });
  if (!elsewhere.empty()) {
    reject_placement(
        profile, "asked for cpu: " + describe_ops(elsewhere, elsewhere.front().backend, work.unit));
  } else if (work.complete && !is_refuted(profile)) {
    profile.placement.state = Placement::State::shown;
  }
}

// Returns true if the configuration allows this op, with this shape, on the CPU.
bool is_allowed_on_cpu(const CellFacts& facts, const OpRate& rate) {
  if (!facts.cpu_ops_allowed.contains(rate.op)) return false;
  const auto* conditions = look_up(facts.cpu_ops_when, rate.op);
  return conditions == nullptr ||
         std::ranges::any_of(*conditions, [&](const std::string& condition) {
           return shape_fits(condition, rate.shape).value_or(false);
         });
}

// Returns " (SOFT_MAX: only where ne0 < 128)" for ops that the configuration allows on the CPU,
// but not with these shapes; "" if there are none.
std::string conditions_text(const CellFacts& facts, const std::vector<OpRate>& forbidden) {
  std::vector<std::string> texts;
  std::set<std::string> ops;
  for (const OpRate& rate : forbidden) {
    const auto* conditions = look_up(facts.cpu_ops_when, rate.op);
    if (conditions == nullptr) continue;
    const bool is_new = ops.insert(rate.op).second;
    if (!is_new) continue;
    add_once(texts, fmt::format("{}: only where {}", rate.op, text::join(*conditions, " or ")));
  }
  return texts.empty() ? "" : fmt::format(" ({})", text::join(texts, "; "));
}

using OpSums = std::map<std::string, double>;
std::map<std::string, std::int64_t> round_sums(const OpSums& sums) {
  std::map<std::string, std::int64_t> times;
  for (const auto& [op, sum] : sums) times[op] = std::max<std::int64_t>(1, std::llround(sum));
  return times;
}

// Returns how often ops ran on neither the CPU nor the cell's device, as "ROPE on blas". A backend
// of unknown API counts only if other ops ran on the cell's device.
OpSums sum_other_ops(const CellFacts& facts, const OpWork& work) {
  const bool sees_own_device = std::ranges::any_of(
      work.ops, [&](const OpRate& rate) { return !rate.on_cpu && rate.api == facts.device; });
  OpSums sums;
  for (const OpRate& rate : work.ops) {
    const bool may_be_own = rate.api == facts.device || (rate.api.empty() && !sees_own_device);
    if (rate.on_cpu || may_be_own) continue;
    const std::string& place = rate.api.empty() ? rate.backend : rate.api;
    sums[fmt::format("{} on {}", rate.op, place)] += rate.per_unit.value();
  }
  return sums;
}

// Decides the placement of a cell on a device by the ops that ran on the CPU: all, forbidden or
// allowed ones. Lists those that ran on a third device.
void place_on_device(const CellFacts& facts, const OpWork& work, Profile& profile) {
  const auto on_cpu = select_ops(work, [](const OpRate& rate) { return rate.on_cpu; });
  if (on_cpu.size() == work.ops.size()) {
    // If all ops ran there, the unused device says more than a list of every op.
    if (!is_refuted(profile)) {
      reject_placement(profile, fmt::format("asked for {}: all {}", facts.device,
                                            describe_ops(on_cpu, "the CPU", work.unit)));
    }
    return;
  }
  OpSums sums;
  for (const OpRate& rate : on_cpu) sums[rate.op] += rate.per_unit.value();
  profile.placement.cpu_ops = round_sums(sums);
  profile.placement.other_ops = round_sums(sum_other_ops(facts, work));
  if (is_refuted(profile)) return;
  const auto forbidden = select_ops(
      work, [&](const OpRate& rate) { return rate.on_cpu && !is_allowed_on_cpu(facts, rate); });
  if (!forbidden.empty()) {
    for (const OpRate& rate : forbidden) profile.placement.not_allowed.insert(rate.op);
    reject_placement(profile,
                     fmt::format("asked for {}: {}, which cpu_ops_allowed does not name{}",
                                 facts.device, describe_ops(forbidden, "the CPU", work.unit),
                                 conditions_text(facts, forbidden)));
  } else if (work.complete) {
    profile.placement.state = Placement::State::shown;
  }
}

}  // namespace

// Evaluates a condition such as "ne0 < 128 and ne1 == 1" on the sizes of an op's result, of which
// ne0 is the first. False if the shape is unknown; an error if it is no condition.
Result<bool> shape_fits(std::string_view condition, std::string_view shape) {
  const std::size_t arrow = shape.rfind("->");  // the result follows it
  const auto sizes = sizes_of(arrow == std::string_view::npos ? shape : shape.substr(arrow + 2));
  std::vector<std::string> words = text::split(condition, ' ');
  std::erase(words, "");
  words.insert(words.begin(), "and");  // before each comparison
  bool fits = sizes.has_value(), is_condition = words.size() % 4 == 0;
  for (std::size_t i = 0; is_condition && i < words.size(); i += 4) {
    const std::string &field = words[i + 1], &sign = words[i + 2];
    const auto bound = text::to_int(words[i + 3]);
    is_condition = words[i] == "and" && field.size() == 3 && field.starts_with("ne") &&
                   field[2] >= '0' && field[2] <= '3' && bound;
    if (!is_condition) break;
    const auto index = static_cast<std::size_t>(field[2] - '0');
    const auto size = sizes && index < sizes->size() ? static_cast<long long>((*sizes)[index]) : 1;
    is_condition = sign == "<" || sign == "<=" || sign == ">" || sign == ">=" || sign == "==";
    fits = fits && ((sign[0] == '<' && size < *bound) || (sign[0] == '>' && size > *bound) ||
                    (sign.back() == '=' && size == *bound));
  }
  if (is_condition) return fits;
  return fail(Code::config,
              "\"{}\" is not a condition: write \"ne0 < 128\" (ne0 to ne3, <, <=, ==, >= or >, a "
              "number; several of them joined by \"and\")",
              text::printable(condition));
}

void reject_placement(Profile& profile, std::string reason) {
  profile.placement.state = Placement::State::ran_elsewhere;
  profile.placement.reason = std::move(reason);
}

// Decides if the work ran on the device that the cell asks for: first by what the device's probe
// saw, then by the ops that a probe saw.
void set_placement(const CellFacts& facts, std::string_view probe, const Records& counted_runs,
                   Profile& profile) {
  place_by_device_probe(facts, probe, counted_runs, profile);
  const OpWork work = find_op_work(facts, counted_runs);
  if (work.ops.empty()) return;
  if (!work.complete) {
    add_once(
        profile.warnings,
        "the probe that sees ops could not list every op: where the missing ones ran is unknown");
  }
  if (facts.device == "cpu") {
    place_on_cpu(work, profile);
  } else {
    place_on_device(facts, work, profile);
  }
}

namespace {

// Returns the gated counts of a device in a run; waits and polls vary and are left out.
std::map<std::string, std::int64_t> gated_counts(const RunRecord& record,
                                                 const std::string& device) {
  std::map<std::string, std::int64_t> result;
  const ProbeCounts* probe = find_probe(record, device);
  if (probe == nullptr) return result;
  for (const std::string& base : unit::count_bases()) {
    if (const auto* count = look_up(probe->counts, base)) result[base] = *count;
  }
  for (const auto& [kernel, count] : probe->kernels) result["kernel " + kernel] = count;
  return result;
}

}  // namespace

// Checks that counts do not depend on results, by processes that read device memory as other bytes.
// Returns false, with an error, if they do or if the work ran elsewhere.
bool check_twin_counts(const CellFacts& facts, Records& counted_runs, Profile& profile) {
  if (!facts.twin) return true;
  for (const RunRecord* record : counted_runs) {
    const ProbeCounts* probe = find_probe(*record, facts.device);
    const auto* other_device =
        probe == nullptr ? nullptr : find_first(probe->devices, [&](const auto& device) {
          return device.name != facts.device_present;
        });
    if (other_device == nullptr) continue;
    profile.errors.push_back(fmt::format("counted: asked for the twin {}, but the work ran on {}",
                                         *facts.twin, other_device->name));
    return false;
  }
  const auto first_filled =
      std::stable_partition(counted_runs.begin(), counted_runs.end(),
                            [](const RunRecord* record) { return record->twin_fill == 0; });
  const Records filled(first_filled, counted_runs.end());
  counted_runs.erase(first_filled, counted_runs.end());
  const auto request_of = [](const RunRecord& record) {
    const RunParameters& parameters = record.parameters;
    return std::tuple(parameters.prompt_tokens, parameters.tokens, parameters.repeats,
                      parameters.depth);
  };
  // The first process that was asked for the same, and its counts.
  std::map<decltype(request_of(*counted_runs.front())), std::map<std::string, std::int64_t>>
      partners;
  for (const RunRecord* record : counted_runs) {
    const auto [partner, is_first] = partners.try_emplace(request_of(*record));
    if (is_first) partner->second = gated_counts(*record, facts.device);
  }
  for (const RunRecord* record : filled) {
    const auto* partner = look_up(partners, request_of(*record));
    if (partner == nullptr) continue;
    const auto& counts = *partner;
    const auto filled_counts = gated_counts(*record, facts.device);
    if (counts == filled_counts) continue;
    for (const auto& [name, count] : counts) {
      const std::int64_t filled_count = look_up(filled_counts, name, 0);
      if (filled_count == count) continue;
      profile.errors.push_back(fmt::format(
          "counted: {} went from {} to {} when the device's results were other bytes: this engine "
          "looks at what the device computes, and a twin computes nothing",
          name, count, filled_count));
      return false;
    }
    profile.errors.emplace_back(
        "counted: other kernels ran when the device's results were other bytes: this engine looks "
        "at what the device computes, and a twin computes nothing");
    return false;
  }
  return true;
}

void drop_twin_results(const CellFacts& facts, Profile& profile) {
  if (!facts.twin || !profile.work.output_digest) return;
  profile.work.output_digest.reset();
  add_once(profile.warnings, "the output is left out: what a twin computes means nothing");
}

}  // namespace weir::profile

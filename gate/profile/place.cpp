// Did the work run where it was asked to? Answered by probes that saw it and by the engine itself.
#include <cmath>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/passes.hpp"

namespace weir::profile {
namespace {

bool refuted(const Profile& profile) {
  return profile.placement.state == Placement::State::refuted;
}

// An engine says itself on which device it worked.
void place_marks(const CellFacts& facts, const Records& counted, Profile& profile) {
  std::vector<std::string> elsewhere;
  bool here = false;
  for (const DeviceSeen& device : devices_of(k_marks, counted)) {
    here = here || device.api == facts.device;
    if (device.api != facts.device) add_once(elsewhere, device.name);
  }
  // A GPU's cell may also work on the CPU; ops tell what that was.
  if (elsewhere.empty() || (here && facts.device != "cpu")) return;
  refute(profile, fmt::format("asked for {}: the engine reports that it worked on {}", facts.device,
                              text::join(elsewhere)));
}

// A device's own probe: was the device opened, and did it get work?
void place_device(const CellFacts& facts, std::string_view probe, const Records& counted,
                  Profile& profile) {
  if (refuted(profile)) return;
  if (probe == k_marks) place_marks(facts, counted, profile);
  if (facts.device == "cpu" || refuted(profile)) return;
  const std::string there =
      !profile.provenance.device_name.empty() && !devices_of_api(facts.device, counted).empty()
          ? profile.provenance.device_name
          : facts.device_present.value_or("");
  const std::string cure = facts.device_cure.empty() ? "" : ".\n  " + facts.device_cure;
  if (probe.empty()) {
    const bool marks = std::ranges::any_of(
        counted, [](const RunRecord* record) { return find_probe(*record, k_marks) != nullptr; });
    if (!marks && facts.device_present && !facts.counts_skipped && !has_counts(profile)) {
      refute(profile,
             fmt::format("asked for {}: the engine ran and never opened it, though {} is there{}",
                         facts.device, there, cure));
    }
    return;
  }
  std::int64_t dispatches = 0;
  for (const RunRecord* record : counted) {
    dispatches = std::max(dispatches, count_of(*find_probe(*record, probe), "dispatches"));
  }
  const Measurement* slope = look_up(profile.metrics, "dispatches_per_prefill");
  if (slope == nullptr) slope = look_up(profile.metrics, "dispatches_per_token");
  const bool idle = slope != nullptr && slope->exact == Rational(0);
  if (dispatches == 0) {
    refute(
        profile,
        there.empty()
            ? fmt::format("asked for {}: the engine ran and made no such device", facts.device)
            : fmt::format("asked for {}: the engine ran and gave it no work, though {} is there{}",
                          facts.device, there, cure));
  } else if (idle) {
    refute(profile,
           fmt::format("asked for {}: all its {} dispatches belong to the start, none to the "
                       "work itself",
                       facts.device, dispatches));
  } else {
    profile.placement.state = Placement::State::seen;
  }
}

std::string times(double count) {
  if (count == 1) return "once";
  if (count == 2) return "twice";
  return fmt::format("{:.4g} times", count);
}

// Ops of one name that ran in one place, whatever their shapes.
struct Moved {
  std::string op, backend;
  double each = 0;
  std::vector<std::string> shapes;  // the most frequent first
};

std::vector<Moved> together(std::vector<OpRate> ops) {
  std::ranges::stable_sort(ops, [](const OpRate& a, const OpRate& b) { return a.each > b.each; });
  std::vector<Moved> moved;
  for (const OpRate& rate : ops) {
    Moved* known = first_of(
        moved, [&](const Moved& one) { return one.op == rate.op && one.backend == rate.backend; });
    Moved& one = known ? *known : moved.emplace_back(Moved{rate.op, rate.backend, 0, {}});
    one.each += rate.each.value();
    // "" when the probe could not read shapes; one shape may come with several types.
    if (!rate.shape.empty()) add_once(one.shapes, rate.shape);
  }
  std::ranges::stable_sort(moved, [](const Moved& a, const Moved& b) { return a.each > b.each; });
  return moved;
}

// "MUL_MAT 256x768,256->768 ran on the CPU 4 times a token", or a list of the most frequent.
std::string describe(const std::vector<OpRate>& ops, std::string_view where,
                     std::string_view unit) {
  constexpr std::size_t k_most = 8;
  const std::vector<Moved> moved = together(ops);
  if (moved.size() == 1 && moved.front().shapes.size() <= 1) {
    const Moved& one = moved.front();
    return fmt::format("{}{}{} ran on {} {} {}", one.op, one.shapes.empty() ? "" : " ",
                       one.shapes.empty() ? "" : one.shapes.front(), where, times(one.each), unit);
  }
  double sum = 0;
  std::vector<std::string> parts;
  for (const Moved& one : moved) {
    sum += one.each;
    if (parts.size() == k_most) continue;
    std::string shapes = one.shapes.empty() ? "" : " (" + one.shapes.front();
    if (one.shapes.size() > 1) shapes += fmt::format(" and {} more", one.shapes.size() - 1);
    if (!shapes.empty()) shapes += ")";
    parts.push_back(fmt::format("{} {}{}", one.op, times(one.each), shapes));
  }
  if (moved.size() > k_most) {
    parts.push_back(fmt::format("{} more kinds of ops", moved.size() - k_most));
  }
  return fmt::format("{:.4g} ops {} ran on {}: {}", sum, unit, where, text::join(parts));
}

std::vector<OpRate> chosen(const OpWork& work, const std::function<bool(const OpRate&)>& wanted) {
  std::vector<OpRate> ops;
  std::ranges::copy_if(work.ops, std::back_inserter(ops), wanted);
  return ops;
}

// A CPU cell whose ops went to a device that the engine saw measures that device.
void place_on_cpu(const OpWork& work, Profile& profile) {
  const auto elsewhere = chosen(work, [](const OpRate& rate) { return !rate.on_cpu; });
  if (!elsewhere.empty()) {
    refute(profile, "asked for cpu: " + describe(elsewhere, elsewhere.front().backend, work.unit));
  } else if (work.complete && !refuted(profile)) {
    profile.placement.state = Placement::State::shown;
  }
}

bool may_stay(const CellFacts& facts, const OpRate& rate) {
  if (!facts.cpu_ops_allowed.contains(rate.op)) return false;
  const auto* conditions = look_up(facts.cpu_ops_when, rate.op);
  return conditions == nullptr || std::ranges::any_of(*conditions, [&](const std::string& when) {
           return shape_fits(when, rate.shape).value_or(false);
         });
}

// " (SOFT_MAX: only where ne0 < 128)": of ops that are named, but not for shapes such as these.
std::string conditions_of(const CellFacts& facts, const std::vector<OpRate>& strays) {
  std::vector<std::string> words;
  for (const OpRate& rate : strays) {
    const auto* conditions = look_up(facts.cpu_ops_when, rate.op);
    if (conditions != nullptr) {
      add_once(words, fmt::format("{}: only where {}", rate.op, text::join(*conditions, " or ")));
    }
  }
  return words.empty() ? "" : fmt::format(" ({})", text::join(words, "; "));
}

void place_on_device(const CellFacts& facts, const OpWork& work, Profile& profile) {
  const auto on_cpu = chosen(work, [](const OpRate& rate) { return rate.on_cpu; });
  if (on_cpu.size() == work.ops.size()) {
    // All of it: which device was left aside says more than a list of every op.
    if (!refuted(profile)) {
      refute(profile, fmt::format("asked for {}: all {}", facts.device,
                                  describe(on_cpu, "the CPU", work.unit)));
    }
    return;
  }
  std::map<std::string, double> sums;
  for (const OpRate& rate : on_cpu) sums[rate.op] += rate.each.value();
  for (const auto& [op, sum] : sums) {
    profile.placement.cpu_ops[op] = std::max<std::int64_t>(1, std::llround(sum));
  }
  if (refuted(profile)) return;
  const auto strays =
      chosen(work, [&](const OpRate& rate) { return rate.on_cpu && !may_stay(facts, rate); });
  if (!strays.empty()) {
    for (const OpRate& rate : strays) profile.placement.not_allowed.insert(rate.op);
    refute(profile,
           fmt::format("asked for {}: {}, which cpu_ops_allowed does not name{}", facts.device,
                       describe(strays, "the CPU", work.unit), conditions_of(facts, strays)));
  } else if (work.complete) {
    profile.placement.state = Placement::State::shown;
  }
}

}  // namespace

Result<bool> shape_fits(std::string_view condition, std::string_view shape) {
  const std::size_t arrow = shape.rfind("->");  // the result stands behind it
  const auto sizes = sizes_of(arrow == std::string_view::npos ? shape : shape.substr(arrow + 2));
  std::vector<std::string> words = text::split(condition, ' ');
  std::erase(words, "");
  words.insert(words.begin(), "and");  // before each comparison
  bool fits = sizes.has_value(), known = words.size() % 4 == 0;
  for (std::size_t i = 0; known && i < words.size(); i += 4) {
    const std::string &field = words[i + 1], &sign = words[i + 2];
    const auto bound = text::to_int(words[i + 3]);
    known = words[i] == "and" && field.size() == 3 && field.starts_with("ne") && field[2] >= '0' &&
            field[2] <= '3' && bound;
    if (!known) break;
    const auto at = static_cast<std::size_t>(field[2] - '0');
    const auto size = sizes && at < sizes->size() ? static_cast<long long>((*sizes)[at]) : 1;
    known = sign == "<" || sign == "<=" || sign == ">" || sign == ">=" || sign == "==";
    fits = fits && ((sign[0] == '<' && size < *bound) || (sign[0] == '>' && size > *bound) ||
                    (sign.back() == '=' && size == *bound));
  }
  if (known) return fits;
  return fail(Code::config,
              "\"{}\" is not a condition: write \"ne0 < 128\" (ne0 to ne3, <, <=, ==, >= or >, a "
              "number; several of them joined by \"and\")",
              text::printable(condition));
}

void refute(Profile& profile, std::string reason) {
  profile.placement.state = Placement::State::refuted;
  profile.placement.reason = std::move(reason);
}

void place(const CellFacts& facts, std::string_view probe, const Records& counted,
           Profile& profile) {
  place_device(facts, probe, counted, profile);
  const OpWork work = op_work(facts, counted);
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

// What is counted of the device; waits and polls vary by themselves.
std::map<std::string, std::int64_t> gated_counts(const RunRecord& record,
                                                 const std::string& device) {
  std::map<std::string, std::int64_t> out;
  const ProbeCounts* probe = find_probe(record, device);
  if (probe == nullptr) return out;
  for (const std::string& base : unit::count_bases()) {
    if (const auto* count = look_up(probe->counts, base)) out[base] = *count;
  }
  for (const auto& [kernel, count] : probe->kernels) out["kernel " + kernel] = count;
  return out;
}

}  // namespace

bool holds_on_twin(const CellFacts& facts, Records& counted, Profile& profile) {
  if (!facts.twin) return true;
  for (const RunRecord* record : counted) {
    const ProbeCounts* probe = find_probe(*record, facts.device);
    const auto* other =
        probe == nullptr ? nullptr : first_of(probe->devices, [&](const auto& seen) {
          return seen.name != facts.device_present;
        });
    if (other == nullptr) continue;
    profile.errors.push_back(fmt::format("counted: asked for the twin {}, but the work ran on {}",
                                         *facts.twin, other->name));
    return false;
  }
  const auto others =
      std::stable_partition(counted.begin(), counted.end(),
                            [](const RunRecord* record) { return record->twin_fill == 0; });
  const Records filled(others, counted.end());
  counted.erase(others, counted.end());
  for (const RunRecord* record : filled) {
    const auto* same =
        first_of(counted, [&](const RunRecord* one) { return one->asked == record->asked; });
    if (same == nullptr) continue;
    const auto here = gated_counts(**same, facts.device);
    const auto there = gated_counts(*record, facts.device);
    if (here == there) continue;
    for (const auto& [what, count] : here) {
      const std::int64_t other = look_up(there, what, 0);
      if (other == count) continue;
      profile.errors.push_back(fmt::format(
          "counted: {} went from {} to {} when the device's results were other bytes: this engine "
          "looks at what the device computes, and a twin computes nothing",
          what, count, other));
      return false;
    }
    profile.errors.emplace_back(
        "counted: other kernels ran when the device's results were other bytes: this engine looks "
        "at what the device computes, and a twin computes nothing");
    return false;
  }
  return true;
}

void leave_out_results(const CellFacts& facts, Profile& profile) {
  if (!facts.twin || !profile.work.output_digest) return;
  profile.work.output_digest.reset();
  add_once(profile.warnings, "the output is left out: what a twin computes means nothing");
}

}  // namespace weir::profile

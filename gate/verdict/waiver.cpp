// Changes that are waived for one pull request: found, applied, written and read.
#include "gate/verdict/waiver.hpp"

#include <tuple>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/verdict/judging.hpp"
#include "gate/verdict/removed.hpp"

namespace weir::verdict {
namespace {

constexpr double k_rounding_of_bound = 1e-9;

// Formats a relative change in per cent, to a tenth, rounded away from zero: the bound then covers
// the change that it was made from.
std::string bound_text(double change) {
  const double percent = change * 100;
  const double rounded = (change < 0 ? std::floor(percent * 10) : std::ceil(percent * 10)) / 10;
  return fmt::format("{:+.1f} %", rounded);
}

// Reads the text of bound_text() back: "-12.0 %" is -0.12, "+3.5 %" is 0.035.
std::optional<double> parse_bound(std::string_view text) {
  if (!text.ends_with(" %")) return std::nullopt;
  text.remove_suffix(2);
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto number = text::to_double(text);
  if (!number || !std::isfinite(*number)) return std::nullopt;
  return *number / 100;
}

// Returns the worst value that the change of a time may have: its own, or an end of its interval.
std::optional<double> worst_change(const Judgement& metric) {
  const bool lower_is_worse = metric.metric.better == unit::Better::higher;
  std::optional<double> worst = metric.change;
  for (const auto& end : {metric.low, metric.high}) {
    if (end && std::isfinite(*end) &&
        (!worst || (lower_is_worse ? *end < *worst : *end > *worst))) {
      worst = end;
    }
  }
  return worst;
}

// The lowest and highest value that a count had: one value, or "10 to 11" of a count that varies.
struct CountRange {
  double low, high;

  [[nodiscard]] bool holds(double from, double to) const {
    const double room = k_rounding_of_bound * std::max({1.0, std::fabs(from), std::fabs(to)});
    return from >= low - room && to <= high + room;
  }
};

std::optional<CountRange> parse_range(std::string_view text) {
  if (const auto value = Rational::parse(text)) return CountRange{value->value(), value->value()};
  const std::size_t middle = text.find(k_range_to);
  if (middle == std::string_view::npos) return std::nullopt;
  const auto low = text::to_double(text.substr(0, middle));
  const auto high = text::to_double(text.substr(middle + k_range_to.size()));
  if (!low || !high) return std::nullopt;
  return CountRange{*low, *high};
}

// Returns true if `text` is `number`, up to rounding, or a range that holds it.
bool text_equals(const std::string& text, const std::optional<double>& number) {
  const auto range = parse_range(text);
  return range && number && range->holds(*number, *number);
}

// Returns true if a count has the waived text, or no value outside of a waived range.
bool covers_count(const std::string& waived, const std::string& current) {
  if (waived == current) return true;
  const auto range = parse_range(waived), now = parse_range(current);
  const bool is_range = range && range->low < range->high;
  return is_range && now && range->holds(now->low, now->high);
}

// Returns true for the judgement on a cell that is not judged because the pull request edits it.
bool is_edit(const Judgement& judgement) {
  return judgement.metric.name == k_cell_metric && judgement.verdict == Outcome::error &&
         judgement.baseline_text && judgement.current_text &&
         judgement.current_text->starts_with(k_edited) &&
         judgement.current_text->size() > k_edited.size();
}

// Returns true if somebody with the right to may waive what the judgement is about.
bool is_waivable(const Judgement& judgement) {
  return judgement.verdict == Outcome::fail || is_edit(judgement);
}

// Returns the change of a failed metric that a waiver may excuse: from one exact number to another
// for a count, up to a bound for a time. Nothing if it has no value.
std::optional<Waivable> waivable_metric_change(const std::string& cell,
                                               const std::string& device_class,
                                               const Judgement& metric) {
  if (is_edit(metric)) {  // whatever the device
    return Waivable{cell, metric.metric.name, *metric.baseline_text, *metric.current_text};
  }
  const bool is_unmeasured = !metric.current && metric.current_text == k_not_measured;
  const bool is_count = metric.metric.kind == unit::Kind::count;
  if ((is_unmeasured || is_count) && metric.baseline_text && metric.current_text) {
    // A verdict that was read from a file may show one number and mean another.
    if (!is_unmeasured && (!text_equals(*metric.baseline_text, metric.baseline) ||
                           !text_equals(*metric.current_text, metric.current))) {
      return std::nullopt;
    }
    return Waivable{cell, metric.metric.name, *metric.baseline_text, *metric.current_text,
                    device_class};
  }
  if (is_count && !metric.change) return std::nullopt;
  const auto worst = worst_change(metric);
  if (!worst) return std::nullopt;
  return Waivable{cell, metric.metric.name, "0 %", bound_text(*worst), device_class};
}

// Returns "22 launches of 9 kernels": the sum of one side's counts, over the kernels that have one
// there. "many" if the sum overflows.
std::string launches_text(const std::vector<Changed>& kernels,
                          std::optional<Rational> Changed::*side) {
  std::optional<Rational> sum = Rational(0);
  std::size_t names = 0;
  for (const Changed& kernel : kernels) {
    const std::optional<Rational>& count = kernel.*side;
    if (!count) continue;
    ++names;
    if (sum) sum = sum->plus(*count);
  }
  const std::string count = sum ? sum->str() : "many";
  const char* noun = sum == Rational(1) ? "launch" : "launches";
  return fmt::format("{} {} of {}", count, noun, text::plural(names, "kernel"));
}

Waivable waivable_kernel_change(const std::string& cell, const std::string& device_class,
                                std::vector<Changed> kernels) {
  std::ranges::sort(kernels, {}, &Changed::name);
  Waivable change{cell, "kernels", launches_text(kernels, &Changed::baseline),
                  launches_text(kernels, &Changed::current), device_class};
  change.kernels = std::move(kernels);
  return change;
}

// The change behind a failed judgement that can be waived; nothing if none can.
std::optional<Waivable> waivable_change(const std::string& cell, const std::string& device_class,
                                        const Judgement& judgement) {
  if (judgement.is_metric()) return waivable_metric_change(cell, device_class, judgement);
  if (judgement.metric.name != k_kernels || judgement.changed.empty()) return std::nullopt;
  return waivable_kernel_change(cell, device_class, judgement.changed);
}

// Says why the failed `judgement` of `cell` cannot be waived.
std::string why_not_waivable(const Judgement& judgement, const std::string& cell) {
  const std::string& subject = judgement.metric.name;
  if (subject == k_kernels) return "the kernels of " + cell + " cannot be compared";
  if (subject == k_kernel_code) {
    return "kernels of " + cell + " have other code (kernel_code is a rule)";
  }
  if (subject == k_placement) {
    return "work of " + cell + " ran elsewhere (cpu_ops_allowed is a rule)";
  }
  return fmt::format("{} of {} is no value that could be waived", subject, cell);
}

// Returns true if the waived `change` covers the change of the failed `metric`: the same count, or
// a time within the waived bound.
bool covers(const Waivable& change, const Judgement& metric) {
  if (metric.metric.name != change.metric) return false;
  const bool is_exact = metric.metric.kind == unit::Kind::count || !metric.current;
  if (metric.baseline_text && metric.current_text && is_exact) {
    return *metric.baseline_text == change.from && covers_count(change.to, *metric.current_text);
  }
  const auto bound = parse_bound(change.to);
  if (!bound || !metric.change) return false;
  // A count may be wrong in both directions.
  const bool is_other_direction = *metric.change != 0 && *metric.change * *bound <= 0;
  if (is_exact && is_other_direction) return false;
  return metric.metric.better == unit::Better::higher
             ? *metric.change >= *bound - k_rounding_of_bound
             : *metric.change <= *bound + k_rounding_of_bound;
}

// Names the pull request of the waiver if it is not the one that is judged.
std::string waived_text(const Waiver& waiver, const WaiverContext& gate) {
  const std::string pull_request = waiver.pull_request == gate.pull_request
                                       ? ""
                                       : fmt::format(" for pull request {}", waiver.pull_request);
  return fmt::format("waived{} by {} until {}: {}", pull_request, waiver.who, waiver.until,
                     waiver.reason);
}

// Reasons of judgements -> the waivers that they have.
using WaivedReasons = std::map<const std::string*, const Waiver*>;

// Puts a waiver's text before each reason that it waives, in the order of reports: in full before
// the first, then only "waived by" and the name.
void prepend_waivers(const WaivedReasons& waived, const WaiverContext& gate, CellVerdict& cell) {
  std::set<std::string> shown;
  for (Judgement& judgement : cell.judgements) {
    std::string& reason = judgement.reason;
    const Waiver* waiver = look_up(waived, &reason, nullptr);
    if (waiver == nullptr) continue;
    std::string text = waived_text(*waiver, gate);
    const bool is_first = shown.insert(text).second;
    if (!is_first) text = "waived by " + waiver->who;
    reason = reason.empty() ? text : fmt::format("{} ({})", text, reason);
  }
}

std::string describe_waiver(const Waiver& waiver) {
  return fmt::format("what {} waived ({} of {}: {} → {})", waiver.who, waiver.what.metric,
                     waiver.what.cell, waiver.what.from, waiver.what.to);
}

bool has_outcome(const CellVerdict& cell, Outcome outcome) {
  return std::ranges::find(cell.judgements, outcome, &Judgement::verdict) != cell.judgements.end();
}

// Returns why `waiver` does not apply to this gate: another pull request, commit or branch, or it
// has expired. "" if it applies.
std::string why_void(const Waiver& waiver, const WaiverContext& gate) {
  const std::string* head = look_up(gate.heads, waiver.pull_request);
  if (head == nullptr) {
    return fmt::format("is for pull request {}", waiver.pull_request);
  }
  if (waiver.until < gate.today) return fmt::format("was until {}", waiver.until);
  if (waiver.head && *waiver.head != *head) {
    return fmt::format("is for commit {}, and another was pushed since",
                       text::short_commit(*waiver.head));
  }
  if (waiver.base && *waiver.base != gate.base) {
    return fmt::format("is for pull requests into {}", *waiver.base);
  }
  return "";
}

// The judgements of a cell by their metrics, with the change of each that was asked for. Waivers
// of one cell may be many, and so may its judgements and its kernels.
struct JudgedMetrics {
  std::multimap<std::string_view, Judgement*> judgements;
  std::map<const Judgement*, std::optional<Waivable>> changes;

  explicit JudgedMetrics(CellVerdict& cell) {
    for (Judgement& judgement : cell.judgements) {
      judgements.emplace(judgement.metric.name, &judgement);
    }
  }
};

// Marks the first failed judgement of `cell` that `waiver` covers as waived, and returns a pointer
// to its reason; null if there is none. `now` gets the metric's present change.
const std::string* apply_waiver(const Waiver& waiver, const CellVerdict& cell,
                                JudgedMetrics& metrics, std::string& now) {
  const Waivable& waived = waiver.what;
  if (!waived.device_class.empty() && waived.device_class != cell.device_class) return nullptr;
  const auto [first, last] = metrics.judgements.equal_range(waived.metric);
  for (auto entry = first; entry != last; ++entry) {
    Judgement& judgement = *entry->second;
    if (!is_waivable(judgement)) continue;
    const auto [cached_change, is_new] = metrics.changes.try_emplace(&judgement);
    if (is_new)
      cached_change->second = waivable_change(waived.cell, waived.device_class, judgement);
    const std::optional<Waivable>& current = cached_change->second;
    if (current) now = fmt::format("{} → {}", current->from, current->to);
    // Kernels are compared one by one: the texts of their sums may differ.
    const bool has_kernels = current && !current->kernels.empty();
    const bool is_covered =
        has_kernels ? current->kernels == waived.kernels : covers(waived, judgement);
    if (!is_covered) continue;
    judgement.verdict = Outcome::waived;
    return &judgement.reason;
  }
  return nullptr;
}

}  // namespace

// Collects the changes of all failed cells, and what no waiver can help.
NeededWaivers needed_waivers(const GateVerdict& gate) {
  NeededWaivers needed;
  needed.rules = gate.rules;
  bool undecided = false;
  for (const CellVerdict& cell : gate.cells) {
    const std::string name = cell.cell.str();
    // A fail hides what else is wrong in its cell.
    const bool is_edited = std::ranges::any_of(cell.judgements, is_edit);
    const bool has_error = std::ranges::any_of(cell.judgements, [](const Judgement& judgement) {
      return judgement.verdict == Outcome::error && !is_edit(judgement);
    });
    const bool is_broken =
        has_error || !cell.reason.empty() || (cell.verdict == Outcome::error && !is_edited);
    if (is_broken && cell.verdict != Outcome::skipped) {
      needed.beyond.push_back(name + " could not be measured");
    }
    undecided = undecided || cell.verdict == Outcome::inconclusive ||
                has_outcome(cell, Outcome::inconclusive);
    const bool is_red =
        cell.verdict == Outcome::fail || (cell.verdict == Outcome::error && is_edited);
    // Reports show the cell as fine, so its readers did not see the part that fails.
    if (cell.verdict != Outcome::fail &&
        (has_outcome(cell, Outcome::fail) || (is_edited && !is_red))) {
      needed.beyond.push_back("the parts of " + name + " do not agree");
    }
    if (!is_red) continue;
    // Counts follow from where the work ran. Waiving them would hide what changes once that is
    // mended.
    const bool elsewhere =
        cell.ran_elsewhere && cell.judgement_of(k_placement).verdict == Outcome::fail;
    for (const Judgement& judgement : cell.judgements) {
      if (!is_waivable(judgement)) continue;
      if (elsewhere && judgement.metric.name != k_placement) continue;
      auto change = waivable_change(name, cell.device_class, judgement);
      if (!change) {
        needed.beyond.push_back(why_not_waivable(judgement, name));
      } else if (change->from == change->to && change->kernels.empty()) {
        needed.beyond.push_back(
            fmt::format("{} of {} breaks a limit without a change", judgement.metric.name, name));
      } else {
        needed.changes.push_back(std::move(*change));
      }
    }
  }
  if (undecided && gate.fail_on_inconclusive) {
    needed.beyond.emplace_back("what is not decided fails here (on_inconclusive: fail)");
  }
  return needed;
}

// Sets one kernel's count to the waived one, or drops it; false if the set holds another count
// than the one the change starts from.
static bool apply_kernel(const Changed& kernel, std::map<std::string, Rational>& counts) {
  const Rational* stored = look_up(counts, kernel.name);
  const std::optional<Rational> before = stored ? std::optional(*stored) : std::nullopt;
  if (before != kernel.baseline) return false;
  if (kernel.current) {
    counts[kernel.name] = *kernel.current;
  } else {
    counts.erase(kernel.name);
  }
  return true;
}

// Returns `stored` with the waived change applied; nothing if it is of another cell or device, or
// does not hold the value that the change starts from.
std::optional<baseline::Baseline> apply_to_baseline(const Waivable& waived,
                                                    const baseline::Baseline& stored) {
  if (stored.cell != waived.cell) return std::nullopt;
  if (!waived.device_class.empty() && waived.device_class != stored.device_class)
    return std::nullopt;
  baseline::Baseline updated = stored;
  if (waived.metric == "kernels") {
    if (!updated.kernels) return std::nullopt;
    for (const Changed& kernel : waived.kernels) {
      if (!apply_kernel(kernel, updated.kernels->counts)) return std::nullopt;
    }
    return updated;
  }
  const auto count = updated.counts.find(waived.metric);
  if (count == updated.counts.end() || !count->second.exact) return std::nullopt;
  if (count->second.exact->str() != waived.from) return std::nullopt;
  if (waived.to == k_not_measured) {
    updated.counts.erase(count);
    return updated;
  }
  const auto value = Rational::parse(waived.to);
  if (!value) return std::nullopt;
  count->second.exact = value;
  return updated;
}

// Adds waivers to the stored ones. A new waiver replaces one of an older commit, or one of the
// same cell, metric, device class and commit.
std::vector<Waiver> with_waivers(std::vector<Waiver> stored, std::vector<Waiver> added) {
  for (Waiver& waiver : added) {
    std::erase_if(stored, [&](const Waiver& old) {
      const bool is_of_older_commit = waiver.head && old.head && *old.head != *waiver.head;
      if (is_of_older_commit && old.base == waiver.base) return true;
      return old.what.cell == waiver.what.cell && old.what.metric == waiver.what.metric &&
             old.what.device_class == waiver.what.device_class && old.head == waiver.head &&
             old.base == waiver.base;
    });
    stored.push_back(std::move(waiver));
  }
  return stored;
}

// Waives the fails that have a waiver, and folds their cells again. Returns the waivers that are
// void, in words.
std::vector<std::string> apply_waivers(const std::vector<Waiver>& waivers,
                                       const WaiverContext& gate, std::vector<CellVerdict>& cells) {
  std::map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    by_name.emplace(cells[i].cell.str(), i);
    if (gate.shown) by_name.emplace(gate.shown(cells[i].cell), i);
  }
  std::vector<std::string> voided;
  std::set<std::size_t> changed;
  std::map<std::size_t, JudgedMetrics> judged;
  WaivedReasons waived;
  for (const Waiver& waiver : waivers) {
    const auto match = by_name.find(waiver.what.cell);
    if (const std::string why = why_void(waiver, gate); !why.empty()) {
      // Only where it would matter.
      if (match != by_name.end() && cells[match->second].verdict <= Outcome::error) {
        voided.push_back(fmt::format("{} is void: it {}", describe_waiver(waiver), why));
      }
      continue;
    }
    if (match == by_name.end()) continue;
    CellVerdict& cell = cells[match->second];
    if (gate.in_base.contains(waiver.pull_request) &&
        (!cell.is_stored || parse_bound(waiver.what.to))) {
      continue;
    }
    std::string now;
    JudgedMetrics& metrics = judged.try_emplace(match->second, cell).first->second;
    if (const std::string* reason = apply_waiver(waiver, cell, metrics, now)) {
      changed.insert(match->second);
      waived.emplace(reason, &waiver);
    } else if (!now.empty()) {
      voided.push_back(fmt::format("{} is void: it is {} now", describe_waiver(waiver), now));
    }
  }
  for (const std::size_t i : changed) {
    prepend_waivers(waived, gate, cells[i]);
    fold_judgements(cells[i]);
  }
  return voided;
}

// --- weir.waivers/1, both ways: the text that is read may be anybody's until it is parsed

namespace {

constexpr JsonLimits k_limits{.bytes = std::size_t{8} << 20, .depth = 8};
constexpr std::size_t k_max_kernels = 10'000;
constexpr std::int64_t k_largest_number = std::int64_t{1} << 53U;

bool is_login(std::string_view text) {
  const auto fits = [](char c) { return text::is_alphanumeric(c) || holds("-_[].", c); };
  return !text.empty() && text.size() <= 100 && std::ranges::all_of(text, fits);
}

// Returns true for text of at most `longest` bytes that needs no escape.
bool is_shown(std::string_view text, std::size_t longest) {
  return text.size() <= longest && text::printable(text) == text;
}

bool is_line(std::string_view text, std::size_t longest) {
  return !text::trim(text).empty() && is_shown(text, longest) &&
         text.find('\n') == std::string_view::npos;
}

// Writes a rational that is set, and reads one; another value is an error.
struct ExactField {
  std::optional<Rational>& value;
  void put(Json& slot) const { slot = rational_to_json(*value); }
  void take(const Json& json, Fields& io, const char*) const {
    value = rational_from_json(json);
    io.check(value.has_value(), "has a number that is none");
  }
};

}  // namespace

std::string waiver_path(std::int64_t pull_request) {
  return fmt::format("waivers/{}.json", pull_request);
}

// Returns the first thing that is wrong with a waiver, as the end of a sentence; nothing when
// fine.
std::optional<std::string> waiver_problem(const Waiver& waiver) {
  const Waivable& what = waiver.what;
  if (!profile::CellKey::parse(what.cell)) return "names no cell: ENGINE/MODEL/BACKEND/PROMPT";
  if (what.metric.empty() || !is_shown(what.metric, 100)) return "names no metric";
  if (what.metric == "placement") return "cannot be about placement: cpu_ops_allowed is a rule";
  if (!is_line(what.from, 100) || !is_line(what.to, 100)) return "has no value from or to";
  if (!is_shown(what.device_class, 300)) return "names no device class";
  if (what.from == what.to && what.kernels.empty()) return "changes nothing";
  const bool is_about_kernels = what.metric == "kernels";
  if (is_about_kernels != !what.kernels.empty()) {
    return "of kernels names each kernel, and of anything else none";
  }
  if (waiver.pull_request <= 0 || waiver.pull_request > k_largest_number) {
    return "is for no pull request";
  }
  if (waiver.head && !text::is_commit(*waiver.head))
    return "is pinned to what is no commit: give its whole id (git rev-parse HEAD)";
  if (waiver.base && !is_shown(*waiver.base, 1024)) return "is for no branch";
  if (!baseline::valid_reason(waiver.reason)) {
    return "needs a reason, one line of at most 1000 bytes";
  }
  if (!is_login(waiver.who)) return "needs to say who waived it (--who LOGIN)";
  if (!is_day(waiver.until)) return "needs a day until which it holds: 2026-12-31";
  return std::nullopt;
}

// A kernel with its counts, which JSON calls "from" and "to".
struct WaivedKernel : Changed {};
static void fields(Fields& io, WaivedKernel& kernel) {
  io("name", kernel.name);
  io.optional("from", ExactField{kernel.baseline});
  io.optional("to", ExactField{kernel.current});
}

// Writes or reads a change that can be waived.
void fields(Fields& io, Waivable& what) {
  io("cell", what.cell);
  io("metric", what.metric);
  io("from", what.from);
  io("to", what.to);
  io.optional("device_class", what.device_class);
  std::vector<WaivedKernel> kernels;
  for (const Changed& kernel : what.kernels) kernels.push_back({kernel});
  io.limit_items("kernels", k_max_kernels, fmt::format("has more than {} kernels", k_max_kernels));
  io.optional("kernels", kernels, "kernels");
  if (io.is_reading()) what.kernels.assign(kernels.begin(), kernels.end());
}

static void fields(Fields& io, Waiver& waiver) {
  fields(io, waiver.what);
  io("reason", waiver.reason);
  io("who", waiver.who);
  io("until", waiver.until);
  io.optional("head", waiver.head);
  io.optional("base", waiver.base);
}

std::string to_text(std::int64_t pull_request, std::vector<Waiver> all) {
  std::ranges::sort(all, {}, [](const Waiver& waiver) {
    const Waivable& what = waiver.what;
    return std::tie(what.cell, what.metric, what.device_class, waiver.head, waiver.base);
  });
  const auto lines = collect<std::string>(
      all, [](const Waiver& waiver) { return "\n  " + dump_json(write_fields(waiver)); });
  return fmt::format(
      "{{\"schema\": \"weir.waivers/1\", \"pull_request\": {}, \"waivers\": [{}\n]}}\n",
      pull_request, text::join(lines, ","));
}

namespace {

constexpr std::string_view k_fence = "```json\n", k_fence_end = "\n```\n";

// Writes `needed` as JSON with its back ticks escaped, so that none of them ends the Markdown
// block.
std::string json_without_backticks(const NeededWaivers& needed) {
  std::string json;
  for (const char c : dump_json(write_fields(needed))) {
    json += c == '`' ? "\\u0060" : std::string(1, c);
  }
  return json;
}

}  // namespace

// Writes or reads weir.waivable/1.
void fields(Fields& io, NeededWaivers& needed) {
  io.schema("weir.waivable/1", "says nothing that could be waived: schema");
  io.limit_items("changes", k_max_waivers, fmt::format("more than {} changes", k_max_waivers));
  io("changes", needed.changes, "waivers");
  io.always("beyond", needed.beyond);
  if (!needed.rules && !io.has("rules")) return;
  if (!needed.rules) needed.rules.emplace();
  io.object("rules", [&](Fields& rules_io) {
    rules_io("commit", needed.rules->commit);
    rules_io("text_hash", needed.rules->text_hash);
    rules_io("waive_own", needed.rules->waive_own);
  });
}

// Formats the changes for a comment: a sentence for people and a block of JSON, at most `limit`
// bytes.
std::string waivable_text(const NeededWaivers& needed, std::size_t limit) {
  if (needed.changes.empty()) return "";
  const auto text_with_block = [](const NeededWaivers& listed) {
    const bool waives_own = listed.rules && listed.rules->waive_own;
    return fmt::format(
        "What `/weir waive CODE REASON` in a comment waives, for this commit and base alone. Who "
        "may write here may do so{}:\n\n{}{}{}",
        waives_own ? "" : ", except the pull request's author", k_fence,
        json_without_backticks(listed), k_fence_end);
  };
  std::string text = text_with_block(needed);
  if (text.size() <= limit) return text;
  NeededWaivers without_changes;
  without_changes.beyond = {fmt::format(
      "{} changes are more than fit here: weir waive VERDICT.json", needed.changes.size())};
  without_changes.rules = needed.rules;
  return text_with_block(without_changes);
}

Result<NeededWaivers> parse_waivable_text(std::string_view text) {
  const std::size_t from = text.find(k_fence);
  const std::size_t end = from == std::string_view::npos ? from : text.find("\n```", from);
  if (end == std::string_view::npos) return fail(Code::data, "says nothing that could be waived");
  text = text.substr(from + k_fence.size(), end - from - k_fence.size());
  WEIR_TRY(const Json json, parse_json(text, k_limits));
  return read_fields<NeededWaivers>(json, "waivable");
}

// Reads the waivers of one pull request, and checks each.
Result<std::vector<Waiver>> parse_waivers(std::string_view text, std::int64_t pull_request) {
  WEIR_TRY(const Json json, parse_json(text, k_limits));
  JsonReader read(json, "waivers");
  if (read.string("schema") != "weir.waivers/1") {
    return fail(Code::data, "no waivers: schema should be \"weir.waivers/1\"");
  }
  if (const std::int64_t own = read.integer("pull_request"); own != pull_request) {
    return fail(Code::data, "the waivers of pull request {} in the file of {}", own, pull_request);
  }
  const Json& list = read.array("waivers");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  if (list.size() > k_max_waivers) {
    return fail(Code::data, "more than {} waivers", k_max_waivers);
  }
  std::vector<Waiver> all;
  for (const Json& item : list) {
    WEIR_TRY(Waiver waiver, read_fields<Waiver>(item, "waivers"));
    waiver.pull_request = pull_request;
    if (const auto problem = waiver_problem(waiver)) {
      return fail(Code::data, "a waiver {}", *problem);
    }
    all.push_back(std::move(waiver));
  }
  return all;
}

}  // namespace weir::verdict

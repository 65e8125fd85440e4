#include "gate/verdict/allowance.hpp"

#include <tuple>

#include "gate/base/json.hpp"
#include "gate/verdict/judging.hpp"
#include "gate/verdict/removed.hpp"

namespace weir::verdict {
namespace {

constexpr double k_rounding_of_bound = 1e-9;

// A change in per cent, to a tenth, rounded so that it allows what it was made from.
std::string bound_words(double change) {
  const double percent = change * 100;
  const double rounded = (change < 0 ? std::floor(percent * 10) : std::ceil(percent * 10)) / 10;
  return fmt::format("{:+.1f} %", rounded);
}

std::optional<double> parse_bound(const std::string& text) {
  if (!text.ends_with(" %")) return std::nullopt;
  const auto number = text::to_double(text.substr(0, text.size() - 2));
  if (!number || !std::isfinite(*number)) return std::nullopt;
  return *number / 100;
}

// The worst end of what is known of a time's change.
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

bool says(const std::string& text, const std::optional<double>& number) {
  const auto value = Rational::parse(text);
  return value && number &&
         std::fabs(value->value() - *number) <=
             k_rounding_of_bound * std::max(1.0, std::fabs(*number));
}

// What of a metric that failed would have to be allowed; nothing where it is no value.
std::optional<Allowable> of_number(const std::string& cell, const std::string& device_class,
                                   const Judgement& metric) {
  const bool gone = !metric.current && metric.current_text == k_not_measured;
  const bool count = metric.metric.kind == unit::Kind::count;
  if ((gone || count) && metric.baseline_text && metric.current_text) {
    // A verdict that was read may show one number and mean another.
    if (!gone && (!says(*metric.baseline_text, metric.baseline) ||
                  !says(*metric.current_text, metric.current))) {
      return std::nullopt;
    }
    return Allowable{cell, metric.metric.name, *metric.baseline_text, *metric.current_text,
                     device_class};
  }
  if (count && !metric.change) return std::nullopt;
  const auto worst = worst_change(metric);
  if (!worst) return std::nullopt;
  return Allowable{cell, metric.metric.name, "0 %", bound_words(*worst), device_class};
}

// "22 launches of 9 kernels", of those that changed.
std::string kernels_on(const std::vector<Changed>& kernels,
                       std::optional<Rational> Changed::*side) {
  std::optional<Rational> sum = Rational(0);
  std::size_t names = 0;
  for (const Changed& one : kernels) {
    if (!(one.*side)) continue;
    ++names;
    if (sum) sum = sum->plus(*(one.*side));
  }
  return fmt::format("{} {} of {}", sum ? sum->str() : "many",
                     sum == Rational(1) ? "launch" : "launches", plural(names, "kernel"));
}

Allowable of_kernels(const std::string& cell, const std::string& device_class,
                     std::vector<Changed> kernels) {
  std::ranges::sort(kernels, [](const Changed& a, const Changed& b) { return a.name < b.name; });
  Allowable made{cell, "kernels", kernels_on(kernels, &Changed::baseline),
                 kernels_on(kernels, &Changed::current), device_class};
  made.kernels = std::move(kernels);
  return made;
}

// What of a judgement that failed would have to be allowed; nothing where nothing can be.
std::optional<Allowable> of_judgement(const std::string& cell, const std::string& device_class,
                                      const Judgement& one) {
  if (one.is_metric()) return of_number(cell, device_class, one);
  if (one.metric.name != k_kernels || one.changed.empty()) return std::nullopt;
  return of_kernels(cell, device_class, one.changed);
}

// Why a fail is beyond what can be allowed.
std::string beyond_words(const Judgement& one, const std::string& cell) {
  const std::string& subject = one.metric.name;
  if (subject == k_kernels) return "the kernels of " + cell + " cannot be compared";
  if (subject == k_kernel_code) {
    return "kernels of " + cell + " have other code (kernel_code is a rule)";
  }
  if (subject == k_placement) {
    return "work of " + cell + " ran elsewhere (cpu_ops_allowed is a rule)";
  }
  return fmt::format("{} of {} is no value that could be allowed", subject, cell);
}

// Whether a fail of `metric` is what was allowed.
bool allows(const Allowable& what, const Judgement& metric) {
  if (metric.metric.name != what.metric) return false;
  const bool exact = metric.metric.kind == unit::Kind::count || !metric.current;
  if (metric.baseline_text && metric.current_text && exact) {
    return *metric.baseline_text == what.from && *metric.current_text == what.to;
  }
  const auto bound = parse_bound(what.to);
  if (!bound || !metric.change) return false;
  return metric.metric.better == unit::Better::higher
             ? *metric.change >= *bound - k_rounding_of_bound
             : *metric.change <= *bound + k_rounding_of_bound;
}

std::string accepted_words(const Allowance& allowance) {
  return fmt::format("accepted by {} until {}: {}", allowance.who, allowance.until,
                     allowance.reason);
}

// Reasons of judgements -> who accepted them.
using Accepted = std::map<const std::string*, std::string>;

// The words of an acceptance stand before the first reason of a cell that they are for, in the
// order in which reports show them.
void say_accepted(const Accepted& accepted, CellVerdict& cell) {
  std::set<std::string> said;
  const auto say = [&](std::string& reason) {
    const std::string* words = look_up(accepted, &reason);
    if (words == nullptr || !said.insert(*words).second) return;
    reason = *words + (reason.empty() ? "" : " (" + reason + ")");
  };
  for (Judgement& one : cell.judgements) say(one.reason);
}

std::string title_of(const Allowance& allowance) {
  return fmt::format("what {} allowed ({} of {}: {} → {})", allowance.who, allowance.what.metric,
                     allowance.what.cell, allowance.what.from, allowance.what.to);
}

bool any(const CellVerdict& cell, Outcome outcome) {
  return std::ranges::find(cell.judgements, outcome, &Judgement::verdict) != cell.judgements.end();
}

// Why it cannot hold for this gate, whatever was measured.
std::string void_here(const Allowance& allowance, const AllowedFor& gate) {
  if (allowance.pull_request != gate.pull_request) {
    return fmt::format("is for pull request {}", allowance.pull_request);
  }
  if (allowance.until < gate.today) return fmt::format("was until {}", allowance.until);
  if (allowance.head && *allowance.head != gate.head) {
    return fmt::format("is for commit {}, and another was pushed since",
                       allowance.head->substr(0, 7));
  }
  if (allowance.base && *allowance.base != gate.base) {
    return fmt::format("is for pull requests into {}", *allowance.base);
  }
  return "";
}

// What `allowance` does to a cell: the reason of the fail that it was for; null where there is
// none.
const std::string* apply_to(const Allowance& allowance, CellVerdict& cell, std::string& now) {
  const Allowable& what = allowance.what;
  if (!what.device_class.empty() && what.device_class != cell.device_class) return nullptr;
  for (Judgement& one : cell.judgements) {
    if (one.metric.name != what.metric || one.verdict != Outcome::fail) continue;
    const auto here = of_judgement(what.cell, what.device_class, one);
    if (here) now = fmt::format("{} → {}", here->from, here->to);
    const bool kernels = here && !here->kernels.empty();  // their words may differ
    if (kernels ? here->kernels != what.kernels : !allows(what, one)) continue;
    one.verdict = Outcome::accepted;
    return &one.reason;
  }
  return nullptr;
}

}  // namespace

WouldTake would_take(const GateVerdict& gate) {
  WouldTake made;
  made.rules = gate.rules;
  bool undecided = false;
  for (const CellVerdict& cell : gate.cells) {
    const std::string name = cell.cell.str();
    // A fail hides what else is wrong in its cell.
    if (cell.verdict == Outcome::error || !cell.reason.empty() || any(cell, Outcome::error)) {
      if (cell.verdict != Outcome::skipped) made.beyond.push_back(name + " could not be measured");
    }
    undecided =
        undecided || cell.verdict == Outcome::inconclusive || any(cell, Outcome::inconclusive);
    if (cell.verdict != Outcome::fail) {
      // Reports show it as fine: whoever reads them did not see what in it fails.
      if (any(cell, Outcome::fail)) made.beyond.push_back("the parts of " + name + " do not agree");
      continue;
    }
    // Counts follow from where work ran: waived, they would only hide what comes after it is
    // mended.
    const bool elsewhere = cell.elsewhere && cell.of(k_placement).verdict == Outcome::fail;
    for (const Judgement& one : cell.judgements) {
      if (one.verdict != Outcome::fail) continue;
      if (elsewhere && one.metric.name != k_placement) continue;
      auto what = of_judgement(name, cell.device_class, one);
      if (what && what->from == what->to && what->kernels.empty()) {
        made.beyond.push_back(
            fmt::format("{} of {} breaks a limit without a change", one.metric.name, name));
      } else if (what) {
        made.changes.push_back(std::move(*what));
      } else {
        made.beyond.push_back(beyond_words(one, name));
      }
    }
  }
  if (undecided && gate.fail_on_inconclusive) {
    made.beyond.emplace_back("what is not decided fails here (on_inconclusive: fail)");
  }
  return made;
}

std::optional<baseline::Baseline> accepted_into(const Allowable& what,
                                                const baseline::Baseline& stored) {
  if (stored.cell != what.cell) return std::nullopt;
  if (!what.device_class.empty() && what.device_class != stored.device_class) return std::nullopt;
  baseline::Baseline now = stored;
  if (what.metric == "kernels") {
    if (!now.kernels) return std::nullopt;
    for (const Changed& one : what.kernels) {
      const Rational* before = look_up(now.kernels->counts, one.name);
      if ((before ? std::optional(*before) : std::nullopt) != one.baseline) return std::nullopt;
      if (one.current) {
        now.kernels->counts[one.name] = *one.current;
      } else {
        now.kernels->counts.erase(one.name);
      }
    }
    return now;
  }
  const auto found = now.counts.find(what.metric);
  const auto value = Rational::parse(what.to);
  const bool gone = what.to == k_not_measured;
  if (found == now.counts.end() || !found->second.exact || !(value || gone)) return std::nullopt;
  if (found->second.exact->str() != what.from) return std::nullopt;
  if (gone) {
    now.counts.erase(found);
    return now;
  }
  found->second.exact = value;
  return now;
}

std::vector<Allowance> with_allowances(std::vector<Allowance> there, std::vector<Allowance> added) {
  for (Allowance& one : added) {
    std::erase_if(there, [&](const Allowance& old) {
      return old.what.cell == one.what.cell && old.what.metric == one.what.metric &&
             old.what.device_class == one.what.device_class && old.head == one.head &&
             old.base == one.base;
    });
    there.push_back(std::move(one));
  }
  return there;
}

std::vector<std::string> apply_allowances(const std::vector<Allowance>& allowances,
                                          const AllowedFor& gate, std::vector<CellVerdict>& cells) {
  std::map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    by_name.emplace(cells[i].cell.str(), i);
    if (gate.shown) by_name.emplace(gate.shown(cells[i].cell), i);
  }
  std::vector<std::string> told;
  std::set<std::size_t> changed;
  Accepted accepted;
  for (const Allowance& allowance : allowances) {
    const auto found = by_name.find(allowance.what.cell);
    if (const std::string why = void_here(allowance, gate); !why.empty()) {
      // Only where it would matter.
      if (found != by_name.end() && cells[found->second].verdict == Outcome::fail) {
        told.push_back(fmt::format("{} is void: it {}", title_of(allowance), why));
      }
      continue;
    }
    if (found == by_name.end()) continue;
    CellVerdict& cell = cells[found->second];
    std::string now;
    if (const std::string* reason = apply_to(allowance, cell, now)) {
      changed.insert(found->second);
      accepted.emplace(reason, accepted_words(allowance));
    } else if (!now.empty()) {
      told.push_back(fmt::format("{} is void: it is {} now", title_of(allowance), now));
    }
  }
  for (const std::size_t i : changed) {
    say_accepted(accepted, cells[i]);
    fold(cells[i]);
  }
  return told;
}

// --- weir.allowances/1, both ways: what is read is anybody's until it is parsed

namespace {

constexpr JsonLimits k_limits{.bytes = std::size_t{8} << 20, .depth = 8};
constexpr std::size_t k_most_kernels = 10'000;
constexpr std::int64_t k_largest_number = std::int64_t{1} << 53U;

bool is_hex(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_login(std::string_view text) {
  const auto fits = [](char c) { return text::is_alphanumeric(c) || holds("-_[].", c); };
  return !text.empty() && text.size() <= 100 && std::ranges::all_of(text, fits);
}

// At most so long, and shown as it is.
bool is_shown(std::string_view text, std::size_t longest) {
  return text.size() <= longest && text::printable(text) == text;
}

bool is_line(std::string_view text, std::size_t longest) {
  return !text::trim(text).empty() && is_shown(text, longest) &&
         text.find('\n') == std::string_view::npos;
}

struct ExactField {
  std::optional<Rational>& value;
  void put(Json& slot) const { slot = rational_to_json(*value); }
  void take(const Json& json, Fields& io, const char*) const {
    value = rational_from_json(json);
    io.check(value.has_value(), "has a number that is none");
  }
};

}  // namespace

std::string allowance_path(std::int64_t pull_request) {
  return fmt::format("allowances/{}.json", pull_request);
}

std::optional<std::string> problem_of(const Allowance& allowance) {
  const Allowable& what = allowance.what;
  if (!profile::CellKey::parse(what.cell)) return "names no cell";
  if (what.metric.empty() || !is_shown(what.metric, 100)) return "names no metric";
  if (what.metric == "placement") return "cannot be about placement: cpu_ops_allowed is a rule";
  if (!is_line(what.from, 100) || !is_line(what.to, 100)) return "has no value from or to";
  if (!is_shown(what.device_class, 300)) return "names no device class";
  if (what.from == what.to && what.kernels.empty()) return "changes nothing";
  if ((what.metric == "kernels") == what.kernels.empty()) {
    return "of kernels names each kernel, and of anything else none";
  }
  if (allowance.pull_request <= 0 || allowance.pull_request > k_largest_number) {
    return "is for no pull request";
  }
  if (allowance.head && !is_hex(*allowance.head)) return "is pinned to what is no commit";
  if (allowance.base && !is_shown(*allowance.base, 1024)) return "is for no branch";
  if (!baseline::valid_reason(allowance.reason)) {
    return "needs a reason, one line of at most 1000 bytes";
  }
  if (!is_login(allowance.who)) return "needs to say who allowed it";
  if (!is_day(allowance.until)) return "needs a day until which it holds: 2026-12-31";
  return std::nullopt;
}

// What a kernel's count was and is.
struct AllowedKernel : Changed {};
static void fields(Fields& io, AllowedKernel& kernel) {
  io("name", kernel.name);
  io.sparse("from", ExactField{kernel.baseline});
  io.sparse("to", ExactField{kernel.current});
}

void fields(Fields& io, Allowable& what) {
  io("cell", what.cell);
  io("metric", what.metric);
  io("from", what.from);
  io("to", what.to);
  io.sparse("device_class", what.device_class);
  std::vector<AllowedKernel> kernels;
  for (const Changed& one : what.kernels) kernels.push_back({one});
  io.at_most("kernels", k_most_kernels, fmt::format("has more than {} kernels", k_most_kernels));
  io.sparse("kernels", kernels, "kernels");
  if (io.reads()) what.kernels.assign(kernels.begin(), kernels.end());
}

static void fields(Fields& io, Allowance& allowance) {
  fields(io, allowance.what);
  io("reason", allowance.reason);
  io("who", allowance.who);
  io("until", allowance.until);
  io.sparse("head", allowance.head);
  io.sparse("base", allowance.base);
}

std::string to_text(std::int64_t pull_request, std::vector<Allowance> all) {
  std::ranges::sort(all, {}, [](const Allowance& one) {
    return std::tie(one.what.cell, one.what.metric, one.what.device_class, one.head, one.base);
  });
  const auto lines = collect<std::string>(
      all, [](const Allowance& one) { return "\n  " + dump_json(write_fields(one)); });
  return fmt::format(
      "{{\"schema\": \"weir.allowances/1\", \"pull_request\": {}, \"allowances\": [{}\n]}}\n",
      pull_request, text::join(lines, ","));
}

namespace {

constexpr std::string_view k_fence = "```json\n", k_fence_end = "\n```\n";

// In JSON every back tick can be written otherwise, so that none ends the block.
std::string block_of(const WouldTake& take) {
  std::string block;
  for (const char c : dump_json(write_fields(take)))
    block += c == '`' ? "\\u0060" : std::string(1, c);
  return block;
}

}  // namespace

void fields(Fields& io, WouldTake& take) {
  io.schema("weir.allowable/1", "says nothing that could be accepted: schema");
  io.at_most("changes", k_most_allowances, fmt::format("more than {} changes", k_most_allowances));
  io("changes", take.changes, "allowances");
  io.always("beyond", take.beyond);
  if (!take.rules && !io.has("rules")) return;
  io.object("rules", [&](Fields& of) {
    RulesFrom& rules = take.rules ? *take.rules : take.rules.emplace();
    of("commit", rules.commit);
    of("text_hash", rules.text_hash);
    of("accept_own", rules.accept_own);
  });
}

std::string allowable_text(const WouldTake& take, std::size_t limit) {
  if (take.changes.empty()) return "";
  const auto whole = [](const WouldTake& one) {
    return fmt::format(
        "What `/weir accept CODE REASON` in a comment accepts, for this commit and base alone. Who "
        "may write here may do so{}:\n\n{}{}{}",
        one.rules && one.rules->accept_own ? "" : ", except the pull request's author", k_fence,
        block_of(one), k_fence_end);
  };
  std::string text = whole(take);
  if (text.size() <= limit) return text;
  return whole({{},
                {fmt::format("{} changes are more than fit here: weir allow VERDICT.json",
                             take.changes.size())},
                take.rules});
}

Result<WouldTake> parse_allowable_text(std::string_view text) {
  const std::size_t from = text.find(k_fence);
  const std::size_t end = from == std::string_view::npos ? from : text.find("\n```", from);
  if (end == std::string_view::npos) return fail(Code::data, "says nothing that could be accepted");
  text = text.substr(from + k_fence.size(), end - from - k_fence.size());
  WEIR_TRY(const Json json, parse_json(text, k_limits));
  return read_fields<WouldTake>(json, "allowable");
}

Result<std::vector<Allowance>> parse_allowances(std::string_view text, std::int64_t pull_request) {
  WEIR_TRY(const Json json, parse_json(text, k_limits));
  JsonReader read(json, "allowances");
  if (read.string("schema") != "weir.allowances/1") {
    return fail(Code::data, "no allowances: schema should be \"weir.allowances/1\"");
  }
  if (const std::int64_t own = read.integer("pull_request"); own != pull_request) {
    return fail(Code::data, "the allowances of pull request {} in the file of {}", own,
                pull_request);
  }
  const Json& list = read.array("allowances");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  if (list.size() > k_most_allowances) {
    return fail(Code::data, "more than {} allowances", k_most_allowances);
  }
  std::vector<Allowance> all;
  for (const Json& item : list) {
    WEIR_TRY(Allowance one, read_fields<Allowance>(item, "allowances"));
    one.pull_request = pull_request;
    if (const auto problem = problem_of(one)) return fail(Code::data, "an allowance {}", *problem);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace weir::verdict

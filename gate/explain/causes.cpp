#include "gate/explain/causes.hpp"

#include <map>
#include <set>

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

using verdict::CellVerdict;
using verdict::Judgement;
using verdict::Outcome;

struct Judged {
  std::string what;
  bool failed = false;  // else it is not decided
};
// What needs a reader, as the cell lists it.
std::vector<Judged> judged(const CellVerdict& cell) {
  std::vector<Judged> list;
  for (const Judgement& one : cell.judgements) {
    if (one.verdict == Outcome::fail || one.verdict == Outcome::inconclusive) {
      list.push_back({one.metric.name, one.verdict == Outcome::fail});
    }
  }
  return list;
}

bool is_move(const std::string& kind) {
  return kind == kind::work_moved_to_cpu || kind == kind::work_moved_to_gpu;
}

// A finding of a cell, with what no finding before it claims.
struct Member {
  const CellVerdict* cell;
  const Finding* finding;
  std::vector<std::string> claims;
  Subject subject;
};

struct Group {
  std::vector<Member> members;    // at least one
  std::vector<Subject> subjects;  // different ones of members, the first of them

  [[nodiscard]] const Subject& subject() const { return subjects.front(); }
  [[nodiscard]] const std::string& kind() const { return subject().kind; }
  [[nodiscard]] bool names_works() const { return !subject().works.empty(); }
  [[nodiscard]] bool known() const { return std::ranges::any_of(subjects, &Subject::known); }

  [[nodiscard]] bool shares_cells(const Group& other) const {
    return std::ranges::any_of(members, [&](const Member& one) {
      return std::ranges::count(other.members, one.cell, &Member::cell) > 0;
    });
  }
  [[nodiscard]] bool fits(const Group& other) const {
    return std::ranges::any_of(subjects, [&](const Subject& one) {
      return std::ranges::any_of(other.subjects,
                                 [&](const Subject& its) { return one.same_as(its); });
    });
  }
  void take(Group& other) {
    constexpr std::size_t k_most = 16;
    std::ranges::move(std::exchange(other.members, {}), std::back_inserter(members));
    for (Subject& one : std::exchange(other.subjects, {})) {
      if (subjects.size() < k_most && !holds(subjects, one)) subjects.push_back(std::move(one));
    }
  }
};

// A finding that fits two groups shows that these are one, unless a cell has told them apart.
void add_member(std::vector<Group>& groups, Member member) {
  Group fresh;
  fresh.subjects.push_back(member.subject);
  fresh.members.push_back(std::move(member));
  Group* home = nullptr;
  for (Group& group : groups) {
    if (!group.fits(fresh)) continue;
    if (home == nullptr) {
      home = &group;
    } else if (!home->shares_cells(group)) {
      home->take(group);
    }
  }
  if (home == nullptr) home = &groups.emplace_back();
  home->take(fresh);
  std::erase_if(groups, [](const Group& group) { return group.members.empty(); });
}

// Cells of one engine, on other devices: their kernels have names of their own.
bool are_elsewhere(const Group& one, const Group& other) {
  return std::ranges::all_of(one.members, [&](const Member& a) {
    return std::ranges::all_of(other.members, [&](const Member& b) {
      return a.cell->cell.engine == b.cell->cell.engine && a.cell->device != b.cell->device;
    });
  });
}

// Where a probe names no kernels, or a backend gives them names that nobody knows, only the kind is
// known: it is the one cause of this kind that has names.
void join_nameless(std::vector<Group>& groups) {
  for (Group& group : groups) {
    if (group.members.empty() || group.known()) continue;
    const bool unknown = group.names_works();
    std::vector<Group*> named;
    for (Group& other : groups) {
      const bool fits = !other.members.empty() && other.names_works() &&
                        other.kind() == group.kind() &&
                        other.subject().what == group.subject().what;
      if (!fits || (unknown && !(other.known() && are_elsewhere(group, other)))) continue;
      named.push_back(&other);
    }
    if (named.size() != 1) continue;
    for (Member& member : group.members) member.subject.works.clear();
    named.front()->take(group);
  }
  std::erase_if(groups, [](const Group& group) { return group.members.empty(); });
}

// --- what is true of all members -----------------------------------------------------------------

// `part` of the findings where all have the same, else "".
std::string common(const Group& group, std::string Finding::*part) {
  const std::string& first = group.members.front().finding->*part;
  const bool all = std::ranges::all_of(
      group.members, [&](const Member& member) { return member.finding->*part == first; });
  return all ? first : "";
}

struct Names {
  std::vector<std::string> all;  // those in every cell first, then by how many have them
  std::size_t common = 0;        // of these, in every cell that names any
};
// A work as the findings spell it, where they all do it alike.
Names names_in(const Group& group) {
  struct Count {
    std::string work, spelled;
    std::int64_t members = 0;
  };
  std::vector<Count> counts;
  std::map<std::string, std::size_t> places;
  std::int64_t naming = 0;
  for (const Member& member : group.members) {
    const auto& works = member.subject.works;
    const auto& spelled = member.subject.spelled;
    naming += works.empty() ? 0 : 1;
    for (std::size_t i = 0; i < works.size(); ++i) {
      const auto [place, fresh] = places.try_emplace(works[i], counts.size());
      if (fresh) counts.push_back({works[i], spelled[i]});
      Count& count = counts[place->second];
      if (count.spelled != spelled[i]) count.spelled = works[i];
      ++count.members;
    }
  }
  std::ranges::stable_sort(counts, std::greater(), &Count::members);
  Names names;
  for (const Count& count : counts) {
    names.all.push_back(count.spelled);
    names.common += count.members == naming ? 1 : 0;
  }
  return names;
}

// Of work that moved the ops alone: which kernels are gone for it differs, and they may be larger.
void leave_ops(std::vector<std::string>& names) {
  const auto is_op = [](const std::string& name) {
    return std::ranges::none_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
  };
  if (!names.empty() && is_op(names.front())) std::erase_if(names, std::not_fn(is_op));
}

std::string headline_of(const Group& group, const Names& known) {
  constexpr std::size_t k_most_names = 3;
  std::string same = common(group, &Finding::headline);
  const FindingKind* kind = find_named(k_finding_kinds, group.kind());
  if (!same.empty() || kind == nullptr || kind->sentence.empty()) {
    return same.empty() ? group.members.front().finding->headline : same;
  }
  const bool seems =
      !kind->seems.empty() && std::ranges::all_of(group.members, [](const Member& member) {
        return member.finding->headline.find(" seem") != std::string::npos;
      });
  std::vector<std::string> names(known.all.begin(),
                                 known.all.begin() + static_cast<std::ptrdiff_t>(known.common));
  if (is_move(group.kind())) {
    leave_ops(names);
  }
  if (names.size() > k_most_names) names.resize(k_most_names);
  for (std::string& name : names) name = safe(name);
  const std::string& what = group.subject().what;
  if (!what.empty()) names.insert(names.begin(), safe(plain(what)));
  return fmt::format("{}{}{}.", seems ? kind->seems : kind->sentence, names.empty() ? "" : ": ",
                     text::join(names));
}

// --- what carries it -----------------------------------------------------------------------------

// A metric that moved in cells of a cause. What is no count follows from counts, and tells less.
struct Carried {
  verdict::Carrier carrier;
  std::int64_t failed = 0;  // cells
  unit::Metric of{};
};

std::size_t place_of(const std::string& base) {
  constexpr std::array k_telling = {"dispatches", "syncs",   "barriers",     "copies", "submits",
                                    "splits",     "cpu_ops", "copied_bytes", "graphs"};
  return static_cast<std::size_t>(std::ranges::find(k_telling, base) - k_telling.begin());
}

std::vector<Carried> carried_by(const Group& group) {
  std::map<std::string, Carried> found;
  for (const Member& member : group.members) {
    for (const Judgement& of : member.cell->metrics()) {
      const std::string& name = of.metric.name;
      if (!holds(member.claims, name)) continue;
      Carried& carried = found[name];
      verdict::Carrier& carrier = carried.carrier;
      carrier.metric = name;
      carried.of = of.metric;
      carried.failed += of.verdict == Outcome::fail ? 1 : 0;
      if (!of.baseline || !of.current) continue;
      const double change = *of.current - *of.baseline;
      carrier.least = carrier.cells == 0 ? change : std::min(carrier.least, change);
      carrier.most = carrier.cells == 0 ? change : std::max(carrier.most, change);
      ++carrier.cells;
    }
  }
  std::vector<Carried> list;
  for (auto& [name, carried] : found) list.push_back(std::move(carried));
  std::ranges::stable_sort(list, {}, [](const Carried& one) {
    return std::tuple(one.carrier.cells == 0, one.of.kind != unit::Kind::count, -one.failed,
                      place_of(one.of.base), one.of.scope);
  });
  return list;
}

// What else explain found in these cells, that which is in most of them first. What any change
// brings along is left out.
std::vector<std::string> beside(const Group& group) {
  constexpr std::size_t k_most = 3;
  constexpr std::array k_outcomes = {kind::memory_changed, kind::fixed_cost_changed,
                                     kind::code_changed,   kind::made_late,
                                     kind::count_changed,  kind::time_changed};
  std::vector<std::pair<const FindingKind*, std::int64_t>> found;  // in how many cells
  for (const Member& member : group.members) {
    std::set<std::string> kinds{group.kind()};
    for (const Finding& other : member.cell->findings) {
      const FindingKind* kind = find_named(k_finding_kinds, other.kind);
      if (other.also || !other.claims.empty() || kind == nullptr || kind->sentence.empty())
        continue;
      if (holds(k_outcomes, other.kind) || !kinds.insert(other.kind).second) continue;
      auto* known = first_of(found, [&](const auto& one) { return one.first == kind; });
      if (known == nullptr) known = &found.emplace_back(kind, 0);
      ++known->second;
    }
  }
  std::ranges::stable_sort(found, std::greater(), [](const auto& one) { return one.second; });
  if (found.size() > k_most) found.resize(k_most);
  return collect<std::string>(found, [](const auto& one) { return one.first->sentence; });
}

verdict::Cause cause_of(const Group& group) {
  constexpr std::size_t k_most_carriers = 3, k_most_ops = 16;
  verdict::Cause cause;
  Names names = names_in(group);
  cause.kind = group.kind();
  cause.headline = headline_of(group, names);
  cause.ops = std::move(names.all);
  if (cause.ops.size() > k_most_ops) cause.ops.resize(k_most_ops);
  const std::vector<Carried> carried = carried_by(group);
  std::set<std::string> bases;  // per token and per prefill they tell the same
  for (const Carried& one : carried) {
    if (cause.carriers.size() == k_most_carriers || one.carrier.cells == 0) break;
    if (bases.insert(one.of.base).second) cause.carriers.push_back(one.carrier);
  }
  cause.follow = std::ssize(carried) - std::ssize(cause.carriers);
  cause.cause = common(group, &Finding::cause);
  cause.look_at = common(group, &Finding::look_at);
  cause.beside = beside(group);
  return cause;
}

// --- cells ---------------------------------------------------------------------------------------

// Adds what explains this cell; answers what that claims.
std::set<std::string> add_findings(const CellVerdict& cell, std::vector<Group>& groups) {
  std::set<std::string> failed, claimed;
  for (const Judged& one : judged(cell)) {
    if (one.failed) failed.insert(one.what);
  }
  for (const Finding& finding : cell.findings) {
    if (finding.also) continue;
    Member member{&cell, &finding, {}, subject_of(finding)};
    for (const std::string& claim : finding.claims) {
      if (!claimed.contains(claim)) member.claims.push_back(claim);
    }
    const auto fails = [&](const std::string& claim) { return failed.contains(claim); };
    if (std::ranges::none_of(member.claims, fails)) continue;
    claimed.insert(member.claims.begin(), member.claims.end());
    add_member(groups, std::move(member));
  }
  return claimed;
}

// What follows from no cause: those that failed somewhere first, then in the order of cells.
struct Rest {
  struct One {
    verdict::Unexplained of;
    std::size_t failed_at = SIZE_MAX;  // how many failures came before its first
  };
  std::vector<One> all;
  std::size_t failures = 0;

  void add(const Judged& one, const std::string& cell) {
    One* rest = first_of(all, [&](const One& known) { return known.of.what == one.what; });
    if (rest == nullptr) rest = &all.emplace_back(One{{one.what, {}}});
    rest->of.cells.push_back(cell);
    if (one.failed) rest->failed_at = std::min(rest->failed_at, failures++);
  }
  [[nodiscard]] std::vector<verdict::Unexplained> in_order() && {
    std::ranges::stable_sort(all, {}, &One::failed_at);
    return collect<verdict::Unexplained>(all, &One::of);
  }
};

}  // namespace

bool Subject::same_as(const Subject& other) const {
  if (kind != other.kind || what != other.what) return false;
  if (works.empty() || other.works.empty()) return works.empty() && other.works.empty();
  const auto shared =
      std::ranges::count_if(works, [&](const auto& work) { return holds(other.works, work); });
  if (is_move(kind) && shared > 0) return true;
  return works.front() == other.works.front() ||
         2 * shared >= std::ssize(works) + std::ssize(other.works) - shared;
}

Subject subject_of(const Finding& finding) {
  constexpr std::array k_of_metrics = {kind::memory_changed, kind::served_changed,
                                       kind::count_changed};
  Subject subject{finding.kind, {}, {}, {}, false};
  if (finding.kind == kind::user_rule) subject.what = finding.headline;
  if (finding.kind == kind::calls_changed && !finding.numbers.empty()) {
    subject.what = finding.numbers.front().name;
  }
  if (holds(k_of_metrics, finding.kind)) {
    const auto metric = unit::find_metric(finding.metric);
    subject.what = metric ? metric->base : finding.metric;
  }
  for (const std::string& op : finding.ops) {
    if (has_no_name(op)) continue;
    const profile::Role role = profile::role_of(op);
    subject.known = subject.known || !role.works.empty();
    if (role.work.empty() || holds(subject.works, role.work)) continue;
    subject.works.push_back(role.work);
    subject.spelled.push_back(op);
  }
  return subject;
}

void find_causes(verdict::GateVerdict& gate) {
  std::vector<Group> groups;
  Rest rest;
  for (const CellVerdict& cell : gate.cells) {
    if (cell.verdict != Outcome::fail) continue;
    const std::set<std::string> claimed = add_findings(cell, groups);
    for (const Judged& one : judged(cell)) {
      if (!claimed.contains(one.what)) rest.add(one, cell.cell.str());
    }
  }
  join_nameless(groups);
  gate.causes.clear();
  for (const Group& group : groups) {
    verdict::Cause cause = cause_of(group);
    std::set<const CellVerdict*> its;
    for (const Member& member : group.members) its.insert(member.cell);
    for (const CellVerdict& cell : gate.cells) {
      if (its.contains(&cell)) cause.cells.push_back(cell.cell.str());
    }
    gate.causes.push_back(std::move(cause));
  }
  std::ranges::stable_sort(gate.causes, std::greater(),
                           [](const verdict::Cause& cause) { return cause.cells.size(); });
  gate.unexplained = std::move(rest).in_order();
}

}  // namespace weir::explain

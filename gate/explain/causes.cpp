// Groups findings of several cells into causes: one change of an engine that broke many cells.
#include "gate/explain/causes.hpp"

#include <map>
#include <set>

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

using verdict::CellVerdict;
using verdict::Judgement;
using verdict::Outcome;

struct UnpassedJudgement {
  std::string metric;
  bool failed = false;  // else it is inconclusive
};
// Returns the judgements that failed or are inconclusive, in the cell's order.
std::vector<UnpassedJudgement> unpassed_judgements(const CellVerdict& cell) {
  std::vector<UnpassedJudgement> list;
  for (const Judgement& judgement : cell.judgements) {
    if (judgement.verdict == Outcome::fail || judgement.verdict == Outcome::inconclusive) {
      list.push_back({judgement.metric.name, judgement.verdict == Outcome::fail});
    }
  }
  return list;
}

bool is_move(const std::string& kind) {
  return kind == kind::work_moved_to_cpu || kind == kind::work_moved_to_gpu;
}

// A finding of a cell, with the claims that no finding before it has.
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
  [[nodiscard]] bool has_known_work() const {
    return std::ranges::any_of(subjects, &Subject::is_known);
  }

  [[nodiscard]] bool shares_cells(const Group& other_group) const {
    return std::ranges::any_of(members, [&](const Member& member) {
      return std::ranges::count(other_group.members, member.cell, &Member::cell) > 0;
    });
  }
  [[nodiscard]] bool fits(const Group& other) const {
    return std::ranges::any_of(subjects, [&](const Subject& mine) {
      return std::ranges::any_of(other.subjects,
                                 [&](const Subject& theirs) { return mine.same_as(theirs); });
    });
  }
  // Moves the members of `other` here, and its subjects up to a limit.
  void take(Group& other) {
    constexpr std::size_t k_max_subjects = 16;
    std::ranges::move(other.members, std::back_inserter(members));
    other.members.clear();
    for (Subject& theirs : std::exchange(other.subjects, {})) {
      if (subjects.size() < k_max_subjects && !holds(subjects, theirs)) {
        subjects.push_back(std::move(theirs));
      }
    }
  }
};

// Adds a finding of one cell to the group with the same subject, or to a new group. Two groups
// that it fits become one, unless some cell has a finding in each.
void add_member(std::vector<Group>& groups, Member member) {
  Group single;
  single.subjects.push_back(member.subject);
  single.members.push_back(std::move(member));
  Group* owner = nullptr;
  for (Group& group : groups) {
    if (!group.fits(single)) continue;
    if (owner == nullptr) {
      owner = &group;
    } else if (!owner->shares_cells(group)) {
      owner->take(group);
    }
  }
  if (owner == nullptr) owner = &groups.emplace_back();
  owner->take(single);
  std::erase_if(groups, [](const Group& group) { return group.members.empty(); });
}

// Returns true if the cells are of one engine on other devices, whose kernels have other names.
bool run_on_other_devices(const Group& group, const Group& other_group) {
  return std::ranges::all_of(group.members, [&](const Member& a) {
    return std::ranges::all_of(other_group.members, [&](const Member& b) {
      return a.cell->cell.engine == b.cell->cell.engine && a.cell->device != b.cell->device;
    });
  });
}

// Merges groups whose findings have no known names of kernels into the only group of the same kind
// that has some. A probe may see no names, and another device other ones.
void join_nameless(std::vector<Group>& groups) {
  for (Group& group : groups) {
    if (group.members.empty() || group.has_known_work()) continue;
    const bool has_unknown_names = group.names_works();
    std::vector<Group*> candidates;
    for (Group& other_group : groups) {
      const bool fits = !other_group.members.empty() && other_group.names_works() &&
                        other_group.kind() == group.kind() &&
                        other_group.subject().what == group.subject().what;
      if (!fits || (has_unknown_names &&
                    !(other_group.has_known_work() && run_on_other_devices(group, other_group)))) {
        continue;
      }
      candidates.push_back(&other_group);
    }
    if (candidates.size() != 1) continue;
    for (Member& member : group.members) member.subject.works.clear();
    candidates.front()->take(group);
  }
  std::erase_if(groups, [](const Group& group) { return group.members.empty(); });
}

// --- what is true of all members -----------------------------------------------------------------

// Returns a text of the findings if all have the same; else "".
std::string common_text(const Group& group, std::string Finding::*text) {
  const std::string& first = group.members.front().finding->*text;
  const bool all = std::ranges::all_of(
      group.members, [&](const Member& member) { return member.finding->*text == first; });
  return all ? first : "";
}

struct Names {
  std::vector<std::string> all;  // in order of how many cells name them
  std::size_t common = 0;        // how many of them every cell names that names any
};
// Counts in how many findings of the group each kind of work is named, the most frequent first.
// `common` of them are in all findings. Spelled as in the findings if these agree.
Names count_names(const Group& group) {
  struct Count {
    std::string work, spelled;
    std::int64_t members = 0;
  };
  std::vector<Count> counts;
  std::map<std::string, std::size_t> index_of_work;
  std::int64_t naming_members = 0;
  for (const Member& member : group.members) {
    const auto& works = member.subject.works;
    const auto& spelled = member.subject.spelled;
    if (!works.empty()) ++naming_members;
    for (std::size_t i = 0; i < works.size(); ++i) {
      const auto [entry, is_new] = index_of_work.try_emplace(works[i], counts.size());
      if (is_new) counts.push_back({works[i], spelled[i]});
      Count& count = counts[entry->second];
      if (count.spelled != spelled[i]) count.spelled = works[i];
      ++count.members;
    }
  }
  std::ranges::stable_sort(counts, std::greater(), &Count::members);
  Names names;
  for (const Count& count : counts) {
    names.all.push_back(count.spelled);
    if (count.members == naming_members) ++names.common;
  }
  return names;
}

// Keeps only ops, if the first name is one. Work that moved is the same op everywhere, but kernels
// differ by device and may do more.
void keep_ops(std::vector<std::string>& names) {
  const auto is_op = [](const std::string& name) {
    return std::ranges::none_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
  };
  if (!names.empty() && is_op(names.front())) std::erase_if(names, std::not_fn(is_op));
}

// Returns the work that ran as one, or now does, if all findings of a fusion agree on it; else "".
std::string joined_work(const Group& group, const Names& common_names) {
  const bool is_fusion = group.kind() == kind::fusion_lost || group.kind() == kind::fusion_gained;
  const auto first_work = [](const Member& member) {
    return member.subject.works.empty() ? "" : member.subject.works.front();
  };
  const std::string work = first_work(group.members.front());
  const bool agree = std::ranges::all_of(
      group.members, [&](const Member& member) { return first_work(member) == work; });
  return is_fusion && agree && common_names.common > 0 ? common_names.all.front() : "";
}

// Returns the sentence of the kind. If all findings only seem to be of it, the sentence says so.
std::string_view kind_sentence(const Group& group, const FindingKind& kind) {
  const bool seems = std::ranges::all_of(group.members, [](const Member& member) {
    return member.finding->headline.find(" seem") != std::string::npos;
  });
  return seems && !kind.seems.empty() ? kind.seems : kind.sentence;
}

// Returns a headline: the sentence for the kind of finding, then up to three works that all
// findings of the group name.
std::string kind_headline(const Group& group, const Names& common_names, const FindingKind& kind) {
  constexpr std::size_t k_max_names = 3;
  const std::string_view sentence = kind_sentence(group, kind);
  if (const std::string joined = joined_work(group, common_names); !joined.empty()) {
    return fmt::format("{}: {} {}.", sentence, safe_name(joined),
                       group.kind() == kind::fusion_lost ? "now runs in parts" : "now runs as one");
  }
  std::vector<std::string> names(
      common_names.all.begin(),
      common_names.all.begin() + static_cast<std::ptrdiff_t>(common_names.common));
  if (is_move(group.kind())) keep_ops(names);
  const std::size_t more = names.size() - std::min(names.size(), k_max_names);
  names.resize(names.size() - more);
  for (std::string& name : names) name = safe_name(name);
  const std::string& what = group.subject().what;
  if (!what.empty()) names.insert(names.begin(), safe_name(readable_name(what)));
  std::string headline(sentence);
  if (!names.empty()) headline += ": " + text::join(names);
  if (more > 0) headline += fmt::format(" and {} more", more);
  return headline + ".";
}

// Returns the headline that all findings share, with numbers or without them; else one made of
// their kind and of the works that all of them name.
std::string cause_headline(const Group& group, const Names& common_names) {
  if (std::string headline = common_text(group, &Finding::headline); !headline.empty())
    return headline;
  if (std::string summary = common_text(group, &Finding::summary); !summary.empty()) return summary;
  const FindingKind* kind = find_named(k_finding_kinds, group.kind());
  const bool has_sentence = kind != nullptr && !kind->sentence.empty();
  if (!has_sentence) return group.members.front().finding->headline;
  return kind_headline(group, common_names, *kind);
}

// --- metrics that changed ------------------------------------------------------------------------

// A metric that changed in cells of a cause. Metrics that are no counts follow from counts, and
// come last.
struct ChangedMetric {
  verdict::Carrier carrier;
  std::int64_t failed = 0;  // cells
  unit::Metric metric{};
};

// Returns the position of a metric in the order of how much it explains. Work that moved is counted
// by the ops on the CPU.
std::size_t metric_rank(const std::string& base, bool is_move) {
  constexpr std::array k_telling = {"dispatches", "syncs",   "barriers",     "copies", "submits",
                                    "splits",     "cpu_ops", "copied_bytes", "graphs"};
  if (is_move && base == "cpu_ops") return 0;
  return static_cast<std::size_t>(std::ranges::find(k_telling, base) - k_telling.begin()) + 1;
}

// Collects the metrics that the group's findings explain, with the range of their changes over
// cells. Metrics that failed in most cells come first.
std::vector<ChangedMetric> collect_changed_metrics(const Group& group) {
  std::map<std::string, ChangedMetric> metrics;
  std::map<std::string, std::set<const CellVerdict*>> failed_cells;  // by the metric's base name
  for (const Member& member : group.members) {
    const std::set<std::string_view> claims(member.claims.begin(), member.claims.end());
    for (const Judgement& judgement : member.cell->metrics()) {
      const std::string& name = judgement.metric.name;
      if (!claims.contains(name)) continue;
      ChangedMetric& changed = metrics[name];
      verdict::Carrier& range = changed.carrier;
      range.metric = name;
      changed.metric = judgement.metric;
      if (judgement.verdict == Outcome::fail) {
        ++changed.failed;
        failed_cells[judgement.metric.base].insert(member.cell);
      }
      if (!judgement.baseline || !judgement.current) continue;
      const double change = *judgement.current - *judgement.baseline;
      range.min_change = range.cells == 0 ? change : std::min(range.min_change, change);
      range.max_change = range.cells == 0 ? change : std::max(range.max_change, change);
      ++range.cells;
    }
  }
  std::vector<ChangedMetric> list;
  for (auto& [name, changed] : metrics) list.push_back(std::move(changed));
  std::ranges::stable_sort(list, {}, [&](const ChangedMetric& entry) {
    const std::string& base = entry.metric.base;
    return std::tuple(entry.carrier.cells == 0, entry.metric.kind != unit::Kind::count,
                      entry.failed == 0, -std::ssize(failed_cells[base]),
                      metric_rank(base, is_move(group.kind())), entry.metric.scope);
  });
  return list;
}

// Returns the sentences of other kinds of findings in these cells, the most frequent first, at
// most three. Kinds that any change brings along are left out.
std::vector<std::string> other_kinds(const Group& group) {
  constexpr std::size_t k_max_counts_listed = 3;
  constexpr std::array k_follow_any_change = {kind::memory_changed, kind::fixed_cost_changed,
                                              kind::code_changed,   kind::made_late,
                                              kind::count_changed,  kind::time_changed};
  std::vector<std::pair<const FindingKind*, std::int64_t>> counts;  // in how many cells
  for (const Member& member : group.members) {
    std::set<std::string> kinds{group.kind()};
    for (const Finding& other_finding : member.cell->findings) {
      const FindingKind* kind = find_named(k_finding_kinds, other_finding.kind);
      if (other_finding.also || !other_finding.claims.empty() || kind == nullptr ||
          kind->sentence.empty()) {
        continue;
      }
      if (holds(k_follow_any_change, other_finding.kind)) continue;
      const bool is_new = kinds.insert(other_finding.kind).second;
      if (!is_new) continue;
      auto* count = find_first(counts, [&](const auto& entry) { return entry.first == kind; });
      if (count == nullptr) count = &counts.emplace_back(kind, 0);
      ++count->second;
    }
  }
  std::ranges::stable_sort(counts, std::greater(), [](const auto& entry) { return entry.second; });
  if (counts.size() > k_max_counts_listed) counts.resize(k_max_counts_listed);
  return collect<std::string>(counts, [](const auto& entry) { return entry.first->sentence; });
}

// Describes the cause that a group of findings stands for, without its cells: headline, up to
// three metrics that show it, ops, and where to look.
verdict::Cause make_cause(const Group& group) {
  constexpr std::size_t k_max_carriers = 3, k_max_ops = 16;
  verdict::Cause cause;
  Names names = count_names(group);
  cause.kind = group.kind();
  cause.headline = cause_headline(group, names);
  cause.ops = std::move(names.all);
  if (cause.ops.size() > k_max_ops) cause.ops.resize(k_max_ops);
  const std::vector<ChangedMetric> changed_metrics = collect_changed_metrics(group);
  std::set<std::string> listed_bases;  // a count per token and per prefill is listed once
  for (const ChangedMetric& entry : changed_metrics) {
    if (cause.carriers.size() == k_max_carriers || entry.carrier.cells == 0) break;
    // Metrics that broke no limit are worth a line only if none did.
    if (entry.failed == 0 && changed_metrics.front().failed > 0) continue;
    if (listed_bases.insert(entry.metric.base).second) cause.carriers.push_back(entry.carrier);
  }
  cause.follow = std::ssize(changed_metrics) - std::ssize(cause.carriers);
  cause.cause = common_text(group, &Finding::cause);
  cause.look_at = common_text(group, &Finding::look_at);
  cause.beside = other_kinds(group);
  return cause;
}

// --- cells ---------------------------------------------------------------------------------------

// Adds the findings that explain a failed metric of this cell to the groups. Returns the metrics
// that they explain; each belongs to the first finding that claims it.
std::set<std::string> add_findings(const CellVerdict& cell, std::vector<Group>& groups) {
  std::set<std::string> failed, claimed;
  for (const UnpassedJudgement& judgement : unpassed_judgements(cell)) {
    if (judgement.failed) failed.insert(judgement.metric);
  }
  for (const Finding& finding : cell.findings) {
    if (finding.also) continue;
    Member member{&cell, &finding, {}, finding_subject(finding)};
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

// Collects metrics that no cause explains: those that failed somewhere first, then in the order of
// cells.
struct Unexplained {
  struct Entry {
    std::vector<std::string> cells{};
    std::size_t failed_at = SIZE_MAX;  // how many failures came before its first
  };
  Grouped<std::string, Entry> metrics;
  std::size_t failures = 0;

  void add(const UnpassedJudgement& judgement, const std::string& cell) {
    Entry& entry = metrics.find_or_add(judgement.metric, judgement.metric);
    entry.cells.push_back(cell);
    if (!judgement.failed) return;
    entry.failed_at = std::min(entry.failed_at, failures);
    ++failures;
  }
  [[nodiscard]] std::vector<verdict::Unexplained> in_order() && {
    std::ranges::stable_sort(metrics.all, {},
                             [](const auto& metric) { return metric.second.failed_at; });
    return collect<verdict::Unexplained>(metrics.all, [](auto& metric) {
      return verdict::Unexplained{metric.first, metric.second.cells};
    });
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

// Returns what a finding is about, to compare findings of different cells: its kind, its metric,
// and the works of its ops.
Subject finding_subject(const Finding& finding) {
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
    const profile::Role role = profile::parse_role(op);
    subject.is_known = subject.is_known || !role.works.empty();
    if (role.work.empty() || holds(subject.works, role.work)) continue;
    subject.works.push_back(role.work);
    subject.spelled.push_back(op);
  }
  return subject;
}

// Groups the findings of all failed cells, turns each group into a cause, the most frequent first,
// and lists failed metrics without one as unexplained.
void find_causes(verdict::GateVerdict& gate) {
  std::vector<Group> groups;
  Unexplained unexplained;
  for (const CellVerdict& cell : gate.cells) {
    if (cell.verdict != Outcome::fail) continue;
    const std::set<std::string> claimed = add_findings(cell, groups);
    for (const UnpassedJudgement& judgement : unpassed_judgements(cell)) {
      if (!claimed.contains(judgement.metric)) unexplained.add(judgement, cell.cell.str());
    }
  }
  join_nameless(groups);
  gate.causes.clear();
  for (const Group& group : groups) {
    verdict::Cause cause = make_cause(group);
    std::set<const CellVerdict*> cells;
    for (const Member& member : group.members) cells.insert(member.cell);
    for (const CellVerdict& cell : gate.cells) {
      if (cells.contains(&cell)) cause.cells.push_back(cell.cell.str());
    }
    gate.causes.push_back(std::move(cause));
  }
  std::ranges::stable_sort(gate.causes, std::greater(),
                           [](const verdict::Cause& cause) { return cause.cells.size(); });
  gate.unexplained = std::move(unexplained).in_order();
}

}  // namespace weir::explain

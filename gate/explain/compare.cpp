#include "gate/explain/compare.hpp"

#include <array>
#include <cmath>
#include <tuple>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/explain/evidence.hpp"
#include "gate/explain/explain.hpp"
#include "gate/explain/timed_together.hpp"
#include "gate/observed/totals.hpp"
#include "gate/profile/kernel_name.hpp"

namespace weir::explain {
namespace {

using profile::Role;
using profile::role_of;

// Work of one name, type, shape and backend.
struct WorkRow {
  std::string kind;  // of a trace what is no work of a device: "wait"; else ""
  Role role;
  std::string name, type, shape, backend;
  std::optional<double> calls, seconds;  // per unit
};

struct WorkRows {
  ComparedInput side;
  std::string per;  // "token", "prefill", "" of all
  std::vector<WorkRow> rows;
  std::map<std::string, ComparedOp> buffers;  // by label
  std::vector<MetricChange> metrics;          // with `a` filled in
  std::vector<std::string> doubts;
};

using observed::Observed;
using observed::ObservedOp;
using profile::Profile;

constexpr std::size_t k_most_doubts = 8;  // of the document's own

// Nothing where one of them is not told.
void add(std::optional<double>& to, const std::optional<double>& one) {
  to = to && one ? std::optional(*to + *one) : std::nullopt;
}

std::string kind_of(const ObservedOp& op) { return is_device_work(op) ? "" : op.category; }

ComparedInput side_of(const Observed& observed) {
  ComparedInput side;
  side.format = observed.format;
  const auto& context = observed.context;
  for (const auto* part : {&context.engine, &context.engine_build, &context.model, &context.backend,
                           &context.device}) {
    if (!*part || (*part)->empty()) continue;
    side.words += (side.words.empty() ? "" : " \u00b7 ") + **part;
  }
  return side;
}

std::vector<std::string> first_few(const std::vector<std::string>& warnings) {
  const auto most = static_cast<std::ptrdiff_t>(std::min(warnings.size(), k_most_doubts));
  return {warnings.begin(), warnings.begin() + most};
}

// "MUL_MAT q8_0,f32->f32 256x64,256->64": an op of the CPU, as a profile names it.
WorkRow op_row(const std::string& named) {
  WorkRow row;
  for (const std::string& word : text::split(named, ' ')) {
    const bool sides = word.find("->") != std::string::npos;
    const bool digit = !word.empty() && text::is_digit(word.front());
    std::string& into = !sides ? row.name : digit ? row.shape : row.type;
    into += (into.empty() ? "" : " ") + word;
  }
  row.role = role_of(row.name);
  return row;
}

std::string unit_of(const profile::KernelSet& kernels) {
  if (kernels.scope == unit::Scope::per_token) return "token";
  if (kernels.scope == unit::Scope::per_prefill) return "prefill";
  if (kernels.scope == unit::Scope::per_request) return "request";
  // Counts of another length are no counts of the same work.
  return kernels.length ? fmt::format("run of length {}", *kernels.length) : "";
}

bool tells_kernels(const Observed& observed) {
  return std::ranges::any_of(observed.ops, [](const ObservedOp& op) { return !op.kernel.empty(); });
}

// `by_kernel`: both sides tell kernels, which name the work then; else ops do.
WorkRows work_rows(const Observed& observed, const Shared& shared, bool by_kernel) {
  WorkRows made;
  made.side = side_of(observed);
  for (observed::ObservedFigure& one : observed::figures_of(observed)) {
    // Of a case that failed nothing is compared.
    if (!one.error) made.metrics.push_back({std::move(one.name), one.metric, one.value, {}});
  }
  made.doubts = first_few(observed.warnings);
  const observed::BuffersOfTokens buffers = observed::buffers_per_token(observed);
  for (const observed::BuffersPerToken& one : buffers.labels) {
    made.buffers[one.label] = {{one.label}, {}, {}, {}, one.buffers.value(), one.seconds};
  }
  made.side.all_labels = buffers.whole;
  const RowChoice choice = rows_of_side(observed, shared);
  if (shared.per_token) {
    made.per = "token";
    made.side.tokens = choice.tokens;
  }
  std::map<std::array<std::string, 5>, WorkRow> sums;
  for (const ObservedOp& op : observed.ops) {
    if (!choice.takes(op)) continue;
    const bool kernel = op.op.empty() || (by_kernel && !op.kernel.empty());
    WorkRow row{kind_of(op), {}, kernel ? op.kernel : op.op, op.type, op.shape, op.backend, 0, 0};
    const auto key = std::array{row.kind, row.name, row.type, row.shape, row.backend};
    WorkRow& sum = sums.try_emplace(key, std::move(row)).first->second;
    add(sum.calls, op.calls);
    add(sum.seconds, observed::time_of_its_own(op));
  }
  const auto tokens = static_cast<double>(choice.tokens);
  for (auto& [key, row] : sums) {
    const WorkRow* last = made.rows.empty() ? nullptr : &made.rows.back();  // of one name, perhaps
    row.role = last != nullptr && last->kind == row.kind && last->name == row.name ? last->role
               : row.kind.empty() ? role_of(row.name)
                                  : Role{row.name, "", ""};
    if (row.backend.empty()) row.backend = observed.context.backend.value_or("");
    if (row.calls) *row.calls /= tokens;
    if (row.seconds) *row.seconds /= tokens;
    made.rows.push_back(std::move(row));
  }
  return made;
}

WorkRows work_rows(const Profile& profile) {
  WorkRows made;
  made.side.format = "weir";
  made.side.words = profile.cell.str();
  if (!profile.provenance.device_name.empty()) {
    made.side.words += " \u00b7 " + profile.provenance.device_name;
  }
  for (const auto& [name, measured] : profile.metrics) {
    const auto value = measured.value();
    if (!value) continue;
    if (const auto label = unit::buffer_label(name)) {
      const std::string text(*label);
      made.buffers[text] = {{text}, {}, {}, {}, value, {}};
    } else {
      made.metrics.push_back({name, measured.metric, value, {}});
    }
  }
  made.doubts = first_few(profile.warnings);
  const bool cpu = profile.device == "cpu";
  if (profile.kernels && !profile.kernels->varies) {
    made.per = unit_of(*profile.kernels);
    for (const auto& [name, count] : profile.kernels->counts) {
      WorkRow row = cpu ? op_row(name) : WorkRow{"", role_of(name), name, {}, {}, {}, {}, {}};
      row.backend = profile.device;
      row.calls = count.value();
      made.rows.push_back(std::move(row));
    }
  } else if (profile.kernels) {
    made.doubts.emplace_back("runs of one length disagree about kernels: they are left out");
  }
  if (cpu) return made;
  for (const auto& [op, count] : profile.placement.cpu_ops) {
    WorkRow row = op_row(op);
    row.backend = "cpu";
    row.calls = static_cast<double>(count);
    made.rows.push_back(std::move(row));
  }
  return made;
}

using Rows = std::vector<const WorkRow*>;

// Rows of one role on both sides.
struct Together {
  Rows a, b;
};

// What tells rows of one role apart: part, shape and type; "" where it is not told.
constexpr std::size_t k_part = 0, k_shape = 1, k_type = 2;
using Detail = std::array<std::string, 3>;
Detail detail_of(const WorkRow& row) {
  return {row.role.part, row.shape, row.type.empty() ? row.role.variant : row.type};
}

// Both sides tell it, and in words of one kind: those of other formats have none in common. Where
// both have the same parts, one of them may have no name: "gemv" beside "gemv_ffn".
bool in_common(const Together& rows, std::size_t which) {
  if (rows.a.empty() || rows.b.empty()) return which != k_type;
  std::set<std::string> a, b;
  for (const WorkRow* row : rows.a) a.insert(detail_of(*row)[which]);
  for (const WorkRow* row : rows.b) b.insert(detail_of(*row)[which]);
  if (which == k_part && a == b) return true;
  if (a.contains("") || b.contains("")) return false;
  // Types of which some are others now: what took the place of what nobody says.
  if (which == k_type) return a == b;
  return std::ranges::any_of(a, [&](const auto& one) { return b.contains(one); });
}

// Parts of a side whose names say where else the same work is done: "lm_head_gemv" beside "gemv". A
// side that has no such name may have no such work.
std::set<std::string> other_places(const Together& rows) {
  constexpr std::size_t k_longest = 512;
  std::set<std::string> places;
  for (const Rows& side : {rows.a, rows.b}) {
    std::set<std::string_view> names;
    for (const WorkRow* row : side) names.insert(row->name);
    for (const WorkRow* row : side) {
      const std::string_view name = std::string_view(row->name).substr(0, k_longest);
      for (std::size_t at = name.find('_'); at != name.npos; at = name.find('_', at + 1)) {
        if (names.contains(name.substr(at + 1))) places.insert(row->role.part);
      }
    }
  }
  places.erase("");
  return places;
}

std::map<Detail, Together> kept_apart(const Together& rows) {
  const std::array used{in_common(rows, k_part), in_common(rows, k_shape), in_common(rows, k_type)};
  const std::set<std::string> alike = shapes_alike(rows.a, rows.b), places = other_places(rows);
  std::map<Detail, Together> apart;
  for (Rows Together::*side : {&Together::a, &Together::b}) {
    for (const WorkRow* row : rows.*side) {
      Detail detail = detail_of(*row);
      for (std::size_t i = 0; i < used.size(); ++i) {
        const bool told =
            i == k_shape ? alike.contains(detail[i]) : i == k_part && places.contains(detail[i]);
        if (!used[i] && !told) detail[i].clear();
      }
      (apart[std::move(detail)].*side).push_back(row);
    }
  }
  return apart;
}

// One row that is gone and one that is new are one whose shape is another.
void join_leftovers(std::map<Detail, Together>& apart) {
  const std::pair<const Detail, Together>*gone = nullptr, *fresh = nullptr;
  for (auto& one : apart) {
    if (!one.second.a.empty() && !one.second.b.empty()) continue;
    auto*& into = one.second.b.empty() ? gone : fresh;
    if (into != nullptr) return;
    into = &one;
  }
  if (gone == nullptr || fresh == nullptr || gone->first.front() != fresh->first.front()) return;
  apart[gone->first].b = fresh->second.b;
  apart.erase(Detail(fresh->first));
}

std::optional<ComparedOp> sum_of(const Rows& rows) {
  if (rows.empty()) return std::nullopt;
  ComparedOp sum;
  sum.calls = sum.seconds = 0;
  for (const WorkRow* row : rows) {
    sum.names.insert(row->name);
    sum.types.insert(detail_of(*row)[k_type]);
    sum.shapes.insert(row->shape);
    sum.backends.insert(row->backend);
    add(sum.calls, row->calls);
    add(sum.seconds, row->seconds);
  }
  for (auto* texts : {&sum.names, &sum.types, &sum.shapes, &sum.backends}) texts->erase("");
  if (sum.seconds && !std::isfinite(*sum.seconds)) sum.seconds.reset();
  return sum;
}

Shift change_of(const OpChange& op) {
  if (!op.a) return Shift::fresh;
  if (!op.b) return Shift::gone;
  const auto each = op.each_ratio();
  if (each && *each >= k_slower) return Shift::slower;
  if (op.a->calls && op.b->calls && !as_often(*op.a->calls, *op.b->calls)) {
    return *op.b->calls > *op.a->calls ? Shift::more_calls : Shift::fewer_calls;
  }
  return each && *each <= 1 / k_slower ? Shift::faster : Shift::same;
}

// By change, then the largest first; what is the same goes by its size.
void sort_ops(std::vector<OpChange>& ops) {
  const auto size = [](const OpChange& op, std::optional<double> ComparedOp::*what) {
    const double from = op.a ? ((*op.a).*what).value_or(0) : 0;
    const double to = op.b ? ((*op.b).*what).value_or(0) : 0;
    return op.change == Shift::same ? (op.b ? to : from) : std::fabs(to - from);
  };
  std::ranges::stable_sort(ops, {}, [&](const OpChange& op) {
    return std::tuple(op.change, -size(op, &ComparedOp::seconds), -size(op, &ComparedOp::calls));
  });
}

// Without calls: one of a group is several of its parts.
OpChange change_of_group(const TimedTogether& group, const Together& rows) {
  OpChange op;
  op.kind = group.kind;
  op.role = group.role;
  op.a = sum_of(rows.a);
  op.b = sum_of(rows.b);
  for (auto* side : {&op.a, &op.b}) (*side)->calls.reset();
  op.change = change_of(op);
  return op;
}

std::vector<WorkName> names_of(const WorkRows& side) {
  return collect<WorkName>(side.rows, [](const WorkRow& row) {
    return WorkName{row.kind, row.role, row.name, row.shape, row.calls};
  });
}

std::vector<OpChange> match(const WorkRows& a, const WorkRows& b) {
  std::vector<OpChange> ops;
  std::set<const WorkRow*> joined;
  const auto take = [&](const WorkRows& side, const std::vector<std::size_t>& indices) {
    const Rows rows =
        collect<const WorkRow*>(indices, [&](std::size_t index) { return &side.rows[index]; });
    joined.insert(rows.begin(), rows.end());
    return rows;
  };
  for (const TimedTogether& group : timed_together(names_of(a), names_of(b))) {
    ops.push_back(change_of_group(group, {take(a, group.a), take(b, group.b)}));
  }
  std::map<std::pair<std::string, std::string>, Together> roles;  // by kind and work
  for (const auto& [side, rows] : {std::pair(&a, &Together::a), {&b, &Together::b}}) {
    for (const WorkRow& row : side->rows) {
      if (!joined.contains(&row)) (roles[{row.kind, row.role.work}].*rows).push_back(&row);
    }
  }
  for (const auto& [role, rows] : roles) {
    auto apart = kept_apart(rows);
    join_leftovers(apart);
    for (const auto& [detail, both] : apart) {
      OpChange op{role.second,    detail.front(), Shift::same,
                  sum_of(both.a), sum_of(both.b), role.first};
      op.change = change_of(op);
      ops.push_back(std::move(op));
    }
  }
  sort_ops(ops);
  return ops;
}

std::vector<OpChange> match_buffers(const WorkRows& a, const WorkRows& b) {
  std::map<std::string, OpChange> labels;
  for (const auto& [label, side] : a.buffers) labels[label].a = side;
  for (const auto& [label, side] : b.buffers) labels[label].b = side;
  std::vector<OpChange> buffers;
  for (auto& [label, one] : labels) {
    one.role = label;
    one.change = change_of(one);
    buffers.push_back(std::move(one));
  }
  sort_ops(buffers);
  return buffers;
}

// What the rows of command buffers cannot tell.
void doubt_buffers(const WorkRows& a, const WorkRows& b, std::vector<std::string>& doubts) {
  for (const auto& [side, other, names] :
       {std::tuple(&a, &b, std::pair("A", "B")), {&b, &a, std::pair("B", "A")}}) {
    if (other->buffers.empty()) continue;
    if (side->buffers.empty()) {
      doubts.push_back(fmt::format(
          "{} does not tell the command buffers of a token by label: those of {} are compared "
          "with nothing",
          names.first, names.second));
    } else if (!side->side.all_labels) {
      doubts.push_back(fmt::format(
          "{} does not list all labels of command buffers: one that it lacks may be there",
          names.first));
    }
  }
}

// Of what devices did, where anything of a side is said to be that.
void sum_times(Comparison& made) {
  using Side = std::optional<ComparedOp> OpChange::*;
  const auto times = [](const OpChange& op, Side side) { return op.*side && (op.*side)->seconds; };
  const auto any = [&](Side side, bool device) {
    return std::ranges::any_of(made.ops, [&](const OpChange& op) {
      return times(op, side) && (!device || op.kind.empty());
    });
  };
  const bool both = any(&OpChange::a, false) && any(&OpChange::b, false);
  for (const auto& [side, other, sum] : {std::tuple(&OpChange::a, &OpChange::b, &made.seconds_a),
                                         {&OpChange::b, &OpChange::a, &made.seconds_b}}) {
    const bool devices = any(side, true);
    for (const OpChange& op : made.ops) {
      if (!times(op, side) || (devices && !op.kind.empty())) continue;
      if (both && op.*other && !times(op, other)) {
        ++made.untimed;
      } else {
        *sum = sum->value_or(0) + *(op.*side)->seconds;
      }
    }
    if (*sum && !std::isfinite(**sum)) sum->reset();
  }
}

std::vector<MetricChange> match_metrics(std::vector<MetricChange> a,
                                        const std::vector<MetricChange>& b) {
  // A file may have a name twice (a test with two numbers of threads): the first goes with the
  // first.
  using Named = std::pair<std::string, std::size_t>;
  std::map<std::string, std::size_t> times;
  std::map<Named, std::size_t> known;
  for (std::size_t i = 0; i < a.size(); ++i) known.emplace(Named{a[i].name, times[a[i].name]++}, i);
  times.clear();
  for (const MetricChange& one : b) {
    const auto at = known.find(Named{one.name, times[one.name]++});
    if (at == known.end()) {
      a.push_back({one.name, one.metric, std::nullopt, one.a});
    } else if (a[at->second].metric.unit == one.metric.unit) {
      a[at->second].b = one.a;
    }
  }
  return a;
}

Shared alone(const Observed& observed) { return shared_of(observed, observed); }

// Rows of A and of B; whether these are of decoding alone, and what is doubtful, goes into `made`.
using TwoRows = std::pair<WorkRows, WorkRows>;

TwoRows rows_of_both(const Observed& a, const Observed& b, Comparison& made) {
  const Shared shared = shared_of(a, b);
  const bool by_kernel = tells_kernels(a) && tells_kernels(b);
  TwoRows both{work_rows(a, shared, by_kernel), work_rows(b, shared, by_kernel)};
  made.decoding = shared.decoding;
  if (both.first.rows.empty() && both.second.rows.empty()) return both;
  if (!shared.decoding && (alone(a).decoding || alone(b).decoding)) {
    made.doubts.push_back(fmt::format("only {} separates decode from prefill: all is compared",
                                      alone(a).decoding ? "A" : "B"));
  }
  if (!shared.per_token) {
    made.doubts.emplace_back(
        "A or B does not report its tokens: calls and times are of whole runs, whatever their "
        "lengths");
  }
  return both;
}

TwoRows rows_of_both(const Compared& a, const Compared& b, Comparison& made) {
  const auto* const* observed_a = std::get_if<const Observed*>(&a.what);
  const auto* const* observed_b = std::get_if<const Observed*>(&b.what);
  if (observed_a && observed_b) return rows_of_both(**observed_a, **observed_b, made);
  const auto rows = [](const Compared& one, const Compared& other) {
    if (const auto* profile = std::get_if<const Profile*>(&one.what)) return work_rows(**profile);
    const Observed& observed = *std::get<const Observed*>(one.what);
    const bool cpu = std::get<const Profile*>(other.what)->device == "cpu";
    return work_rows(observed, alone(observed), !cpu && tells_kernels(observed));
  };
  TwoRows both{rows(a, b), rows(b, a)};
  auto& [rows_a, rows_b] = both;
  if (rows_a.rows.empty() || rows_b.rows.empty() || rows_a.per == rows_b.per) return both;
  made.doubts.emplace_back(
      "A and B do not count by the same unit: what is new or gone is listed, without how often");
  for (WorkRows* side : {&rows_a, &rows_b}) {
    side->per.clear();
    for (WorkRow& row : side->rows) row.calls = row.seconds = std::nullopt;
  }
  return both;
}

std::optional<double> ratio(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b || *a <= 0) return std::nullopt;
  return *b / *a;
}

}  // namespace

std::optional<double> OpChange::time_ratio() const {
  return a && b ? ratio(a->seconds, b->seconds) : std::nullopt;
}

// Where calls are not told on both sides, of all of them together.
std::optional<double> OpChange::each_ratio() const {
  const auto times = time_ratio();
  if (!times) return std::nullopt;
  const auto calls = ratio(a->calls, b->calls);
  if (!calls) return times;
  return *calls > 0 ? std::optional(*times / *calls) : std::nullopt;
}

Comparison compare(const Compared& a, const Compared& b) {
  Comparison made;
  auto [rows_a, rows_b] = rows_of_both(a, b, made);
  made.ops = match(rows_a, rows_b);
  made.buffers = match_buffers(rows_a, rows_b);
  made.per = rows_a.rows.empty() ? rows_b.per : rows_a.per;
  sum_times(made);
  made.metrics = match_metrics(std::move(rows_a.metrics), rows_b.metrics);
  for (const auto& [side, name] : {std::pair(&rows_a, "A: "), std::pair(&rows_b, "B: ")}) {
    for (const std::string& doubt : side->doubts) made.doubts.push_back(name + doubt);
  }
  doubt_buffers(rows_a, rows_b, made.doubts);
  made.a = std::move(rows_a.side);
  made.b = std::move(rows_b.side);
  made.a.name = a.name;
  made.b.name = b.name;
  return made;
}

std::optional<TokenGap> token_gap(const Comparison& comparison) {
  TokenGap gap;
  bool a = false, b = false;  // is timed
  // Nothing is no time where the side lists all labels.
  const auto time_of = [](const std::optional<ComparedOp>& op, const ComparedInput& side) {
    if (op) return op->seconds;
    return side.all_labels ? std::optional(0.0) : std::nullopt;
  };
  for (const OpChange& one : comparison.buffers) {
    const auto from = time_of(one.a, comparison.a), to = time_of(one.b, comparison.b);
    if (!from || !to) {
      ++gap.untimed;
      continue;
    }
    a = a || one.a;
    b = b || one.b;
    gap.buffers += *to - *from;
    gap.labels.emplace_back(&one, *to - *from);
  }
  if (!a || !b) return std::nullopt;
  std::ranges::stable_sort(gap.labels, {}, [](const auto& one) { return -std::fabs(one.second); });
  for (const MetricChange& one : comparison.metrics) {
    const bool rate = one.name == "decode_tokens_per_second";
    if (rate && one.a && one.b && *one.a > 0 && *one.b > 0) gap.seconds = 1 / *one.b - 1 / *one.a;
  }
  return gap;
}

void shift_named_rows(Comparison& comparison) {
  std::set<std::string> ops, labels;
  for (const verdict::Finding& finding : comparison.findings) {
    if (finding.kind != kind::op_slower && finding.kind != kind::op_faster) continue;
    ops.insert(finding.ops.begin(), finding.ops.end());
  }
  if (const auto gap = token_gap(comparison)) {
    for (std::size_t i = 0; i < std::min(gap->labels.size(), k_gap_labels); ++i) {
      labels.insert(gap->labels[i].first->role);
    }
  }
  const auto named = [&](const std::string& name) { return ops.contains(name); };
  const auto shift = [&](OpChange& op, bool in_gap) {
    const auto ratio = op.time_ratio();
    if (op.change != Shift::same || !ratio) return;
    if (!in_gap && std::ranges::none_of(op.a->names, named) &&
        std::ranges::none_of(op.b->names, named)) {
      return;
    }
    if (*ratio >= k_named) op.change = Shift::slower;
    if (*ratio <= 1 / k_named) op.change = Shift::faster;
  };
  for (OpChange& op : comparison.ops) shift(op, false);
  for (OpChange& buffer : comparison.buffers) shift(buffer, labels.contains(buffer.role));
  sort_ops(comparison.ops);
  sort_ops(comparison.buffers);
}

}  // namespace weir::explain

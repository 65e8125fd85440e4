// Compares two profiles or profiler outputs op by op.
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
#include "gate/stats/quantile.hpp"

namespace weir::explain {
namespace {

using profile::parse_role;
using profile::Role;

// Work of one name, type, shape and backend.
struct WorkRow {
  std::string kind;  // "wait" for rows of a trace that are no device work; else ""
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
  std::vector<std::string> warnings;
};

using observed::Observed;
using observed::ObservedOp;
using profile::Profile;

constexpr std::size_t k_max_warnings = 8;  // a document may report more

// Adds `value` to `sum`; nothing if either is absent.
void add(std::optional<double>& sum, const std::optional<double>& value) {
  sum = sum && value ? std::optional(*sum + *value) : std::nullopt;
}

std::string op_kind(const ObservedOp& op) { return is_device_work(op) ? "" : op.category; }

// Describes the input by the context that the document states: engine, build, model, backend and
// device.
ComparedInput describe_input(const Observed& observed) {
  ComparedInput side;
  side.format = observed.format;
  const auto& context = observed.context;
  for (const auto* part : {&context.engine, &context.engine_build, &context.model, &context.backend,
                           &context.device}) {
    if (!*part || (*part)->empty()) continue;
    text::append_item(side.words, " \u00b7 ", **part);
  }
  return side;
}

std::vector<std::string> first_warnings(const std::vector<std::string>& warnings) {
  const auto shown_count = static_cast<std::ptrdiff_t>(std::min(warnings.size(), k_max_warnings));
  return {warnings.begin(), warnings.begin() + shown_count};
}

// Parses an op of the CPU as profiles name it, "MUL_MAT q8_0,f32->f32 256x64,256->64", into name,
// type and shape.
WorkRow parse_op_row(const std::string& op_name) {
  WorkRow row;
  for (const std::string& word : text::split(op_name, ' ')) {
    const bool is_type_or_shape = word.find("->") != std::string::npos;
    const bool has_digit = !word.empty() && text::is_digit(word.front());
    std::string& type_or_shape = has_digit ? row.shape : row.type;
    std::string& field = is_type_or_shape ? type_or_shape : row.name;
    if (!field.empty()) field += " ";
    field += word;
  }
  row.role = parse_role(row.name);
  return row;
}

// Returns what the counts of these kernels are per: "token", "prefill", "request", "run of length
// 64".
std::string kernel_unit(const profile::KernelSet& kernels) {
  if (kernels.scope == unit::Scope::per_token) return "token";
  if (kernels.scope == unit::Scope::per_prefill) return "prefill";
  if (kernels.scope == unit::Scope::per_request) return "request";
  // Counts of another length are no counts of the same work.
  return kernels.length ? fmt::format("run of length {}", *kernels.length) : "";
}

bool names_kernels(const Observed& observed) {
  return std::ranges::any_of(observed.ops, [](const ObservedOp& op) { return !op.kernel.empty(); });
}

// Reads a profiler's output as rows of ops, or of kernels if both inputs name them (`by_kernel`).
// Calls and times are per token if both inputs report their tokens.
// Cases are named by `settings`.
WorkRows read_rows(const Observed& observed, const Basis& shared, bool by_kernel,
                   const std::vector<std::string>& settings) {
  WorkRows result;
  result.side = describe_input(observed);
  for (observed::ObservedFigure& figure : observed::figures_of(observed, settings)) {
    // A case that failed is not compared.
    if (!figure.error) {
      result.metrics.push_back({std::move(figure.name), figure.metric, figure.value, {}});
    }
  }
  for (const std::string& error : first_warnings(observed.errors)) {
    result.warnings.push_back("it reports an error: " + error);
  }
  std::ranges::move(first_warnings(observed.warnings), std::back_inserter(result.warnings));
  const observed::BuffersOfTokens buffers = observed::buffers_per_token(observed);
  for (const observed::BuffersPerToken& buffer : buffers.labels) {
    result.buffers[buffer.label] = {{buffer.label}, {}, {}, {}, buffer.buffers.value(),
                                    buffer.seconds};
  }
  result.side.all_labels = buffers.is_complete;
  const RowChoice choice = choose_rows(observed, shared);
  if (shared.per_token) {
    result.per = "token";
    result.side.tokens = choice.tokens;
  }
  std::map<std::array<std::string, 5>, WorkRow> sums;
  for (const ObservedOp& op : observed.ops) {
    if (!choice.takes(op)) continue;
    const bool is_kernel = op.op.empty() || (by_kernel && !op.kernel.empty());
    WorkRow row{op_kind(op), {}, is_kernel ? op.kernel : op.op, op.type, op.shape, op.backend,
                0,           0};
    const auto key = std::array{row.kind, row.name, row.type, row.shape, row.backend};
    WorkRow& sum = sums.try_emplace(key, std::move(row)).first->second;
    add(sum.calls, op.calls);
    add(sum.seconds, observed::exclusive_time(op));
  }
  const auto tokens = static_cast<double>(choice.tokens);
  for (auto& [key, row] : sums) {
    // Rows of one name follow one another; finding a role takes long.
    const WorkRow* previous = result.rows.empty() ? nullptr : &result.rows.back();
    if (previous != nullptr && previous->kind == row.kind && previous->name == row.name) {
      row.role = previous->role;
    } else if (row.kind.empty()) {
      row.role = parse_role(row.name);
    } else {
      row.role = Role{row.name, "", ""};
    }
    if (row.backend.empty()) row.backend = observed.context.backend.value_or("");
    if (row.calls) *row.calls /= tokens;
    if (row.seconds) *row.seconds /= tokens;
    result.rows.push_back(std::move(row));
  }
  return result;
}

// Reads a weir profile as rows to compare: its kernels, and the ops that ran on the CPU, with
// calls and without times.
WorkRows read_rows(const Profile& profile) {
  WorkRows result;
  result.side.format = "weir";
  result.side.words = profile.cell.str();
  if (!profile.provenance.device_name.empty()) {
    result.side.words += " \u00b7 " + profile.provenance.device_name;
  }
  for (const auto& [name, measurement] : profile.metrics) {
    const auto value = measurement.value();
    if (!value) continue;
    if (const auto label = unit::buffer_label(name)) {
      const std::string text(*label);
      result.buffers[text] = {{text}, {}, {}, {}, value, {}};
    } else {
      result.metrics.push_back({name, measurement.metric, value, {}});
    }
  }
  for (const std::string& error : first_warnings(profile.errors)) {
    result.warnings.push_back("it has an error: " + error);
  }
  std::ranges::move(first_warnings(profile.warnings), std::back_inserter(result.warnings));
  const bool is_cpu = profile.device == "cpu";
  if (profile.kernels && !profile.kernels->runs_disagree) {
    result.per = kernel_unit(*profile.kernels);
    for (const auto& [name, count] : profile.kernels->counts) {
      WorkRow row =
          is_cpu ? parse_op_row(name) : WorkRow{"", parse_role(name), name, {}, {}, {}, {}, {}};
      row.backend = profile.device;
      row.calls = count.value();
      result.rows.push_back(std::move(row));
    }
  } else if (profile.kernels) {
    result.warnings.emplace_back("runs of one length disagree about kernels: they are left out");
  }
  if (is_cpu) return result;
  for (const auto& [op, count] : profile.placement.cpu_ops) {
    WorkRow row = parse_op_row(op);
    row.backend = "cpu";
    row.calls = static_cast<double>(count);
    result.rows.push_back(std::move(row));
  }
  return result;
}

using Rows = std::vector<const WorkRow*>;

// Rows of one role in A and B.
struct RowPair {
  Rows a, b;
};

// The parts of a key that separates rows of one role: part, shape and type; "" if not known.
constexpr std::size_t k_part = 0, k_shape = 1, k_type = 2;
using RowKey = std::array<std::string, 3>;
RowKey row_key(const WorkRow& row) {
  return {row.role.part, row.shape, row.type.empty() ? row.role.variant : row.type};
}

// Returns true if both sides report this part of the key in comparable words; other formats may use
// other words. If both sides have the same parts, one may have no name: "gemv" beside "gemv_ffn".
bool can_compare(const RowPair& rows, std::size_t index) {
  if (rows.a.empty() || rows.b.empty()) return index != k_type;
  std::set<std::string> a, b;
  for (const WorkRow* row : rows.a) a.insert(row_key(*row)[index]);
  for (const WorkRow* row : rows.b) b.insert(row_key(*row)[index]);
  if (index == k_part && a == b) return true;
  if (a.contains("") || b.contains("")) return false;
  // If only some types differ, they took the place of types that no one reports.
  if (index == k_type) return a == b;
  return std::ranges::any_of(a, [&](const auto& value) { return b.contains(value); });
}

// Returns the parts of names that say that the same work is done in a second place: "lm_head" of
// "lm_head_gemv" if "gemv" runs too. The other side may lack that work.
std::set<std::string> find_other_places(const RowPair& rows) {
  constexpr std::size_t k_max_name_length = 512;
  std::set<std::string> second_places;
  for (const Rows& side_rows : {rows.a, rows.b}) {
    std::set<std::string_view> names;
    for (const WorkRow* row : side_rows) names.insert(row->name);
    for (const WorkRow* row : side_rows) {
      const std::string_view name = std::string_view(row->name).substr(0, k_max_name_length);
      for (std::size_t underscore = name.find('_'); underscore != name.npos;
           underscore = name.find('_', underscore + 1)) {
        if (names.contains(name.substr(underscore + 1))) second_places.insert(row->role.part);
      }
    }
  }
  second_places.erase("");
  return second_places;
}

// Groups rows that do the same work by part, shape and type, each only as far as both sides report
// it. A group has rows of side A, of side B, or of both.
std::map<RowKey, RowPair> group_rows(const RowPair& rows) {
  const std::array is_comparable{can_compare(rows, k_part), can_compare(rows, k_shape),
                                 can_compare(rows, k_type)};
  const std::set<std::string> common_shapes = find_common_shapes(rows.a, rows.b),
                              second_places = find_other_places(rows);
  std::map<RowKey, RowPair> groups;
  for (Rows RowPair::*side : {&RowPair::a, &RowPair::b}) {
    for (const WorkRow* row : rows.*side) {
      RowKey key = row_key(*row);
      for (std::size_t i = 0; i < is_comparable.size(); ++i) {
        const bool is_common = (i == k_shape && common_shapes.contains(key[i])) ||
                               (i == k_part && second_places.contains(key[i]));
        if (!is_comparable[i] && !is_common) key[i].clear();
      }
      Rows& rows_of_side = groups[std::move(key)].*side;
      rows_of_side.push_back(row);
    }
  }
  return groups;
}

// Joins the only group that exists just in A with the only one that exists just in B: the same
// work with another shape.
void join_single_groups(std::map<RowKey, RowPair>& groups) {
  std::vector<RowKey> only_a, only_b;
  for (const auto& [key, rows] : groups) {
    if (rows.b.empty()) {
      only_a.push_back(key);
    } else if (rows.a.empty()) {
      only_b.push_back(key);
    }
  }
  if (only_a.size() != 1 || only_b.size() != 1) return;
  const RowKey &key_a = only_a.front(), &key_b = only_b.front();
  if (key_a.front() != key_b.front()) return;
  groups[key_a].b = groups[key_b].b;
  groups.erase(key_b);
}

// Adds up calls and times of one side's rows, and collects their names, types and shapes. Nothing
// without rows; a sum is absent if a row lacks its value.
std::optional<ComparedOp> sum_rows(const Rows& rows) {
  if (rows.empty()) return std::nullopt;
  ComparedOp sum;
  sum.calls = 0;
  sum.seconds = 0;
  for (const WorkRow* row : rows) {
    sum.names.insert(row->name);
    sum.types.insert(row_key(*row)[k_type]);
    sum.shapes.insert(row->shape);
    sum.backends.insert(row->backend);
    add(sum.calls, row->calls);
    add(sum.seconds, row->seconds);
  }
  for (auto* texts : {&sum.names, &sum.types, &sum.shapes, &sum.backends}) texts->erase("");
  if (sum.seconds && !std::isfinite(*sum.seconds)) sum.seconds.reset();
  return sum;
}

// Returns the first kind of change that holds, in the order of Shift.
Shift classify_change(const OpChange& op) {
  if (!op.a) return Shift::fresh;
  if (!op.b) return Shift::gone;
  const auto each = op.each_ratio();
  if (each && *each >= k_slower_ratio) return Shift::slower;
  if (op.a->calls && op.b->calls && !as_often(*op.a->calls, *op.b->calls)) {
    return *op.b->calls > *op.a->calls ? Shift::more_calls : Shift::fewer_calls;
  }
  return each && *each <= 1 / k_slower_ratio ? Shift::faster : Shift::unchanged;
}

// Sorts by kind of change, then by its size, the largest first. Unchanged ops are sorted by their
// time.
void sort_ops(std::vector<OpChange>& ops) {
  const auto size = [](const OpChange& op, std::optional<double> ComparedOp::*member) {
    const double a = op.a ? ((*op.a).*member).value_or(0) : 0;
    const double b = op.b ? ((*op.b).*member).value_or(0) : 0;
    if (op.shift != Shift::unchanged) return std::fabs(b - a);
    return op.b ? b : a;
  };
  std::ranges::stable_sort(ops, {}, [&](const OpChange& op) {
    return std::tuple(op.shift, -size(op, &ComparedOp::seconds), -size(op, &ComparedOp::calls));
  });
}

// Compares work that one side timed together. It has no calls, because one call of the group is
// several of its parts.
OpChange make_group_change(const TimedTogether& group, const RowPair& rows) {
  OpChange op;
  op.kind = group.kind;
  op.role = group.role;
  op.a = sum_rows(rows.a);
  op.b = sum_rows(rows.b);
  for (auto* side : {&op.a, &op.b}) (*side)->calls.reset();
  op.shift = classify_change(op);
  return op;
}

std::vector<WorkName> work_names(const WorkRows& side) {
  return collect<WorkName>(side.rows, [](const WorkRow& row) {
    return WorkName{row.kind, row.role, row.name, row.shape, row.calls};
  });
}

// Matches the rows of A and B: first work that one side timed together, then by kind of work, and
// within that by as much detail as both report.
std::vector<OpChange> match_ops(const WorkRows& a, const WorkRows& b) {
  std::vector<OpChange> ops;
  std::set<const WorkRow*> timed_rows;
  const auto select_rows = [&](const WorkRows& side, const std::vector<std::size_t>& indices) {
    const Rows rows =
        collect<const WorkRow*>(indices, [&](std::size_t index) { return &side.rows[index]; });
    timed_rows.insert(rows.begin(), rows.end());
    return rows;
  };
  for (const TimedTogether& group : timed_together(work_names(a), work_names(b))) {
    ops.push_back(make_group_change(group, {select_rows(a, group.a), select_rows(b, group.b)}));
  }
  std::map<std::pair<std::string, std::string>, RowPair> rows_of_work;  // by kind and work
  for (const auto& [side, rows] : {std::pair(&a, &RowPair::a), {&b, &RowPair::b}}) {
    for (const WorkRow& row : side->rows) {
      if (timed_rows.contains(&row)) continue;
      Rows& rows_of_side = rows_of_work[{row.kind, row.role.work}].*rows;
      rows_of_side.push_back(&row);
    }
  }
  for (const auto& [work, rows] : rows_of_work) {
    auto groups = group_rows(rows);
    join_single_groups(groups);
    for (const auto& [detail, both] : groups) {
      OpChange op{work.second,      detail.front(),   Shift::unchanged,
                  sum_rows(both.a), sum_rows(both.b), work.first};
      op.shift = classify_change(op);
      ops.push_back(std::move(op));
    }
  }
  sort_ops(ops);
  return ops;
}

// Matches command buffers of A and B by label. A label that one side lacks has that side empty.
std::vector<OpChange> match_buffers(const WorkRows& a, const WorkRows& b) {
  std::map<std::string, OpChange> change_of_label;
  for (const auto& [label, side] : a.buffers) change_of_label[label].a = side;
  for (const auto& [label, side] : b.buffers) change_of_label[label].b = side;
  std::vector<OpChange> buffers;
  for (auto& [label, buffer] : change_of_label) {
    buffer.role = label;
    buffer.shift = classify_change(buffer);
    buffers.push_back(std::move(buffer));
  }
  sort_ops(buffers);
  return buffers;
}

// Warns if the other side reports command buffers, and this one (`rows`, called `name`) reports
// none, or not all labels.
void warn_about_buffers(const WorkRows& rows, const char* name, const WorkRows& other_rows,
                        const char* other_name, std::vector<std::string>& warnings) {
  if (other_rows.buffers.empty()) return;
  if (rows.buffers.empty()) {
    warnings.push_back(fmt::format(
        "{} does not tell the command buffers of a token by label: those of {} are compared "
        "with nothing",
        name, other_name));
  } else if (!rows.side.all_labels) {
    warnings.push_back(fmt::format(
        "{} does not list all labels of command buffers: one that it lacks may be there", name));
  }
}

// Adds up the times of each side. Rows that are no work of a device count only if a side has no
// others; ops that only one side times are left out and counted.
void sum_times(Comparison& result) {
  using Side = std::optional<ComparedOp> OpChange::*;
  const auto is_timed = [](const OpChange& op, Side side) {
    return op.*side && (op.*side)->seconds;
  };
  const auto times_ops = [&](Side side) {
    return std::ranges::any_of(result.ops, [&](const OpChange& op) { return is_timed(op, side); });
  };
  const auto times_device_work = [&](Side side) {
    return std::ranges::any_of(
        result.ops, [&](const OpChange& op) { return op.is_device_work() && is_timed(op, side); });
  };
  const bool both_sides_time = times_ops(&OpChange::a) && times_ops(&OpChange::b);
  const auto sum_side = [&](Side side, Side other_side, std::optional<double>& sum) {
    const bool only_device_work = times_device_work(side);
    for (const OpChange& op : result.ops) {
      if (!is_timed(op, side) || (only_device_work && !op.is_device_work())) continue;
      if (both_sides_time && op.*other_side && !is_timed(op, other_side)) {
        ++result.untimed_ops;
      } else {
        sum = sum.value_or(0) + *(op.*side)->seconds;
      }
    }
    if (sum && !std::isfinite(*sum)) sum.reset();
  };
  sum_side(&OpChange::a, &OpChange::b, result.seconds_a);
  sum_side(&OpChange::b, &OpChange::a, result.seconds_b);
}

// Replaces metrics of one name and unit, as of a test that ran twice, by one with the median of
// their values. A later one of another unit is dropped.
std::vector<MetricChange> join_equal_names(std::vector<MetricChange> metrics) {
  std::vector<MetricChange> joined;
  std::vector<std::vector<double>> values;
  std::map<std::string, std::size_t> index_of_name;
  for (MetricChange& metric : metrics) {
    const auto [entry, is_new] = index_of_name.emplace(metric.name, joined.size());
    if (is_new) {
      values.emplace_back();
      joined.push_back(std::move(metric));
    } else if (joined[entry->second].metric.unit != metric.metric.unit) {
      continue;
    }
    const auto& value = is_new ? joined.back().a : metric.a;
    if (value) values[entry->second].push_back(*value);
  }
  for (std::size_t i = 0; i < joined.size(); ++i) joined[i].a = stats::median(values[i]);
  return joined;
}

// Returns the metrics of A, with the values of B under equal name and unit, and those that only B
// has.
std::vector<MetricChange> match_metrics(std::vector<MetricChange> a, std::vector<MetricChange> b) {
  a = join_equal_names(std::move(a));
  std::map<std::string, std::size_t> index_of_name;
  for (std::size_t i = 0; i < a.size(); ++i) index_of_name.emplace(a[i].name, i);
  for (const MetricChange& metric : join_equal_names(std::move(b))) {
    const auto match = index_of_name.find(metric.name);
    if (match == index_of_name.end()) {
      a.push_back({metric.name, metric.metric, std::nullopt, metric.a});
    } else if (a[match->second].metric.unit == metric.metric.unit) {
      a[match->second].b = metric.a;
    }
  }
  return a;
}

// Returns what this document separates by itself, without regard to another.
Basis own_basis(const Observed& observed) { return common_basis(observed, observed); }

// The rows of A and of B. Readers note warnings in `result`, and whether only decoding is compared.
using TwoRows = std::pair<WorkRows, WorkRows>;

// Reads the work of both sides so that it can be compared: per token if both report their tokens,
// and of decoding alone if both separate that from prefill. Warns if not.
TwoRows read_both(const Observed& a, const Observed& b, Comparison& result) {
  const Basis basis = common_basis(a, b);
  const bool by_kernel = names_kernels(a) && names_kernels(b);
  const auto settings = observed::common_case_settings(a, b);
  TwoRows rows{read_rows(a, basis, by_kernel, settings), read_rows(b, basis, by_kernel, settings)};
  result.decoding = basis.decoding;
  if (rows.first.rows.empty() && rows.second.rows.empty()) return rows;
  if (!basis.decoding && (own_basis(a).decoding || own_basis(b).decoding)) {
    result.warnings.push_back(fmt::format("only {} separates decode from prefill: all is compared",
                                          own_basis(a).decoding ? "A" : "B"));
  }
  if (!basis.per_token) {
    result.warnings.emplace_back(
        "A or B does not report its tokens: calls and times are of whole runs, whatever their "
        "lengths");
  }
  return rows;
}

// Reads both inputs as rows. If one is a weir profile, and their units differ (per token, per
// run), calls and times are dropped.
TwoRows read_both(const Compared& a, const Compared& b, Comparison& result) {
  const auto* const* observed_a = std::get_if<const Observed*>(&a.what);
  const auto* const* observed_b = std::get_if<const Observed*>(&b.what);
  if (observed_a && observed_b) return read_both(**observed_a, **observed_b, result);
  const auto read_side = [](const Compared& input, const Compared& other_input) {
    if (const auto* profile = std::get_if<const Profile*>(&input.what)) return read_rows(**profile);
    const Observed& observed = *std::get<const Observed*>(input.what);
    const bool is_cpu = std::get<const Profile*>(other_input.what)->device == "cpu";
    return read_rows(observed, own_basis(observed), !is_cpu && names_kernels(observed),
                     observed.case_settings);
  };
  TwoRows both{read_side(a, b), read_side(b, a)};
  auto& [rows_a, rows_b] = both;
  if (rows_a.rows.empty() || rows_b.rows.empty() || rows_a.per == rows_b.per) return both;
  result.warnings.emplace_back(
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

// Falls back to the ratio of all calls together if a side does not report calls.
std::optional<double> OpChange::each_ratio() const {
  const auto times = time_ratio();
  if (!times) return std::nullopt;
  const auto calls = ratio(a->calls, b->calls);
  if (!calls) return times;
  return *calls > 0 ? std::optional(*times / *calls) : std::nullopt;
}

// Compares rows of work, command buffers, times and metrics of two inputs, A and B.
Comparison compare(const Compared& a, const Compared& b) {
  Comparison result;
  auto [rows_a, rows_b] = read_both(a, b, result);
  result.ops = match_ops(rows_a, rows_b);
  result.buffers = match_buffers(rows_a, rows_b);
  result.per = rows_a.rows.empty() ? rows_b.per : rows_a.per;
  sum_times(result);
  result.metrics = match_metrics(std::move(rows_a.metrics), std::move(rows_b.metrics));
  for (const auto& [rows, name] : {std::pair(&rows_a, "A: "), std::pair(&rows_b, "B: ")}) {
    for (const std::string& warning : rows->warnings) result.warnings.push_back(name + warning);
  }
  warn_about_buffers(rows_a, "A", rows_b, "B", result.warnings);
  warn_about_buffers(rows_b, "B", rows_a, "A", result.warnings);
  result.a = std::move(rows_a.side);
  result.b = std::move(rows_b.side);
  result.a.name = a.name;
  result.b.name = b.name;
  return result;
}

// Returns the time of a label on one side. A label that the side does not list takes no time if the
// side lists all labels.
static std::optional<double> label_seconds(const std::optional<ComparedOp>& label,
                                           const ComparedInput& side) {
  if (label) return label->seconds;
  return side.all_labels ? std::optional(0.0) : std::nullopt;
}

// Returns how many seconds longer a token of B takes, in all and by label of command buffers.
// Labels without a time on both sides are only counted; nothing if a side has no such times.
std::optional<TokenGap> token_gap(const Comparison& comparison) {
  TokenGap gap;
  bool has_times_a = false, has_times_b = false;
  for (const OpChange& buffer : comparison.buffers) {
    const auto seconds_a = label_seconds(buffer.a, comparison.a);
    const auto seconds_b = label_seconds(buffer.b, comparison.b);
    if (!seconds_a || !seconds_b) {
      ++gap.untimed_labels;
      continue;
    }
    if (buffer.a) has_times_a = true;
    if (buffer.b) has_times_b = true;
    gap.buffers += *seconds_b - *seconds_a;
    gap.labels.emplace_back(&buffer, *seconds_b - *seconds_a);
  }
  if (!has_times_a || !has_times_b) return std::nullopt;
  std::ranges::stable_sort(gap.labels, {},
                           [](const auto& label) { return -std::fabs(label.second); });
  for (const MetricChange& metric : comparison.metrics) {
    if (metric.name != "decode_tokens_per_second" || !metric.a || !metric.b) continue;
    if (*metric.a <= 0 || *metric.b <= 0) continue;
    const double seconds_per_token_of_a = 1 / *metric.a, seconds_per_token_of_b = 1 / *metric.b;
    gap.seconds = seconds_per_token_of_b - seconds_per_token_of_a;
  }
  return gap;
}

// Marks rows that a finding names, or that contribute most to the time between tokens, as slower
// or faster. For these a change of k_named_ratio is enough.
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
  const auto is_named = [&](const std::string& name) { return ops.contains(name); };
  const auto set_shift = [&](OpChange& op, bool is_in_gap) {
    const auto ratio = op.time_ratio();
    if (op.shift != Shift::unchanged || !ratio) return;
    if (!is_in_gap && std::ranges::none_of(op.a->names, is_named) &&
        std::ranges::none_of(op.b->names, is_named)) {
      return;
    }
    if (*ratio >= k_named_ratio) op.shift = Shift::slower;
    if (*ratio <= 1 / k_named_ratio) op.shift = Shift::faster;
  };
  for (OpChange& op : comparison.ops) set_shift(op, /*is_in_gap=*/false);
  for (OpChange& buffer : comparison.buffers) set_shift(buffer, labels.contains(buffer.role));
  sort_ops(comparison.ops);
  sort_ops(comparison.buffers);
}

}  // namespace weir::explain

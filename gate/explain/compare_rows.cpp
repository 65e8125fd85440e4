#include "gate/explain/compare_rows.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/observed/totals.hpp"

namespace weir::explain {
namespace {

using observed::Observed;
using observed::ObservedOp;
using profile::Profile;

constexpr std::size_t k_most_doubts = 8;  // of the document's own

using Key = std::tuple<std::string, std::string, std::string, std::string, std::string>;
struct Sum {
  double calls = 0, seconds = 0;
  bool counted = true, timed = true;  // every row said so
};

// What a trace says of the CPU's calls is no work of a device.
std::string kind_of(const ObservedOp& op) {
  const std::string category = text::lower(op.category);
  const bool device = category.empty() || category == "kernel" || category == "device" ||
                      category == "compute";  // the last one is ggml's
  return device ? "" : op.category;
}

std::string name_of(const ObservedOp& op, Naming naming) {
  const bool kernel = op.op.empty() || (naming == Naming::kernel && !op.kernel.empty());
  return kernel ? op.kernel : op.op;
}

Role role_in(const std::string& kind, const std::string& name) {
  return kind.empty() ? role_of(name) : Role{name, "", ""};
}

ComparedSide side_of(const Observed& observed) {
  ComparedSide side;
  side.format = observed.format;
  const auto& context = observed.context;
  for (const auto* part : {&context.engine, &context.engine_build, &context.model, &context.backend,
                           &context.device}) {
    if (!*part || (*part)->empty()) continue;
    side.words += (side.words.empty() ? "" : " \u00b7 ") + **part;
  }
  return side;
}

// Of a case that failed nothing is compared.
std::vector<MetricChange> metrics_of(const Observed& observed) {
  std::vector<MetricChange> list;
  for (observed::ObservedFigure& one : observed::figures_of(observed)) {
    if (!one.error) list.push_back({std::move(one.name), one.metric, one.value, std::nullopt});
  }
  return list;
}

std::vector<MetricChange> metrics_of(const Profile& profile) {
  std::vector<MetricChange> list;
  for (const auto& [name, measured] : profile.metrics) {
    if (const auto value = measured.value()) list.push_back({name, measured.metric, *value, {}});
  }
  return list;
}

std::vector<std::string> first_of(const std::vector<std::string>& warnings) {
  const auto most = static_cast<std::ptrdiff_t>(std::min(warnings.size(), k_most_doubts));
  return {warnings.begin(), warnings.begin() + most};
}

// "MUL_MAT q8_0,f32->f32 256x64,256->64": an op of the CPU, as a profile names it.
WorkRow op_row(const std::string& named) {
  WorkRow row;
  for (const std::string& word : text::split(named, ' ')) {
    const bool sides = word.find("->") != std::string::npos;
    const bool digit = !word.empty() && word.front() >= '0' && word.front() <= '9';
    std::string& into = !sides ? row.name : digit ? row.shape : row.type;
    into += (into.empty() ? "" : " ") + word;
  }
  row.role = role_of(row.name);
  return row;
}

std::string unit_of(const profile::KernelSet& kernels) {
  if (kernels.scope == unit::Scope::per_token) return "token";
  if (kernels.scope == unit::Scope::per_prefill) return "prefill";
  // Counts of another length are no counts of the same work.
  return kernels.length ? fmt::format("run of length {}", *kernels.length) : "";
}

}  // namespace

bool tells_kernels(const Observed& observed) {
  return std::any_of(observed.ops.begin(), observed.ops.end(),
                     [](const ObservedOp& op) { return !op.kernel.empty(); });
}

WorkRows work_rows(const Observed& observed, const Shared& shared, Naming naming) {
  WorkRows made;
  made.side = side_of(observed);
  made.metrics = metrics_of(observed);
  made.doubts = first_of(observed.warnings);
  const RowChoice choice = rows_of_side(observed, shared);
  if (shared.per_token) {
    made.per = "token";
    made.side.tokens = choice.tokens;
  }
  std::map<Key, Sum> sums;
  for (const ObservedOp& op : observed.ops) {
    if (!choice.takes(op)) continue;
    Sum& sum = sums[{kind_of(op), name_of(op, naming), op.type, op.shape, op.backend}];
    sum.counted = sum.counted && op.calls.has_value();
    sum.calls += static_cast<double>(op.calls.value_or(0));
    const auto own = observed::time_of_its_own(op);
    sum.timed = sum.timed && own.has_value();
    sum.seconds += own.value_or(0);
  }
  std::map<std::pair<std::string, std::string>, Role> roles;
  const auto tokens = static_cast<double>(choice.tokens);
  for (const auto& [key, sum] : sums) {
    const auto& [kind, name, type, shape, backend] = key;
    const auto [role, fresh] = roles.try_emplace({kind, name});
    if (fresh) role->second = role_in(kind, name);
    WorkRow row{kind, role->second, name, type, shape, backend, {}, {}};
    if (row.backend.empty()) row.backend = observed.context.backend.value_or("");
    if (sum.counted) row.calls = sum.calls / tokens;
    if (sum.timed) row.seconds = sum.seconds / tokens;
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
  made.metrics = metrics_of(profile);
  made.doubts = first_of(profile.warnings);
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

}  // namespace weir::explain

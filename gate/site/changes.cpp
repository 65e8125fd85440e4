// Reads measured and explained changes from commit to commit (weir.changes/1).
#include "gate/site/changes.hpp"

#include <algorithm>
#include <cmath>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/verdict/limits.hpp"

namespace weir::site {
namespace {

constexpr JsonLimits k_changes_line_limits{std::size_t{4} << 20, 8};
constexpr std::size_t k_longest_name = 1024;

// Reads a count: 65, or "133/2"; nothing for anything else.
std::optional<double> read_count(const Json& json) {
  if (const auto exact = rational_from_json(json)) return exact->value();
  if (!json.is_number() || !std::isfinite(json.get<double>())) return std::nullopt;
  return json.get<double>();
}

// Returns "worse", "better" or "changed" for a metric's new value, by weir's default limits.
std::string_view change_state(const std::string& name, double before, double after) {
  const auto metric = unit::find_metric(name);
  if (!metric) return "changed";
  const verdict::Limit limit = verdict::resolve_limit({}, *metric, {});
  const auto& change = limit.max_increase ? limit.max_increase : limit.max_drop;
  if (!limit.exact && !change) return "changed";
  double min_step = 0;
  if (!limit.exact) {
    min_step = change->amount.value * (change->amount.relative ? std::abs(before) : 1.0);
  }
  if (std::abs(after - before) <= min_step) return "changed";
  return unit::got_worse(metric->better, /*rose=*/after > before) ? "worse" : "better";
}

// Returns the object of this key; an empty one if it is missing.
const Json& object_or_empty(JsonReader& io, const char* key) {
  static const Json k_none = Json::object();
  return io.has(key) ? io.object(key) : k_none;
}

}  // namespace

static void fields(Fields& io, ChangeFinding& finding) {
  io("kind", finding.kind);
  io("text", finding.text);
}

static void fields(Fields& io, ChangeCause& cause) {
  io("text", cause.text);
  io.optional("sure", cause.sure);
  io.optional("pulls", cause.pulls);
  io.check(std::ranges::all_of(cause.pulls, [](std::int64_t pull) { return pull > 0; }),
           "\"pulls\" should be numbers of pull requests");
}

namespace {

// Reads what changed in a cell between two commits: findings, causes and values. Fails if a value
// is malformed.
Result<ChangedCell> changed_cell(JsonReader& reader) {
  ChangedCell changed;
  reader.optional("findings", changed.findings, "finding");
  reader.optional("causes", changed.causes, "cause");
  for (const auto& [name, json] : object_or_empty(reader, "values").items()) {
    const bool is_pair = json.is_array() && json.size() == 2;
    const auto before = is_pair ? read_count(json[0]) : std::nullopt;
    const auto after = is_pair ? read_count(json[1]) : std::nullopt;
    if (!before || !after || name.size() > k_longest_name) {
      return fail(Code::data, "\"values\" should be metrics with two numbers each");
    }
    changed.values.push_back(
        {history::metric_named(name), *before, *after, change_state(name, *before, *after)});
  }
  return changed;
}

// Reads the kernels of a cell with their counts, or, if the cell failed, its last output (`words`).
// Kernels get numbers in `names`.
Result<CountedCell> counted_cell(JsonReader& reader, NameList& names) {
  CountedCell cell;
  reader.optional("words", cell.words);
  reader.check(reader.has("words") != reader.has("kernels"),
               "should have one of \"before\", \"kernels\" and \"words\"");
  for (const auto& [name, json] : object_or_empty(reader, "kernels").items()) {
    const auto count = read_count(json);
    if (!count || name.size() > k_longest_name) {
      return fail(Code::data, "\"kernels\" should be names with numbers");
    }
    cell.kernels.emplace(names.number(name), *count);
  }
  return cell;
}

// Reads one line into `all`: the header (if `is_first`), the changes of a cell since another
// commit, or its counts.
Result<void> read_line(std::string_view text, bool is_first, CommitChanges& all) {
  WEIR_TRY(const Json json, parse_json(text, k_changes_line_limits));
  JsonReader reader(json, "it");
  if (is_first) {
    reader.schema(k_changes_schema,
                  fmt::format("should be {{\"schema\":\"{}\"}}", k_changes_schema));
    reader.optional("repeat", all.repeat);
    if (auto problem = reader.problem()) return tl::unexpected(*problem);
    return {};
  }
  const std::string commit = reader.string("commit"), cell = reader.string("cell");
  const auto before = reader.optional_string("before");
  for (const std::string& name : {commit, cell, before.value_or("-")}) {
    reader.check(!name.empty() && name.size() <= k_longest_name,
                 "should have names of 1 to 1024 bytes");
  }
  if (auto problem = reader.problem()) return tl::unexpected(*problem);
  const std::size_t before_number = before ? all.commits.number(*before) : 0;
  const std::size_t commit_number = all.commits.number(commit);
  if (all.commits.all.size() > k_max_commits) {
    return fail(Code::data, "there are more than {} commits", k_max_commits);
  }
  all.counted.resize(all.commits.all.size());
  bool is_new = false;
  if (before) {
    WEIR_TRY(ChangedCell changed, changed_cell(reader));
    is_new = all.changed[{commit_number, before_number}]
                 .emplace(all.cells.number(cell), std::move(changed))
                 .second;
  } else {
    WEIR_TRY(CountedCell counted, counted_cell(reader, all.kernels));
    is_new = all.counted[commit_number].emplace(all.cells.number(cell), std::move(counted)).second;
  }
  if (auto problem = reader.problem()) return tl::unexpected(*problem);
  if (all.changed.size() > k_max_commits || all.cells.all.size() > k_max_cells ||
      all.kernels.all.size() > k_max_kernels) {
    return fail(Code::data, "there are more than {} pairs of commits, {} cells or {} kernels",
                k_max_commits, k_max_cells, k_max_kernels);
  }
  if (is_new) return {};
  return fail(Code::data, "\"{}\" of \"{}\" stands twice", text::printable(cell),
              text::printable(commit));
}

}  // namespace

std::size_t NameList::number(const std::string& name) {
  const auto [entry, is_new] = numbers.try_emplace(name, all.size());
  if (is_new) all.push_back(name);
  return entry->second;
}

// Reads the changes of commits: a header line, and on each further line one cell of one commit.
// Skips empty lines.
Result<CommitChanges> read_commit_changes(std::string_view text) {
  CommitChanges all;
  std::size_t line_number = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    ++line_number;
    const bool is_header = line_number == 1;
    if (is_header || end > begin) {
      WEIR_CHECK(read_line(text.substr(begin, end - begin), is_header, all)
                     .map_error(with_prefix(fmt::format("line {}", line_number))));
    }
    begin = end + 1;
  }
  return all;
}

}  // namespace weir::site

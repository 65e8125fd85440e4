// Writes and reads a baseline as weir.baseline/1, and names its file. The text that is read may
// come from a stranger's pull request.
//
//   "counts":        exact counts by metric name, 65 or "133/2"
//   "nearly_exact":  counts that do not quite repeat, {"median", "repeatability"}; with
//                    "values" (value -> runs) where runs should count the same
//   "sources":       count -> who counted it; by base name ("dispatches") where all its
//                    scopes agree
//   "metrics":       what metrics declared in a config are, {"kind", "unit", "better"}
//   "sessions":      machine class -> timed sessions, oldest first; the only part that depends on
//                    the machine and on the engine's build
#include "gate/base/text.hpp"

#include "gate/base/json.hpp"
#include "gate/baseline/baseline.hpp"
#include "gate/profile/variation.hpp"

namespace weir::baseline {

// A count that nearly repeats, as a file stores it.
struct NearlyExact {
  double median = 0, relative_spread = 0;
  // Runs by the value that they counted; empty where only the median counts.
  std::map<std::string, std::int64_t> values{};
};

static void fields(Fields& io, NearlyExact& nearly) {
  io("median", RoundedNumber{nearly.median});
  io("repeatability", nearly.relative_spread);
  io.check(nearly.relative_spread >= 0, "has a negative repeatability");
  io.optional("values", nearly.values);
  constexpr std::int64_t k_max_runs = 10'000;
  std::int64_t runs = 0;
  for (const auto& [value, number] : nearly.values) {
    io.check(Rational::parse(value).has_value() && number > 0 && number <= k_max_runs - runs,
             "has \"values\" that are not counts with a number of runs each");
    if (io.problem()) return;
    runs += number;
  }
}

namespace {

using profile::Measurement;
using profile::Nature;

// A file of 20 sessions of 20 metrics is some 100 KiB; more than this is not a baseline.
constexpr std::size_t k_largest_file = std::size_t{16} << 20;
constexpr std::size_t k_longest_class = 128;
constexpr std::size_t k_max_stored_runs = 1000;  // over all machines of one file

// Returns the count that a baseline's file names: weir's own, or one that the file declares. Fails
// if it is neither.
Result<unit::Metric> find_count_metric(const std::string& name, const Json& declared) {
  auto metric = unit::find_metric(name);
  const auto entry = declared.find(name);
  if (!metric && entry != declared.end() && entry->is_object()) {
    Json description = *entry;
    description["name"] = name;
    metric = unit::metric_from_json(description);
  }
  if (metric && metric->kind == unit::Kind::count) return *metric;
  return fail(Code::data, "\"{}\" is not a count that weir knows or the file describes",
              text::printable(name.substr(0, 128)));
}

// Returns the source of a metric, by its own name or by its base name.
std::string find_source(const unit::Metric& metric,
                        const std::map<std::string, std::string>& sources) {
  for (const std::string& name : {metric.name, metric.base}) {
    if (const auto entry = sources.find(name); entry != sources.end()) return entry->second;
  }
  return "";
}

// Returns which probe or reader each count comes from: by base name if all of its counts agree,
// else by metric.
std::map<std::string, std::string> group_sources(const Baseline& baseline) {
  std::map<std::string, std::vector<const profile::Measurement*>> measurements_by_base;
  for (const auto& [name, measured] : baseline.counts) {
    measurements_by_base[measured.metric.base].push_back(&measured);
  }
  std::map<std::string, std::string> sources;
  for (const auto& [base, measurements] : measurements_by_base) {
    const std::string& source = measurements.front()->source;
    const bool all_agree = std::ranges::all_of(
        measurements, [&source](const auto* measured) { return measured->source == source; });
    if (all_agree) {
      sources[base] = source;
      continue;
    }
    for (const auto* measured : measurements) sources[measured->metric.name] = measured->source;
  }
  return sources;
}

// Lengths decide how long engines run: lengths that weir itself would not store are refused.
bool may_be_lengths(const std::vector<std::int64_t>& lengths) {
  constexpr std::size_t k_points = 3;
  constexpr std::int64_t k_max_length = 4096;        // in a sweep; weir's own go to 24
  constexpr std::int64_t k_max_tokens = 10'000'000;  // in a prompt, as the configuration has it
  if (lengths.empty()) return true;
  if (lengths.size() == 1) return lengths.front() >= 0 && lengths.front() <= k_max_tokens;
  return lengths.size() == k_points && lengths[0] > 0 && lengths[0] < lengths[1] &&
         lengths[1] < lengths[2] && lengths[2] <= k_max_length;
}

// The counts of a file, in its own order.
struct StoredCounts {
  std::map<std::string, Rational> exact;
  std::map<std::string, NearlyExact> nearly;
  Json declared = Json::object();  // metrics that only a configuration knows
  std::map<std::string, std::string> sources;
};

// Sorts a baseline's counts into the parts of the file: exact, nearly exact, declared metrics and
// sources.
StoredCounts to_stored_counts(const Baseline& baseline) {
  StoredCounts stored;
  for (const auto& [name, measured] : baseline.counts) {
    if (!unit::find_metric(name)) {
      stored.declared[name] = {{"kind", unit::to_string(measured.metric.kind)},
                               {"unit", unit::to_string(measured.metric.unit)},
                               {"better", unit::to_string(measured.metric.better)}};
    }
    if (measured.exact) {
      stored.exact[name] = *measured.exact;
    } else if (const auto median = measured.value()) {
      NearlyExact& nearly = stored.nearly[name];
      nearly = {*median, measured.relative_spread.value_or(0)};
      if (!profile::find_variation(measured)) continue;
      for (const double value : measured.samples) ++nearly.values[fmt::format("{:.0f}", value)];
    }
  }
  stored.sources = group_sources(baseline);
  return stored;
}

// Returns a count of a file without its number.
Result<Measurement> measurement(const std::string& name, Nature nature,
                                const StoredCounts& stored) {
  Measurement measured;
  WEIR_TRY(measured.metric, find_count_metric(name, stored.declared));
  measured.nature = nature;
  measured.source = find_source(measured.metric, stored.sources);
  return measured;
}

// Joins the parts of a file into counts. Fails if one is named twice or is not known.
Result<std::map<std::string, Measurement>> make_counts(const StoredCounts& stored) {
  std::map<std::string, Measurement> counts;
  for (const auto& [name, value] : stored.exact) {
    WEIR_TRY(Measurement measured, measurement(name, Nature::exact, stored));
    measured.exact = value;
    counts[name] = std::move(measured);
  }
  for (const auto& [name, value] : stored.nearly) {
    if (counts.contains(name)) {
      return fail(Code::data, "\"{}\" is both exact and nearly exact", text::printable(name));
    }
    WEIR_TRY(Measurement measured, measurement(name, Nature::nearly_exact, stored));
    for (const auto& [text, runs] : value.values) {
      const double number = Rational::parse(text).value_or(0).value();
      measured.samples.insert(measured.samples.end(), static_cast<std::size_t>(runs), number);
    }
    if (measured.samples.empty()) measured.samples = {value.median};
    measured.relative_spread = value.relative_spread;
    counts[name] = std::move(measured);
  }
  return counts;
}

// Reads or writes all counts of a baseline, as `io` is set.
void count_fields(Fields& io, Baseline& baseline) {
  StoredCounts stored;
  if (!io.is_reading()) stored = to_stored_counts(baseline);
  io.optional("metrics", stored.declared);
  io.optional("sources", stored.sources);
  for (const auto& [name, source] : stored.sources) {
    profile::check_texts(io, profile::k_short_text, {&source});
  }
  io.always("counts", stored.exact);
  io.optional("nearly_exact", stored.nearly, "nearly_exact");
  if (!io.is_reading() || io.problem()) return;
  auto counts = make_counts(stored);
  if (!counts) return io.refuse(std::move(counts).error());
  baseline.counts = std::move(*counts);
}

}  // namespace

static void fields(Fields& io, Session& session) {
  io.always("engine_build", session.engine_build);
  io("samples", session.samples, "sessions samples");
  io.optional("reference", session.reference, "sessions reference");
  io.optional("run", session.run);
  profile::check_texts(io, profile::k_short_text, {&session.run});
}

// Reads or writes the sessions (times of stored runs) by machine class. Classes without sessions
// are left out.
static void session_fields(Fields& io, std::map<std::string, std::vector<Session>>& sessions) {
  const auto has_no_sessions = [](const auto& item) { return item.second.empty(); };
  if (!io.is_reading()) {
    auto non_empty = sessions;
    std::erase_if(non_empty, has_no_sessions);
    io.optional("sessions", non_empty, /*place=*/"sessions");
    return;
  }
  sessions.clear();
  io.optional("sessions", sessions, /*place=*/"sessions");
  std::erase_if(sessions, has_no_sessions);
  std::size_t total = 0;
  for (const auto& [machine, list] : sessions) total += list.size();
  if (total > k_max_stored_runs) {
    io.refuse({Code::data, fmt::format("more than {} sessions", k_max_stored_runs)});
  }
}

// Reads or writes a baseline as weir.baseline/1, as `io` is set, and checks its values.
static void fields(Fields& io, Baseline& baseline) {
  io.schema_of_document(k_schema, "");
  io("cell", baseline.cell);
  if (io.is_reading() && !io.problem()) {
    const auto cell = profile::CellKey::parse(baseline.cell);
    if (!cell) return io.refuse(cell.error());
    baseline.cell = cell->str();
  }
  io("fingerprint", baseline.fingerprint);
  constexpr std::size_t k_max_parts = 256;
  io.limit_items("fingerprint_parts", k_max_parts, "has a fingerprint of too many parts");
  io.always("fingerprint_parts", baseline.fingerprint_parts);
  io.optional("reason", baseline.reason);
  io.check(baseline.reason.empty() || valid_reason(baseline.reason),
           "has a \"reason\" that is not one line of at most 1000 bytes");
  io.optional("preset", baseline.preset);
  io("device_class", baseline.device_class);
  io.check(valid_class(baseline.device_class), "has a \"device_class\" that is none");
  io.always("device_name", baseline.device_name);
  io.always("lengths", baseline.lengths);
  io.check(may_be_lengths(baseline.lengths),
           "has \"lengths\" that are not three rising numbers from 1 to 4096");
  count_fields(io, baseline);
  io.optional("kernels", baseline.kernels, "kernels");
  io.optional("codes", baseline.codes, "kernels");
  io.optional("code_groups", baseline.code_groups, "kernels");
  io.optional("code_facts", baseline.code_facts, "code_facts");
  io.optional("compiler", baseline.compiler);
  profile::check_texts(io, profile::k_short_text, {&baseline.compiler});
  profile::check_texts(io, profile::k_long_text, {&baseline.preset, &baseline.device_name});
  io.optional("graph_ops", baseline.graph_ops, "kernels");
  io.optional("functions", baseline.functions, "kernels");
  io.always("placement", baseline.placement);
  io.always("work", baseline.work);
  session_fields(io, baseline.sessions);
}

bool valid_reason(std::string_view text) {
  constexpr std::size_t k_max_text_bytes = 1000;
  return !text::trim(text).empty() && text.size() <= k_max_text_bytes &&
         text::printable(text) == text && text.find('\n') == std::string_view::npos;
}

bool valid_class(std::string_view name) {
  const auto fits = [](char c) {
    return text::is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= k_longest_class && name.front() != '.' &&
         name.front() != '-' && std::ranges::all_of(name, fits);
}

std::string to_text(const Baseline& baseline) {
  return dump_json(write_fields(baseline), 1) + "\n";
}

Result<Baseline> parse(std::string_view text) {
  constexpr std::size_t k_deepest = 16;
  const auto read = [](const Json& json) { return read_fields<Baseline>(json, "the document"); };
  return parse_json(text, {k_largest_file, k_deepest})
      .and_then(read)
      .map_error(with_prefix("not a baseline"));
}

Result<std::string> path_of(const profile::CellKey& cell, std::string_view device_class) {
  // str() of a key that was made by hand may hold anything: only its parsed form is a path.
  WEIR_TRY(const auto key, profile::CellKey::parse(cell.str()));
  if (!valid_class(device_class)) {
    return fail(Code::data, "{}: \"{}\" is not a device class that can name a file", key.str(),
                text::printable(device_class.substr(0, 2 * k_longest_class)));
  }
  return fmt::format("{}/{}.json", key.str(), device_class);
}

}  // namespace weir::baseline

// weir.baseline/1 -> Baseline. The text may come from a pull request of a stranger.
#include "gate/base/text.hpp"
#include "gate/baseline/baseline.hpp"
#include "gate/baseline/format.hpp"
#include "gate/profile/metric_json.hpp"

namespace weir::baseline {
namespace {

using profile::Measurement;
using profile::Nature;

constexpr std::size_t k_most_sessions = 1000;  // over all machines of one file

Result<unit::Metric> metric_of(const std::string& name, const Json& declared) {
  if (const auto known = unit::find_metric(name)) {
    if (known->kind == unit::Kind::count) return *known;
  } else if (const auto found = declared.find(name);
             found != declared.end() && found->is_object()) {
    Json described = *found;
    described["name"] = name;
    const auto metric = profile::metric_from_json(described);
    if (metric && metric->kind == unit::Kind::count) return *metric;
  }
  return fail(Code::data, "\"{}\" is not a count that weir knows or the file describes",
              text::printable(name.substr(0, 128)));
}

std::string source_of(const unit::Metric& metric,
                      const std::map<std::string, std::string>& sources) {
  for (const std::string& name : {metric.name, metric.base}) {
    if (const auto found = sources.find(name); found != sources.end()) return found->second;
  }
  return "";
}

Result<std::map<std::string, Measurement>> counts_of(JsonReader& read) {
  static const Json k_none = Json::object();
  const Json& declared = read.has("metrics") ? read.object("metrics") : k_none;
  const auto sources = profile::texts_from_json(read, "sources");
  std::map<std::string, Measurement> counts;
  for (const auto& [name, value] : profile::rationals_from_json(read, "counts")) {
    Measurement measured;
    WEIR_TRY(measured.metric, metric_of(name, declared));
    measured.nature = Nature::exact;
    measured.source = source_of(measured.metric, sources);
    measured.exact = value;
    counts[name] = std::move(measured);
  }
  if (!read.has("nearly_exact")) return counts;
  for (const auto& [name, value] : read.object("nearly_exact").items()) {
    if (counts.contains(name)) {
      return fail(Code::data, "\"{}\" is both exact and nearly exact", text::printable(name));
    }
    JsonReader nearly(value, "nearly_exact");
    Measurement measured;
    WEIR_TRY(measured.metric, metric_of(name, declared));
    measured.nature = Nature::nearly_exact;
    measured.source = source_of(measured.metric, sources);
    measured.samples = {nearly.number("median")};
    measured.repeatability = nearly.number("repeatability");
    if (*measured.repeatability < 0) nearly.complain("has a negative repeatability");
    if (auto problem = nearly.problem()) return tl::unexpected(*problem);
    counts[name] = std::move(measured);
  }
  return counts;
}

Result<Session> session_of(const Json& json) {
  Session session;
  JsonReader read(json, "sessions");
  session.engine_build = read.optional_string("engine_build").value_or("");
  JsonReader samples(read.object("samples"), "sessions samples");
  if (const auto found = json.is_object() ? json.find("samples") : json.end();
      found != json.end() && found->is_object()) {
    for (const auto& [name, values] : found->items()) {
      session.samples[name] = profile::numbers_from_json(samples, name.c_str());
    }
  }
  if (auto problem = samples.problem()) return tl::unexpected(*problem);
  if (read.has("reference")) {
    JsonReader beside(read.object("reference"), "sessions reference");
    session.reference.emplace();
    session.reference->cell = beside.string("cell");
    session.reference->fingerprint = beside.string("fingerprint");
    session.reference->engine_build = beside.string("engine_build");
    session.reference->metric = beside.string("metric");
    session.reference->rates = profile::numbers_from_json(beside, "rates");
    if (auto problem = beside.problem()) return tl::unexpected(*problem);
  }
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return session;
}

Result<std::map<std::string, std::vector<Session>>> sessions_of(JsonReader& read) {
  std::map<std::string, std::vector<Session>> sessions;
  if (!read.has("sessions")) return sessions;
  std::size_t total = 0;
  for (const auto& [machine, list] : read.object("sessions").items()) {
    if (!list.is_array()) return fail(Code::data, "sessions should hold lists");
    if (total += list.size(); total > k_most_sessions) {
      return fail(Code::data, "more than {} sessions", k_most_sessions);
    }
    for (const Json& item : list) {
      WEIR_TRY(auto session, session_of(item));
      sessions[machine].push_back(std::move(session));
    }
  }
  return sessions;
}

// Lengths say how long engines run: what weir itself would not have stored is refused.
bool may_be_lengths(const std::vector<std::int64_t>& lengths) {
  constexpr std::size_t k_points = 3;
  constexpr std::int64_t k_longest = 4096;            // of a sweep; weir's own go to 24
  constexpr std::int64_t k_most_tokens = 10'000'000;  // of a prompt, as the configuration has it
  if (lengths.empty()) return true;
  if (lengths.size() == 1) return lengths.front() >= 0 && lengths.front() <= k_most_tokens;
  return lengths.size() == k_points && lengths[0] > 0 && lengths[0] < lengths[1] &&
         lengths[1] < lengths[2] && lengths[2] <= k_longest;
}

Result<Baseline> from_json(const Json& json) {
  Baseline baseline;
  JsonReader read(json, "the document");
  if (const std::string schema = read.string("schema"); schema != k_schema) {
    return fail(Code::data, "schema is \"{}\", should be \"{}\"",
                text::printable(schema.substr(0, 60)), k_schema);
  }
  WEIR_TRY(const auto cell, profile::CellKey::parse(read.string("cell")));
  baseline.cell = cell.str();
  baseline.fingerprint = read.string("fingerprint");
  baseline.fingerprint_parts = profile::texts_from_json(read, "fingerprint_parts");
  baseline.device_class = read.string("device_class");
  if (!valid_class(baseline.device_class)) read.complain("has a \"device_class\" that is none");
  baseline.device_name = read.optional_string("device_name").value_or("");
  baseline.lengths = profile::integers_from_json(read, "lengths");
  if (!may_be_lengths(baseline.lengths)) {
    read.complain("has \"lengths\" that are not three rising numbers from 1 to 4096");
  }
  WEIR_TRY(baseline.counts, counts_of(read));
  if (read.has("kernels")) {
    WEIR_TRY(baseline.kernels, profile::kernels_from_json(read.object("kernels")));
  }
  if (read.has("functions")) {
    WEIR_TRY(baseline.functions, profile::kernels_from_json(read.object("functions")));
  }
  if (read.has("placement")) {
    WEIR_TRY(baseline.placement, profile::placement_from_json(read.object("placement")));
  }
  if (read.has("work")) {
    WEIR_TRY(baseline.work, profile::work_from_json(read.object("work")));
  }
  WEIR_TRY(baseline.sessions, sessions_of(read));
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return baseline;
}

}  // namespace

Result<Baseline> parse(std::string_view text) {
  constexpr std::size_t k_deepest = 16;
  const auto place = [](Error error) { return with_context("not a baseline", std::move(error)); };
  const auto json = parse_json(text, {k_largest_file, k_deepest});
  if (!json) return tl::unexpected(place(json.error()));
  return from_json(*json).map_error(place);
}

}  // namespace weir::baseline

// Writes and reads a profile as JSON (weir.profile/1), and answers small questions about it.
#include "gate/profile/profile.hpp"

#include <set>

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::profile {
namespace {

constexpr auto k_natures = names_in_order<Nature>("exact", "nearly exact", "sampled");
using State = Placement::State;
constexpr auto k_states = names_in_order<State>("unknown", "seen", "shown", "refuted");
constexpr auto k_scopes = names_in_order<unit::Scope>("whole", "per_token", "per_prefill", "fixed",
                                                      "at_length", "per_request");

}  // namespace

std::string_view to_string(Nature nature) { return name_of(k_natures, nature); }

Named<Nature> nature_field(Nature& nature) {
  return {nature, k_natures, "holds one whose nature is not known"};
}

std::optional<Nature> parse_nature(std::string_view text) { return value_of(k_natures, text); }

std::string_view to_string(Placement::State state) { return name_of(k_states, state); }

// Returns " (A, B)": environment variables that only one side has, or that have different values.
// "" if a side is unknown or they are equal.
static std::string other_variables(const std::string* variables,
                                   const std::string* other_variables) {
  if (variables == nullptr || other_variables == nullptr) return "";
  const auto split_set = [](const std::string& assignments) {
    const auto list = text::split(assignments, ' ');
    return std::set<std::string>(list.begin(), list.end());
  };
  std::vector<std::string> differing;
  std::ranges::set_symmetric_difference(split_set(*variables), split_set(*other_variables),
                                        std::back_inserter(differing));
  std::set<std::string> names;
  for (const std::string& word : differing) names.insert(word.substr(0, word.find('=')));
  names.erase("");  // from a side without variables
  constexpr std::size_t k_max_list_length = 300;
  const std::string list = text::printable(fmt::format("{}", fmt::join(names, ", ")));
  return names.empty() ? "" : " (" + text::shortened(list, k_max_list_length) + ")";
}

// Returns the names of fingerprint parts that `others` lacks or has with another hash: "prompt",
// "environment (A, B)".
std::vector<std::string> other_parts(const std::map<std::string, std::string>& parts,
                                     const std::map<std::string, std::string>& others) {
  std::vector<std::string> names;
  for (const auto& [name, hash] : parts) {
    const std::string* other_hash = look_up(others, name);
    if (name == k_variables || (other_hash != nullptr && *other_hash == hash)) continue;
    names.push_back(name);
    if (name == "environment") {
      names.back() += other_variables(look_up(parts, k_variables), look_up(others, k_variables));
    }
  }
  return names;
}

bool only_does_not_fit(const Profile& profile) {
  return profile.metrics.contains(std::string(unit::k_fits)) && profile.errors.size() == 1 &&
         profile.errors.front().starts_with("counted: ");
}

std::optional<std::string> skip_reason(const Profile& profile, const unit::Metric& metric,
                                       std::string_view source) {
  if (metric.base == "instructions") return profile.instructions_skip_reason;
  return source == "host" ? profile.host_skip_reason : std::nullopt;
}

std::optional<double> Measurement::value() const {
  return exact ? exact->value() : stats::median(samples);
}

std::optional<Rational> KernelSet::sum() const {
  std::optional<Rational> sum = Rational(0);
  for (const auto& [name, count] : counts) sum = sum ? sum->plus(count) : sum;
  return sum;
}

void fields(Fields& io, KernelSet& kernels) {
  io("scope", Named{kernels.scope, k_scopes, "has a scope that is not known"});
  io.optional("length", kernels.length);
  io("named", kernels.has_names);
  io.always("counts", kernels.counts);
  io.optional("varies", kernels.runs_disagree);
}

std::map<std::string, std::int64_t> Placement::ops_elsewhere() const {
  std::map<std::string, std::int64_t> ops = cpu_ops;
  ops.insert(other_ops.begin(), other_ops.end());
  return ops;
}

void fields(Fields& io, Placement& placement) {
  io("state", Named{placement.state, k_states, "has a state that is not known"});
  io.optional("reason", placement.reason);
  io.optional("cpu_ops", placement.cpu_ops);
  io.optional("other_ops", placement.other_ops);
  io.optional("not_allowed", placement.not_allowed);
}

void fields(Fields& io, WorkDone& work) {
  io.optional("generated_tokens", work.generated_tokens);
  io.optional("prompt_tokens", work.prompt_tokens);
  io.optional("output_digest", work.output_digest);
  io.optional("model", work.model);
  io.optional("load", work.load);
  io.optional("prompt_tokens_per_request", RoundedNumber{work.prompt_tokens_per_request});
  io.optional("generated_tokens_per_request", RoundedNumber{work.generated_tokens_per_request});
  io.optional("likely", work.likely, "likely tokens");
  io.optional("printed_values", work.printed_values);
}

void fields(Fields& io, Reference& reference) {
  io("cell", reference.cell);
  io("fingerprint", reference.fingerprint);
  io("engine_build", reference.engine_build);
  io("metric", reference.metric);
  io.always("rates", reference.rates);
}

static void fields(Fields& io, Measurement& measurement) {
  io("metric", unit::MetricField{measurement.metric, "holds one that weir does not know"});
  io("nature", nature_field(measurement.nature));
  io("source", measurement.source);
  io.optional("exact", measurement.exact);
  io.optional("samples", measurement.samples);
  io.optional("repeatability", measurement.relative_spread);
  io.optional("warnings", measurement.warnings);
}

// Reads or writes where a profile comes from: fingerprint (a hash of what was measured), device
// and machine.
static void fields(Fields& io, Provenance& provenance) {
  io("fingerprint", provenance.fingerprint);
  io.always("fingerprint_parts", provenance.fingerprint_parts);
  io.optional("preset", provenance.preset);
  io("device_class", provenance.device_class);
  io("device_name", provenance.device_name);
  io("machine_class", provenance.machine_class);
  io("machine_name", provenance.machine_name);
  io.always("seen_class", provenance.probed_device_class);
  io.always("seen_name", provenance.probed_device_name);
  io.always("engine_build", provenance.engine_build);
  io.always("lengths", provenance.lengths);
}

// Reads or writes a profile (weir.profile/1): all that was measured of one benchmark cell.
void fields(Fields& io, Profile& profile) {
  io.schema_of_document("weir.profile/1", "not a profile: ");
  io("cell", profile.cell);
  io("device", profile.device);
  io("provenance", profile.provenance);
  auto metrics =
      collect<Measurement>(profile.metrics, [](const auto& entry) { return entry.second; });
  io("metrics", metrics, "metrics");
  if (io.is_reading()) {
    for (Measurement& measurement : metrics) {
      profile.metrics[std::string(measurement.metric.name)] = std::move(measurement);
    }
  }
  io.always("kernels", profile.kernels, "kernels");
  io.optional("codes", profile.codes, "kernels");
  io.optional("code_groups", profile.code_groups, "kernels");
  io.optional("code_facts", profile.code_facts, "code_facts");
  io.optional("compiler", profile.compiler);
  io.always("graph_ops", profile.graph_ops, "kernels");
  io.optional("fusible", profile.fusible, "kernels");
  io.always("functions", profile.functions, "kernels");
  io("placement", profile.placement);
  io("work", profile.work);
  io.always("errors", profile.errors);
  io.always("stderr_tail", profile.stderr_tail);
  io.always("counts_skipped", profile.counts_skip_reason);
  io.always("instructions_skipped", profile.instructions_skip_reason);
  io.optional("host_skipped", profile.host_skip_reason);
  io.always("warnings", profile.warnings);
  io.always("counted_runs", profile.counted_runs);
  io.always("timed_runs", profile.timed_runs);
  io.always("profiling_cost", RoundedNumber{profile.profiling_cost});
  io.always("requests", profile.requests);
  io.always("server_metrics", profile.server, "server's metric");
}

}  // namespace weir::profile

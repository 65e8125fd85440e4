// Profile as JSON (weir.profile/1) and its small questions.
#include "gate/profile/profile.hpp"

#include <algorithm>
#include <array>

#include "gate/base/text.hpp"
#include "gate/profile/metric_json.hpp"

namespace weir::profile {
namespace {

constexpr std::string_view k_schema = "weir.profile/1";

constexpr std::array<std::pair<Nature, std::string_view>, 3> k_natures{{
    {Nature::exact, "exact"},
    {Nature::nearly_exact, "nearly exact"},
    {Nature::sampled, "sampled"},
}};

constexpr std::array<std::pair<Placement::State, std::string_view>, 4> k_states{{
    {Placement::State::unknown, "unknown"},
    {Placement::State::seen, "seen"},
    {Placement::State::shown, "shown"},
    {Placement::State::refuted, "refuted"},
}};

constexpr std::array<std::pair<unit::Scope, std::string_view>, 5> k_scopes{{
    {unit::Scope::whole, "whole"},
    {unit::Scope::per_token, "per_token"},
    {unit::Scope::per_prefill, "per_prefill"},
    {unit::Scope::fixed, "fixed"},
    {unit::Scope::at_length, "at_length"},
}};

Json measurement_to_json(const Measurement& measured) {
  Json json = {{"metric", metric_to_json(measured.metric)},
               {"nature", to_string(measured.nature)},
               {"source", measured.source}};
  if (measured.exact) json["exact"] = rational_to_json(*measured.exact);
  if (!measured.samples.empty()) json["samples"] = measured.samples;
  if (measured.repeatability) json["repeatability"] = *measured.repeatability;
  if (!measured.warnings.empty()) json["warnings"] = measured.warnings;
  return json;
}

Result<Measurement> measurement_from_json(const Json& json) {
  Measurement measured;
  JsonReader read(json, "metrics");
  const auto metric =
      json.is_object() && json.contains("metric") ? metric_from_json(json["metric"]) : std::nullopt;
  if (!metric) {
    read.complain("holds one that weir does not know");
  } else {
    measured.metric = *metric;
  }
  const auto nature = parse_nature(read.string("nature"));
  if (!nature) read.complain("holds one whose nature is not known");
  measured.nature = nature.value_or(Nature::sampled);
  measured.source = read.string("source");
  if (read.has("exact")) {
    measured.exact = rational_from_json(json["exact"]);
    if (!measured.exact) read.complain("\"exact\" should be a whole number or \"133/2\"");
  }
  measured.samples = numbers_from_json(read, "samples");
  measured.repeatability = read.optional_number("repeatability");
  measured.warnings = read.strings("warnings");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return measured;
}

Json provenance_to_json(const Provenance& from) {
  return {{"fingerprint", from.fingerprint},
          {"fingerprint_parts", from.fingerprint_parts},
          {"device_class", from.device_class},
          {"device_name", from.device_name},
          {"machine_class", from.machine_class},
          {"machine_name", from.machine_name},
          {"seen_class", from.seen_class},
          {"seen_name", from.seen_name},
          {"engine_build", optional_to_json(from.engine_build)},
          {"lengths", from.lengths}};
}

Result<Provenance> provenance_from_json(const Json& json) {
  Provenance from;
  JsonReader read(json, "provenance");
  from.fingerprint = read.string("fingerprint");
  from.fingerprint_parts = texts_from_json(read, "fingerprint_parts");
  from.device_class = read.string("device_class");
  from.device_name = read.string("device_name");
  from.machine_class = read.string("machine_class");
  from.machine_name = read.string("machine_name");
  from.seen_class = read.optional_string("seen_class").value_or("");
  from.seen_name = read.optional_string("seen_name").value_or("");
  from.engine_build = read.optional_string("engine_build");
  from.lengths = integers_from_json(read, "lengths");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return from;
}

}  // namespace

std::string_view to_string(Nature nature) {
  for (const auto& [known, name] : k_natures) {
    if (known == nature) return name;
  }
  return "sampled";
}

std::optional<Nature> parse_nature(std::string_view text) {
  for (const auto& [known, name] : k_natures) {
    if (name == text) return known;
  }
  return std::nullopt;
}

std::string_view to_string(Placement::State state) {
  for (const auto& [known, name] : k_states) {
    if (known == state) return name;
  }
  return "unknown";
}

std::optional<double> Measurement::value() const {
  if (exact) return exact->value();
  if (samples.empty()) return std::nullopt;
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

Json to_json(const KernelSet& kernels) {
  Json counts = Json::object();
  for (const auto& [name, count] : kernels.counts) counts[name] = rational_to_json(count);
  Json json = {{"named", kernels.named}, {"counts", std::move(counts)}};
  for (const auto& [scope, name] : k_scopes) {
    if (scope == kernels.scope) json["scope"] = name;
  }
  if (kernels.length) json["length"] = *kernels.length;
  if (kernels.varies) json["varies"] = true;
  return json;
}

Result<KernelSet> kernels_from_json(const Json& json) {
  KernelSet kernels;
  JsonReader read(json, "kernels");
  const std::string scope = read.string("scope");
  bool known = false;
  for (const auto& [value, name] : k_scopes) {
    if (name == scope) {
      kernels.scope = value;
      known = true;
    }
  }
  if (!known) read.complain("has a scope that is not known");
  kernels.length = read.optional_integer("length");
  kernels.named = read.boolean("named");
  kernels.counts = rationals_from_json(read, "counts");
  kernels.varies = read.optional_boolean("varies").value_or(false);
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return kernels;
}

Json to_json(const Placement& placement) {
  Json json = {{"state", to_string(placement.state)}};
  if (!placement.reason.empty()) json["reason"] = placement.reason;
  if (!placement.cpu_ops.empty()) json["cpu_ops"] = placement.cpu_ops;
  return json;
}

Result<Placement> placement_from_json(const Json& json) {
  Placement placement;
  JsonReader read(json, "placement");
  const std::string state = read.string("state");
  bool known = false;
  for (const auto& [value, name] : k_states) {
    if (name == state) {
      placement.state = value;
      known = true;
    }
  }
  if (!known) read.complain("has a state that is not known");
  placement.reason = read.optional_string("reason").value_or("");
  placement.cpu_ops = counts_from_json(read, "cpu_ops");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return placement;
}

Json to_json(const WorkDone& work) {
  Json json = Json::object();
  if (work.generated_tokens) json["generated_tokens"] = *work.generated_tokens;
  if (work.prompt_tokens) json["prompt_tokens"] = *work.prompt_tokens;
  if (work.output_digest) json["output_digest"] = *work.output_digest;
  if (work.model) json["model"] = *work.model;
  return json;
}

Result<WorkDone> work_from_json(const Json& json) {
  WorkDone work;
  JsonReader read(json, "work");
  work.generated_tokens = read.optional_integer("generated_tokens");
  work.prompt_tokens = read.optional_integer("prompt_tokens");
  work.output_digest = read.optional_string("output_digest");
  work.model = read.optional_string("model");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return work;
}

Json to_json(const Profile& profile) {
  Json metrics = Json::array();
  for (const auto& [name, measured] : profile.metrics) {
    metrics.push_back(measurement_to_json(measured));
  }
  return {{"schema", k_schema},
          {"cell", profile.cell.str()},
          {"device", profile.device},
          {"provenance", provenance_to_json(profile.provenance)},
          {"metrics", std::move(metrics)},
          {"kernels", profile.kernels ? to_json(*profile.kernels) : Json()},
          {"functions", profile.functions ? to_json(*profile.functions) : Json()},
          {"placement", to_json(profile.placement)},
          {"work", to_json(profile.work)},
          {"errors", profile.errors},
          {"stderr_tail", profile.stderr_tail},
          {"counts_skipped", optional_to_json(profile.counts_skipped)},
          {"instructions_skipped", optional_to_json(profile.instructions_skipped)},
          {"warnings", profile.warnings},
          {"counted_runs", profile.counted_runs},
          {"timed_runs", profile.timed_runs},
          {"requests", optional_to_json(profile.requests)},
          {"server_metrics", to_json(profile.server)},
          {"profiling_cost", optional_to_json(profile.profiling_cost)}};
}

Result<Profile> profile_from_json(const Json& json) {
  Profile profile;
  JsonReader read(json, "profile");
  if (const std::string schema = read.string("schema"); schema != k_schema) {
    return fail(Code::data, "not a profile: schema is \"{}\", should be \"{}\"",
                text::printable(schema.substr(0, 60)), k_schema);
  }
  WEIR_TRY(profile.cell, CellKey::parse(read.string("cell")));
  profile.device = read.string("device");
  WEIR_TRY(profile.provenance, provenance_from_json(read.object("provenance")));
  for (const Json& item : read.array("metrics")) {
    WEIR_TRY(auto measured, measurement_from_json(item));
    std::string name = measured.metric.name;
    profile.metrics[std::move(name)] = std::move(measured);
  }
  if (read.has("kernels")) {
    WEIR_TRY(profile.kernels, kernels_from_json(read.object("kernels")));
  }
  if (read.has("functions")) {
    WEIR_TRY(profile.functions, kernels_from_json(read.object("functions")));
  }
  WEIR_TRY(profile.placement, placement_from_json(read.object("placement")));
  WEIR_TRY(profile.work, work_from_json(read.object("work")));
  profile.errors = read.strings("errors");
  profile.stderr_tail = read.optional_string("stderr_tail").value_or("");
  profile.counts_skipped = read.optional_string("counts_skipped");
  profile.instructions_skipped = read.optional_string("instructions_skipped");
  profile.warnings = read.strings("warnings");
  profile.counted_runs = read.optional_integer("counted_runs").value_or(0);
  profile.timed_runs = read.optional_integer("timed_runs").value_or(0);
  profile.profiling_cost = read.optional_number("profiling_cost");
  profile.requests = read.optional_integer("requests");
  if (read.has("server_metrics")) {
    WEIR_TRY(profile.server, server_figures_from_json(read.array("server_metrics")));
  }
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return profile;
}

}  // namespace weir::profile

// Inside of parse_settings: one function for each section of weir.yaml. Not for other modules.
#pragma once

#include <string>
#include <vector>

#include "gate/config/fields.hpp"
#include "gate/config/settings.hpp"

namespace weir::config {

// Most entries that a section may have; larger ones make a matrix that nobody runs.
inline constexpr std::size_t k_most_entries = 1000;

struct Parsing {
  const Known& known;
  Problems problems;
  Settings settings;
};

// Complains about names that are no names or not unique ignoring case, and about too many.
void check_names(const Node& section, const std::string& what, Problems& problems);
[[nodiscard]] std::vector<std::string> engine_names(const Settings& settings);

void parse_engines(const Node& node, Parsing& parsing);
void parse_models(const Node& node, Parsing& parsing);
void parse_backends(const Node& node, Parsing& parsing);
void parse_variants(const Node& node, Parsing& parsing);
void parse_prompts(const Node& node, Parsing& parsing);
void parse_matrix(const Node& node, Parsing& parsing);
void parse_limits(const Node& node, Parsing& parsing);
void parse_gate(const Node& node, Parsing& parsing);
void parse_explain(const Node& node, Parsing& parsing);
// `metrics` and `facts` of an engine with the generic output.
void parse_generic(const Node* metrics, const Node* facts, GenericOutput& generic,
                   Parsing& parsing);
// `container` of an engine whose command and probes are known.
void parse_container(const Node& node, EngineSettings& engine, Parsing& parsing);
// The keys of an engine that serves, where `kind` says that it is one; else a complaint about each
// of them that stands there.
void parse_server(Fields& fields, Place at, EngineSettings& engine, Parsing& parsing);
// Fields that each request has besides those of its api, as JSON ("": none); `sent` are those.
[[nodiscard]] std::string read_extra_body(const Node& node, const std::vector<std::string>& sent,
                                          Problems& problems);
// What does not go with a server, once all of the engine is known.
void check_server(const Node& node, const EngineSettings& engine, Problems& problems);
// args, env, threads, seed.
void parse_extra(Fields& fields, Extra& extra, Parsing& parsing);
// The same, and `engines: {NAME: {…}}`.
void parse_per_engine(Fields& fields, PerEngine& extra, Parsing& parsing);
// Complains when `pattern` matches none of `names` ("unknown backend …").
void check_pattern(const std::string& pattern, Place at, const std::string& what,
                   const std::vector<std::string>& names, Problems& problems);

template <class Section>
[[nodiscard]] std::vector<std::string> names_of(const std::vector<Section>& sections) {
  std::vector<std::string> names;
  for (const Section& section : sections) names.push_back(section.name);
  return names;
}

}  // namespace weir::config

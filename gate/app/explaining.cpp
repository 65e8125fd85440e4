#include "gate/app/explaining.hpp"

#include <algorithm>
#include <set>

#include "gate/base/text.hpp"
#include "gate/model/gguf.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

constexpr std::uint64_t k_longest_config = std::uint64_t{4} << 20;

// What of a folder tells most: config.json, else its first GGUF file.
std::optional<std::string> header_in(const std::string& folder, const sys::Files& files) {
  const std::string config = sys::join_path(folder, "config.json");
  if (files.kind(config) == sys::Kind::file) return config;
  const auto names = files.list(folder);
  if (!names) return std::nullopt;
  std::optional<std::string> first;
  for (const std::string& name : *names) {
    if (!text::lower(name).ends_with(".gguf")) continue;
    if (!first || name < *first) first = name;
  }
  if (first) first = sys::join_path(folder, *first);
  return first;
}

bool worth_explaining(const verdict::CellVerdict& cell) {
  using verdict::Outcome;
  return cell.verdict == Outcome::fail || cell.verdict == Outcome::improved ||
         cell.verdict == Outcome::accepted;
}

}  // namespace

Result<explain::ModelFacts> read_model_facts(const std::string& path, const sys::Files& files) {
  if (files.kind(path) == sys::Kind::folder) {
    const auto inside = header_in(path, files);
    if (!inside) return fail(Code::data, "{}: neither config.json nor a GGUF file in it", path);
    return read_model_facts(*inside, files);
  }
  if (text::lower(path).ends_with(".json")) {
    WEIR_TRY(const std::string config, files.read_prefix(path, k_longest_config));
    return explain::model_facts_from_config(config).map_error(
        [&](Error error) { return with_context(path, std::move(error)); });
  }
  auto header =
      model::load_gguf([&](std::uint64_t bytes) { return files.read_prefix(path, bytes); });
  if (!header) return tl::unexpected(with_context(path, std::move(header).error()));
  return explain::model_facts(*header);
}

const explain::ModelFacts* ModelHeaders::of(const std::string& model) {
  const auto [entry, fresh] = known_.try_emplace(model);
  if (fresh) {
    const auto found =
        std::find_if(settings_.models.begin(), settings_.models.end(),
                     [&](const config::ModelSettings& one) { return one.name == model; });
    // What is called private keeps its layers to itself too.
    if (found != settings_.models.end() && !found->is_private) {
      const std::string folder = sys::absolute(sys::folder_of(config_file_));
      const std::string path =
          found->path.starts_with('/') ? found->path : sys::join_path(folder, found->path);
      if (auto facts = read_model_facts(path, files_)) entry->second = std::move(*facts);
    }
  }
  return entry->second ? &*entry->second : nullptr;
}

explain::Options explain_options(const config::Settings& settings) {
  explain::Options options{explain::default_bands(), settings.explain.rules};
  for (const auto& [metric, band] : settings.explain.bands) options.bands[metric] = band;
  return options;
}

explain::AllowedOps allowed_ops_of(const config::Settings& settings, const std::string& engine) {
  for (const config::EngineSettings& one : settings.engines) {
    if (one.name != engine) continue;
    std::set<std::string> allowed;
    for (const auto& [op, why] : one.cpu_ops_allowed) allowed.insert(op);
    return allowed;
  }
  return std::nullopt;
}

void explain_cells(std::vector<verdict::CellVerdict>& cells, const config::Settings& settings,
                   const std::string& config_file) {
  constexpr std::size_t k_most_findings = 8;
  const sys::RealFiles files;
  ModelHeaders models(settings, config_file, files);
  const explain::Options options = explain_options(settings);
  for (verdict::CellVerdict& cell : cells) {
    if (!worth_explaining(cell)) continue;
    auto why = explain::explain(explain::evidence_of(cell), models.of(cell.cell.model), options);
    // What the rules of the config say comes last, and is all kept.
    const auto own = std::find_if(why.findings.begin(), why.findings.end(), [](const auto& one) {
      return one.kind == explain::to_string(explain::Kind::user_rule);
    });
    const auto most = static_cast<std::ptrdiff_t>(k_most_findings);
    if (own - why.findings.begin() > most) why.findings.erase(why.findings.begin() + most, own);
    cell.findings = std::move(why.findings);
  }
}

}  // namespace weir::app

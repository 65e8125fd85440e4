// Checks that a combination of the matrix fits together, and that limits apply to some cell.
#include "gate/config/check_matrix.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/placeholders.hpp"
#include "gate/unit/kernel_cost.hpp"

namespace weir::config {
namespace {

bool has_amount(const verdict::LimitEntry& entry) {
  return entry.max_drop || entry.max_increase || entry.max_decrease || entry.max || entry.min;
}

// Returns every metric that a cell of the engine can have and that the entry may name. Metrics that
// are fitted over depths need a list of depths.
std::vector<unit::Metric> list_metrics(const EngineSettings& engine, bool has_depths,
                                       const verdict::LimitEntry& entry) {
  std::vector<unit::Metric> metrics;
  for (const std::string& name : unit::metric_names()) {
    const auto metric = unit::find_metric(name);
    if (metric && (has_depths || !unit::is_over_context(*metric))) metrics.push_back(*metric);
  }
  for (const ValueRule& rule : engine.generic.values) {
    if (rule.custom) metrics.push_back(*rule.custom);
  }
  for (const std::string& pattern : entry.metrics) {
    const auto metric = unit::find_metric(pattern);
    // These names exist only once the engine runs.
    if (metric &&
        (metric->scope == unit::Scope::at_length || unit::is_op_or_kernel_metric(pattern))) {
      metrics.push_back(*metric);
    }
  }
  return metrics;
}

// Returns true if some source of the cell can report metrics of single ops or kernels that match
// `pattern`. Probes count kernels of devices and ops of the CPU, and compilers report costs of
// kernels. An engine has to print times and everything else.
bool can_be_reported(const std::string& pattern, const Cell& cell) {
  const bool cpu = cell.device == "cpu";
  if (pattern.starts_with(cpu ? "op_calls:" : "kernel_calls:")) return true;
  if (!cpu && unit::find_kernel_cost(pattern) != nullptr) return true;
  if (cell.adapter != "generic") return cell.adapter != "llama-bench";  // others print profiles
  const auto& rules = cell.engine->generic.values;
  return std::ranges::any_of(
      rules, [&](const ValueRule& rule) { return text::glob_match(pattern, rule.metric); });
}

// Returns the complaint about a metric of single ops or kernels that no cell of the entry can
// report; nothing if there is none.
std::optional<std::string> unreported_reason(const verdict::LimitEntry& entry,
                                             std::span<const Cell> cells) {
  for (const std::string& pattern : entry.metrics) {
    if (!unit::is_op_or_kernel_metric(pattern)) continue;
    const bool is_reported = std::ranges::any_of(cells, [&](const Cell& cell) {
      return entry.match.fits(cell.key) && can_be_reported(pattern, cell);
    });
    if (is_reported) continue;
    return fmt::format(
        "nothing reports \"{}\" in the cells that this limit matches: probes count kernel_calls of "
        "devices and op_calls of the CPU, compilers of devices tell costs of kernels, the rest is "
        "what an engine prints",
        pattern);
  }
  return std::nullopt;
}

// Returns the complaint about a limit that applies to no cell or metric, or makes no sense. A limit
// must make sense for each metric that it names; a pattern must do so for at least one metric.
std::optional<std::string> limit_complaint(const verdict::LimitEntry& entry,
                                           std::span<const Cell> cells) {
  if (entry.metrics.empty() && (entry.max || entry.min)) {
    return "max and min need \"metrics\": one number does not suit all of them";
  }
  bool fits_a_cell = false;
  bool covers = false;
  bool makes_sense = false;
  std::optional<std::string> why_not;
  // A cell's metrics depend on its engine and on having depths only.
  std::set<std::pair<const EngineSettings*, bool>> checked;
  for (const Cell& cell : cells) {
    if (!entry.match.fits(cell.key)) continue;
    fits_a_cell = true;
    const bool has_depths = cell.key.depth.has_value();
    if (!checked.insert({cell.engine, has_depths}).second) continue;
    for (const unit::Metric& metric : list_metrics(*cell.engine, has_depths, entry)) {
      if (!entry.covers(cell.key, metric.name)) continue;
      covers = true;
      const auto why = verdict::nonsense(entry, metric);
      if (why && holds(entry.metrics, metric.name)) return why;
      if (why && !why_not) why_not = why;
      makes_sense = makes_sense || !why;
    }
    for (const char* special : verdict::k_non_metrics) {
      if (!entry.covers(cell.key, special)) continue;
      covers = true;
      makes_sense = makes_sense || !has_amount(entry);
      if (holds(entry.metrics, special) && has_amount(entry)) {
        return fmt::format("\"{}\" is no number: it takes exact and mode alone", special);
      }
    }
  }
  if (!fits_a_cell) return "this limit matches no cell of the matrix";
  if (!covers) return "no engine that this limit matches has such a metric";
  if (auto why = unreported_reason(entry, cells)) return why;
  return makes_sense ? std::nullopt : why_not;
}

// Returns why a server cannot be sent the requests of this cell; nothing if it can.
std::optional<std::string> server_misfit_reason(const Cell& cell) {
  if (cell.depth != 0) return "a server has no depth to be asked for";
  if (cell.tokens == 0 && !cell.workload)
    return "a server is asked for at least one token, and the prompt for none";
  if (!cell.text && !cell.prompt_file && cell.prompt_tokens == 0) {
    return "a server wants a prompt: text, file or prompt_tokens";
  }
  if (cell.capacity && !cell.engine->server->objectives.any()) {
    return "capacity is the rate at which the engine's slo holds, and it has none";
  }
  if (cell.capacity) {
    const double seconds = static_cast<double>(cell.requests) / cell.capacity->first;
    if (seconds > cell.engine->timeout_seconds) {
      return fmt::format(
          "capacity: {} requests at {:g} a second take {}, and each rate has the engine's timeout "
          "of {}: raise timeout or low, or set fewer requests",
          cell.requests, cell.capacity->first, unit::show_duration(seconds),
          unit::show_duration(cell.engine->timeout_seconds));
    }
  }
  return std::nullopt;
}

}  // namespace

Extra Combination::extra() const {
  Extra all;
  for (const Extra& more :
       {engine->extra, model->extra.for_engine(engine->name),
        variant->extra.for_engine(engine->name), backend->extra.for_engine(engine->name),
        prompt->extra.for_engine(engine->name)}) {
    all.add(more);
  }
  return all;
}

std::optional<std::string> misfit_reason(const Cell& cell,
                                         const std::optional<std::string>& missing_flag,
                                         const Combination& combination, const Settings& settings) {
  const auto has = [&](std::string_view name) { return uses(cell.command, cell.env, name); };
  const auto no_placeholder = [](std::string_view name) {
    return fmt::format("the command has no {{{}}}", name);
  };
  const EngineSettings& engine = *combination.engine;
  const PromptSettings& prompt = *combination.prompt;
  const Extra model_extra = combination.model->extra.for_engine(engine.name);
  const bool ignores_model = settings.models.size() > 1 && !has("model") &&
                             model_extra.args.empty() && model_extra.env.empty() &&
                             model_extra.replaced_flags.empty();
  if (ignores_model) return "the command has no {model}, so that all models would be the same";
  if (has("model") && cell.model_path.empty()) return "{model} in the command needs a file";
  if (cell.threads != 0 && !has("threads")) return no_placeholder("threads") + " for \"threads\"";
  if (missing_flag) {
    return fmt::format("replace: the command has no {}: add it to args",
                       text::printable(*missing_flag));
  }
  if (engine.server) return server_misfit_reason(cell);
  // Without a command, another tool has run the engine and written result files.
  if (engine.command.empty()) return std::nullopt;
  if (has("port")) return "{port} is for engines that serve (kind: server)";
  if (!prompt.concurrency.empty() || prompt.rate || prompt.requests || prompt.hold ||
      prompt.may_be_cached || prompt.duration_seconds || prompt.capacity || prompt.workload) {
    return "concurrency, rate, requests, hold, cache, duration, capacity and workload are asked of "
           "servers (kind: server)";
  }
  if (cell.prompt_tokens != 0 && !has("prompt_tokens")) return no_placeholder("prompt_tokens");
  if (cell.tokens != 0 && !has("tokens")) return no_placeholder("tokens");
  if (cell.depth != 0 && !has("depth")) return no_placeholder("depth");
  if (cell.text && !has("prompt") && !has("prompt_file")) {
    return "the command takes no text (it has neither {prompt} nor {prompt_file})";
  }
  if (cell.prompt_file && !has("prompt_file")) return no_placeholder("prompt_file");
  if (!cell.text && !cell.prompt_file && (has("prompt") || has("prompt_file"))) {
    return "the command wants a text, and the prompt has none";
  }
  return std::nullopt;
}

Result<void> check_limits(const Settings& settings, std::span<const Cell> cells) {
  std::vector<std::string> complaints;
  for (const verdict::LimitEntry& entry : settings.limits) {
    if (const auto why = limit_complaint(entry, cells)) {
      complaints.push_back(fmt::format("{}: {}", entry.source, *why));
    }
  }
  if (!complaints.empty()) return fail(Code::config, "{}", text::join(complaints, "\n"));
  return {};
}

}  // namespace weir::config

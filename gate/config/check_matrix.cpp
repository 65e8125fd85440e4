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

// Returns the metrics that every cell can have. Metrics that are fitted over depths need a list of
// depths.
std::vector<unit::Metric> list_common_metrics(bool has_depths) {
  std::vector<unit::Metric> metrics;
  for (const std::string& name : unit::metric_names()) {
    const auto metric = unit::find_metric(name);
    if (!metric) continue;
    if (has_depths || !unit::is_over_context(*metric)) metrics.push_back(*metric);
  }
  return metrics;
}

const std::vector<unit::Metric>& common_metrics(bool has_depths) {
  static const auto k_with_depths = list_common_metrics(true);
  static const auto k_without_depths = list_common_metrics(false);
  return has_depths ? k_with_depths : k_without_depths;
}

// Returns the metrics that the entry names and that exist only once an engine runs.
std::vector<unit::Metric> late_metrics(const verdict::LimitEntry& entry) {
  std::vector<unit::Metric> metrics;
  for (const std::string& pattern : entry.metrics) {
    const auto metric = unit::find_metric(pattern);
    if (metric &&
        (metric->scope == unit::Scope::at_length || unit::is_op_or_kernel_metric(pattern))) {
      metrics.push_back(*metric);
    }
  }
  return metrics;
}

// The first cell of each kind in a matrix: metrics depend on the engine, on a list of depths, and
// on running on the CPU.
struct CellKinds {
  explicit CellKinds(std::span<const Cell> cells) {
    std::map<std::tuple<const EngineSettings*, bool, bool>, std::size_t> places;
    for (const Cell& cell : cells) {
      const auto [place, is_new] = places.try_emplace(
          {cell.engine, cell.key.depth.has_value(), cell.device == "cpu"}, kinds.size());
      if (is_new) kinds.push_back(&cell);
      kind_of_cell.push_back(place->second);
    }
  }
  std::vector<const Cell*> kinds;
  std::vector<std::size_t> kind_of_cell;
};

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

// Returns why a limit on a single op or kernel cannot apply: none of `cells`, those that it
// matches, can report it. Nothing if one can.
std::optional<std::string> unreported_reason(const verdict::LimitEntry& entry,
                                             std::span<const Cell* const> cells) {
  for (const std::string& pattern : entry.metrics) {
    if (!unit::is_op_or_kernel_metric(pattern)) continue;
    const bool is_reported = std::ranges::any_of(
        cells, [&](const Cell* cell) { return can_be_reported(pattern, *cell); });
    if (is_reported) continue;
    return fmt::format(
        "nothing reports \"{}\" in the cells that this limit matches: probes count kernel_calls of "
        "devices and op_calls of the CPU, compilers of devices tell costs of kernels, the rest is "
        "what an engine prints",
        pattern);
  }
  return std::nullopt;
}

// Checks one entry: what it says about the metrics of the cells that it fits.
struct EntryCheck {
  const verdict::LimitEntry& entry;
  bool covers = false, makes_sense = false;
  std::optional<std::string> why_not{}, wrong{};  // of a pattern; of a metric that it names

  void check(const std::vector<unit::Metric>& metrics) {
    for (const unit::Metric& metric : metrics) check(metric);
  }
  void check(const unit::Metric& metric) {
    if (wrong || !entry.covers_name(metric.name)) return;
    covers = true;
    const auto why = verdict::nonsense(entry, metric);
    if (why && holds(entry.metrics, metric.name)) wrong = why;
    if (why && !why_not) why_not = why;
    makes_sense = makes_sense || !why;
  }
  void check_non_metrics() {
    for (const char* special : verdict::k_non_metrics) {
      if (wrong || !entry.covers_name(special)) continue;
      covers = true;
      makes_sense = makes_sense || !has_amount(entry);
      if (holds(entry.metrics, special) && has_amount(entry)) {
        wrong = fmt::format("\"{}\" is no number: it takes exact and mode alone", special);
      }
    }
  }
};

// Returns why a limit applies to no benchmark cell or metric, or makes no sense; nothing if it is
// fine. `cells`: one of each kind that the entry matches. A pattern has to make sense for one
// metric, a name for all.
std::optional<std::string> limit_complaint(const verdict::LimitEntry& entry,
                                           std::span<const Cell* const> cells) {
  if (entry.metrics.empty() && (entry.max || entry.min)) {
    return "max and min need \"metrics\": one number does not suit all of them";
  }
  EntryCheck check{entry};
  std::set<bool> checked_depths;
  std::set<const EngineSettings*> checked_engines;
  for (const Cell* cell : cells) {
    const bool has_depths = cell->key.depth.has_value();
    if (checked_depths.insert(has_depths).second) check.check(common_metrics(has_depths));
    if (checked_engines.insert(cell->engine).second) {
      for (const ValueRule& rule : cell->engine->generic.values) {
        if (rule.custom) check.check(*rule.custom);
      }
    }
    if (cell != cells.front()) continue;
    check.check(late_metrics(entry));
    check.check_non_metrics();
  }
  if (check.wrong) return check.wrong;
  if (cells.empty()) return "this limit matches no cell of the matrix";
  if (!check.covers) return "no engine that this limit matches has such a metric";
  if (auto why = unreported_reason(entry, cells)) return why;
  return check.makes_sense ? std::nullopt : check.why_not;
}

// Returns why a server cannot be sent the requests of this benchmark cell; nothing if it can.
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

// Returns why the engine cannot run this combination of the matrix; nothing if it can.
// `missing_flag`: an option whose value is to be replaced, and which the command lacks.
std::optional<std::string> misfit_reason(const Cell& cell,
                                         const std::optional<std::string>& missing_flag,
                                         const Combination& combination, const Settings& settings) {
  const auto uses_placeholder = [&](std::string_view name) {
    return uses(cell.command, cell.env, name);
  };
  const auto missing_placeholder = [](std::string_view name) {
    return fmt::format("the command has no {{{}}}", name);
  };
  const EngineSettings& engine = *combination.engine;
  const PromptSettings& prompt = *combination.prompt;
  const Extra model_extra = combination.model->extra.for_engine(engine.name);
  const bool ignores_model = settings.models.size() > 1 && !uses_placeholder("model") &&
                             model_extra.args.empty() && model_extra.env.empty() &&
                             model_extra.replaced_flags.empty();
  if (ignores_model) return "the command has no {model}, so that all models would be the same";
  if (uses_placeholder("model") && cell.model_path.empty())
    return "{model} in the command needs a file";
  if (cell.threads != 0 && !uses_placeholder("threads"))
    return missing_placeholder("threads") + " for \"threads\"";
  if (missing_flag) {
    return fmt::format("replace: the command has no {}: add it to args",
                       text::printable(*missing_flag));
  }
  if (engine.server) return server_misfit_reason(cell);
  // Without a command, another tool has run the engine and written result files.
  if (engine.command.empty()) return std::nullopt;
  if (uses_placeholder("port")) return "{port} is for engines that serve (kind: server)";
  if (!prompt.concurrency.empty() || prompt.rate || prompt.requests || prompt.hold ||
      prompt.allows_cached_prompts || prompt.duration_seconds || prompt.capacity ||
      prompt.workload) {
    return "concurrency, rate, requests, hold, cache, duration, capacity and workload are asked of "
           "servers (kind: server)";
  }
  if (cell.prompt_tokens != 0 && !uses_placeholder("prompt_tokens"))
    return missing_placeholder("prompt_tokens");
  if (cell.tokens != 0 && !uses_placeholder("tokens")) return missing_placeholder("tokens");
  if (cell.depth != 0 && !uses_placeholder("depth")) return missing_placeholder("depth");
  if (cell.text && !uses_placeholder("prompt") && !uses_placeholder("prompt_file")) {
    std::string reason = "the command takes no text (it has neither {prompt} nor {prompt_file})";
    if (!uses_placeholder("tokens") && !uses_placeholder("prompt_tokens"))
      reason += "; a program without a prompt: env: {WEIR_PROMPT: \"{prompt}\"} at its engine";
    return reason;
  }
  if (cell.prompt_file && !uses_placeholder("prompt_file"))
    return missing_placeholder("prompt_file");
  if (!cell.text && !cell.prompt_file &&
      (uses_placeholder("prompt") || uses_placeholder("prompt_file"))) {
    return "the command wants a text, and the prompt has none";
  }
  return std::nullopt;
}

// Fails if a limit of weir.yaml covers no benchmark cell, or makes no sense for a metric that it
// covers. Cells of one kind are checked once.
Result<void> check_limits(const Settings& settings, std::span<const Cell> cells) {
  const verdict::LimitTable limits(settings.limits);
  const CellKinds kinds(cells);
  const auto fitting_entries =
      collect<verdict::EntrySet>(cells, [&](const Cell& cell) { return limits.fitting(cell.key); });
  std::vector<std::string> complaints;
  for (std::size_t limit = 0; limit < settings.limits.size(); ++limit) {
    if (settings.limits[limit].source == verdict::k_default_source) continue;
    std::vector<const Cell*> fitting_kinds;
    std::vector<bool> has_kind(kinds.kinds.size());
    for (std::size_t cell = 0; cell < cells.size(); ++cell) {
      const std::size_t kind = kinds.kind_of_cell[cell];
      if (has_kind[kind] || !verdict::contains(fitting_entries[cell], limit)) continue;
      has_kind[kind] = true;
      fitting_kinds.push_back(kinds.kinds[kind]);
    }
    if (const auto complaint = limit_complaint(settings.limits[limit], fitting_kinds)) {
      complaints.push_back(fmt::format("{}: {}", settings.limits[limit].source, *complaint));
    }
  }
  if (!complaints.empty()) return fail(Code::config, "{}", text::join(complaints, "\n"));
  return {};
}

}  // namespace weir::config

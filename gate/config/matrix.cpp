// Expands the matrix of weir.yaml into cells, and writes the command line of a cell's process.
#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/json.hpp"
#include "gate/config/check_matrix.hpp"
#include "gate/config/container.hpp"
#include "gate/config/parse.hpp"
#include "gate/config/placeholders.hpp"

namespace weir::config {
namespace {

constexpr std::size_t k_max_cells = 20'000;
constexpr std::size_t k_max_combinations = 50'000;
constexpr std::size_t k_max_points = 200'000;               // with the values in lists of prompts
constexpr std::size_t k_max_bytes = std::size_t{64} << 20;  // of all cells, about

// Returns about how much memory a cell takes, with what its facts copy of its engine.
std::size_t count_bytes(const Cell& cell) {
  constexpr std::size_t k_text = 32, k_op = 256;
  std::size_t bytes = sizeof(Cell) + k_op * cell.engine->cpu_ops_allowed.size();
  for (const auto* texts : {&cell.command, &cell.counted_run_args, &cell.works}) {
    for (const std::string& text : *texts) bytes += k_text + text.size();
  }
  for (const auto* texts : {&cell.env, &cell.counted_run_env, &cell.identity}) {
    for (const auto& [name, text] : *texts) bytes += 3 * k_text + name.size() + text.size();
  }
  return bytes + (cell.text ? cell.text->size() : 0);
}

// Returns true if the entry names one engine and one prompt, without patterns.
bool asks_by_name(const MatrixEntry& entry) {
  const auto exact = [](const std::string& pattern) {
    return !pattern.empty() && pattern.find('*') == std::string::npos;
  };
  return exact(entry.match.engine) && exact(entry.match.prompt);
}

// Returns `command` with `args` in the place of "{args}", or at the end.
Arguments insert_arguments(const Arguments& command, const Arguments& args) {
  Arguments placed = command;
  auto at = std::find(placed.begin(), placed.end(), "{args}");
  if (at != placed.end()) at = placed.erase(at);
  placed.insert(at, args.begin(), args.end());
  return placed;
}

// Replaces the values of flags in a command, "-ngl 99" or "--device=none". Returns a flag of
// `replaced` that the command lacks; nothing if all were there.
std::optional<std::string> replace_flag_values(Arguments& command,
                                               const std::map<std::string, std::string>& replaced) {
  auto missing = replaced;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string flag = command[i].substr(0, command[i].find('='));
    const std::string* value = look_up(replaced, flag);
    if (value == nullptr) continue;
    missing.erase(flag);
    if (flag.size() < command[i].size()) {
      command[i] = flag + "=" + *value;
    } else if (i + 1 < command.size()) {
      ++i;
      command[i] = *value;
    }
  }
  if (missing.empty()) return std::nullopt;
  return missing.begin()->first;
}

// Returns the parts of a cell's fingerprint as JSON texts: everything that its counts depend on.
// The program's path is left out, as it differs between machines. `common` gives threads and seed.
std::map<std::string, std::string> fingerprint_parts(const Cell& cell, const Arguments& command,
                                                     const Extra& common) {
  Json arguments = {{"command", command}};
  if (cell.engine->container && !cell.engine->container->args.empty()) {
    arguments["container"] = cell.engine->container->args;
  }
  if (!cell.counted_run_args.empty()) arguments["counted"] = cell.counted_run_args;
  if (common.threads) arguments["threads"] = *common.threads;
  if (common.seed) arguments["seed"] = *common.seed;
  Json environment = {{"set", cell.env}};
  if (!cell.counted_run_env.empty()) environment["counted"] = cell.counted_run_env;
  Json prompt = {
      {"prompt_tokens", cell.prompt_tokens}, {"tokens", cell.tokens}, {"depth", cell.depth}};
  if (cell.text) prompt["text"] = hash_hex(*cell.text);
  if (const auto& server = cell.engine->server) {
    // The server's address and its readiness check do not change its work.
    arguments["server"] = {{"api", server->api},
                           {"model_name", server->model_name},
                           {"warm_up", server->warm_up},
                           {"own_fields", server->sends_extra_fields}};
    if (!server->extra_body.empty()) arguments["server"]["extra_body"] = server->extra_body;
    prompt["requests"] = cell.requests;
    if (cell.rate) prompt["rate"] = *cell.rate;
    if (!cell.rate) prompt["concurrency"] = cell.concurrency;
    if (cell.sweep == profile::Sweep::burst) prompt["hold"] = "all";
    if (cell.allows_cached_prompts) prompt["cached"] = true;
    if (cell.capacity) prompt["capacity"] = {cell.capacity->first, cell.capacity->second};
    if (cell.workload) prompt["workload"] = true;
    if (cell.turns > 1) prompt["turns"] = cell.turns;
    if (cell.duration_seconds) prompt["duration"] = *cell.duration_seconds;
  }
  return {{"arguments", dump_json(arguments)},
          {"environment", dump_json(environment)},
          {"prompt", dump_json(prompt)}};
}

// One combination of the values in a prompt's lists; each is a cell.
struct Point {
  std::optional<std::int64_t> depth, concurrency, threads;
};

profile::CellKey make_key(const Combination& combination, const Point& point) {
  return {combination.engine->name,
          combination.variant->name,
          combination.model->name,
          combination.backend->name,
          combination.prompt->name,
          combination.prompt->depth_is_list ? point.depth : std::nullopt,
          combination.prompt->concurrency_is_list ? point.concurrency : std::nullopt,
          point.threads};
}

// Returns all combinations of the prompt's context depths, concurrencies and threads. A dimension
// that the prompt does not list is absent in each.
std::vector<Point> list_points(const PromptSettings& prompt) {
  const auto values_or_absent = [](const std::vector<std::int64_t>& written) {
    std::vector<std::optional<std::int64_t>> values(written.begin(), written.end());
    if (values.empty()) values.emplace_back();
    return values;
  };
  std::vector<Point> points;
  for (const auto depth : values_or_absent(prompt.depth)) {
    for (const auto concurrency : values_or_absent(prompt.concurrency)) {
      for (const auto threads : values_or_absent(prompt.threads)) {
        points.push_back({depth, concurrency, threads});
      }
    }
  }
  return points;
}

// Returns true if a probe in the server can hold back its work until all requests are queued. The
// server must run on this machine, outside of containers.
bool can_be_held(const Combination& combination) {
  const EngineSettings& engine = *combination.engine;
  const bool is_local =
      !engine.command.empty() && !engine.container && combination.backend->runner.empty();
  return is_local && (holds(engine.probes, "ggml") ||
                      (combination.backend->device == "vulkan" && holds(engine.probes, "vulkan")));
}

// Returns how many requests a timed run sends if the prompt does not say.
std::int64_t default_requests(const PromptSettings& prompt, std::int64_t concurrency) {
  constexpr std::int64_t k_per_rate = 1000, k_recorded = 100, k_arriving = 32, k_each = 8;
  if (prompt.capacity) return k_per_rate;
  if (prompt.workload) return k_recorded;
  if (prompt.rate) return k_arriving;
  return k_each * concurrency;
}

// Returns how a server's counted passes vary. With one request at a time, counts are fitted over
// its lengths.
profile::Sweep server_sweep(const Combination& combination, std::int64_t concurrency) {
  const PromptSettings& prompt = *combination.prompt;
  if (concurrency == 1 && !prompt.rate) return profile::Sweep::request;
  const bool is_held =
      !prompt.rate && !prompt.workload && prompt.hold.value_or(can_be_held(combination));
  return is_held ? profile::Sweep::burst : profile::Sweep::overlapping;
}

// Sets the members of `cell` that describe a server's load: requests, their rate or concurrency,
// and if they run in one batch.
void set_load(const Combination& combination, const Point& point, Cell& cell) {
  const PromptSettings& prompt = *combination.prompt;
  cell.concurrency = point.concurrency.value_or(1);
  cell.rate = prompt.rate;
  cell.requests = prompt.requests.value_or(default_requests(prompt, cell.concurrency));
  cell.sweep = server_sweep(combination, cell.concurrency);
  cell.must_be_held = cell.sweep == profile::Sweep::burst && prompt.hold.has_value();
  cell.allows_cached_prompts = prompt.allows_cached_prompts;
  cell.duration_seconds = prompt.duration_seconds;
  cell.capacity = prompt.capacity;
  cell.workload = prompt.workload;
  cell.turns = prompt.turns;
}

// Returns what an engine without a server is run over: tokens or repeats, if its command takes
// them. An engine that counts by itself runs once.
profile::Sweep engine_sweep(const EngineSettings& engine, const Cell& cell) {
  if (engine.probes.empty() && engine.reports_counts()) return profile::Sweep::none;
  if (cell.tokens > 0) return profile::Sweep::tokens;
  const bool repeats = uses(cell.command, cell.env, "repeats");
  return repeats ? profile::Sweep::repeats : profile::Sweep::none;
}

// Returns the cell of a combination, and the flag that `replace` names but its command lacks.
std::pair<Cell, std::optional<std::string>> make_cell(const Combination& combination,
                                                      const Point& at) {
  Cell cell;
  cell.key = make_key(combination, at);
  cell.device = combination.backend->device;
  cell.twin = combination.backend->twin;
  cell.twin_devices = combination.backend->devices;
  cell.compile = combination.backend->compile;
  cell.runner = combination.backend->runner;
  cell.gpu = combination.backend->gpu;
  cell.adapter = combination.engine->output;
  cell.engine = combination.engine;
  cell.counted_run_args = combination.engine->counted_run_args;
  cell.counted_run_env = combination.engine->counted_run_env;
  cell.model_path = combination.model->path;
  cell.prompt_tokens = combination.prompt->prompt_tokens.value_or(0);
  cell.tokens = combination.prompt->tokens.value_or(0);
  cell.depth = at.depth.value_or(0);
  cell.text = combination.prompt->text;
  cell.prompt_file =
      combination.prompt->workload ? combination.prompt->workload : combination.prompt->file;
  cell.is_private = combination.engine->is_private || combination.model->is_private ||
                    combination.prompt->is_private;

  Extra all = combination.extra();
  if (at.threads) all.threads = *at.threads;
  if (at.threads == 0) all.threads = k_all_threads;
  cell.env = all.env;
  cell.passed_variables = all.passed_variables;
  cell.threads = all.threads.value_or(cell.threads);
  cell.seed = all.seed.value_or(cell.seed);
  Arguments command = insert_arguments(combination.engine->command, all.args);
  auto missing_flag = replace_flag_values(command, all.replaced_flags);
  const std::optional<ContainerSettings>& container = combination.engine->container;
  cell.command = container ? container_command(*container, command) : command;

  cell.sweep = engine_sweep(*combination.engine, cell);
  if (combination.engine->server) {
    set_load(combination, at, cell);
  } else {
    cell.wanted_load = {.requests = combination.prompt->requests,
                        .concurrency = at.concurrency,
                        .rate = combination.prompt->rate,
                        .tokens = combination.prompt->tokens};
  }
  // A server that runs already has no command.
  const auto program = command.begin() + (command.empty() ? 0 : 1);
  cell.identity = fingerprint_parts(
      cell,
      container ? fingerprint_command(*container, command) : Arguments(program, command.end()),
      all);
  return {std::move(cell), std::move(missing_flag)};
}

// Expands the settings into cells, and checks that every entry and limit applies to some cell.
class Expansion {
 public:
  explicit Expansion(const Settings& settings)
      : settings_(settings),
        include_(verdict::make_match_table(settings.include)),
        exclude_(verdict::make_match_table(settings.exclude)),
        limits_(verdict::make_match_table(settings.limits)),
        included_(settings.include.size()),
        excluded_(settings.exclude.size()),
        filled_(settings.include.size()) {}

  Result<Matrix> run() {
    WEIR_CHECK(check_size());
    for (const EngineSettings& engine : settings_.engines) {
      for (const VariantSettings& variant : settings_.variants) {
        // A variant that names engines is for these alone.
        const auto& named = variant.extra.engines;
        if (!named.empty() && !named.contains(engine.name)) continue;
        for (const ModelSettings& model : settings_.models) {
          for (const BackendSettings& backend : settings_.backends) {
            for (const PromptSettings& prompt : settings_.prompts) {
              WEIR_CHECK(add({&engine, &variant, &model, &backend, &prompt}));
            }
          }
        }
      }
    }
    WEIR_CHECK(check_entries());
    if (!settings_.has_replaced_rules) WEIR_CHECK(check_reference());
    if (matrix_.cells.empty()) {
      const std::string why = matrix_.notes.empty() ? std::string(": exclude leaves out everything")
                                                    : ":\n  " + text::join(matrix_.notes, "\n  ");
      return fail(Code::config, "{}: the matrix has no cell{}", settings_.file, why);
    }
    if (!settings_.has_replaced_rules) WEIR_CHECK(check_limits(settings_, matrix_.cells));
    matrix_.notes.insert(matrix_.notes.begin(), settings_.notes.begin(), settings_.notes.end());
    return std::move(matrix_);
  }

 private:
  // Fails if the product of the sections is too large.
  Result<void> check_size() const {
    std::size_t combinations = 1, points = 0;
    for (const std::size_t factor :
         {settings_.engines.size(), settings_.variants.size(), settings_.models.size(),
          settings_.backends.size(), settings_.prompts.size()}) {
      combinations *= std::max<std::size_t>(factor, 1);  // each is at most k_max_entries
      if (combinations > k_max_combinations) {
        return fail(Code::config, "{}: the matrix has more than {} combinations", settings_.file,
                    k_max_combinations);
      }
    }
    for (const PromptSettings& prompt : settings_.prompts) {
      points += std::max<std::size_t>(prompt.depth.size(), 1) *
                std::max<std::size_t>(prompt.concurrency.size(), 1) *
                std::max<std::size_t>(prompt.threads.size(), 1);
    }
    points *= combinations / std::max<std::size_t>(settings_.prompts.size(), 1);
    if (points > k_max_points) {
      return fail(Code::config, "{}: the lists of prompts make more than {} combinations",
                  settings_.file, k_max_points);
    }
    return {};
  }

  // Adds the cells of a combination that are wanted and fit; leaves a note for those that do not
  // fit. Fails if an include entry names a cell that does not fit.
  Result<void> add(const Combination& combination) {
    for (const Point& at : list_points(*combination.prompt)) {
      // Matrix entries go by the name alone, so cells that they exclude are never made.
      const profile::CellKey key = make_key(combination, at);
      const MatrixEntry* entry = nullptr;
      if (!is_wanted(key, entry)) continue;
      auto [cell, missing_flag] = make_cell(combination, at);
      bytes_ += count_bytes(cell);
      if (bytes_ > k_max_bytes) {
        return fail(Code::config, "{}: the cells of the matrix take more than {} MiB",
                    settings_.file, k_max_bytes >> 20);
      }
      if (const auto reason = misfit_reason(cell, missing_flag, combination, settings_)) {
        if (entry != nullptr && asks_by_name(*entry)) {
          return fail(Code::config, "{}: {} does not fit: {}", entry->source, cell.key.str(),
                      *reason);
        }
        note(combination, *reason);
        for_included(key, [&](std::size_t i) { misfits_.try_emplace(i, *reason); });
        continue;
      }
      if (matrix_.cells.size() >= k_max_cells) {
        return fail(Code::config, "{}: the matrix has more than {} cells", settings_.file,
                    k_max_cells);
      }
      for_included(key, [&](std::size_t i) { filled_[i] = true; });
      add_limits(cell);
      for (const std::string& work : cell.works) bytes_ += sizeof work + work.size();
      matrix_.cells.push_back(std::move(cell));
    }
    return {};
  }

  // Adds what limits of this cell say to its measurement: the patterns of single ops and kernels
  // that they name, and how many requests may fail.
  void add_limits(Cell& cell) const {
    const verdict::EntrySet fitting = limits_.fitting(cell.key);
    std::set<std::string_view> works;
    for (std::size_t i = 0; i < settings_.limits.size(); ++i) {
      if (!verdict::contains(fitting, i)) continue;
      const verdict::LimitEntry& limit = settings_.limits[i];
      for (const std::string& pattern : limit.metrics) {
        if (pattern == unit::k_failed_requests && limit.max) {
          cell.wanted_load.may_fail = limit.max;
        }
        if (!unit::is_op_or_kernel_metric(pattern)) continue;
        const bool is_new = works.insert(pattern).second;
        if (is_new) cell.works.push_back(pattern);
      }
    }
  }

  // Calls `take` with the place of each include entry that matches the cell.
  template <class Take>
  void for_included(const profile::CellKey& key, const Take& take) const {
    const verdict::EntrySet fitting = include_.fitting(key);
    for (std::size_t i = 0; i < settings_.include.size(); ++i) {
      if (verdict::contains(fitting, i)) take(i);
    }
  }

  // Returns true if `include` and `exclude` leave the cell in. `entry` becomes the include entry
  // that matches, preferably one that names the cell; null if there is none.
  bool is_wanted(const profile::CellKey& key, const MatrixEntry*& entry) {
    bool wanted = settings_.include.empty();
    const verdict::EntrySet in_include = include_.fitting(key), in_exclude = exclude_.fitting(key);
    for (std::size_t i = 0; i < settings_.include.size(); ++i) {
      if (!verdict::contains(in_include, i)) continue;
      included_[i] = true;
      wanted = true;
      if (entry == nullptr || asks_by_name(settings_.include[i])) entry = &settings_.include[i];
    }
    for (std::size_t i = 0; i < settings_.exclude.size(); ++i) {
      if (!verdict::contains(in_exclude, i)) continue;
      excluded_[i] = true;
      wanted = false;
    }
    return wanted;
  }

  // Fails if `gate.reference` names no timed cell.
  Result<void> check_reference() const {
    const std::optional<std::string>& reference = settings_.gate.reference;
    if (!reference) return {};
    std::vector<std::string> names;
    for (const Cell& cell : matrix_.cells) {
      if (!cell.twin) names.push_back(cell.key.str());
    }
    if (holds(names, *reference)) return {};
    return fail(Code::config, "{}: reference: no timed cell is named \"{}\"{}",
                settings_.gate.reference_source, text::printable(*reference),
                text::did_you_mean(*reference, names));
  }

  // Fails if an include or exclude entry matched nothing, and if nothing that an include entry
  // matched fits.
  Result<void> check_entries() const {
    for (const auto& [entry, reason] : misfits_) {
      if (filled_[entry]) continue;
      return fail(Code::config, "{}: this include entry has no cell that fits: {}",
                  settings_.include[entry].source, reason);
    }
    for (const auto& [entries, matched, section] :
         {std::tuple(&settings_.include, &included_, "include"),
          std::tuple(&settings_.exclude, &excluded_, "exclude")}) {
      const auto unused = std::ranges::find(*matched, false) - matched->begin();
      if (unused == std::ssize(*matched)) continue;
      return fail(Code::config, "{}: this {} entry matches no combination of the matrix",
                  (*entries)[static_cast<std::size_t>(unused)].source, section);
    }
    return {};
  }

  // Adds a note that a combination is left out: one for an engine and prompt, whatever the model
  // and backend.
  void note(const Combination& combination, const std::string& reason) {
    constexpr std::size_t k_max_notes = 100;
    const std::string text = fmt::format("left out: {} × {}: {}", combination.engine->name,
                                         combination.prompt->name, reason);
    if (noted_.size() == k_max_notes) return;
    const bool is_new = noted_.insert(text).second;
    if (is_new) matrix_.notes.push_back(text);
  }

  const Settings& settings_;
  const verdict::MatchTable include_, exclude_, limits_;
  std::size_t bytes_ = 0;
  Matrix matrix_;
  std::vector<bool> included_, excluded_;       // by entry: it matched some cell
  std::vector<bool> filled_;                    // by include entry: a cell that it matches fits
  std::map<std::size_t, std::string> misfits_;  // why the first one of an entry does not fit
  std::set<std::string> noted_;
};

}  // namespace

Result<Matrix> expand(const Settings& settings) { return Expansion(settings).run(); }

std::vector<std::string> selecting_names(const profile::CellKey& cell, const Redactor& redactor) {
  std::vector<std::string> names{cell.str(), redactor.cell(cell).str()};
  profile::CellKey line = cell.line();
  line.concurrency.reset();
  line.threads.reset();
  if (line == cell) return names;
  names.push_back(line.str());
  names.push_back(redactor.cell(line).str());
  return names;
}

// Returns the cells with a name, now or in `former`, that matches one of `globs`; all if there are
// no globs. Fails if a glob matches nothing.
Result<std::vector<Cell>> select(const Matrix& matrix, std::span<const std::string> globs,
                                 const Redactor& redactor, const FormerNames& former) {
  std::vector<Cell> selected;
  std::vector<std::vector<std::string>> names_of_cell;
  std::vector<std::string> shown_names;
  for (const Cell& cell : matrix.cells) {
    shown_names.push_back(redactor.cell(cell.key).str());
    names_of_cell.push_back(selecting_names(cell.key, redactor));
    const profile::CellKey* former_key = look_up(former, cell.key.str());
    if (former_key == nullptr) continue;
    std::ranges::move(selecting_names(*former_key, redactor),
                      std::back_inserter(names_of_cell.back()));
  }
  for (const std::string& glob : globs) {
    const bool matches = std::ranges::any_of(
        names_of_cell, [&](const auto& cell_names) { return matches_any(glob, cell_names); });
    if (matches) continue;
    constexpr std::size_t k_listed = 10;
    const auto first = std::span(shown_names).first(std::min(shown_names.size(), k_listed));
    std::vector<std::string> list(first.begin(), first.end());
    if (names_of_cell.size() > k_listed)
      list.push_back(fmt::format("… {} in all", names_of_cell.size()));
    return fail(Code::usage, "no cell is named \"{}\"{}\n  cells here: {}", text::printable(glob),
                text::did_you_mean(glob, shown_names), text::join(list, "\n              "));
  }
  for (std::size_t i = 0; i < names_of_cell.size(); ++i) {
    const bool is_selected = std::ranges::any_of(
        globs, [&](const std::string& glob) { return matches_any(glob, names_of_cell[i]); });
    if (is_selected || globs.empty()) selected.push_back(matrix.cells[i]);
  }
  return selected;
}

// Fills the placeholders in a cell's command and environment, such as "{tokens}", for one run.
CommandLine fill(const Cell& cell, const Filling& filling) {
  std::int64_t threads = cell.threads > 0 ? cell.threads : filling.threads;
  // Threads that wait for each other by spinning never take the same number of instructions.
  if (filling.one_thread) threads = 1;
  const std::map<std::string_view, std::string> values{
      {"model", filling.model},
      {"prompt", cell.text.value_or("")},
      {"prompt_file", filling.prompt_file},
      {"prompt_tokens", std::to_string(filling.parameters.prompt_tokens)},
      {"tokens", std::to_string(filling.parameters.tokens)},
      {"repeats", std::to_string(filling.parameters.repeats)},
      {"depth", std::to_string(filling.parameters.depth)},
      {"threads", std::to_string(threads)},
      {"seed", std::to_string(cell.seed)},
      {"out", filling.out},
      {"probe_dir", filling.probe_dir},
      {"port", filling.port}};
  // The parser refuses placeholders that are not among these.
  const auto value_of_word = [&](std::string_view name) { return look_up(values, name, ""); };
  const bool is_counted = filling.pass == profile::Pass::counted && !filling.bare;
  CommandLine line;
  const auto add_filled = [&](const Arguments& arguments, const Environment& env) {
    for (const std::string& argument : arguments)
      line.argv.push_back(substitute(argument, value_of_word));
    for (const auto& [name, text] : env) line.env[name] = substitute(text, value_of_word);
  };
  add_filled(cell.command, cell.env);
  if (is_counted) add_filled(cell.counted_run_args, cell.counted_run_env);
  return line;
}

profile::RunParameters timed_request(const Cell& cell, const GateSettings& gate) {
  if (cell.engine != nullptr && cell.engine->server) {
    return {cell.prompt_tokens, cell.tokens, cell.requests, 0};
  }
  const bool repeats = uses(cell.command, cell.env, "repeats");
  return {cell.prompt_tokens, cell.tokens, repeats ? gate.repeats : 1, cell.depth};
}

// Returns what each process of the counted pass is asked for: one for each number of `repeats` or
// `tokens`, over which counts are fitted. A cell without such a sweep has one process.
static std::vector<profile::RunParameters> requests_over_sweep(
    const Cell& cell, const std::vector<std::int64_t>& repeats,
    const std::vector<std::int64_t>& tokens) {
  using profile::Sweep;
  if (cell.sweep == Sweep::overlapping) {
    return {{cell.prompt_tokens, cell.tokens, cell.requests, 0}};
  }
  // Twice what the server takes at once, so that requests join running batches.
  if (cell.sweep == Sweep::burst) {
    return {{cell.prompt_tokens, cell.tokens, 2 * cell.concurrency, 0}};
  }
  std::vector<std::int64_t> sweep_values{1};
  if (cell.sweep == Sweep::repeats) sweep_values = repeats;
  if (varies_token_count(cell.sweep)) sweep_values = tokens;
  std::vector<profile::RunParameters> requests;
  for (const std::int64_t value : sweep_values) {
    requests.push_back({cell.prompt_tokens, varies_token_count(cell.sweep) ? value : cell.tokens,
                        cell.sweep == Sweep::repeats ? value : 1, cell.depth});
  }
  return requests;
}

std::vector<profile::RunParameters> counted_requests(const Cell& cell,
                                                     std::span<const std::int64_t> lengths) {
  return requests_over_sweep(cell, {1, 2, 3},
                             lengths.size() == 3
                                 ? std::vector<std::int64_t>(lengths.begin(), lengths.end())
                                 : profile::decode_lengths(cell.tokens));
}

std::vector<profile::RunParameters> instruction_requests(const Cell& cell) {
  return requests_over_sweep(cell, profile::instruction_repeats(cell.prompt_tokens),
                             profile::instruction_lengths(cell.tokens));
}

}  // namespace weir::config

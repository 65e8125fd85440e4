#include "gate/base/hash.hpp"
#include "gate/base/json.hpp"
#include "gate/config/check_matrix.hpp"
#include "gate/config/container.hpp"
#include "gate/config/parse.hpp"
#include "gate/config/placeholders.hpp"

namespace weir::config {
namespace {

constexpr std::size_t k_most_cells = 20'000;
constexpr std::size_t k_most_combinations = 50'000;

// The entry names this engine and prompt rather than sweeping over them.
bool asks_by_name(const MatrixEntry& entry) {
  const auto exact = [](const std::string& pattern) {
    return !pattern.empty() && pattern.find('*') == std::string::npos;
  };
  return exact(entry.match.engine) && exact(entry.match.prompt);
}

// {args} marks where arguments go; without it they are appended.
Arguments place(const Arguments& command, const Arguments& args) {
  Arguments placed = command;
  auto at = std::find(placed.begin(), placed.end(), "{args}");
  if (at != placed.end()) at = placed.erase(at);
  placed.insert(at, args.begin(), args.end());
  return placed;
}

// As `-ngl 99` and as `--device=none`. Answers the first flag that the command does not have.
std::optional<std::string> replace_values(Arguments& command,
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
      command[++i] = *value;
    }
  }
  if (missing.empty()) return std::nullopt;
  return missing.begin()->first;
}

// What counts depend on, as written. The program's path is not in it: the same engine lies
// elsewhere on another machine, or in another image. Of `all` extras, threads and seed.
std::map<std::string, std::string> identity_of(const Cell& cell, const Arguments& command,
                                               const Extra& all) {
  Json arguments = {{"command", command}};
  if (cell.engine->container && !cell.engine->container->args.empty()) {
    arguments["container"] = cell.engine->container->args;
  }
  if (!cell.profile_args.empty()) arguments["counted"] = cell.profile_args;
  if (all.threads) arguments["threads"] = *all.threads;
  if (all.seed) arguments["seed"] = *all.seed;
  Json environment = {{"set", cell.env}};
  if (!cell.counted_env.empty()) environment["counted"] = cell.counted_env;
  Json prompt = {
      {"prompt_tokens", cell.prompt_tokens}, {"tokens", cell.tokens}, {"depth", cell.depth}};
  if (cell.text) prompt["text"] = hash_hex(*cell.text);
  if (const auto& server = cell.engine->server) {
    // Where it listens and when it is up change nothing of what it does.
    arguments["server"] = {{"api", server->api},
                           {"model_name", server->model_name},
                           {"warm_up", server->warm_up},
                           {"own_fields", server->own_fields}};
    if (!server->extra_body.empty()) arguments["server"]["extra_body"] = server->extra_body;
    prompt["requests"] = cell.requests;
    if (cell.rate) prompt["rate"] = *cell.rate;
    if (!cell.rate) prompt["concurrency"] = cell.concurrency;
    if (cell.sweep == profile::Sweep::held) prompt["hold"] = "all";
    if (cell.may_be_cached) prompt["cached"] = true;
    if (cell.capacity) prompt["capacity"] = {cell.capacity->first, cell.capacity->second};
    if (cell.workload) prompt["workload"] = true;
    if (cell.turns > 1) prompt["turns"] = cell.turns;
    if (cell.duration_seconds) prompt["duration"] = *cell.duration_seconds;
  }
  return {{"arguments", dump_json(arguments)},
          {"environment", dump_json(environment)},
          {"prompt", dump_json(prompt)}};
}

// One of the cells that a prompt's lists make.
struct Point {
  std::optional<std::int64_t> depth, concurrency, threads;
};

profile::CellKey key_of(const Combination& of, const Point& at) {
  return {of.engine->name,
          of.variant->name,
          of.model->name,
          of.backend->name,
          of.prompt->name,
          of.prompt->depth_is_list ? at.depth : std::nullopt,
          of.prompt->concurrency_is_list ? at.concurrency : std::nullopt,
          at.threads};
}

std::vector<Point> points_of(const PromptSettings& prompt) {
  const auto list = [](const std::vector<std::int64_t>& written) {
    std::vector<std::optional<std::int64_t>> values(written.begin(), written.end());
    if (values.empty()) values.emplace_back();
    return values;
  };
  std::vector<Point> points;
  for (const auto depth : list(prompt.depth)) {
    for (const auto concurrency : list(prompt.concurrency)) {
      for (const auto threads : list(prompt.threads)) {
        points.push_back({depth, concurrency, threads});
      }
    }
  }
  return points;
}

// Can a probe in it hold back what it computes, and weir see which of its threads sleep?
bool can_be_held(const Combination& of) {
  const EngineSettings& engine = *of.engine;
  const bool beside_us = !engine.command.empty() && !engine.container && of.backend->runner.empty();
  return beside_us && (holds(engine.probes, "ggml") ||
                       (of.backend->device == "vulkan" && holds(engine.probes, "vulkan")));
}

// A server's load: where one request alone is under way, counts have a line over its lengths.
void set_load(const Combination& of, const Point& at, Cell& cell) {
  constexpr std::int64_t k_each = 8, k_arriving = 32, k_of_a_rate = 1000, k_recorded = 100;
  cell.concurrency = at.concurrency.value_or(1);
  cell.rate = of.prompt->rate;
  cell.requests = of.prompt->requests.value_or(of.prompt->capacity   ? k_of_a_rate
                                               : of.prompt->workload ? k_recorded
                                               : cell.rate           ? k_arriving
                                                                     : k_each * cell.concurrency);
  const bool alone = cell.concurrency == 1 && !cell.rate;
  const bool held = !cell.rate && !of.prompt->workload && of.prompt->hold.value_or(can_be_held(of));
  cell.sweep = alone  ? profile::Sweep::request
               : held ? profile::Sweep::held
                      : profile::Sweep::overlapping;
  cell.must_be_held = cell.sweep == profile::Sweep::held && of.prompt->hold.has_value();
  cell.may_be_cached = of.prompt->may_be_cached;
  cell.duration_seconds = of.prompt->duration_seconds;
  cell.capacity = of.prompt->capacity;
  cell.workload = of.prompt->workload;
  cell.turns = of.prompt->turns;
}

// With the flag that its command lacks, of those that get another value.
std::pair<Cell, std::optional<std::string>> make_cell(const Combination& of, const Point& at) {
  Cell cell;
  cell.key = key_of(of, at);
  cell.device = of.backend->device;
  cell.twin = of.backend->twin;
  cell.twin_devices = of.backend->devices;
  cell.compile = of.backend->compile;
  cell.runner = of.backend->runner;
  cell.gpu = of.backend->gpu;
  cell.adapter = of.engine->output;
  cell.engine = of.engine;
  cell.profile_args = of.engine->profile_args;
  cell.counted_env = of.engine->counted_env;
  cell.model_path = of.model->path;
  cell.prompt_tokens = of.prompt->prompt_tokens.value_or(0);
  cell.tokens = of.prompt->tokens.value_or(0);
  cell.depth = at.depth.value_or(0);
  cell.text = of.prompt->text;
  cell.prompt_file = of.prompt->workload ? of.prompt->workload : of.prompt->file;
  cell.is_private = of.engine->is_private || of.model->is_private || of.prompt->is_private;

  Extra all = of.extra();
  if (at.threads) all.threads = *at.threads == 0 ? k_all_threads : *at.threads;
  cell.env = all.env;
  cell.passed = all.passed;
  cell.threads = all.threads.value_or(cell.threads);
  cell.seed = all.seed.value_or(cell.seed);
  Arguments command = place(of.engine->command, all.args);
  auto missing_flag = replace_values(command, all.replaced);
  const std::optional<ContainerSettings>& container = of.engine->container;
  cell.command = container ? whole_command(*container, command) : command;

  using profile::Sweep;
  const bool counts_itself = of.engine->probes.empty() && of.engine->reports_counts();
  cell.sweep = counts_itself                             ? Sweep::none
               : cell.tokens > 0                         ? Sweep::tokens
               : uses(cell.command, cell.env, "repeats") ? Sweep::repeats
                                                         : Sweep::none;
  if (of.engine->server) set_load(of, at, cell);
  // A server that runs already has no command.
  const auto program = command.begin() + (command.empty() ? 0 : 1);
  cell.identity = identity_of(
      cell, container ? without_program(*container, command) : Arguments(program, command.end()),
      all);
  return {std::move(cell), std::move(missing_flag)};
}

class Expansion {
 public:
  explicit Expansion(const Settings& settings)
      : settings_(settings),
        included_(settings.include.size()),
        excluded_(settings.exclude.size()) {}

  Result<Matrix> run() {
    WEIR_CHECK(check_size());
    for (const EngineSettings& engine : settings_.engines) {
      for (const VariantSettings& variant : settings_.variants) {
        // One that names engines is not made for others.
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
    if (!settings_.rules_from_elsewhere) WEIR_CHECK(check_reference());
    if (matrix_.cells.empty()) {
      const std::string why = matrix_.notes.empty() ? std::string(": exclude leaves out everything")
                                                    : ":\n  " + text::join(matrix_.notes, "\n  ");
      return fail(Code::config, "{}: the matrix has no cell{}", settings_.file, why);
    }
    if (!settings_.rules_from_elsewhere) WEIR_CHECK(check_limits(settings_, matrix_.cells));
    matrix_.notes.insert(matrix_.notes.begin(), settings_.notes.begin(), settings_.notes.end());
    return std::move(matrix_);
  }

 private:
  Result<void> check_size() const {
    std::size_t combinations = 1;
    for (const std::size_t factor :
         {settings_.engines.size(), settings_.variants.size(), settings_.models.size(),
          settings_.backends.size(), settings_.prompts.size()}) {
      combinations *= std::max<std::size_t>(factor, 1);  // each is at most k_most_entries
      if (combinations > k_most_combinations) {
        return fail(Code::config, "{}: the matrix has more than {} combinations", settings_.file,
                    k_most_combinations);
      }
    }
    return {};
  }

  Result<void> add(const Combination& of) {
    for (const Point& at : points_of(*of.prompt)) {
      // The name alone decides what the matrix entries say; making the whole cell is dearer.
      const profile::CellKey key = key_of(of, at);
      const MatrixEntry* asked = nullptr;
      if (!wanted(key, asked)) continue;
      auto [cell, missing_flag] = make_cell(of, at);
      if (const auto reason = misfit(cell, missing_flag, of, settings_)) {
        if (asked != nullptr && asks_by_name(*asked)) {
          return fail(Code::config, "{}: {} does not fit: {}", asked->source, cell.key.str(),
                      *reason);
        }
        note(of, *reason);
        continue;
      }
      if (matrix_.cells.size() >= k_most_cells) {
        return fail(Code::config, "{}: the matrix has more than {} cells", settings_.file,
                    k_most_cells);
      }
      name_works(cell);
      matrix_.cells.push_back(std::move(cell));
    }
    return {};
  }

  void name_works(Cell& cell) const {
    for (const verdict::LimitEntry& entry : settings_.limits) {
      if (!entry.match.fits(cell.key)) continue;
      for (const std::string& pattern : entry.metrics) {
        if (unit::names_work(pattern)) cell.works.push_back(pattern);
      }
    }
  }

  bool wanted(const profile::CellKey& key, const MatrixEntry*& asked) {
    bool is_wanted = settings_.include.empty();
    for (std::size_t i = 0; i < settings_.include.size(); ++i) {
      if (!settings_.include[i].match.fits(key)) continue;
      included_[i] = true;
      is_wanted = true;
      if (asked == nullptr || asks_by_name(settings_.include[i])) asked = &settings_.include[i];
    }
    for (std::size_t i = 0; i < settings_.exclude.size(); ++i) {
      if (!settings_.exclude[i].match.fits(key)) continue;
      excluded_[i] = true;
      is_wanted = false;
    }
    return is_wanted;
  }

  // The reference workload is a cell like others.
  Result<void> check_reference() const {
    const std::optional<std::string>& wanted = settings_.gate.reference;
    if (!wanted) return {};
    std::vector<std::string> names;
    for (const Cell& cell : matrix_.cells) {
      if (!cell.twin) names.push_back(cell.key.str());
    }
    if (holds(names, *wanted)) return {};
    return fail(Code::config, "{}: reference: no timed cell is named \"{}\"{}",
                settings_.gate.reference_source, text::printable(*wanted),
                text::did_you_mean(*wanted, names));
  }

  Result<void> check_entries() const {
    for (const auto& [entries, seen, what] :
         {std::tuple(&settings_.include, &included_, "include"),
          std::tuple(&settings_.exclude, &excluded_, "exclude")}) {
      const auto unused = std::ranges::find(*seen, false) - seen->begin();
      if (unused == std::ssize(*seen)) continue;
      return fail(Code::config, "{}: this {} entry matches no combination of the matrix",
                  (*entries)[static_cast<std::size_t>(unused)].source, what);
    }
    return {};
  }

  // One note for an engine and prompt, not one for each model and backend.
  void note(const Combination& of, const std::string& reason) {
    constexpr std::size_t k_most_notes = 100;
    const std::string text =
        fmt::format("left out: {} × {}: {}", of.engine->name, of.prompt->name, reason);
    if (noted_.size() < k_most_notes && noted_.insert(text).second) matrix_.notes.push_back(text);
  }

  const Settings& settings_;
  Matrix matrix_;
  std::vector<bool> included_, excluded_;
  std::set<std::string> noted_;
};

}  // namespace

Result<Matrix> expand(const Settings& settings) { return Expansion(settings).run(); }

Result<std::vector<Cell>> select(const Matrix& matrix, std::span<const std::string> globs,
                                 const Redactor& redactor) {
  std::vector<Cell> chosen;
  // What each cell answers to: its name, what is shown for it, and the name of the line that is
  // fitted over its depths.
  std::vector<std::vector<std::string>> names;
  std::vector<std::string> shown;
  for (const Cell& cell : matrix.cells) {
    shown.push_back(redactor.cell(cell.key).str());
    names.push_back({cell.key.str(), shown.back()});
    profile::CellKey line = cell.key.line();
    line.concurrency.reset();
    line.threads.reset();
    if (line == cell.key) continue;
    names.back().push_back(line.str());
    names.back().push_back(redactor.cell(line).str());
  }
  for (const std::string& glob : globs) {
    if (std::ranges::any_of(names, [&](const auto& mine) { return matches_one(glob, mine); }))
      continue;
    constexpr std::size_t k_shown = 10;
    const auto some = std::span(shown).first(std::min(shown.size(), k_shown));
    std::vector<std::string> here(some.begin(), some.end());
    if (names.size() > k_shown) here.push_back(fmt::format("… {} in all", names.size()));
    return fail(Code::usage, "no cell is named \"{}\"{}\n  cells here: {}", text::printable(glob),
                text::did_you_mean(glob, shown), text::join(here, "\n              "));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool wanted = std::ranges::any_of(
        globs, [&](const std::string& glob) { return matches_one(glob, names[i]); });
    if (wanted || globs.empty()) chosen.push_back(matrix.cells[i]);
  }
  return chosen;
}

CommandLine fill(const Cell& cell, const Filling& filling) {
  // Threads that wait for each other by spinning never take the same number of instructions.
  const std::int64_t threads = filling.one_thread ? 1
                               : cell.threads > 0 ? cell.threads
                                                  : filling.threads;
  const std::map<std::string_view, std::string> values{
      {"model", filling.model},
      {"prompt", cell.text.value_or("")},
      {"prompt_file", filling.prompt_file},
      {"prompt_tokens", std::to_string(filling.asked.prompt_tokens)},
      {"tokens", std::to_string(filling.asked.tokens)},
      {"repeats", std::to_string(filling.asked.repeats)},
      {"depth", std::to_string(filling.asked.depth)},
      {"threads", std::to_string(threads)},
      {"seed", std::to_string(cell.seed)},
      {"out", filling.out},
      {"probe_dir", filling.probe_dir},
      {"port", filling.port}};
  // The parser lets no other through.
  const auto value = [&](std::string_view name) { return look_up(values, name, ""); };
  const bool counted = filling.pass == profile::Pass::counted && !filling.bare;
  CommandLine line;
  const auto add = [&](const Arguments& arguments, const Environment& env) {
    for (const std::string& argument : arguments) line.argv.push_back(substitute(argument, value));
    for (const auto& [name, text] : env) line.env[name] = substitute(text, value);
  };
  add(cell.command, cell.env);
  if (counted) add(cell.profile_args, cell.counted_env);
  return line;
}

profile::Asked timed_asked(const Cell& cell, const GateSettings& gate) {
  if (cell.engine != nullptr && cell.engine->server) {
    return {cell.prompt_tokens, cell.tokens, cell.requests, 0};
  }
  const bool repeats = uses(cell.command, cell.env, "repeats");
  return {cell.prompt_tokens, cell.tokens, repeats ? gate.repeats : 1, cell.depth};
}

// One process for each point of the cell's sweep, over repeats or tokens; one where it has none.
static std::vector<profile::Asked> asked_at(const Cell& cell,
                                            const std::vector<std::int64_t>& repeats,
                                            const std::vector<std::int64_t>& tokens) {
  using profile::Sweep;
  if (cell.sweep == Sweep::overlapping) {
    return {{cell.prompt_tokens, cell.tokens, cell.requests, 0}};
  }
  // More than it can serve at once, so that requests join batches that are under way.
  if (cell.sweep == Sweep::held) {
    return {{cell.prompt_tokens, cell.tokens, 2 * cell.concurrency, 0}};
  }
  std::vector<std::int64_t> points{1};
  if (cell.sweep == Sweep::repeats) points = repeats;
  if (over_tokens(cell.sweep)) points = tokens;
  std::vector<profile::Asked> asked;
  for (const std::int64_t point : points) {
    asked.push_back({cell.prompt_tokens, over_tokens(cell.sweep) ? point : cell.tokens,
                     cell.sweep == Sweep::repeats ? point : 1, cell.depth});
  }
  return asked;
}

std::vector<profile::Asked> counted_asked(const Cell& cell, std::span<const std::int64_t> lengths) {
  return asked_at(cell, {1, 2, 3},
                  lengths.size() == 3 ? std::vector<std::int64_t>(lengths.begin(), lengths.end())
                                      : profile::decode_lengths(cell.tokens));
}

std::vector<profile::Asked> instructions_asked(const Cell& cell) {
  return asked_at(cell, profile::instruction_repeats(cell.prompt_tokens),
                  profile::instruction_lengths(cell.tokens));
}

}  // namespace weir::config

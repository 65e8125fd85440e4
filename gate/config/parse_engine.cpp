// The `engines` section, what the generic adapter is told there, and containers.

#include "gate/config/container.hpp"
#include "gate/config/parse.hpp"
#include "gate/config/placeholders.hpp"
#include "gate/config/presets.hpp"
#include "gate/profile/assemble.hpp"
#include "gate/profile/usage.hpp"
#include "gate/unit/declared_metric.hpp"
#include "gate/verdict/limits.hpp"

namespace weir::config {
namespace {

// Returns true if `name` can name a metric: letters, digits and "_", or an op or kernel after its
// prefix. Patterns are no names.
bool is_metric_name(std::string_view name) {
  if (unit::is_op_or_kernel_metric(name)) {
    return unit::find_metric(name) && name.find_first_of("*?") == std::string_view::npos;
  }
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto fits = [&](char c) { return letter(c) || text::is_digit(c) || c == '_'; };
  return !name.empty() && name.size() <= 64 && letter(name[0]) && std::ranges::all_of(name, fits);
}

// Reads `probes` (what counts in the engine) into it; complains about unknown ones and
// repetitions.
void parse_probes(const Node& node, EngineSettings& engine, Parsing& parsing) {
  for (const std::string& probe : read_texts(node, "probes", parsing.problems)) {
    const std::vector<std::string>& probes = parsing.supported.probes;
    if (!holds(probes, probe)) {
      parsing.problems.report_unknown(node.position, "probe", probe, probes);
    } else if (holds(engine.probes, probe)) {
      parsing.problems.add(node.position, "the probe \"{}\" stands here twice", probe);
    } else {
      engine.probes.push_back(probe);
    }
  }
}

const std::vector<std::string> k_units{"s",     "ms",         "us",    "ns",    "min", "B",
                                       "KiB",   "MiB",        "GiB",   "kB",    "MB",  "GB",
                                       "tok/s", "requests/s", "count", "ratio", "%"};

// Returns the kind of a metric whose declaration in weir.yaml names a unit and no kind.
unit::Kind default_kind(unit::Unit base_unit) {
  switch (base_unit) {
    case unit::Unit::count:
      return unit::Kind::count;
    case unit::Unit::bytes:
      return unit::Kind::memory;
    case unit::Unit::ratio:
      return unit::Kind::quality;
    default:
      return unit::Kind::time;
  }
}

// Reads the unit, direction and kind of a metric that the generic output declares. A metric that
// weir has itself needs none of them; the name's end may say those of any other.
void parse_declared(const std::string& name, const Entry& entry, Fields& fields, ValueRule& rule,
                    Problems& problems) {
  constexpr auto k_better = names_in_order<unit::Better>("higher", "lower");
  constexpr auto k_kinds =
      names_in_order<unit::Kind>("time", "memory", "quality", "usage", "count");
  const Node* unit = fields.find({"unit", "Unit in the output.", "ms", "as the metric's name says"},
                                 choice_form(k_units, true));
  std::optional<unit::Better> direction;
  const Node* better = fields.read({"better", "Direction, for a metric that weir does not know.",
                                    "lower", "as the metric's name says"},
                                   direction, OneOf{k_better});
  std::optional<unit::Kind> own_kind;
  const Node* kind =
      fields.read({"kind", "Kind, for a metric that weir does not know.", "time", "by its unit"},
                  own_kind, OneOf{k_kinds});
  if (unit != nullptr) {
    const auto text = read_text(*unit, "unit", problems);
    if (!text) return;
    rule.scale = unit::parse_scale(*text);
    if (!rule.scale) {
      problems.add(unit->position, "unknown unit \"{}\"{}", text::printable(*text),
                   choices_text(k_units));
      return;
    }
  }
  if (profile::is_measured_by_weir(name)) {
    problems.add(entry.key_position, "weir measures \"{}\" itself: give this metric another name",
                 name);
    return;
  }
  if (const auto metric = unit::find_metric(name)) {
    if (better != nullptr || kind != nullptr) {
      const Node& needless = better != nullptr ? *better : *kind;
      problems.add(needless.position, "weir knows \"{}\" (better: {}): leave this out", name,
                   unit::to_string(metric->better));
    }
    if (rule.scale && rule.scale->unit != metric->unit) {
      problems.add(unit->position, "\"{}\" is measured in {}: its unit cannot be {}", name,
                   unit::to_string(metric->unit), describe(*unit));
    }
    return;
  }
  const auto named = unit::metric_of_name(name);
  if (!named && (unit == nullptr || better == nullptr)) {
    problems.add(entry.key_position,
                 "weir does not know the metric \"{}\"{}: one of your own needs unit and better "
                 "(higher or lower), or a name that ends in {}",
                 name, unit::suggest_metric(name), unit::metric_name_ends());
    return;
  }
  if (!named && !direction) return;  // complained about already
  const unit::Kind metric_kind = rule.scale ? default_kind(rule.scale->unit) : named->metric.kind;
  if (!rule.scale) rule.scale = named->scale;
  rule.custom = unit::custom_metric(name, own_kind.value_or(metric_kind), rule.scale->unit,
                                    direction ? *direction : named->metric.better);
  if (unit != nullptr && rule.scale->unit == unit::Unit::bytes && rule.scale->factor != 1) {
    rule.custom->shown_in = unit->text;
  }
}

// Reads one op of `cpu_ops_allowed`, which may run on the CPU in a GPU's cell: the reason as a
// text, or a mapping {why, when, match}.
void parse_cpu_op(const std::string& op, const Node& node, EngineSettings& engine,
                  Parsing& parsing) {
  Problems& problems = parsing.problems;
  CpuOp allowed{op};
  if (node.kind == Node::Kind::map) {
    Fields fields(node, fmt::format("cpu_ops_allowed of \"{}\"", text::printable(op)), problems);
    fields.require({"why", "Reason, shown in reports.", "embedding row"}, allowed.why, k_text);
    const Node* when = fields.read({"when", "Condition on the sizes of the op's result.",
                                    "ne0 < 128 and ne1 == 1", "any size"},
                                   allowed.when, k_text);
    const auto condition = profile::shape_fits(allowed.when, "");
    if (when != nullptr && !condition)
      problems.add(when->position, "when: " + condition.error().message);
    parse_match_key(fields,
                    {"match", "Only in cells that match.", "{backend: vulkan}", "all cells"},
                    allowed.match, parsing);
  } else if (const auto why = read_text(node, "the reason", problems)) {
    allowed.why = *why;
  }
  engine.cpu_ops_allowed.push_back(std::move(allowed));
}

// Reads `output_limit`, the most bytes that an engine may print. Nothing, with a problem, outside
// of 4 KiB to 32 MiB.
std::optional<std::int64_t> read_output_limit(const Node& node, std::string_view what,
                                              Problems& problems) {
  constexpr std::int64_t k_min_bytes = 4096;
  // Output is read into memory, and weir itself may use 64 MiB at most.
  constexpr std::int64_t k_max_bytes = std::int64_t{32} << 20;
  const auto text = read_text(node, what, problems);
  if (!text) return std::nullopt;
  const auto bytes = unit::parse_bytes(*text);
  if (bytes && *bytes >= k_min_bytes && *bytes <= k_max_bytes) return *bytes;
  return problems.add(node.position, bytes ? "output_limit must be from 4KiB to 32MiB"
                                           : "output_limit: " + bytes.error().message);
}

// Reads how one metric or fact is found in the output: by regex or by JSON pointer.
ValueRule parse_rule(const Entry& entry, bool is_fact, Parsing& parsing) {
  Problems& problems = parsing.problems;
  ValueRule rule;
  rule.metric = entry.key;
  rule.source = problems.source(entry.key_position);
  Fields fields(entry.value, fmt::format("\"{}\"", text::printable(entry.key)), problems);
  const Node* regex = fields.read(
      {"regex", "RE2, matched line by line. Group 1 is the value.", "'eval: ([0-9.]+) tok/s'"},
      rule.regex, k_text);
  const Node* pointer = fields.read(
      {"pointer", "JSON pointer into a document in the output.", "/results/0/tps"}, rule.pointer,
      FieldType{read_text, "text", R"("type": "string", "pattern": "^/")"});
  const bool has_regex = regex != nullptr, has_pointer = pointer != nullptr;
  if (entry.value.kind == Node::Kind::map && has_regex == has_pointer) {
    problems.add(entry.key_position,
                 "\"{}\" needs either regex (group 1 is the value) or pointer (a JSON pointer such "
                 "as /stats/tokens)",
                 text::printable(entry.key));
  }
  if (!rule.regex.empty()) problems.check_expression(regex->position, rule.regex);
  if (!rule.pointer.empty() && rule.pointer[0] != '/') {
    problems.add(pointer->position,
                 "a JSON pointer begins with \"/\", as in /timings/predicted_ms");
    rule.pointer.clear();
  }
  for (std::size_t at = rule.pointer.find('~'); at != std::string::npos;
       at = rule.pointer.find('~', at + 1)) {
    const char next = at + 1 < rule.pointer.size() ? rule.pointer[at + 1] : ' ';
    if (next == '0' || next == '1') continue;
    problems.add(pointer->position,
                 "in a JSON pointer \"~\" is written ~0 (and \"/\" within a key ~1)");
    break;
  }
  using Stream = ValueRule::Stream;
  using Pick = ValueRule::Pick;
  constexpr auto k_streams = names_in_order<Stream>("either", "out", "err");
  constexpr auto k_picks = names_in_order<Pick>("last", "first", "all", "sum", "max", "median");
  fields.read({"stream", "Where to look; either: stdout, else stderr.", "err"}, rule.stream,
              OneOf{k_streams});
  const Node* pick = fields.read(
      {"pick",
       "What several matches come to. all: a sample each, of a time. sum: of counts per token "
       "together over all tokens.",
       "first", "last; of a count their sum, over the tokens if one was printed for each"},
      rule.pick, OneOf{k_picks});
  if (is_fact && rule.pick && *rule.pick != Pick::first && *rule.pick != Pick::last) {
    problems.add(pick->position, "a fact is one value: pick first or last");
  }
  if (!is_fact) parse_declared(entry.key, entry, fields, rule, problems);
  return rule;
}

// Adds the limit of a metric that none of weir's own limits covers.
void add_default_limit(const ValueRule& rule, const std::string& engine,
                       std::vector<verdict::LimitEntry>& limits) {
  const auto metric = rule.find_metric();
  if (!metric || unit::is_op_or_kernel_metric(metric->name)) return;
  if (!rule.custom && metric->kind == unit::Kind::count) return;
  auto limit = verdict::limit_of_declared(*metric, engine);
  if (limit) limits.push_back(std::move(*limit));
}

// Reads `metrics` and `facts` of an engine whose output is searched by patterns (output: generic);
// either may be null.
void parse_generic(const Node* metrics, const Node* facts, EngineSettings& engine,
                   Parsing& parsing) {
  constexpr std::size_t k_max_rules = 100;
  for (const Node* section : {metrics, facts}) {
    if (section == nullptr) continue;
    const bool is_fact = section == facts;
    if (section->kind != Node::Kind::map || section->entries.size() > k_max_rules) {
      parsing.problems.add(
          section->position,
          "{} must be a mapping of names to {{regex: …}} or {{pointer: …}}, at most {}",
          is_fact ? "facts" : "metrics", k_max_rules);
      continue;
    }
    static const std::vector<std::string> k_facts{"engine_build", "generated_tokens", "model",
                                                  "output_digest", "prompt_tokens"};
    for (const Entry& entry : section->entries) {
      if (is_fact && !holds(k_facts, entry.key)) {
        parsing.problems.report_unknown(entry.key_position, "fact", entry.key, k_facts);
        continue;
      }
      if (!is_fact && !is_metric_name(entry.key)) {
        parsing.problems.add(
            entry.key_position,
            "\"{}\" cannot name a metric: lower-case letters, digits and \"_\", at most 64, a "
            "letter first; or op:NAME, kernel:NAME, op_calls:NAME, kernel_calls:NAME",
            text::printable(entry.key.substr(0, 80)));
        continue;
      }
      if (!is_fact && holds(verdict::k_non_metrics, entry.key)) {
        parsing.problems.add(entry.key_position,
                             "\"{}\" is judged by weir itself: give your metric another name",
                             entry.key);
        continue;
      }
      auto& rules = is_fact ? engine.generic.facts : engine.generic.values;
      rules.push_back(parse_rule(entry, is_fact, parsing));
      if (!is_fact) add_default_limit(rules.back(), engine.name, parsing.settings.limits);
    }
  }
}

// Reads `container` of an engine. Its command and probes must be read already, as they are checked
// against the container.
bool is_of_name(char c) {
  return text::is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_whole_number(std::string_view text) {
  constexpr std::size_t k_max_digits = 18;
  return !text.empty() && text.size() <= k_max_digits && std::ranges::all_of(text, text::is_digit);
}

// Reads `reads`: values that a simulated GPU returns when the engine reads results of a kernel
// back. They go to it in a variable, as "KERNEL:VALUE:NTH;…".
void parse_reads(const Node& node, EngineSettings& engine, Problems& problems) {
  constexpr std::string_view k_at = " at ";
  for (const Entry& entry : node.entries) {
    const std::string text = read_text(entry.value, "reads", problems).value_or("");
    const std::size_t separator_at = text.find(k_at);
    const std::string value = text.substr(0, separator_at);
    const std::string nth =
        separator_at == std::string::npos ? "0" : text.substr(separator_at + k_at.size());
    const bool is_part_of_name =
        !entry.key.empty() && entry.key.size() < 64 && std::ranges::all_of(entry.key, is_of_name);
    if (!is_part_of_name || !is_whole_number(value) ||
        (nth != "{tokens}" && !is_whole_number(nth))) {
      problems.add(
          entry.value.position,
          "reads: {}: {} is no value that is read back\n"
          "  write part of a kernel's name and a whole number: {{and_kernel: 1}}, or one at "
          "the nth read: {{CompareEqFunctor: \"1 at {{tokens}}\"}}",
          text::printable(entry.key), describe(entry.value));
      continue;
    }
    std::string& rules = engine.extra.env[std::string(k_reads_variable)];
    rules += fmt::format("{}{}:{}:{}", rules.empty() ? "" : ";", entry.key, value, nth);
  }
}

// Reads `processes`: roles of an engine's processes, by patterns of their command. A role begins
// names of metrics, "rank:syncs_per_token".
void parse_processes(const Node& node, EngineSettings& engine, Problems& problems) {
  for (const Entry& entry : node.entries) {
    const bool is_name =
        !entry.key.empty() && entry.key.size() <= unit::k_max_role_bytes &&
        std::ranges::all_of(entry.key, [](char c) { return c >= 'a' && c <= 'z'; });
    if (!is_name || unit::is_op_or_kernel_metric(entry.key + ":")) {
      problems.add(
          entry.key_position,
          "\"{}\" is no name of a role: up to {} lower-case letters, and not the name of a "
          "kind of metric (op, kernel, registers)",
          text::printable(entry.key.substr(0, 80)), unit::k_max_role_bytes);
      continue;
    }
    const auto pattern = read_text(entry.value, "processes", problems);
    if (pattern) engine.processes.push_back({entry.key, *pattern});
  }
}

void parse_container(const Node& node, EngineSettings& engine, Parsing& parsing) {
  Problems& problems = parsing.problems;
  const Node *runtime = &node, *image = nullptr, *args = nullptr;
  if (node.kind == Node::Kind::map) {
    Fields fields(node, "container", problems);
    runtime = fields.require({"runtime", "Program that starts the container or job.", "docker"},
                             OneOf{k_runtimes}.form());
    image =
        fields.find({"image", "Image to run. Left out: the command itself begins with the runtime.",
                     "ghcr.io/me/engine:1"},
                    k_text.form());
    args = fields.find({"args", "More arguments of the runtime.", "[--gpus, all]"},
                       k_arguments.form());
    if (runtime == nullptr) return;
  }
  const auto chosen = OneOf{k_runtimes}.parse(*runtime, "container", problems);
  if (!chosen) return;
  ContainerSettings container{*chosen, "", {}};
  if (image != nullptr) container.image = read_text(*image, "image", problems).value_or("");
  if (args != nullptr) container.args = read_arguments(*args, "container's args", problems);
  check_args(args, container.args, problems);
  engine.container = container;
  const std::string_view name = to_string(container.runtime);
  for (const char* probe : {"instructions", "host"}) {
    if (!holds(engine.probes, probe)) continue;
    problems.add(node.position,
                 "the probe {} counts from outside, where its counts would be those of {}: not of "
                 "an engine in a container",
                 probe, name);
  }
  if (engine.command.empty() || engine.command.front().empty()) return;
  const bool has_runtime = begins_with(engine.command, container.runtime);
  if (has_runtime && (!container.image.empty() || !container.args.empty())) {
    problems.add(node.position, "the command begins with {}: image and args stand there", name);
    return;
  }
  if (!has_runtime && container.image.empty() && container.runtime != Runtime::srun) {
    problems.add(node.position,
                 "the command does not begin with {0}: write {0} run … IMAGE before it, or\n"
                 "  container: {{runtime: {0}, image: IMAGE}}",
                 name);
    return;
  }
  // Options that come through {args} are checked when a cell is prepared.
  for (std::string& problem :
       check_runtime_line(container_command(container, engine.command), container.runtime)) {
    problems.add(node.position, std::move(problem));
  }
}

// Reads one entry of `engines` and adds it to the settings.
void parse_engine(const Entry& entry, Parsing& parsing) {
  Problems& problems = parsing.problems;
  EngineSettings engine;
  engine.name = entry.key;
  engine.source = problems.source(entry.key_position);
  Fields fields(entry.value, fmt::format("engine \"{}\"", text::printable(entry.key)), problems);
  const Node* preset =
      fields.find({"preset",
                   "What weir knows of the engine fills each key that does not stand here, and "
                   "models, backends "
                   "and prompts where the file has none: weir init --list, weir config show.",
                   "llama-bench"},
                  choice_form(preset_names(), true));
  if (preset != nullptr) {
    if (const auto* match = find_named(presets(), preset->text)) engine.preset = match->id();
  }
  // expand_presets() has put the program into the command.
  fields.find({"program",
               "The program of the preset's command. A relative path with a / counts from this "
               "file's folder.",
               "./build/bin/llama-bench"},
              k_text.form());
  parse_server(fields, entry.key_position, engine, parsing);
  const Node* output_key = entry.value.find("output");
  const bool is_result =
      output_key != nullptr && holds(parsing.supported.results, output_key->text);
  const bool has_command = !is_result && (!engine.server || engine.server->url.empty());
  const Node* command = fields.find(
      {"command",
       "The program and its arguments, one an entry; no shell splits them. A relative path with a "
       "/ "
       "starts at this file's folder. Filled in: {model} {prompt} {prompt_file} {prompt_tokens} "
       "{tokens} {repeats} {depth} {threads} {seed} {port} {args} {out} {probe_dir}; {{word}} is "
       "the text {word}. Without one, output: vllm-bench, aiperf or guidellm reads the files of "
       "weir gate --results.",
       "[./build/bin/llama-bench, -m, \"{model}\", -n, \"{tokens}\", -o, json]"},
      k_arguments.form());
  if (command == nullptr && has_command) fields.lacks("command");
  if (command != nullptr) {
    engine.command = read_arguments(*command, "command", problems);
    if (command->kind == Node::Kind::list &&
        (engine.command.empty() || engine.command.front().empty())) {
      problems.add(command->position, "command must begin with the program");
    } else if (!engine.command.empty() && !placeholders_in(engine.command.front()).empty()) {
      problems.add(command->position, "the program cannot hold placeholders");
    }
    if (std::count(engine.command.begin(), engine.command.end(), "{args}") > 1) {
      problems.add(command->position, "{args} may stand in the command once");
    }
  }
  const Node* output = fields.find({"output", "Format of its output.", "llama-bench"},
                                   choice_form(parsing.supported.adapters, true));
  if (engine.server) {
    engine.output = k_requests;
    if (output != nullptr) {
      problems.add(output->position, "a server is not read by what it prints: leave output out");
    }
  } else if (output == nullptr) {
    fields.lacks("output");
  } else {
    engine.output =
        read_choice(*output, "output", parsing.supported.adapters, problems).value_or("");
    engine.always_reports_counts = holds(parsing.supported.always_reporting, engine.output);
    engine.reports_counts_on_request = holds(parsing.supported.reporting_on_request, engine.output);
  }
  const Form probe = choice_form(parsing.supported.probes, true);
  const Node* probes = fields.find(
      {"probes",
       "Attached in the counted pass, where the backend's device fits; instructions, host (system "
       "calls) and python (calls of functions) in processes of their own.",
       "[vulkan]"},
      probe | list_form(probe, R"(, "uniqueItems": true)"));
  if (probes != nullptr) parse_probes(*probes, engine, parsing);
  constexpr auto k_ways = names_in_order<InstructionsBy>("auto", "perf", "valgrind");
  const Node* how = fields.read(
      {"instructions",
       "How the probe instructions counts: auto (perf events where the machine has them, else not "
       "at all), perf (or an error) or valgrind (anywhere, some fifty times slower, by function).",
       "perf"},
      engine.instructions, OneOf{k_ways});
  if (how != nullptr && !holds(engine.probes, "instructions")) {
    problems.add(how->position,
                 "instructions says how they are counted; that they are, the probes say\n"
                 "  write: probes: [instructions]");
  }
  const Node* lines = fields.read(
      {"python_lines",
       "The probe python counts the lines that run, too: loops without calls, at a higher cost.",
       "true"},
      engine.python_lines, k_boolean);
  if (lines != nullptr && !holds(engine.probes, "python")) {
    problems.add(lines->position,
                 "python_lines is for the probe python\n  write: probes: [python]");
  }
  fields.read({"profile_args",
               "Arguments that turn on the engine's own profiler, in the counted pass only.",
               "[--profile]"},
              engine.counted_run_args, k_arguments);
  fields.read(
      {"counted_env", "Environment of the counted pass only.", "{GGML_VK_DEBUG_MARKERS: \"1\"}"},
      engine.counted_run_env, k_environment);
  fields.read({"kernel_names", "Shader files that name kernels without names; ** is any folders.",
               "shaders/**/*.spv"},
              engine.kernel_names, k_text);
  fields.read({"gpu_code",
               "CUDA or HIP twin: the library with GPU code, where the program opens it by itself, "
               "as node does.",
               "node_modules/@fugood/node-whisper-linux-x64-cuda/index.node"},
              engine.gpu_code, k_text);
  parse_environment(fields, engine.extra, problems);
  const Node* reads = fields.find({"reads",
                                   "CUDA twin: values that the program reads back, by part of the "
                                   "name of the kernel that would "
                                   "have written them: a whole number, or one for the nth read "
                                   "(\"1 at {tokens}\") and 0 for the "
                                   "others.",
                                   "{CompareEqFunctor: \"1 at {tokens}\"}"},
                                  named(k_text.form(), "^[A-Za-z0-9_]{1,63}$", "KERNEL"));
  if (reads != nullptr) parse_reads(*reads, engine, problems);
  const Node* processes = fields.find(
      {"processes",
       "Processes that count, by role: part of the name that each gives itself, or of its command "
       "line; * is any text. Those of one role do equal work and count once.",
       "{engine: \"VLLM::EngineCore\", rank: \"VLLM::Worker_TP*\"}"},
      named(k_text.form(), fmt::format("^[a-z]{{1,{}}}$", unit::k_max_role_bytes), "ROLE"));
  if (processes != nullptr) parse_processes(*processes, engine, problems);
  const Node* container =
      fields.find({"container", "Run the engine in a container, or on a node of Slurm.",
                   "{runtime: docker, image: \"ghcr.io/me/engine:1\"}"},
                  OneOf{k_runtimes}.form() | mapping());
  if (container != nullptr) parse_container(*container, engine, parsing);
  fields.read(k_threads_key, engine.extra.threads, k_threads);
  parse_seed(fields, engine.extra);
  const Node* cpu_ops = fields.find(
      {"cpu_ops_allowed",
       "Ops that may run on the CPU of cells that ask for another device, each with its reason; "
       "several conditions of one op are a list.",
       "{GET_ROWS: embedding row}"},
      named(k_text.form() | mapping() |
                Form{"", R"("type": "array", "items": {"type": ["string", "object"]})"},
            "^[^*? ]+$"));
  if (cpu_ops != nullptr) parsing.cpu_ops.emplace_back(engine.name, cpu_ops);
  fields.read({"timeout", "Time for one process.", "10m"}, engine.timeout_seconds, Duration{});
  fields.read(
      {"output_limit", "More output than this is the cell's error.", "64KiB", "16MiB"},
      engine.output_limit,
      FieldType{read_output_limit, "size", R"("type": ["integer", "string"], "minimum": 4096)"});
  constexpr WholeNumber k_code{0, 255};
  const Node* codes =
      fields.find({"ok_exit_codes", "Exit codes besides 0 of an engine that did its work.", "[1]"},
                  k_code.form() | list_form(k_code.form()));
  if (codes != nullptr) {
    const bool is_list = codes->kind == Node::Kind::list;
    for (const Node& item : is_list ? std::span(codes->items) : std::span(codes, 1)) {
      const auto code = k_code.parse(item, "ok_exit_codes", problems);
      if (code) engine.ok_exit_codes.push_back(*code);
    }
  }
  fields.read(
      {"exclusive",
       "No two processes of the engine run at once, as where it locks a file or a port.", "true"},
      engine.exclusive, k_boolean);
  fields.read({"build", "Command that builds the program, for --against REF and weir bisect.",
               "[cmake, --build, build]"},
              engine.build, k_arguments);
  fields.read(k_private, engine.is_private, k_boolean);
  constexpr std::string_view k_one_place =
      R"(, "oneOf": [{"required": ["regex"]}, {"required": ["pointer"]}])";
  const Node* metrics = fields.find(
      {"metrics", "With output: generic: where each metric is found, by regex or pointer.",
       "{decode_tokens_per_second: {regex: \"([0-9.]+) tok/s\"}}"},
      named(mapping(k_one_place), "^([a-z][a-z0-9_]{0,63}|(op|kernel)(_calls)?:.{1,100})$",
            "load_seconds"));
  const Node* facts = fields.find(
      {"facts",
       "With output: generic: facts about the run (engine_build, generated_tokens, model, "
       "output_digest, prompt_tokens), which must be the same on both sides.",
       "{generated_tokens: {regex: \"([0-9]+) tokens\"}}"},
      named(mapping(k_one_place),
            "^(engine_build|generated_tokens|model|output_digest|prompt_tokens)$", "model"));
  const Node* rules = metrics != nullptr ? metrics : facts;
  if (engine.output == "generic" || fields.lists_keys()) {
    if (rules == nullptr) {
      problems.add(entry.key_position,
                   "output: generic needs \"metrics\", which says where each value "
                   "stands in what the engine prints, or \"facts\" where probes count alone");
    }
    parse_generic(metrics, facts, engine, parsing);
  } else if (rules != nullptr && !engine.output.empty()) {
    problems.add(rules->position,
                 engine.server
                     ? "metrics and facts are read from output, which a server has none of"
                     : "metrics and facts are for output: generic");
  }
  if (entry.value.kind == Node::Kind::map) check_server(entry.value, engine, problems);
  parsing.settings.engines.push_back(std::move(engine));
}

}  // namespace

void parse_engines(const Node& node, Parsing& parsing) {
  if (node.kind != Node::Kind::map || node.entries.empty()) {
    parsing.problems.add(node.position, "engines must be a mapping with at least one engine");
    return;
  }
  check_names(node, "engine", parsing.problems);
  for (const Entry& entry : node.entries) parse_engine(entry, parsing);
}

bool names_op(std::string_view op) { return !op.empty() && op.find_first_of("*? ") == op.npos; }

// Reads `cpu_ops_allowed` of each engine, ops that may run on the CPU in a GPU's cell. Runs last,
// once all names are known.
void parse_cpu_ops(Parsing& parsing) {
  for (const auto& [name, node] : parsing.cpu_ops) {
    EngineSettings* engine = find_named(parsing.settings.engines, name);
    if (node->kind != Node::Kind::map) {
      parsing.problems.report_expected(*node, "cpu_ops_allowed",
                                       "a mapping of op names to why they may run on the CPU");
    }
    for (const auto& [op, position, value] : node->entries) {
      if (!names_op(op)) {
        parsing.problems.add(
            position,
            "\"{}\" names no op: cpu_ops_allowed takes each by its name, such as GET_ROWS",
            text::printable(op));
        continue;
      }
      const bool is_list = value.kind == Node::Kind::list;
      for (const Node& item : is_list ? std::span(value.items) : std::span(&value, 1)) {
        parse_cpu_op(op, item, *engine, parsing);
      }
    }
  }
}

}  // namespace weir::config

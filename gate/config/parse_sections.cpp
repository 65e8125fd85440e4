// The sections models, backends, variants, prompts and matrix.
#include "gate/config/parse.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::config {
namespace {

std::string describe_entry(const std::string& what, const Entry& entry) {
  return fmt::format("{} \"{}\"", what, text::printable(entry.key.substr(0, 80)));
}

// Reads a section of named entries into `into`; `parse` reads one entry.
template <class Section, class Parse>
void parse_named(const Node& node, const std::string& what, std::vector<Section>& into,
                 Parsing& parsing, const Parse& parse) {
  if (node.kind != Node::Kind::map || node.entries.empty()) {
    return void(
        parsing.problems.report_expected(node, what + "s", "a mapping with at least one " + what));
  }
  check_names(node, what, parsing.problems);
  for (const Entry& entry : node.entries) {
    Section section;
    section.name = entry.key;
    section.source = parsing.problems.source(entry.key_position);
    parse(entry, section);
    into.push_back(std::move(section));
  }
}

constexpr std::size_t k_max_points = 100;

// Returns the form of a key that is one number, or a list of numbers of which each makes a cell.
Form points_form(const Form& point) {
  return point |
         list_form(point, fmt::format(R"(, "minItems": 1, "maxItems": {}, "uniqueItems": true)",
                                      k_max_points));
}

// Reads a number or a list of different numbers, "128" or "[128, 512]", and adds them to `points`.
// Sets `is_list` for a list.
void parse_points(const Node& node, const char* what, const WholeNumber& number_type,
                  std::vector<std::int64_t>& points, bool& is_list, Problems& problems) {
  is_list = node.kind == Node::Kind::list;
  const auto list = is_list ? std::span(node.items) : std::span(&node, 1);
  if (list.empty() || list.size() > k_max_points) {
    return void(problems.add(node.position, "{} must be a number or a list of 1 to {}", what,
                             k_max_points));
  }
  for (const Node& item : list) {
    const auto point = number_type.parse(item, what, problems);
    if (!point) continue;
    if (holds(points, *point)) {
      problems.add(item.position, "{} {} stands here twice", what, *point);
    }
    points.push_back(*point);
  }
}

// Reads `threads` of a prompt: one number, or a list of which each value makes a benchmark cell.
// "all" in a list means all cores of the machine, stored as 0.
void parse_threads(const Node& node, PromptSettings& prompt, Problems& problems) {
  if (node.kind != Node::Kind::list) {
    prompt.extra.extra.threads = k_threads.parse(node, "threads", problems);
    return;
  }
  Node numbers = node;
  const std::size_t all_count =
      std::erase_if(numbers.items, [](const Node& item) { return item.text == "all"; });
  bool is_list = true;
  if (all_count == 0 || !numbers.items.empty()) {
    parse_points(numbers, "threads", k_threads, prompt.threads, is_list, problems);
  }
  if (all_count > 0) prompt.threads.push_back(0);
  if (all_count > 1) problems.add(node.position, "threads all stands here twice");
}

// Reads a rate in requests per second.
std::optional<double> read_rate(const Node& node, std::string_view what, Problems& problems) {
  constexpr double k_fastest = 100'000;
  const auto text = read_text(node, what, problems);
  if (!text) return std::nullopt;
  const auto rate = text::to_double(*text);
  if (rate && *rate > 0 && *rate <= k_fastest) return rate;
  return problems.add(node.position,
                      "rate must be requests a second, above 0 and at most {}: not {}", k_fastest,
                      describe(node));
}

constexpr FieldType k_rate{read_rate, "number",
                           R"("type": "number", "exclusiveMinimum": 0, "maximum": 100000)"};

// Reads `capacity`: two rates in requests per second, between which the highest sustainable rate
// is searched.
void parse_capacity(const Node& node, PromptSettings& prompt, Problems& problems) {
  Fields fields(node, "capacity", problems);
  std::pair<double, double> rates{0, 0};
  fields.require({"low", "Lowest rate in requests per second.", "4"}, rates.first, k_rate);
  fields.require({"high", "Highest rate.", "64"}, rates.second, k_rate);
  const bool is_valid = rates.first > 0 && rates.second > 0;
  if (is_valid && rates.first >= rates.second) {
    problems.add(node.position, "capacity: low must be below high, between which it is looked for");
  } else if (is_valid) {
    prompt.capacity = rates;
  }
}

// Reads the keys of a prompt that say how a server is loaded.
void parse_load(Fields& fields, PromptSettings& prompt, Problems& problems) {
  constexpr WholeNumber k_at_once{1, 1024};
  const Node* concurrency = fields.find(
      {"concurrency", "Server: requests at the same time. Each value of a list is a cell (@c4).",
       "[1, 4]", "1"},
      points_form(k_at_once.form()));
  if (concurrency != nullptr) {
    parse_points(*concurrency, "concurrency", k_at_once, prompt.concurrency,
                 prompt.concurrency_is_list, problems);
  }
  const Node* rate = fields.read(
      {"rate",
       "Server: requests arriving per second, whether or not earlier ones are answered. Instead of "
       "concurrency.",
       "2.5"},
      prompt.rate, k_rate);
  if (rate != nullptr && !prompt.concurrency.empty()) {
    problems.add(rate->position,
                 "rate and concurrency: requests are sent as they arrive, or as soon as one "
                 "before them has ended; not both");
  }
  const Node* capacity = fields.find(
      {"capacity",
       "Server: find the highest rate of requests that keeps the engine's slo. Instead of rate and "
       "concurrency.",
       "{low: 4, high: 64}"},
      mapping());
  if (capacity != nullptr) parse_capacity(*capacity, prompt, problems);
  if (prompt.capacity && (rate != nullptr || !prompt.concurrency.empty())) {
    problems.add(
        rate != nullptr ? rate->position : TextPosition{},
        "capacity looks for a rate by itself: neither rate nor concurrency stand beside it");
  }
  const Node* requests = fields.read(
      {"requests", "Server: requests per timed run, or for each rate that capacity tries.", "100",
       "8 per concurrency, 32 with rate, 1000 with capacity"},
      prompt.requests, WholeNumber{1, 1'000'000});
  constexpr Name<bool> k_holds[] = {{true, "all"}, {false, "none"}};
  const Node* hold = fields.read(
      {"hold",
       "Server: in counted passes all requests are queued before the server begins, so that "
       "batches are the same in every run.",
       "none", "all where a probe can hold the server"},
      prompt.hold, OneOf{k_holds});
  if (prompt.hold.value_or(false) && rate != nullptr) {
    problems.add(hold->position, "hold and rate: held requests are all sent at once");
  }
  fields.read({"workload",
               "Server: a file of recorded requests (JSON lines, ShareGPT, Mooncake), or of how "
               "they are drawn, in place of a prompt.",
               "trace.jsonl"},
              prompt.workload, k_text);
  const Node* turns = fields.read(
      {"turns",
       "Server: of each conversation of a workload so many turns, a request each, sent once the "
       "turn before is answered.",
       "4"},
      prompt.turns, WholeNumber{1, 100});
  if (turns != nullptr && !prompt.workload) {
    problems.add(turns->position, "turns are of the conversations of a workload");
  }
  fields.read({"cache", "Server: whether prompts may be answered from its caches.", "true"},
              prompt.allows_cached_prompts, k_boolean);
  const Node* duration = fields.read(
      {"duration",
       "Server: a timed run goes on for so long and looks for drifts. Instead of requests.", "30m"},
      prompt.duration_seconds, Duration{});
  if (duration != nullptr && requests != nullptr) {
    problems.add(duration->position, "requests and duration: a run ends after one of them");
  }
}

// Complains about a prompt that has several sources of its text, or that requests nothing.
void check_prompt(const Entry& entry, const PromptSettings& prompt, Parsing& parsing) {
  Problems& problems = parsing.problems;
  // A key counts even if its value was refused, so that one mistake gives one complaint.
  const auto has = [&](const char* key) { return entry.value.find(key) != nullptr; };
  int sources = 0;
  for (const char* key : {"text", "file", "prompt_tokens", "workload"}) {
    if (has(key)) ++sources;
  }
  if (sources > 1) {
    problems.add(entry.key_position,
                 "{} has more than one of text, file, prompt_tokens and workload",
                 describe_entry("prompt", entry));
  }
  const bool has_input = has("text") || has("file") || has("workload");
  const bool has_tokens = has("tokens") && prompt.tokens != 0;
  const bool has_prompt_tokens = has("prompt_tokens") && prompt.prompt_tokens != 0;
  // Results that come as files were requested by another tool.
  const bool reads_results = std::ranges::any_of(parsing.settings.engines, [](const auto& engine) {
    return engine.command.empty() && !engine.server;
  });
  if (!has_input && !has_tokens && !has_prompt_tokens && !reads_results) {
    problems.add(entry.key_position,
                 "{} asks for nothing: give it tokens, prompt_tokens, text or file; for a "
                 "program without a prompt text: once, and env: {{WEIR_PROMPT: \"{{prompt}}\"}} at "
                 "its engine",
                 describe_entry("prompt", entry));
  }
}

// Reads a prompt: its text or length, the number of tokens to generate, and for servers the load.
void parse_prompt(const Entry& entry, PromptSettings& prompt, Parsing& parsing) {
  constexpr WholeNumber k_tokens{0, 10'000'000}, k_depth{0, 100'000'000};
  Problems& problems = parsing.problems;
  Fields fields(entry.value, describe_entry("prompt", entry), problems);
  fields.read({"prompt_tokens", "Tokens of the prompt.", "64", "0"}, prompt.prompt_tokens,
              k_tokens);
  fields.read({"tokens", "Tokens to generate.", "32"}, prompt.tokens, k_tokens);
  const Node* depth = fields.find(
      {"depth",
       "Tokens of context before it. Each value of a list is a cell (@d256), and a line is fitted "
       "over them.",
       "[0, 256, 1024]", "0"},
      points_form(k_depth.form()));
  if (depth != nullptr) {
    parse_points(*depth, "depth", k_depth, prompt.depth, prompt.depth_is_list, problems);
  }
  fields.read({"text", "Text of the prompt, for engines that take text.", "Hello world"},
              prompt.text, k_text);
  fields.read({"file", "File with the text of the prompt.", "prompts/long.txt"}, prompt.file,
              k_text);
  fields.read(k_private, prompt.is_private, k_boolean);
  parse_per_engine(fields, prompt.extra, parsing, /*threads=*/false);
  const Node* threads = fields.find(
      {"threads",
       "Value of {threads}. Each value of a list is a cell (@t4, @tall: all cores); the report "
       "tells what a thread adds.",
       "[1, 2, 4, all]", "physical cores"},
      k_threads.form() | list_form(k_threads.form() | Form{"", R"("const": "all")"},
                                   R"(, "minItems": 1, "uniqueItems": true)"));
  if (threads != nullptr) parse_threads(*threads, prompt, problems);
  parse_load(fields, prompt, problems);
  if (entry.value.kind == Node::Kind::map) check_prompt(entry, prompt, parsing);
}

// Reads the list `include` or `exclude` (`what`) of the matrix, each entry of which matches cells.
std::vector<MatrixEntry> parse_entries(const Node& node, std::string_view what, Parsing& parsing) {
  std::vector<MatrixEntry> entries;
  Problems& problems = parsing.problems;
  if (!is_entries(node, what, "{engine: NAME, prompt: NAME}", problems)) return entries;
  for (const Node& item : node.items) {
    MatrixEntry entry;
    entry.source = problems.source(item.position);
    Fields fields(item, fmt::format("an entry of {}", what), problems);
    parse_match(fields, entry.match, parsing);
    if (item.kind == Node::Kind::map && item.entries.empty()) {
      problems.add(item.position, "an entry of {} must name something", what);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Returns the devices of which there may be several twins.
std::vector<std::string> countable_devices() {
  return unit::devices_with(unit::DeviceApi::Twin::runtime);
}

// Complains if `twin`, the simulated GPU, is unknown, or if the backend's device cannot be
// simulated.
void check_twin(const Node& twin, const BackendSettings& backend, const Entry& entry,
                Parsing& parsing) {
  Problems& problems = parsing.problems;
  if (!parsing.supported.twins) {
    return void(problems.add(twin.position, "device twins: this weir was built without them"));
  }
  std::vector<std::string> devices = unit::devices_with(unit::DeviceApi::Twin::driver);
  for (const std::string& device : countable_devices()) devices.push_back(device);
  if (!backend.device.empty() && !holds(devices, backend.device)) {
    problems.add(twin.position, "{}: a twin is a device of {}, not \"{}\"",
                 describe_entry("backend", entry), text::join(devices, " or "), backend.device);
  }
  const std::vector<std::string>& twins = *parsing.supported.twins;
  if (!backend.twin || holds(twins, *backend.twin)) return;
  problems.report_unknown(twin.position, "twin", *backend.twin, twins);
}

// Reads one entry of `backends`. Its device defaults to its name.
void parse_backend(const Entry& entry, BackendSettings& backend, Parsing& parsing) {
  const Node empty = map_node({}, entry.value.position);
  Fields fields(entry.value.kind == Node::Kind::null ? empty : entry.value,
                describe_entry("backend", entry), parsing.problems);
  const Node* device = fields.read(
      {"device", "Device that must really do the work.", "vulkan", "the backend's name"},
      backend.device, OneName{unit::device_names()});
  if (device == nullptr) {
    if (holds(unit::device_names(), entry.key)) {
      backend.device = entry.key;
    } else {
      parsing.problems.add(
          entry.key_position, "{} needs \"device\": what must really do the work{}{}",
          describe_entry("backend", entry), text::did_you_mean(entry.key, unit::device_names()),
          choices_text(unit::device_names()));
    }
  }
  const Node* twin = fields.read(
      {"twin", "Simulated GPU that answers instead of a real one (weir device list). Counts only.",
       "amd-rx-7900-xtx"},
      backend.twin, k_text);
  if (twin != nullptr) check_twin(*twin, backend, entry, parsing);
  const Node* count =
      fields.read({"count", "How many of the twin there are; of device: vulkan one.", "2"},
                  backend.devices, WholeNumber{1, 16});
  if (count != nullptr && (!backend.twin || !holds(countable_devices(), backend.device))) {
    parsing.problems.add(count->position, "{}: \"count\" is how many of a twin of {} there are",
                         describe_entry("backend", entry), text::join(countable_devices(), " or "));
  }
  const Node* compile = fields.read(
      {"compile",
       "What compiles recorded kernels: radv-navi31 and other Radeon families by Mesa's RADV, or "
       "off. Of device: vulkan.",
       "radv-navi31", "what the twin's description names"},
      backend.compile, k_text);
  if (compile != nullptr && backend.device != "vulkan") {
    parsing.problems.add(compile->position,
                         "{}: \"compile\" is for kernels of vulkan, not of \"{}\"",
                         describe_entry("backend", entry), backend.device);
  }
  fields.read({"runner", "Labels of the machine that its cells need, for weir plan.",
               "[self-hosted, rtx4090]"},
              backend.runner, k_name_list);
  fields.read({"gpu",
               "The GPU of a server or container that weir cannot look at: part of the machine "
               "class.",
               "NVIDIA H100", "in containers, what nvidia-smi lists inside"},
              backend.gpu, k_text);
  parse_per_engine(fields, backend.extra, parsing);
}

}  // namespace

// Reads `models`: each is a path, a mapping with a path, or nothing for an engine that brings its
// own model.
void parse_models(const Node& node, Parsing& parsing) {
  parse_named(node, "model", parsing.settings.models, parsing,
              [&](const Entry& entry, ModelSettings& model) {
                Problems& problems = parsing.problems;
                if (entry.value.kind == Node::Kind::null) return;  // no file
                if (entry.value.kind != Node::Kind::map) {
                  model.path = read_text(entry.value,
                                         "the path of " + describe_entry("model", entry), problems)
                                   .value_or("");
                  return;
                }
                Fields fields(entry.value, describe_entry("model", entry), problems);
                fields.require({"path", "The model, from this file's folder.", "models/tiny.gguf"},
                               model.path, k_text);
                fields.read(k_private, model.is_private, k_boolean);
                parse_per_engine(fields, model.extra, parsing);
              });
}

void parse_backends(const Node& node, Parsing& parsing) {
  parse_named(node, "backend", parsing.settings.backends, parsing,
              [&](const Entry& entry, auto& backend) { parse_backend(entry, backend, parsing); });
}

void parse_variants(const Node& node, Parsing& parsing) {
  parse_named(node, "variant", parsing.settings.variants, parsing,
              [&](const Entry& entry, VariantSettings& variant) {
                if (entry.value.kind == Node::Kind::null) return;
                Fields fields(entry.value, describe_entry("variant", entry), parsing.problems);
                parse_per_engine(fields, variant.extra, parsing);
              });
}

void parse_prompts(const Node& node, Parsing& parsing) {
  parse_named(node, "prompt", parsing.settings.prompts, parsing,
              [&](const Entry& entry, auto& prompt) { parse_prompt(entry, prompt, parsing); });
}

// Reads `matrix`: which combinations of engine, model, backend, prompt and variant are benchmark
// cells, and which are not.
void parse_matrix(const Node& node, Parsing& parsing) {
  Settings& settings = parsing.settings;
  Fields fields(node, "matrix", parsing.problems);
  const Form entries = list_form(mapping(R"(, "minProperties": 1)"), R"(, "maxItems": 1000)");
  const Node* include = fields.find(
      {"include", "Combinations that are cells; each names one value or a pattern per dimension.",
       "[{engine: llama.cpp, prompt: decode}]", "all"},
      entries);
  if (include != nullptr) settings.include = parse_entries(*include, "include", parsing);
  if (include != nullptr && settings.include.empty()) {
    parsing.problems.add(include->position, "include is empty: leave it out for the whole product");
  }
  const Node* exclude = fields.find(
      {"exclude", "Combinations that are not.", "[{engine: llama.cpp, prompt: hello}]", "none"},
      entries);
  if (exclude != nullptr) settings.exclude = parse_entries(*exclude, "exclude", parsing);
}

}  // namespace weir::config

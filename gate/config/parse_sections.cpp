// The sections models, backends, variants, prompts and matrix.
#include "gate/config/parse.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::config {
namespace {

std::string named(const std::string& what, const Entry& entry) {
  return fmt::format("{} \"{}\"", what, text::printable(entry.key.substr(0, 80)));
}

// A section of named things, each of which `parse` reads.
template <class Thing, class Parse>
void parse_named(const Node& node, const std::string& what, std::vector<Thing>& into,
                 Parsing& parsing, const Parse& parse) {
  if (node.kind != Node::Kind::map || node.entries.empty()) {
    return void(parsing.problems.expected(node, what + "s", "a mapping with at least one " + what));
  }
  check_names(node, what, parsing.problems);
  for (const Entry& entry : node.entries) {
    Thing thing;
    thing.name = entry.key;
    thing.source = parsing.problems.source(entry.key_at);
    parse(entry, thing);
    into.push_back(std::move(thing));
  }
}

// One number, or a list of them, each of which is a cell.
void parse_points(const Node& node, const char* what, std::int64_t low, std::int64_t high,
                  std::vector<std::int64_t>& points, bool& is_list, Problems& problems) {
  constexpr std::size_t k_most = 100;
  is_list = node.kind == Node::Kind::list;
  const auto list = is_list ? std::span(node.items) : std::span(&node, 1);
  if (list.empty() || list.size() > k_most) {
    return void(problems.add(node.at, "{} must be a number or a list of 1 to {}", what, k_most));
  }
  for (const Node& item : list) {
    const auto point = read_integer(item, what, low, high, problems);
    if (!point) continue;
    if (holds(points, *point)) {
      problems.add(item.at, "{} {} stands here twice", what, *point);
    }
    points.push_back(*point);
  }
}

// A list of threads, each of which is a cell; "all" are the machine's cores. A single number is
// read with those of engines.
void parse_threads(const Node& node, PromptSettings& prompt, Problems& problems) {
  constexpr std::int64_t k_most_threads = 4096;
  Node numbers = node;
  const auto all = std::ranges::stable_partition(
      numbers.items, [](const Node& item) { return item.text != "all"; });
  const std::size_t alls = all.size();
  numbers.items.erase(all.begin(), all.end());
  bool is_list = true;
  if (alls == 0 || !numbers.items.empty()) {
    parse_points(numbers, "threads", 1, k_most_threads, prompt.threads, is_list, problems);
  }
  if (alls > 0) prompt.threads.push_back(0);
  if (alls > 1) problems.add(node.at, "threads all stands here twice");
}

// How many requests a second arrive.
std::optional<double> read_rate(const Node& node, std::string_view what, Problems& problems) {
  constexpr double k_fastest = 100'000;
  const auto text = read_text(node, what, problems);
  if (!text) return std::nullopt;
  const auto rate = text::to_double(*text);
  if (rate && *rate > 0 && *rate <= k_fastest) return rate;
  return problems.add(node.at, "rate must be requests a second, above 0 and at most {}: not {}",
                      k_fastest, describe(node));
}

void parse_capacity(const Node& node, PromptSettings& prompt, Problems& problems) {
  Fields fields(node, "capacity", problems);
  std::pair<double, double> rates{0, 0};
  const auto read = [&](const char* key, double& into) {
    const Node* value = fields.need(key);
    const auto rate = value == nullptr ? std::nullopt : read_rate(*value, key, problems);
    if (rate) into = *rate;
    return rate.has_value();
  };
  const bool has_low = read("low", rates.first);
  const bool has_high = read("high", rates.second);
  const bool whole = has_low && has_high;
  if (whole && rates.first >= rates.second) {
    problems.add(node.at, "capacity: low must be below high, between which it is looked for");
  } else if (whole) {
    prompt.capacity = rates;
  }
}

void parse_load(Fields& fields, PromptSettings& prompt, Problems& problems) {
  constexpr std::int64_t k_most_at_once = 1024, k_most_requests = 1'000'000;
  if (const Node* concurrency = fields.take("concurrency")) {
    parse_points(*concurrency, "concurrency", 1, k_most_at_once, prompt.concurrency,
                 prompt.concurrency_is_list, problems);
  }
  const Node* rate = fields.read("rate", prompt.rate, read_rate);
  if (rate != nullptr && !prompt.concurrency.empty()) {
    problems.add(rate->at,
                 "rate and concurrency: requests are sent as they arrive, or as soon as one "
                 "before them has ended; not both");
  }
  if (const Node* capacity = fields.take("capacity")) parse_capacity(*capacity, prompt, problems);
  if (prompt.capacity && (rate != nullptr || !prompt.concurrency.empty())) {
    problems.add(
        rate != nullptr ? rate->at : Place{},
        "capacity looks for a rate by itself: neither rate nor concurrency stand beside it");
  }
  const Node* requests = fields.read("requests", prompt.requests, read_integer, 1, k_most_requests);
  constexpr Name<bool> k_holds[] = {{true, "all"}, {false, "none"}};
  const Node* hold = fields.choose("hold", prompt.hold, k_holds);
  if (prompt.hold.value_or(false) && rate != nullptr) {
    problems.add(hold->at, "hold and rate: held requests are all sent at once");
  }
  fields.read("workload", prompt.workload, read_text);
  constexpr std::int64_t k_most_turns = 100;
  if (const Node* turns = fields.read("turns", prompt.turns, read_integer, 1, k_most_turns);
      turns != nullptr && !prompt.workload) {
    problems.add(turns->at, "turns are of the conversations of a workload");
  }
  fields.read("cache", prompt.may_be_cached, read_boolean);
  if (const Node* duration =
          fields.read("duration", prompt.duration_seconds, read_duration, 24 * 3600, "24h");
      duration != nullptr && requests != nullptr) {
    problems.add(duration->at, "requests and duration: a run ends after one of them");
  }
}

void check_prompt(const Entry& entry, const PromptSettings& prompt, Parsing& parsing) {
  Problems& problems = parsing.problems;
  // What was written counts here, also where its value was refused: one mistake, one complaint.
  const auto has = [&](const char* key) { return entry.value.find(key) != nullptr ? 1 : 0; };
  if (has("text") + has("file") + has("prompt_tokens") + has("workload") > 1) {
    problems.add(entry.key_at, "{} has more than one of text, file, prompt_tokens and workload",
                 named("prompt", entry));
  }
  const bool nothing = has("text") + has("file") + has("workload") == 0 &&
                       (has("tokens") == 0 || prompt.tokens == 0) &&
                       (has("prompt_tokens") == 0 || prompt.prompt_tokens == 0);
  // Of results that come as files another tool knows what was asked for.
  const bool is_known = std::ranges::any_of(parsing.settings.engines, [](const auto& engine) {
    return engine.command.empty() && !engine.server;
  });
  if (nothing && !is_known) {
    problems.add(entry.key_at, "{} asks for nothing: give it tokens, prompt_tokens, text or file",
                 named("prompt", entry));
  }
}

void parse_prompt(const Entry& entry, PromptSettings& prompt, Parsing& parsing) {
  constexpr std::int64_t k_most_tokens = 10'000'000, k_deepest = 100'000'000;
  Problems& problems = parsing.problems;
  Node value = entry.value;
  const Node* threads = value.find("threads");
  if (threads != nullptr && threads->kind == Node::Kind::list) {
    parse_threads(*threads, prompt, problems);
    std::erase_if(value.entries, [](const Entry& one) { return one.key == "threads"; });
  }
  Fields fields(value, named("prompt", entry), problems);
  fields.read("prompt_tokens", prompt.prompt_tokens, read_integer, 0, k_most_tokens);
  fields.read("tokens", prompt.tokens, read_integer, 0, k_most_tokens);
  if (const Node* depth = fields.take("depth")) {
    parse_points(*depth, "depth", 0, k_deepest, prompt.depth, prompt.depth_is_list, problems);
  }
  fields.read("text", prompt.text, read_text);
  fields.read("file", prompt.file, read_text);
  fields.read("private", prompt.is_private, read_boolean);
  parse_per_engine(fields, prompt.extra, parsing);
  parse_load(fields, prompt, problems);
  if (entry.value.kind == Node::Kind::map) check_prompt(entry, prompt, parsing);
}

std::vector<MatrixEntry> parse_entries(const Node& node, std::string_view what, Parsing& parsing) {
  std::vector<MatrixEntry> entries;
  Problems& problems = parsing.problems;
  if (!is_entries(node, what, "{engine: NAME, prompt: NAME}", problems)) return entries;
  for (const Node& item : node.items) {
    MatrixEntry entry;
    entry.source = problems.source(item.at);
    Fields fields(item, fmt::format("an entry of {}", what), problems);
    parse_match(fields, entry.match, parsing);
    if (item.kind == Node::Kind::map && item.entries.empty()) {
      problems.add(item.at, "an entry of {} must name something", what);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

// A twin is a device of Vulkan or CUDA whose description is known here.
void check_twin(const Node& twin, const BackendSettings& backend, const Entry& entry,
                Parsing& parsing) {
  Problems& problems = parsing.problems;
  if (!parsing.known.twins) {
    return void(problems.add(twin.at, "device twins: this weir was built without them"));
  }
  if (!backend.device.empty() && backend.device != "vulkan" && backend.device != "cuda") {
    problems.add(twin.at, "{}: a twin is a device of vulkan or cuda, not \"{}\"",
                 named("backend", entry), backend.device);
  }
  const std::vector<std::string>& known = *parsing.known.twins;
  if (!backend.twin || holds(known, *backend.twin)) return;
  problems.unknown(twin.at, "twin", *backend.twin, known);
}

void parse_backend(const Entry& entry, BackendSettings& backend, Parsing& parsing) {
  const Node empty = map_node({}, entry.value.at);
  Fields fields(entry.value.kind == Node::Kind::null ? empty : entry.value, named("backend", entry),
                parsing.problems);
  if (fields.read("device", backend.device, read_choice, unit::device_names()) == nullptr) {
    if (holds(unit::device_names(), entry.key)) {
      backend.device = entry.key;
    } else {
      parsing.problems.add(entry.key_at, "{} needs \"device\": what must really do the work{}{}",
                           named("backend", entry),
                           text::did_you_mean(entry.key, unit::device_names()),
                           known_here(unit::device_names()));
    }
  }
  if (const Node* twin = fields.read("twin", backend.twin, read_text)) {
    check_twin(*twin, backend, entry, parsing);
  }
  constexpr std::int64_t k_most_devices = 16;
  if (const Node* count = fields.read("count", backend.devices, read_integer, 1, k_most_devices);
      count != nullptr && (!backend.twin || backend.device != "cuda")) {
    parsing.problems.add(count->at, "{}: \"count\" is how many of a CUDA twin there are",
                         named("backend", entry));
  }
  if (const Node* compile = fields.read("compile", backend.compile, read_text);
      compile != nullptr && backend.device != "vulkan") {
    parsing.problems.add(compile->at, "{}: \"compile\" is for kernels of vulkan, not of \"{}\"",
                         named("backend", entry), backend.device);
  }
  fields.read("runner", backend.runner, read_texts);
  fields.read("gpu", backend.gpu, read_text);
  parse_per_engine(fields, backend.extra, parsing);
}

}  // namespace

void parse_models(const Node& node, Parsing& parsing) {
  parse_named(
      node, "model", parsing.settings.models, parsing,
      [&](const Entry& entry, ModelSettings& model) {
        Problems& problems = parsing.problems;
        if (entry.value.kind == Node::Kind::null) return;  // no file
        if (entry.value.kind != Node::Kind::map) {
          model.path =
              read_text(entry.value, "the path of " + named("model", entry), problems).value_or("");
          return;
        }
        Fields fields(entry.value, named("model", entry), problems);
        fields.need("path", model.path, read_text);
        fields.read("private", model.is_private, read_boolean);
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
                Fields fields(entry.value, named("variant", entry), parsing.problems);
                parse_per_engine(fields, variant.extra, parsing);
              });
}

void parse_prompts(const Node& node, Parsing& parsing) {
  parse_named(node, "prompt", parsing.settings.prompts, parsing,
              [&](const Entry& entry, auto& prompt) { parse_prompt(entry, prompt, parsing); });
}

void parse_matrix(const Node& node, Parsing& parsing) {
  Fields fields(node, "matrix", parsing.problems);
  const auto read = [&](const Node& entries, std::string_view what, Problems&) {
    return parse_entries(entries, what, parsing);
  };
  const Node* include = fields.read("include", parsing.settings.include, read);
  if (include != nullptr && parsing.settings.include.empty()) {
    parsing.problems.add(include->at, "include is empty: leave it out for the whole product");
  }
  fields.read("exclude", parsing.settings.exclude, read);
}

}  // namespace weir::config

// Ollama: replies of /api/generate and /api/chat (the last line of a stream has the figures), and
// what `ollama run --verbose` prints.
//
// Durations are nanoseconds. A prompt that was cached has few tokens or none: its rate says little.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::ollama {
namespace {

struct Figures {
  std::optional<std::int64_t> prompt, generated, cached;
  std::optional<double> load, prompt_time, generate_time, total;  // seconds
};

std::optional<double> seconds_of(const Json& json, const char* key) {
  const auto nanoseconds = json_number(json, key);
  return nanoseconds && *nanoseconds >= 0 ? std::optional(*nanoseconds / 1e9) : std::nullopt;
}

void add(const Figures& figures, Observed& observed) {
  ObservedCase one;
  one.name = fmt::format("request {}", observed.cases.size());
  one.prompt_tokens = figures.prompt;
  one.generated_tokens = figures.generated;
  const auto rate = [&](const char* metric, const auto& tokens, const auto& seconds) {
    if (!tokens || !seconds || *tokens <= 0 || *seconds <= 0) return;
    add_sample(observed, &one, metric, static_cast<double>(*tokens) / *seconds);
  };
  rate("prefill_tokens_per_second", figures.prompt, figures.prompt_time);
  rate("decode_tokens_per_second", figures.generated, figures.generate_time);
  if (figures.load) add_sample(observed.timings, "load_seconds", *figures.load);
  add_cached(figures.cached.value_or(0), one, observed);
  keep_row(observed.cases, std::move(one), observed);
}

void read_reply(const Json& json, Observed& observed) {
  if (!json.is_object()) return;
  if (const auto error = json_text(json, "error")) {
    if (observed.errors.size() < 100) observed.errors.push_back(*error);
  }
  if (const auto model = json_text(json, "model")) observed.context.model = *model;
  if (!json.contains("eval_duration") && !json.contains("total_duration")) return;
  Figures figures;
  figures.prompt = json_whole(json, "prompt_eval_count");
  figures.generated = json_whole(json, "eval_count");
  figures.cached = json_whole(json, "prompt_eval_cached_count");
  figures.load = seconds_of(json, "load_duration");
  figures.prompt_time = seconds_of(json, "prompt_eval_duration");
  figures.generate_time = seconds_of(json, "eval_duration");
  if (!figures.prompt)
    add_warning(observed, "a reply has no prompt_eval_count: its prompt was cached");
  add(figures, observed);
}

// Go's durations: "1.234567s", "52.479709ms", "850µs", "1m2.5s", "1h2m3s"
std::optional<double> go_duration(std::string_view text) {
  constexpr std::pair<std::string_view, double> k_units[] = {
      {"ns", 1e-9}, {"\xC2\xB5s", 1e-6}, {"\xCE\xBCs", 1e-6}, {"us", 1e-6},
      {"ms", 1e-3}, {"h", 3600},         {"m", 60},           {"s", 1}};
  Scan scan(text);
  double seconds = 0;
  bool any = false;
  while (!scan.done()) {
    const auto value = scan.number();
    if (!value || *value < 0) return std::nullopt;
    bool known = false;
    for (const auto& [unit, factor] : k_units) {
      if (known || !scan.take(unit)) continue;
      seconds += *value * factor;
      known = any = true;
    }
    if (!known) return std::nullopt;
  }
  return any ? std::optional(seconds) : std::nullopt;
}

// Whether it is the last of a request's lines.
bool read_verbose(std::string_view line, Figures& figures) {
  Scan scan(line);
  const auto name = scan.until(":");
  if (!name) return false;
  for (const auto& [known, into] : {std::pair{"total duration", &figures.total},
                                    {"load duration", &figures.load},
                                    {"prompt eval duration", &figures.prompt_time},
                                    {"eval duration", &figures.generate_time}}) {
    if (*name == known) *into = go_duration(scan.rest());
  }
  std::int64_t count = 0;
  for (const auto& [known, into] :
       {std::pair{"prompt eval count", &figures.prompt}, {"eval count", &figures.generated}}) {
    if (*name == known && scan.fits("{} token", count)) *into = count;
  }
  return *name == "eval rate";
}

}  // namespace

Result<Observed> read(const Printed& printed) {
  Observed observed;
  Figures figures;
  bool open = false;
  for (const std::string_view line : printed.lines()) {
    if (printed.cut(line)) continue;  // "130m" of "130ms" would be minutes
    const bool last = read_verbose(line, figures);
    open = !last && (figures.generated || figures.total || figures.prompt);
    if (!last) continue;
    add(figures, observed);
    figures = {};
  }
  if (open) {
    mark_truncated(observed);
    add(figures, observed);
  }
  read_documents(
      printed, [&](const Json& json) { read_reply(json, observed); }, observed);
  observed.context.engine = "ollama";
  take_tokens_of_only_case(observed);
  return observed;
}

}  // namespace weir::adapters::ollama

const weir::adapters::Format weir::adapters::k_ollama(
    "ollama", "replies of Ollama, and ollama run --verbose", ollama::read,
    {{85, {"\"eval_duration\"", "\"total_duration\""}}, {80, {"^eval count: & ^eval duration:"}}},
    Adapter("ollama", 7));

// Ollama: replies of /api/generate and /api/chat (the last line of a stream has the figures), and
// what `ollama run --verbose` prints.
//
// Durations are nanoseconds. A prompt that was cached has few tokens or none: its rate says little.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::ollama {
namespace {

struct Figures {
  Request request;
  std::optional<double> load, total;  // seconds
};

std::optional<double> seconds_of(const Json& json, const char* key) {
  const auto nanoseconds = json_number(json, key);
  return nanoseconds && *nanoseconds >= 0 ? std::optional(*nanoseconds / 1e9) : std::nullopt;
}

void add(const Figures& figures, Observed& observed) {
  add_request(figures.request, 0, observed);
  if (figures.load) add_sample(observed.timings, "load_seconds", *figures.load);
}

void read_reply(const Json& json, Observed& observed) {
  if (!json.is_object()) return;
  if (const auto error = json_text(json, "error")) {
    if (observed.errors.size() < 100) observed.errors.push_back(*error);
  }
  if (const auto model = json_text(json, "model")) observed.context.model = *model;
  if (!json.contains("eval_duration") && !json.contains("total_duration")) return;
  const Request request{json_whole(json, "prompt_eval_count"),
                        json_whole(json, "prompt_eval_cached_count"),
                        json_whole(json, "eval_count"), seconds_of(json, "prompt_eval_duration"),
                        seconds_of(json, "eval_duration")};
  if (!request.prompt)
    add_warning(observed, "a reply has no prompt_eval_count: its prompt was cached");
  add({request, seconds_of(json, "load_duration"), std::nullopt}, observed);
}

// Go's durations: "1.234567s", "52.479709ms", "850µs", "1m2.5s", "1h2m3s"
std::optional<double> go_duration(std::string_view text) {
  constexpr std::pair<std::string_view, double> k_units[] = {
      {"ns", 1e-9}, {"\xC2\xB5s", 1e-6}, {"\xCE\xBCs", 1e-6}, {"us", 1e-6},
      {"ms", 1e-3}, {"h", 3600},         {"m", 60},           {"s", 1}};
  Scan scan(text);
  std::optional<double> seconds;
  while (!scan.done()) {
    const auto value = scan.number();
    const auto* unit = first_of(k_units, [&](const auto& one) { return scan.take(one.first); });
    if (!value || *value < 0 || unit == nullptr) return std::nullopt;
    seconds = seconds.value_or(0) + *value * unit->second;
  }
  return seconds;
}

// Whether it is the last of a request's lines.
bool read_verbose(std::string_view line, Figures& figures) {
  Scan scan(line);
  const auto name = scan.until(":");
  if (!name) return false;
  for (const auto& [known, into] : {std::pair{"total duration", &figures.total},
                                    {"load duration", &figures.load},
                                    {"prompt eval duration", &figures.request.prompt_time},
                                    {"eval duration", &figures.request.generate_time}}) {
    if (*name == known) *into = go_duration(scan.rest());
  }
  std::int64_t count = 0;
  for (const auto& [known, into] : {std::pair{"prompt eval count", &figures.request.prompt},
                                    {"eval count", &figures.request.generated}}) {
    if (*name == known && scan.fits("{} token", count)) *into = count;
  }
  return *name == "eval rate";
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  Figures figures;
  bool open = false;
  for (const std::string_view line : printed.lines()) {
    if (printed.cut(line)) continue;  // "130m" of "130ms" would be minutes
    const bool last = read_verbose(line, figures);
    open = !last && (figures.request.generated || figures.total || figures.request.prompt);
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
  take_tokens_of_only_case(observed);
}

}  // namespace weir::adapters::ollama

const weir::adapters::Format weir::adapters::k_ollama(
    "ollama", "replies of Ollama, and ollama run --verbose", "ollama", ollama::read,
    {{85, {"\"eval_duration\"", "\"total_duration\""}}, {80, {"^eval count: & ^eval duration:"}}},
    {"ollama", 7});

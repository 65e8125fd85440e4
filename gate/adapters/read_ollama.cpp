// Ollama: replies of /api/generate and /api/chat (the last line of a stream has the figures), and
// what `ollama run --verbose` prints.
//
// Durations are nanoseconds. A cached prompt has few tokens or none, so its rate means little.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::ollama {
namespace {

struct Figures {
  Request request;
  std::optional<double> load, total;  // seconds
};

std::optional<double> read_seconds(const Json& json, const char* key) {
  const auto nanoseconds = json_number(json, key);
  return nanoseconds && *nanoseconds >= 0 ? std::optional(*nanoseconds / 1e9) : std::nullopt;
}

// Adds the figures of one request, and counts it as read if it has a rate.
void add_figures(const Figures& figures, Observed& observed) {
  const Request& request = figures.request;
  if (!request.generated || !request.generate_time) {
    add_unread_part(observed, "replies", "the count or the duration of the answer is missing");
  } else if (request.generated == 0) {
    add_unread_part(observed, "replies", "no token was generated");
  } else {
    add_read_parts(observed, "replies");
  }
  add_request(figures.request, 0, observed);
  if (figures.load) add_sample(observed.timings, "load_seconds", *figures.load);
}

// Reads a reply, or the last line of a stream, with its figures.
void read_reply(const Json& json, Observed& observed) {
  if (!json.is_object()) return;
  if (const auto error = json_text(json, "error")) {
    if (observed.errors.size() < 100) observed.errors.push_back(*error);
  }
  if (const auto model = json_text(json, "model")) observed.context.model = *model;
  if (!json.contains("eval_duration") && !json.contains("total_duration")) return;
  const Request request{
      json_integer(json, "prompt_eval_count"), json_integer(json, "prompt_eval_cached_count"),
      json_integer(json, "eval_count"), read_seconds(json, "prompt_eval_duration"),
      read_seconds(json, "eval_duration")};
  if (!request.prompt)
    add_warning(observed, "a reply has no prompt_eval_count: its prompt was cached");
  add_figures({request, read_seconds(json, "load_duration"), std::nullopt}, observed);
}

// Parses one of Go's durations in seconds: "1.234567s", "52.479709ms", "850µs", "1m2.5s", "1h2m3s".
std::optional<double> parse_go_duration(std::string_view text) {
  constexpr std::pair<std::string_view, double> k_units[] = {
      {"ns", 1e-9}, {"\xC2\xB5s", 1e-6}, {"\xCE\xBCs", 1e-6}, {"us", 1e-6},
      {"ms", 1e-3}, {"h", 3600},         {"m", 60},           {"s", 1}};
  LineScanner scan(text);
  std::optional<double> seconds;
  while (!scan.done()) {
    const auto value = scan.number();
    const auto* unit =
        find_first(k_units, [&](const auto& row) { return scan.skip_prefix(row.first); });
    if (!value || *value < 0 || unit == nullptr) return std::nullopt;
    seconds = seconds.value_or(0) + *value * unit->second;
  }
  return seconds;
}

// Reads a line of `ollama run --verbose`. Returns true for the last line of a request.
bool read_verbose(std::string_view line, Figures& figures) {
  LineScanner scan(line);
  const auto name = scan.read_until(":");
  if (!name) return false;
  for (const auto& [title, into] : {std::pair{"total duration", &figures.total},
                                    {"load duration", &figures.load},
                                    {"prompt eval duration", &figures.request.prompt_time},
                                    {"eval duration", &figures.request.generate_time}}) {
    if (*name == title) *into = parse_go_duration(scan.rest());
  }
  std::int64_t count = 0;
  for (const auto& [title, into] : {std::pair{"prompt eval count", &figures.request.prompt},
                                    {"eval count", &figures.request.generated}}) {
    if (*name == title && scan.read_values("{} token", count)) *into = count;
  }
  return *name == "eval rate";
}

}  // namespace

// Reads what --verbose prints after each request, and replies in JSON:
//
//   total duration:       4.648158978s
//   prompt eval count:    10 token(s)
//   eval rate:            9.89 tokens/s
void read(const Printed& printed, Observed& observed) {
  Figures figures;
  bool is_open = false;  // some lines of a request came, but not the last
  for (const std::string_view line : printed.lines()) {
    if (printed.may_be_cut(line)) continue;  // "130m" of "130ms" would be minutes
    const bool is_last = read_verbose(line, figures);
    is_open = !is_last && (figures.request.generated || figures.total || figures.request.prompt);
    if (!is_last) continue;
    add_figures(figures, observed);
    figures = {};
  }
  if (is_open) {
    mark_truncated(observed);
    add_figures(figures, observed);
  }
  read_documents(
      printed, [&](const Json& json) { read_reply(json, observed); }, observed);
  copy_tokens_of_only_case(observed);
}

}  // namespace weir::adapters::ollama

const weir::adapters::Format weir::adapters::k_ollama(
    "ollama", "replies of Ollama, and ollama run --verbose", "ollama", ollama::read,
    {{85, {"\"eval_duration\"", "\"total_duration\""}}, {80, {"^eval count: & ^eval duration:"}}},
    {"ollama", 7});

// The timings that llama.cpp's programs print at their end (llama_perf_context_print, formerly
// llama_print_timings, common_perf_print), and its server for each request (slot print_timing).
//
// The prompt's evaluation makes the first token. Programs count decode calls ("runs"), one fewer
// than the tokens. The server counts the tokens, and its time is that of all but the first. Rates
// are computed from the times in the same way for both.

#include "gate/adapters/readers.hpp"

namespace weir::adapters::llama_perf {
namespace {

struct Timing {
  double milliseconds = 0;
  std::optional<std::int64_t> count;
  bool is_runs = false;  // the count is of decode calls
};

// Parses "  532.58 ms /     9 tokens (…" or "    539.59 ms".
std::optional<Timing> parse_timing(Scan scan) {
  Timing timing;
  std::int64_t count = 0;
  if (!scan.parse("{} ms", timing.milliseconds) || timing.milliseconds < 0) return std::nullopt;
  timing.is_runs = scan.parse("/ {} runs", count);
  if (timing.is_runs || scan.parse("/ {} tokens", count)) timing.count = count;
  return timing;
}

// Adds one figure of a program, or of one of its requests (null: of the program). `title` is the
// text before "=", `scan` the rest of the line.
void take_figure(std::string_view title, Scan scan, ObservedCase* request, Observed& observed) {
  const auto timing = parse_timing(scan);
  if (title == "graphs reused") {
    auto& facts = request ? request->facts : observed.context.facts;
    if (const auto count = scan.integer()) facts["graphs reused"] = fmt::format("{}", *count);
    return;
  }
  if (!timing) return;
  const double ms = timing->milliseconds;
  const auto rate = [&](const char* metric, std::int64_t tokens) {
    if (tokens <= 0 || ms <= 0) return;
    add_sample(observed, request, metric, static_cast<double>(tokens) * 1e3 / ms);
  };
  if (title == "load time") {
    add_sample(observed.timings, "load_seconds", ms / 1e3);
  } else if (title == "prompt eval time" && timing->count) {
    if (request) {
      request->prompt_tokens = timing->count;
    } else {
      observed.prompt_tokens = timing->count;
    }
    rate("prefill_tokens_per_second", *timing->count);
  } else if (title == "eval time" && timing->count) {
    const std::int64_t tokens = timing->is_runs ? *timing->count + 1 : *timing->count;
    if (request) {
      request->generated_tokens = tokens;
    } else {
      observed.generated_tokens = tokens;
    }
    rate("decode_tokens_per_second", tokens - 1);
  } else if (title != "total time") {
    observed.context.facts[display_text(title)] = fmt::format("{} ms", ms);
  }
}

constexpr const char* k_prefixes[] = {
    "llama_perf_context_print:", "llama_print_timings:", "common_perf_print:"};

// Returns the request of a server's line, "slot print_timing: id  3 | task 0 | prompt eval time =
// …"; adds it if it is new. Null for other lines.
ObservedCase* find_or_add_request(Scan& scan, Observed& observed) {
  const auto slot = scan.read_until(" | ");
  const auto task = slot ? scan.read_until(" | ") : std::nullopt;
  if (!task || !task->starts_with("task ")) return nullptr;
  const std::string name = display_text(*task, 60);
  if (observed.cases.empty() || observed.cases.back().name != name) {
    ObservedCase request{name, {{"slot", display_text(*slot, 60)}}, {}, {}, {}, {}, {}};
    if (!append_row_within_limit(observed.cases, std::move(request), observed)) return nullptr;
  }
  return &observed.cases.back();
}

void read_complaint(std::string_view line, Observed& observed) {
  const auto has = [&](std::string_view text) { return line.find(text) != line.npos; };
  if (!has("failed to ") && !has("error:") && !has("error loading")) return;
  if (observed.errors.size() < 100) observed.errors.push_back(display_text(line, 400));
  Scan scan(line);
  const auto place = scan.read_until("'") ? scan.read_until("'") : std::nullopt;
  if (place) add_place(observed, display_text(*place));
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  for (const std::string_view line : printed.lines()) {
    Scan scan(line);
    ObservedCase* request = nullptr;
    bool is_timing = std::ranges::any_of(
        k_prefixes, [&](const char* prefix) { return scan.skip_prefix(prefix); });
    if (!is_timing && scan.skip_prefix("slot print_timing:")) {
      request = find_or_add_request(scan, observed);
      is_timing = request != nullptr;
    }
    if (!is_timing) {
      read_complaint(line, observed);
      // Printed when the context is created: "graph (pp bs=9, tg bs=1): nodes = 167 / 167, splits
      // = 9 / 1, …".
      const std::size_t graph = line.find("graph (pp bs=");
      if (graph != line.npos) observed.context.facts["graph"] = display_text(line.substr(graph));
      continue;
    }
    if (const auto title = scan.read_until("=")) take_figure(*title, scan, request, observed);
  }
}

}  // namespace weir::adapters::llama_perf

const weir::adapters::Format weir::adapters::k_llama_perf(
    "llama-perf", "timings llama.cpp's programs and its server print at their end", "llama.cpp",
    llama_perf::read,
    {{80,
      {"^llama_perf_context_print:", "^llama_print_timings:", "^common_perf_print:",
       "^slot print_timing:"}},
     {30, {"^llama_completion: error:", "^llama_model_load: error", "^llama_bench: error:"}}},
    {"llama-perf", 3});

// Replies of llama-server: /completion and chat, whole or streamed ("data: {…}"), with `timings`.
//
// Its own predicted_per_second divides by predicted_n - 1, that of older builds by predicted_n. So
// the rate is computed from predicted_ms, in the first way. The rate of a prompt that came from the
// cache cannot be compared.
namespace weir::adapters::llama_server {
namespace {

constexpr std::int64_t k_untimed = 1;  // the prompt's evaluation makes the first token

std::optional<Request> parse_reply(const Json& json) {
  const Json& timings = member_or_null(json, "timings");
  if (!timings.is_object()) return std::nullopt;
  return Request{json_integer(timings, "prompt_n"),    json_integer(timings, "cache_n"),
                 json_integer(timings, "predicted_n"), json_number(timings, "prompt_ms"),
                 json_number(timings, "predicted_ms"), 1e3};
}

// Reads a stream whose chunks carry the timings so far. Each step is the difference to the chunk
// before.
class Stream {
 public:
  explicit Stream(Observed& observed) : observed_(observed) {}

  void take(const Json& json) {
    const auto reply = parse_reply(json);
    if (!reply) return;
    // A chat's chunks have no "stop"; only the last one has timings, unless all were asked for
    // them.
    ended_ = !member_or_null(json, "stop").is_boolean() || json_flag(json, "stop");
    if (last_ && reply->generated.value_or(0) < last_->generated.value_or(0)) finish();
    if (last_ && reply->generated && last_->generated && reply->generate_time &&
        last_->generate_time) {
      const std::int64_t tokens = *reply->generated - *last_->generated;
      const double ms = *reply->generate_time - *last_->generate_time;
      const std::string label = fmt::format("token {}", *reply->generated);
      if (tokens > 0 && ms >= 0) {
        append_row_within_limit(observed_.steps, {label, Phase::decode, tokens, ms / 1e3},
                                observed_);
      }
    }
    last_ = reply;
  }
  // Adds the request. A stream without its last chunk was cut; its rates are those of the tokens so
  // far.
  void finish() {
    if (last_ && !ended_) mark_truncated(observed_);
    if (last_) add_request(*last_, k_untimed, observed_);
    last_.reset();
  }

 private:
  Observed& observed_;
  std::optional<Request> last_;
  bool ended_ = true;
};

void read_names(const Json& json, Observed& observed) {
  if (const auto model = json_text(json, "model")) {
    observed.context.model = *model;
    if (model->find_first_of("/\\") != std::string::npos) observed.context.places = {*model};
  }
  if (const auto build = json_text(json, "system_fingerprint"))
    observed.context.engine_build = *build;
  const Json& message = member_or_null(member_or_null(json, "error"), "message");
  if (message.is_string()) observed.errors.push_back(json_display_text(message));
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  Stream stream(observed);
  for (const std::string_view line : printed.out()) {
    Scan data(line);
    if (!data.skip_prefix("data: ") || data.skip_prefix("[DONE]")) continue;
    const auto json = parse_json(data.rest(), {std::size_t{1} << 20, 64});
    if (!json) {
      mark_truncated(observed);
      continue;
    }
    stream.take(*json);
    if (json->is_object()) read_names(*json, observed);
  }
  stream.finish();
  const auto take_reply = [&](const Json& json) {
    if (const auto reply = parse_reply(json)) add_request(*reply, k_untimed, observed);
    if (json.is_object()) read_names(json, observed);
  };
  read_documents(printed, take_reply, observed);
  copy_tokens_of_only_case(observed);
}

}  // namespace weir::adapters::llama_server

const weir::adapters::Format weir::adapters::k_llama_server(
    "llama-server", "replies of llama-server, with timings", "llama.cpp", llama_server::read,
    {{85, {"\"timings\" & \"predicted_n\""}}});

// The timings llama.cpp's programs print when they end (llama_perf_context_print, before
// llama_print_timings, common_perf_print) and its server for each request (slot print_timing).
//
// The first token is made by the prompt's evaluation. Programs count decode calls ("runs"), which
// are one fewer than the tokens; the server counts the tokens, and its time is that of all but the
// first. Rates are made from the times, with that one rule for both.

#include "gate/adapters/readers.hpp"

namespace weir::adapters::llama_perf {
namespace {

struct Timing {
  double milliseconds = 0;
  std::optional<std::int64_t> count;
  bool runs = false;  // the count is of decode calls
};

// "  532.58 ms /     9 tokens (…", "    539.59 ms"
std::optional<Timing> timing_in(Scan scan) {
  Timing timing;
  std::int64_t count = 0;
  if (!scan.fits("{} ms", timing.milliseconds) || timing.milliseconds < 0) return std::nullopt;
  timing.runs = scan.fits("/ {} runs", count);
  if (timing.runs || scan.fits("/ {} tokens", count)) timing.count = count;
  return timing;
}

// One of the figures of a program, or of one of its requests.
void take_figure(std::string_view what, Scan scan, ObservedCase* request, Observed& observed) {
  const auto timing = timing_in(scan);
  if (what == "graphs reused") {
    auto& facts = request ? request->facts : observed.context.facts;
    if (const auto count = scan.whole()) facts["graphs reused"] = fmt::format("{}", *count);
    return;
  }
  if (!timing) return;
  const double ms = timing->milliseconds;
  const auto rate = [&](const char* metric, std::int64_t tokens) {
    if (tokens <= 0 || ms <= 0) return;
    add_sample(observed, request, metric, static_cast<double>(tokens) * 1e3 / ms);
  };
  if (what == "load time") {
    add_sample(observed.timings, "load_seconds", ms / 1e3);
  } else if (what == "prompt eval time" && timing->count) {
    if (request) {
      request->prompt_tokens = timing->count;
    } else {
      observed.prompt_tokens = timing->count;
    }
    rate("prefill_tokens_per_second", *timing->count);
  } else if (what == "eval time" && timing->count) {
    const std::int64_t tokens = timing->runs ? *timing->count + 1 : *timing->count;
    if (request) {
      request->generated_tokens = tokens;
    } else {
      observed.generated_tokens = tokens;
    }
    rate("decode_tokens_per_second", tokens - 1);
  } else if (what != "total time") {
    observed.context.facts[shown_text(what)] = fmt::format("{} ms", ms);
  }
}

constexpr const char* k_prefixes[] = {
    "llama_perf_context_print:", "llama_print_timings:", "common_perf_print:"};

// "slot print_timing: id  3 | task 0 | prompt eval time = …"
ObservedCase* request_of(Scan& scan, Observed& observed) {
  const auto slot = scan.until(" | ");
  const auto task = slot ? scan.until(" | ") : std::nullopt;
  if (!task || !task->starts_with("task ")) return nullptr;
  const std::string name = shown_text(*task, 60);
  if (observed.cases.empty() || observed.cases.back().name != name) {
    ObservedCase request{name, {{"slot", shown_text(*slot, 60)}}, {}, {}, {}, {}, {}};
    if (!keep_row(observed.cases, std::move(request), observed)) return nullptr;
  }
  return &observed.cases.back();
}

void read_complaint(std::string_view line, Observed& observed) {
  const auto says = [&](std::string_view words) { return line.find(words) != line.npos; };
  if (!says("failed to ") && !says("error:") && !says("error loading")) return;
  if (observed.errors.size() < 100) observed.errors.push_back(shown_text(line, 400));
  Scan scan(line);
  const auto place = scan.until("'") ? scan.until("'") : std::nullopt;
  if (place) add_place(observed, shown_text(*place));
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  for (const std::string_view line : printed.lines()) {
    Scan scan(line);
    ObservedCase* request = nullptr;
    bool ours = std::ranges::any_of(k_prefixes, [&](const char* one) { return scan.take(one); });
    if (!ours && scan.take("slot print_timing:")) {
      request = request_of(scan, observed);
      ours = request != nullptr;
    }
    if (!ours) {
      read_complaint(line, observed);
      // "graph (pp bs=9, tg bs=1): nodes = 167 / 167, splits = 9 / 1, …" of the context's creation.
      const std::size_t graph = line.find("graph (pp bs=");
      if (graph != line.npos) observed.context.facts["graph"] = shown_text(line.substr(graph));
      continue;
    }
    if (const auto what = scan.until("=")) take_figure(*what, scan, request, observed);
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
// Its own predicted_per_second divides by predicted_n - 1, that of older builds by predicted_n: the
// rate is made anew from predicted_ms, with the first rule. A prompt that came from the cache has
// no rate that compares with another.
namespace weir::adapters::llama_server {
namespace {

constexpr std::int64_t k_untimed = 1;  // the prompt's evaluation makes the first token

std::optional<Request> reply_of(const Json& json) {
  const Json& timings = below(json, "timings");
  if (!timings.is_object()) return std::nullopt;
  return Request{json_whole(timings, "prompt_n"),      json_whole(timings, "cache_n"),
                 json_whole(timings, "predicted_n"),   json_number(timings, "prompt_ms"),
                 json_number(timings, "predicted_ms"), 1e3};
}

// A stream's chunks carry the timings so far: each step is what the chunk before lacked.
class Stream {
 public:
  explicit Stream(Observed& observed) : observed_(observed) {}

  void take(const Json& json) {
    const auto reply = reply_of(json);
    if (!reply) return;
    // Of chat only the last chunk has timings, unless they were asked for.
    ended_ = !below(json, "stop").is_boolean() || json_flag(json, "stop");
    if (last_ && reply->generated.value_or(0) < last_->generated.value_or(0)) finish();
    if (last_ && reply->generated && last_->generated && reply->generate_time &&
        last_->generate_time) {
      const std::int64_t tokens = *reply->generated - *last_->generated;
      const double ms = *reply->generate_time - *last_->generate_time;
      const std::string label = fmt::format("token {}", *reply->generated);
      if (tokens > 0 && ms >= 0) {
        keep_row(observed_.steps, {label, Phase::decode, tokens, ms / 1e3}, observed_);
      }
    }
    last_ = reply;
  }
  // A stream that has no last chunk was cut: its rates are those of the tokens so far.
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
  const Json& message = below(below(json, "error"), "message");
  if (message.is_string()) observed.errors.push_back(json_shown(message));
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  Stream stream(observed);
  for (const std::string_view line : printed.out()) {
    Scan data(line);
    if (!data.take("data: ") || data.take("[DONE]")) continue;
    const auto json = parse_json(data.rest(), {std::size_t{1} << 20, 64});
    if (!json) {
      mark_truncated(observed);
      continue;
    }
    stream.take(*json);
    if (json->is_object()) read_names(*json, observed);
  }
  stream.finish();
  const auto whole = [&](const Json& json) {
    if (const auto reply = reply_of(json)) add_request(*reply, k_untimed, observed);
    if (json.is_object()) read_names(json, observed);
  };
  read_documents(printed, whole, observed);
  take_tokens_of_only_case(observed);
}

}  // namespace weir::adapters::llama_server

const weir::adapters::Format weir::adapters::k_llama_server(
    "llama-server", "replies of llama-server, with timings", "llama.cpp", llama_server::read,
    {{85, {"\"timings\" & \"predicted_n\""}}});

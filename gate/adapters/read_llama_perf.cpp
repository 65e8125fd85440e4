// The timings that llama.cpp's programs print at their end (llama_perf_context_print, formerly
// llama_print_timings, common_perf_print), and its server for each request (slot print_timing).
//
// The prompt's evaluation makes the first token. Programs count decode calls ("runs"), one fewer
// than the tokens. The server counts the tokens, and its time is that of all but the first. Rates
// are computed from the times in the same way for both.
//
// A server of 2024 writes "slot print_timing: id 0 | task 3 |" and the timings on lines of their
// own, one of March 2024 JSON lines, and llama-cli of 2026 "[ Prompt: 412.5 t/s | Generation: 50.2
// t/s ]". Lines may have the prefix of journald, of docker compose, or of the server that routes
// ("[40001] ").

#include "gate/adapters/readers.hpp"

namespace weir::adapters::llama_perf {
namespace {

struct Timing {
  double milliseconds = 0;
  std::optional<std::int64_t> count;
  bool is_runs = false;  // the count is of decode calls
};

// Parses "  532.58 ms /     9 tokens (…" or "    539.59 ms".
std::optional<Timing> parse_timing(LineScanner scan) {
  Timing timing;
  std::int64_t count = 0;
  if (!scan.read_values("{} ms", timing.milliseconds) || timing.milliseconds < 0)
    return std::nullopt;
  timing.is_runs = scan.read_values("/ {} runs", count);
  if (timing.is_runs || scan.read_values("/ {} tokens", count)) timing.count = count;
  return timing;
}

constexpr std::string_view k_requests = "requests";

// A program prints at least one token, in 0 ms if it evaluated no prompt. The first generated token
// then comes from a decode call as well.
void skip_prompt(Observed& observed) {
  observed.prompt_tokens.reset();
  add_warning(observed, "no prompt was evaluated: it came from a cache, or has one token");
}

// Adds one figure of a program, or of one of its requests (null: of the program). `title` is the
// text before "=", `scan` the rest of the line. A server calls its tokens "runs" in old builds.
void read_figure(std::string_view title, LineScanner scan, ObservedCase* request,
                 Observed& observed) {
  if (title == "graphs reused") {
    auto& facts = request ? request->facts : observed.context.facts;
    if (const auto count = scan.integer()) facts["graphs reused"] = fmt::format("{}", *count);
    return;
  }
  if (title == "draft acceptance" && request != nullptr) {
    if (const auto share = scan.number())
      request->facts["draft acceptance"] = fmt::format("{}", *share);
    return;
  }
  const auto timing = parse_timing(scan);
  if (!timing) return;
  const double ms = timing->milliseconds;
  const auto rate = [&](const char* metric, std::int64_t tokens) {
    if (tokens <= 0 || ms <= 0) return;
    add_sample(observed, request, metric, static_cast<double>(tokens) * 1e3 / ms);
  };
  if (title == "load time") {
    add_sample(observed.timings, "load_seconds", ms / 1e3);
  } else if (title == "prompt eval time" && timing->count) {
    if (request == nullptr && ms <= 0) return skip_prompt(observed);
    if (request) {
      request->prompt_tokens = timing->count;
    } else {
      observed.prompt_tokens = timing->count;
    }
    rate("prefill_tokens_per_second", *timing->count);
  } else if ((title == "eval time" || title == "generation eval time") && timing->count) {
    const bool is_of_program = timing->is_runs && request == nullptr;
    if (is_of_program && ms <= 0) return;
    const bool adds_first = is_of_program && observed.prompt_tokens;
    const std::int64_t tokens = adds_first ? *timing->count + 1 : *timing->count;
    if (request) {
      request->generated_tokens = tokens;
    } else {
      observed.generated_tokens = tokens;
    }
    rate("decode_tokens_per_second", is_of_program ? *timing->count : tokens - 1);
  } else if (title != "total time" && request == nullptr) {
    observed.context.facts[display_text(title)] = fmt::format("{} ms", ms);
  }
}

// Reads "Final estimate: PPL = 6.1000 +/- 0.21000" of llama-perplexity. Returns false for others.
bool read_perplexity(LineScanner scan, Observed& observed) {
  double mean = 0, error = 0;
  if (!scan.read_values("Final estimate: PPL = {}", mean) || mean <= 0) return false;
  ObservedTiming& perplexity =
      find_or_add_timing(observed.timings, *unit::find_metric("perplexity"));
  perplexity.mean = mean;
  if (scan.read_values("+/- {}", error)) perplexity.stddev = error;
  return true;
}

constexpr std::string_view k_prefixes[] = {
    "llama_perf_context_print:", "llama_print_timings:", "common_perf_print:"};
constexpr std::string_view k_slot = "slot print_timing:";
constexpr std::string_view k_json = "\"function\":\"print_timings\"";

// Returns the program that a log's prefix names: the port of "[40001]", the service of
// "llama-1  | …", "ollama[100]" of journald; "" if it names none.
std::string source_of(std::string_view prefix) {
  prefix = text::trim(prefix);
  if (const std::size_t bar = prefix.find('|'); bar != prefix.npos)
    return display_text(prefix.substr(0, bar), 60);
  if (!prefix.ends_with(':') && !prefix.ends_with(']')) return "";
  const std::string_view word = prefix.substr(prefix.find_last_of(" \t") + 1);
  return display_text(word.substr(0, word.find(':')), 60);
}

// A timing without the name of the function that printed it: "       eval time =   5980.00 ms / …".
struct BareTiming {
  std::string_view title, prefix;
  LineScanner scan{""};
};

// Finds "prompt eval time =   412.50 ms / 12 tokens" in a line without one of the known prefixes.
std::optional<BareTiming> find_bare_timing(std::string_view line) {
  for (const std::string_view title :
       {"prompt eval time", "generation eval time", "eval time", "total time"}) {
    const std::size_t at = line.find(title);
    if (at == line.npos || (at > 0 && line[at - 1] != ' ' && line[at - 1] != '\t')) continue;
    LineScanner scan(line.substr(at + title.size()));
    double milliseconds = 0;
    if (!scan.skip_prefix("=") || !LineScanner(scan).read_values("{} ms", milliseconds)) continue;
    return BareTiming{title, line.substr(0, at), scan};
  }
  return std::nullopt;
}

// "[ Prompt: 412.5 t/s | Generation: 50.2 t/s ]"
bool parse_turn(std::string_view line, double& prompt, double& generated) {
  return LineScanner(line).read_values("[ Prompt: {} t/s  |  Generation: {} t/s  ]", prompt,
                                       generated);
}

// Reads the timings of a server's requests.
class Requests {
 public:
  explicit Requests(Observed& observed) : observed_(observed) {}

  // Reads a line of a server; returns false for other lines. A line that is cut names no request.
  bool read_line(std::string_view line, bool may_be_cut) {
    if (const std::size_t slot = line.find(k_slot); slot != line.npos)
      return read_slot(line.substr(0, slot), line.substr(slot + k_slot.size()), may_be_cut);
    if (may_be_cut && line.find(k_json) != line.npos) {
      mark_truncated(observed_);
      return true;
    }
    if (line.find(k_json) != line.npos) return read_json(line);
    double prompt = 0, generated = 0;
    if (parse_turn(line, prompt, generated)) return add_turn(prompt, generated);
    const auto timing = find_bare_timing(line);
    if (!timing) return false;
    const std::string source = source_of(timing->prefix);
    const bool begins = timing->title == "prompt eval time";
    const std::size_t* open = look_up(open_, source);
    if (open == nullptr || (begins && observed_.cases[*open].prompt_tokens)) {
      const auto fresh = add(fmt::format("request {}", observed_.cases.size()), "", source);
      if (!fresh) return true;
      open_[source] = *fresh;
      open = look_up(open_, source);
    }
    read_figure(timing->title, timing->scan, &observed_.cases[*open], observed_);
    if (timing->title == "total time") open_.erase(source);
    return true;
  }

  // Counts the requests whose timings were there, and leaves out the others. None may have
  // generated nothing.
  void finish() {
    std::erase_if(observed_.cases, [&](const ObservedCase& request) {
      const bool is_empty =
          !request.prompt_tokens && !request.generated_tokens && request.timings.empty();
      if (is_empty)
        add_unread_part(observed_, k_requests, request.name + ": its timings are missing");
      return is_empty;
    });
    for (const ObservedCase& request : observed_.cases) {
      if (request.generated_tokens == 0) {
        add_unread_part(observed_, k_requests, request.name + " generated no token");
      } else {
        add_read_parts(observed_, k_requests);
      }
    }
  }

 private:
  // "id  3 | task 0 | prompt eval time = …"; old builds write the timings on the lines below it.
  bool read_slot(std::string_view prefix, std::string_view rest, bool may_be_cut) {
    LineScanner scan(rest);
    const auto slot = scan.read_until(" | ");
    const auto task = slot ? scan.read_until("|") : std::nullopt;
    if (!task || !task->starts_with("task ")) return false;
    const std::string source = source_of(prefix);
    const std::string name = display_text(*task, 60), place = display_text(*slot, 60);
    const bool is_heading = scan.done();
    if (is_heading && may_be_cut) {
      mark_truncated(observed_);
      return true;
    }
    const auto title = scan.read_until("=");
    auto request = is_heading ? add(name, place, source) : find_or_add(name, place, source);
    // A server that was started again counts its tasks from 0.
    if (request && title == "prompt eval time" && observed_.cases[*request].prompt_tokens)
      request = add(name, place, source);
    if (!request) return true;
    if (is_heading) open_[source] = *request;
    if (title) read_figure(*title, scan, &observed_.cases[*request], observed_);
    return true;
  }

  bool read_json(std::string_view line) {
    const std::size_t from = line.find('{');
    const auto json = from == line.npos ? fail(Code::data, "")
                                        : parse_json(line.substr(from), {std::size_t{1} << 16, 8});
    if (!json || !json->is_object()) {
      add_unread_part(observed_, k_requests, "a line is no JSON");
      return true;
    }
    const auto task = json_integer(*json, "task_id"), slot = json_integer(*json, "slot_id");
    const auto request = find_or_add(fmt::format("task {}", task.value_or(0)),
                                     fmt::format("id  {}", slot.value_or(0)), "");
    if (!request) return true;
    const auto add_time = [&](const char* title, const char* time, const char* tokens) {
      const auto ms = json_number(*json, time);
      const auto count = json_integer(*json, tokens);
      if (!ms || !count) return;
      const std::string text = fmt::format("{} ms / {} tokens", *ms, *count);
      read_figure(title, LineScanner(text), &observed_.cases[*request], observed_);
    };
    add_time("prompt eval time", "t_prompt_processing", "n_prompt_tokens_processed");
    add_time("eval time", "t_token_generation", "n_decoded");
    return true;
  }

  bool add_turn(double prompt, double generated) {
    const auto turn = add(fmt::format("turn {}", observed_.cases.size()), "", "");
    if (!turn) return true;
    ObservedCase& part = observed_.cases[*turn];
    add_sample(observed_, &part, "prefill_tokens_per_second", prompt);
    add_sample(observed_, &part, "decode_tokens_per_second", generated);
    if (generated <= 0) part.generated_tokens = 0;
    if (prompt <= 0) add_warning(observed_, "{} has no rate of its prompt", part.name);
    return true;
  }

  std::optional<std::size_t> find_or_add(const std::string& name, const std::string& slot,
                                         const std::string& source) {
    // Lines of requests at the same time may be mixed.
    constexpr std::size_t k_max_mixed = 256;
    for (std::size_t i = observed_.cases.size(), n = 0; i-- > 0 && n < k_max_mixed; ++n) {
      const ObservedCase& request = observed_.cases[i];
      if (request.name == name && look_up(request.facts, "slot", "") == slot &&
          look_up(request.facts, "source", "") == source)
        return i;
    }
    return add(name, slot, source);
  }
  std::optional<std::size_t> add(const std::string& name, const std::string& slot,
                                 const std::string& source) {
    ObservedCase request;
    request.name = name;
    if (!slot.empty()) request.facts["slot"] = slot;
    if (!source.empty()) request.facts["source"] = source;
    if (!append_row_within_limit(observed_.cases, std::move(request), observed_))
      return std::nullopt;
    return observed_.cases.size() - 1;
  }

  Observed& observed_;
  std::map<std::string, std::size_t, std::less<>> open_;  // requests by source, lines still to come
};

void read_complaint(std::string_view line, Observed& observed) {
  const auto has = [&](std::string_view text) { return line.find(text) != line.npos; };
  if (!has("failed to ") && !has("error:") && !has("error loading")) return;
  if (observed.errors.size() < 100) observed.errors.push_back(display_text(line, 400));
  LineScanner scan(line);
  const auto place = scan.read_until("'") ? scan.read_until("'") : std::nullopt;
  if (place) add_place(observed, display_text(*place));
}

}  // namespace

// Returns how likely the text has timings, 0 to 100. Bare timings are less certain than a prefix.
int recognises(const Printed& printed) {
  const auto& lines = printed.lines();
  if (printed.holds(k_json)) return 80;
  for (const std::string_view line : lines) {
    const bool has_prefix = line.find(k_slot) != line.npos ||
                            std::ranges::any_of(k_prefixes, [&](std::string_view prefix) {
                              return line.find(prefix) != line.npos;
                            });
    if (has_prefix) return 60;
    double prompt = 0, generated = 0;
    if (parse_turn(line, prompt, generated)) return 60;
    const auto timing = find_bare_timing(line);
    if (!timing) continue;
    const auto parsed = parse_timing(timing->scan);
    if (parsed && parsed->count) return 50;
  }
  return 0;
}

// Reads figures of a program's end, timings of a server's requests, perplexity, and complaints:
//
//   llama_perf_context_print:        eval time =  1280.12 ms /   31 runs   (   41.29 ms per token,
//   …) slot print_timing: id  0 | task 3 |        eval time =  1280.12 ms /    32 tokens (…)
void read(const Printed& printed, Observed& observed) {
  Requests requests(observed);
  for (const std::string_view line : printed.lines()) {
    const std::string_view* prefix = nullptr;
    std::size_t at = line.npos;
    for (const std::string_view& candidate : k_prefixes) {
      at = line.find(candidate);
      if (at == line.npos) continue;
      prefix = &candidate;
      break;
    }
    const bool may_be_cut = printed.may_be_cut(line);
    if (prefix != nullptr) {
      LineScanner scan(line.substr(at + prefix->size()));
      if (const auto title = scan.read_until("=")) read_figure(*title, scan, nullptr, observed);
    } else if (!requests.read_line(line, may_be_cut)) {
      if (!may_be_cut && read_perplexity(LineScanner(line), observed)) continue;
      read_complaint(line, observed);
      // Printed when the context is created: "graph (pp bs=9, tg bs=1): nodes = 167 / 167, splits
      // = 9 / 1, …".
      const std::size_t graph = line.find("graph (pp bs=");
      if (graph != line.npos) observed.context.facts["graph"] = display_text(line.substr(graph));
    }
  }
  requests.finish();
}

}  // namespace weir::adapters::llama_perf

const weir::adapters::Format weir::adapters::k_llama_perf(
    "llama-perf", "timings llama.cpp's programs and its server print at their end", "llama.cpp",
    llama_perf::read,
    {{80,
      {"^llama_perf_context_print:", "^llama_print_timings:", "^common_perf_print:",
       "^slot print_timing:", "^Final estimate: PPL ="}},
     {30, {"^llama_completion: error:", "^llama_model_load: error", "^llama_bench: error:"}}},
    {"llama-perf", 3}, llama_perf::recognises);

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

// Adds a reply. One without its figures is counted as not read.
void add_reply(const Request& reply, Observed& observed) {
  if (!reply.generated || !reply.generate_time) {
    add_unread_part(observed, "replies", "predicted_n or predicted_ms is missing");
  } else if (reply.generated == 0) {
    add_unread_part(observed, "replies", "no token was generated");
  } else {
    add_read_parts(observed, "replies");
  }
  add_request(reply, k_untimed, observed);
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
    if (last_) add_reply(*last_, observed_);
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

// Reads replies of llama-server, whole or as a stream of events ("data: {…}"), with their
// "timings".
void read(const Printed& printed, Observed& observed) {
  Stream stream(observed);
  for (const std::string_view line : printed.out()) {
    LineScanner data(line);
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
    if (const auto reply = parse_reply(json)) {
      add_reply(*reply, observed);
    } else if (json.is_object() && (json.contains("choices") || json.contains("content"))) {
      add_unread_part(observed, "replies", "it has no timings");
    }
    if (json.is_object()) read_names(json, observed);
  };
  read_documents(printed, take_reply, observed);
  copy_tokens_of_only_case(observed);
}

}  // namespace weir::adapters::llama_server

const weir::adapters::Format weir::adapters::k_llama_server(
    "llama-server", "replies of llama-server, with timings", "llama.cpp", llama_server::read,
    {{85, {"\"timings\" & \"predicted_n\""}}});

// Agave: its banner, statistics line, profile table, counters, --json, --model-info and
// agave-bench. Also the per-token lines and the counters block of its documentation, which no known
// version prints, as files in this form may be offered all the same.
//
// Agave's rate counts the first token, which comes from the prefill and not from a decode step; it
// is left out here. Its times are in whole milliseconds and so coarse on small models: a warning
// says how coarse.

#include <cmath>
#include <numeric>

#include "gate/adapters/readers.hpp"

namespace weir::adapters::agave {
namespace {

constexpr std::string_view k_dot = " \xC2\xB7 ";                           // " · "
constexpr std::string_view k_times = "\xC3\x97";                           // "×"
constexpr std::string_view k_rule = "\xE2\x94\x80\xE2\x94\x80 Profile (";  // "── Profile ("

std::vector<std::string_view> split_parts(std::string_view line) {
  std::vector<std::string_view> parts;
  LineScanner scan(line);
  while (const auto part = scan.read_until(k_dot)) parts.push_back(*part);
  parts.push_back(scan.rest());
  return parts;
}

// Reads the banner: "agave NAME · Gemma 3 · Q8_0 · 2.4MB · CPU[ · 4L/256E/…]".
bool read_banner(std::string_view line, Observed& observed) {
  if (!line.starts_with("agave ")) return false;
  const auto parts = split_parts(line.substr(6));
  if (parts.size() < 5) return false;
  auto& context = observed.context;
  context.model = display_text(parts[0]);
  context.facts["arch"] = display_text(parts[1]);
  context.facts["quant"] = display_text(parts[2]);
  context.facts["size"] = display_text(parts[3]);
  context.backend = display_text(parts[4]);
  if (parts.size() > 5) context.facts["dimensions"] = display_text(parts[5]);
  return true;
}

// "system: Linux 6.18 (x86_64) · Vulkan · llvmpipe (LLVM 15.0.6, 256 bits) · 2.0GB VRAM · …"
bool read_system(std::string_view line, Observed& observed) {
  if (!line.starts_with("system: ")) return false;
  observed.context.facts["system"] = display_text(line.substr(8));
  const auto parts = split_parts(line.substr(8));
  if (parts.size() > 3 && parts[1] != "CPU") observed.context.device = display_text(parts[2]);
  return true;
}

void warn_of_coarse_time(double milliseconds, Observed& observed) {
  if (milliseconds >= 100) return;
  add_warning(observed, "the decode rate is of {:.0f} ms in whole ms: it may be {:.0f} % off",
              milliseconds, milliseconds > 0 ? 100 / milliseconds : 100);
}

// Adds the decode rate. `per_second` is as printed: n tokens over the time of n - 1 steps.
void add_rate(double per_second, std::optional<std::int64_t> generated, Observed& observed) {
  if (!generated || *generated < 2) return;
  const auto tokens = static_cast<double>(*generated);
  add_sample(observed.timings, "decode_tokens_per_second", per_second * (tokens - 1) / tokens);
}

// Reads the statistics line: "6 tok · 375.0 tok/s · 23ms prefill", or with "… · prefill 10 tok in
// 9ms (1111 tok/s)". Returns false for other lines.
bool read_statistics(std::string_view line, Observed& observed) {
  const auto parts = split_parts(line);
  if (parts.size() < 3) return false;
  std::int64_t generated = 0, count = 0;
  double per_second = 0, prefill_ms = 0;
  if (!LineScanner(parts[0]).read_values("{} tok", generated)) return false;
  if (!LineScanner(parts[1]).read_values("{} tok/s", per_second)) return false;
  LineScanner prefill(parts[2]);
  if (!prefill.skip_prefix("prefill")) {
    if (!prefill.read_values("{} ms prefill", prefill_ms)) return false;
  } else if (prefill.read_values("{} tok in", count)) {
    if (!prefill.read_values("{} ms (", prefill_ms)) return false;
    observed.prompt_tokens = count;
  }
  observed.generated_tokens = generated;
  if (per_second > 0) {
    add_rate(per_second, generated, observed);
    warn_of_coarse_time(std::round(1e3 * static_cast<double>(generated) / per_second), observed);
  }
  // The first token comes from the prefill.
  add_sample(observed.timings, "time_to_first_token_seconds", prefill_ms / 1e3);
  if (observed.prompt_tokens && prefill_ms > 0) {
    add_sample(observed.timings, "prefill_tokens_per_second",
               static_cast<double>(*observed.prompt_tokens) * 1e3 / prefill_ms);
  }
  for (std::size_t i = 3; i < parts.size(); ++i) {
    if (parts[i].starts_with("spec: "))
      observed.context.facts["speculative"] = display_text(parts[i].substr(6));
  }
  return true;
}

// Returns the device at the beginning of a line of counters; `scan` goes on after its colon.
// `what` is the word between device and colon.
std::string_view read_device(LineScanner& scan, std::string_view what) {
  for (const std::string_view device : {"Metal", "CUDA", "ROCm", "Vulkan", "WebGPU"}) {
    LineScanner line = scan;
    if (!line.read_until(device)) continue;
    line.skip_prefix(what);
    if (!line.skip_prefix(":")) continue;
    scan = line;
    return device;
  }
  return {};
}

void name_backend(std::string_view device, Observed& observed) {
  if (!observed.context.backend) observed.context.backend = device;
}

// Reads one token's counters: "Metal stats: 994 dispatches, 690 barriers, 1 syncs" or "CUDA: 994
// dispatches".
bool read_counters_line(std::string_view line, Observed& observed) {
  LineScanner scan(line);
  const std::string_view device = read_device(scan, "stats");
  if (device.empty()) return false;
  bool has_counts = false;
  for (const auto& [name, metric] : {std::pair{"dispatch", "dispatches_per_token"},
                                     {"barrier", "barriers_per_token"},
                                     {"sync", "syncs_per_token"}}) {
    const bool is_rounded = scan.skip_prefix("~");
    const auto value = scan.integer();
    if (!value || !scan.skip_prefix(name)) return has_counts;
    if (is_rounded) add_warning(observed, "counts with \"~\" before them are rounded");
    if (!scan.skip_prefix("es")) scan.skip_prefix("s");
    scan.skip_prefix(",");
    find_or_add_count(observed, metric).values.push_back(*value);
    name_backend(device, observed);
    has_counts = true;
  }
  return has_counts;
}

// Reads a row of the profile table: name, calls, total (ms), mean (µs), share. Agave rounds the
// time of each call down to whole microseconds, so shorter calls add up to 0.
bool read_op_row(std::string_view line, Observed& observed) {
  std::string_view name;
  std::int64_t calls = 0;
  double total = 0, mean = 0, share = 0;
  if (!LineScanner(line).read_values("{} {} {} {} {} %", name, calls, total, mean, share))
    return false;
  // emb_lookup runs once per profiled token, or twice in models with per-layer embeddings. A prompt
  // that is read token by token is in the table; one that is read in one pass is not.
  if (auto& passes = observed.profiled_tokens; name == "emb_lookup" && calls > 0 && passes) {
    passes = calls > *passes + 1 && calls % 2 == 0 ? calls / 2 : calls;
  }
  ObservedOp op;
  op.op = display_text(name);
  op.phase = Phase::decode;
  op.calls = calls;
  op.includes_other_rows = op.op == "total_layer";
  // The total is printed in steps of 100 us, the mean in steps of 1 us. For few calls the mean is
  // more precise.
  const double by_mean = mean / 1e6 * static_cast<double>(calls);
  op.seconds = calls < 100 && mean > 0 ? by_mean : total / 1e3;
  append_valid_op(std::move(op), observed);
  return true;
}

// Reads a row of the profile table, an op with its times. Returns false for a heading or a rule.
bool read_table_row(std::string_view line, Observed& observed) {
  if (read_op_row(line, observed)) {
    add_read_parts(observed, "rows of the profile");
    return true;
  }
  const std::string_view row = text::trim(line);
  const bool has_share = row.size() > 1 && row.ends_with('%') && row[row.size() - 2] != ' ';
  if (!has_share) return false;
  add_unread_part(observed, "rows of the profile",
                  fmt::format("\"{}\" is another form", display_text(line, 60)));
  return true;
}

// Reads a line of the profile table, from its heading to TOTAL. `open` is true while the table goes
// on. Returns false for other lines.
bool read_table(std::string_view line, bool& open, Observed& observed) {
  LineScanner scan(line);
  if (scan.read_until(k_rule)) {  // "6 tokens, 5.6ms avg) ──"
    std::int64_t tokens = 0;
    if (!scan.read_values("{} tokens,", tokens)) return false;
    // Decode steps; the first token comes from the prompt.
    if (tokens > 0) observed.profiled_tokens = tokens - 1;
    open = true;
    return true;
  }
  if (!open) return false;
  if (!scan.skip_prefix("TOTAL")) return read_table_row(line, observed);
  open = !scan.number().has_value();
  return true;
}

// Parses "Token 15: "world" (151ms)". The token's text may hold quotes, so it ends at the last one.
std::optional<ObservedStep> parse_token(std::string_view line) {
  LineScanner scan(line);
  std::int64_t number = 0;
  double ms = 0;
  if (!scan.read_values("Token {} : \"", number) || !scan.read_until_last("\" ("))
    return std::nullopt;
  if (!scan.read_values("{} ms)", ms) || ms < 0) return std::nullopt;
  return ObservedStep{fmt::format("token {}", number), Phase::decode, 1, ms / 1e3};
}

// Parses "Token time: 71ms (14.1 tok/s)" and returns seconds. From 100 ms on the time is the more
// precise number, below that the rate.
std::optional<double> parse_token_time(std::string_view line) {
  LineScanner scan(line);
  double ms = 0, rate = 0;
  if (!scan.skip_prefix("Token time:") || !scan.read_values("{} ms ({} tok/s)", ms, rate))
    return std::nullopt;
  if (ms >= 100) return ms / 1e3;
  return ms >= 0 && rate > 0 && std::isfinite(1 / rate) ? std::optional(1 / rate) : std::nullopt;
}

// Reads lines "Token 15: "world" (151ms)" with their parts below, and the counters.
class TokenReader {
 public:
  explicit TokenReader(Observed& observed) : observed_(observed) {}

  // Reads a line of a token or of the counters; returns false for other lines.
  bool read_line(std::string_view line) {
    last_was_counter_ = false;
    if (read_token(line) || read_counter(line)) return true;
    if (const auto seconds = parse_token_time(line)) {
      times_.push_back(*seconds);
      return true;
    }
    if (line.starts_with("  ") && in_token_) return read_part(line);
    in_token_ = false;
    return false;
  }

  // Ends reading. If the last line may be cut, a count at the very end is dropped.
  void finish(bool may_end_in_cut_line) {
    add_times();
    if (!may_end_in_cut_line || !last_was_counter_) return;
    auto& counts = observed_.counts;
    counts.back().values.pop_back();
    if (counts.back().values.empty()) counts.pop_back();
    mark_truncated(observed_);
  }

 private:
  // Adds one rate over all lines "Token time:". They become steps if the text has no other steps
  // and no table of ops, which counts its tokens by itself.
  void add_times() {
    if (times_.empty()) return;
    const double seconds = std::accumulate(times_.begin(), times_.end(), 0.0);
    add_sample(observed_.timings, "decode_tokens_per_second",
               static_cast<double>(times_.size()) / seconds);
    if (!observed_.steps.empty() || !observed_.ops.empty()) return;
    for (std::size_t i = 0; i < times_.size(); ++i) {
      append_row_within_limit(observed_.steps,
                              {fmt::format("token {}", i + 1), Phase::decode, 1, times_[i]},
                              observed_);
    }
  }

  bool read_token(std::string_view line) {
    auto token = parse_token(line);
    if (!token) return false;
    in_counters_ = false;
    in_token_ = append_row_within_limit(observed_.steps, std::move(*token), observed_);
    return true;
  }

  bool read_counter(std::string_view line) {
    LineScanner scan(line);
    if (const auto device = read_device(scan, "counters"); !device.empty() && scan.done()) {
      name_backend(device, observed_);
      in_counters_ = true;
      in_token_ = false;
      return true;
    }
    if (!in_counters_) return false;
    for (const auto& [name, metric] : {std::pair{"Dispatches:", "dispatches_per_token"},
                                       {"Barriers:", "barriers_per_token"},
                                       {"Syncs:", "syncs_per_token"}}) {
      if (!scan.skip_prefix(name)) continue;
      scan.skip_prefix("~");
      const auto value = scan.integer();
      if (!value) return false;
      find_or_add_count(observed_, metric).values.push_back(*value);
      last_was_counter_ = true;
      return true;
    }
    in_counters_ = false;
    return false;
  }

  // "  lm_head_gemv: 12.1ms", "  layer 0: 8.1ms (rmsNorm: 0.3ms, gemv×3: 6.2ms, ...)", "  ..."
  bool read_part(std::string_view line) {
    LineScanner scan(line);
    const auto name = scan.read_until(": ");
    double ms = 0;
    if (!name || !scan.read_values("{} ms", ms) || ms < 0) {
      return scan.skip_prefix("...") || scan.skip_prefix("\xE2\x80\xA6");  // "…"
    }
    std::int64_t layer = 0;
    if (LineScanner(*name).read_values("layer {}", layer)) {
      const std::string_view rest = scan.rest();
      add_layer(layer, ms / 1e3, rest.starts_with('(') ? rest.substr(1) : "");
    } else {
      add(*name, ms / 1e3, 1, std::nullopt, /*includes_other_rows=*/false);
    }
    return true;
  }

  // Adds a layer's time, and the parts in `list`, which may be incomplete or empty. The rest of the
  // layer's time becomes a row of its own, so that the rows add up to the layer.
  void add_layer(std::int64_t layer, double seconds, std::string_view list) {
    double listed = 0;
    while (!list.empty()) {
      const std::size_t end = std::min(list.find(", "), list.size());
      LineScanner scan(list.substr(0, end));
      list.remove_prefix(std::min(end + 2, list.size()));
      const auto name = scan.read_until(": ");
      double ms = 0;
      if (!name || !scan.read_values("{} ms", ms) || ms < 0) continue;
      LineScanner calls(*name);
      const auto part = calls.read_until(k_times);
      const std::int64_t count = part ? calls.integer().value_or(1) : 1;
      add(part.value_or(*name), ms / 1e3, count, layer, /*includes_other_rows=*/false);
      listed += ms / 1e3;
    }
    add("layer", seconds, 1, layer, /*includes_other_rows=*/true);
    // Smaller differences come from rounding to one decimal.
    if (const double rest = seconds - listed; rest > 0.00005) {
      add(observed::k_not_listed, rest, {}, layer, /*includes_other_rows=*/false);
    }
  }

  void add(std::string_view name, double seconds, std::optional<std::int64_t> calls,
           std::optional<std::int64_t> layer, bool includes_other_rows) {
    ObservedOp op;
    op.op = display_text(name);
    op.layer = layer;
    op.phase = Phase::decode;
    op.step = observed_.steps.size() - 1;
    op.calls = calls;
    op.seconds = seconds;
    op.includes_other_rows = includes_other_rows;
    append_valid_op(std::move(op), observed_);
  }

  Observed& observed_;
  std::vector<double> times_;  // lines "Token time:", in seconds
  bool in_token_ = false, in_counters_ = false;
  bool last_was_counter_ = false;
};

// Returns 0 if there is no number: such a sample is left out.
double number_or_zero(const Json& json, const char* key) {
  return json_number(json, key).value_or(0);
}

void read_names(const Json& json, const char* model, Observed& observed) {
  auto& context = observed.context;
  context.model = json_text(json, model);
  context.backend = json_text(json, "backend");
  context.engine_build = json_text(json, "version");
}

// Reads the result of one generation from JSON: model, tokens, rates and times.
void read_result(const Json& json, Observed& observed) {
  read_names(json, "model", observed);
  for (const char* key : {"arch", "quant"}) {
    if (const auto value = json_text(json, key)) observed.context.facts[key] = *value;
  }
  observed.generated_tokens = json_integer(json, "tokens");
  observed.prompt_tokens = json_integer(json, "prefill_tokens");
  if (observed.generated_tokens.value_or(0) == 0)
    add_unread_part(observed, "results", "it has no tokens, or generated 0");
  add_rate(number_or_zero(json, "tok_per_sec"), observed.generated_tokens, observed);
  add_sample(observed.timings, "prefill_tokens_per_second",
             number_or_zero(json, "prefill_tok_per_sec"));
  add_sample(observed.timings, "time_to_first_token_seconds",
             number_or_zero(json, "prefill_ms") / 1e3);
  if (const auto ms = json_number(json, "gen_ms")) warn_of_coarse_time(*ms, observed);
}

// Reads a kernel of agave-bench: the median time of one call, and the number of calls.
void read_kernel(const Json& json, Observed& observed) {
  ObservedCase kernel;
  kernel.name = json_text(json, "kernel").value_or("kernel");
  for (const char* key : {"gb_s", "gflop_s", "iters"}) {
    if (const auto value = json_number(json, key)) kernel.facts[key] = fmt::format("{}", *value);
  }
  if (number_or_zero(json, "ns_median") <= 0)
    return add_unread_part(observed, "kernels", kernel.name + ": ns_median is 0 or no number");
  add_read_parts(observed, "kernels");
  add_sample(kernel.timings, "kernel_seconds", number_or_zero(json, "ns_median") / 1e9);
  observed.context.backend = json_text(json, "backend");
  append_row_within_limit(observed.cases, std::move(kernel), observed);
}

void read_json(const Json& json, Observed& observed) {
  if (json.contains("kernel") && json.contains("ns_median")) {
    read_kernel(json, observed);
  } else if (json.contains("tok_per_sec")) {
    read_result(json, observed);
  } else if (json.contains("n_params") && json.contains("embed")) {
    read_names(json, "name", observed);
    add_facts(json, observed.context.facts);
    add_sample(observed.timings, "load_seconds", number_or_zero(json, "load_ms") / 1e3);
  }
}

// Reads a line with an error or a warning of Agave: "Error: failed to open 'PATH': error.NAME",
// "thread 7 panic: TEXT" or "warning: TEXT". Returns false for other lines.
bool read_complaint(std::string_view line, Observed& observed) {
  const bool is_panic =
      line.starts_with("thread ") && line.find(" panic: ") != std::string_view::npos;
  if (line.starts_with("Error: ") || is_panic) {
    observed.errors.push_back(display_text(line, 400));
    LineScanner scan(line);
    const auto place = scan.read_until("open '") ? scan.read_until_last("'") : std::nullopt;
    if (place) add_place(observed, display_text(*place));
    return true;
  }
  LineScanner scan(line);
  // "warning: Metal stats: 994 dispatches, …" is a line of counters.
  if (!scan.skip_prefix("warning: ") || line.find("Metal stats") != line.npos) return false;
  add_warning(observed, display_text(scan.rest()));
  return true;
}

}  // namespace

// Returns 70 if a line has the form of this engine's, else 0. Its words are searched for first, as
// that is cheap.
int recognises(const Printed& printed) {
  const auto is_ours = [](std::string_view line) {
    Observed counted;
    LineScanner scan(line);
    const bool is_heading = !read_device(scan, "counters").empty() && scan.done();
    if (is_heading || parse_token(line) || parse_token_time(line)) return true;
    // Any engine may print "Metal: 640 dispatches".
    return read_counters_line(line, counted) &&
           (counted.counts.size() > 1 || line.find("stats:") != line.npos);
  };
  const bool is_likely =
      printed.begins("Token ") || printed.holds(" dispatches") || printed.holds(" counters:");
  return is_likely && std::ranges::any_of(printed.lines(), is_ours) ? 70 : 0;
}

// Reads each line by the first reader that knows it, then the JSON that the text holds.
void read(const Printed& printed, Observed& observed) {
  bool in_table = false;
  TokenReader tokens(observed);
  for (const std::string_view line : printed.lines()) {
    // The first of them that knows the line takes it.
    std::ignore = read_table(line, in_table, observed) || tokens.read_line(line) ||
                  read_statistics(line, observed) || read_banner(line, observed) ||
                  read_system(line, observed) || read_counters_line(line, observed) ||
                  read_complaint(line, observed);
  }
  tokens.finish(printed.lacks_final_newline());
  if (in_table) mark_truncated(observed);  // no line ended the table
  // JSON objects lie among the lines, not in lists, so nothing is done with elements of lists.
  if (!printed.document().out.empty() && printed.holds("{\"")) {
    read_pieces(printed, /*lists=*/{},
                {.element = [](std::string_view, const Json&) {},
                 .members = [&](const Json& json) { read_json(json, observed); }},
                observed);
  }
  // The backend may be named before the rows, after the first of them, or in the JSON at the end.
  for (ObservedOp& op : observed.ops) op.backend = observed.context.backend.value_or("");
}

}  // namespace weir::adapters::agave

const weir::adapters::Format weir::adapters::k_agave(
    "agave", "Agave's statistics, profile table, counters, --json and agave-bench", "agave",
    agave::read,
    {{90, {"\xE2\x94\x80\xE2\x94\x80 Profile (", "^agave "}},
     {85, {"\"tok_per_sec\"", "\"ns_median\"", "\"kv_heads\" & \"file_size_human\""}},
     {80, {" tok/s\xC2\xB7", " tok/s \xC2\xB7 "}},
     {40,
      {"^Error: failed to open ' & ': error.", "^Valid options: auto, cpu, metal",
       "^Valid kernels: gemv_f32"}}},
    {"agave", 4, Counts::on_request}, agave::recognises);

// The timings llama.cpp's programs print when they end (llama_perf_context_print, before
// llama_print_timings, common_perf_print) and its server for each request (slot print_timing).
//
// The first token is made by the prompt's evaluation. Programs count decode calls ("runs"), which
// are one fewer than the tokens; the server counts the tokens, and its time is that of all but the
// first. Rates are made from the times, with that one rule for both.
#include <algorithm>

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
  const auto ms = scan.number();
  if (!ms || *ms < 0 || !scan.take("ms")) return std::nullopt;
  timing.milliseconds = *ms;
  if (!scan.take("/")) return timing;
  const auto count = scan.whole();
  timing.runs = count && scan.take("runs");
  if (timing.runs || (count && scan.take("tokens"))) timing.count = count;
  return timing;
}

// One program's or one request's figures.
class Figures {
 public:
  explicit Figures(observed::Observed& observed) : observed_(observed) {}

  void take(std::string_view what, const Scan& scan, observed::ObservedCase* request) {
    const auto timing = timing_in(scan);
    if (what == "graphs reused") {
      Scan reused = scan;
      if (const auto count = reused.whole()) {
        auto& facts = request ? request->facts : observed_.context.facts;
        facts["graphs reused"] = fmt::format("{}", *count);
      }
      return;
    }
    if (!timing) return;
    if (what == "load time") {
      add_sample(observed_.timings, "load_seconds", timing->milliseconds / 1e3);
    } else if (what == "prompt eval time" && timing->count) {
      prompt(*timing, request);
    } else if (what == "eval time" && timing->count) {
      decode(*timing, request);
    } else if (what != "total time") {
      observed_.context.facts[shown_text(what)] = fmt::format("{} ms", timing->milliseconds);
    }
  }

 private:
  void prompt(const Timing& timing, observed::ObservedCase* request) {
    (request ? request->prompt_tokens : observed_.prompt_tokens) = timing.count;
    rate("prefill_tokens_per_second", *timing.count, timing.milliseconds, request);
  }
  void decode(const Timing& timing, observed::ObservedCase* request) {
    const std::int64_t calls = timing.runs ? *timing.count : *timing.count - 1;
    (request ? request->generated_tokens : observed_.generated_tokens) =
        timing.runs ? *timing.count + 1 : *timing.count;
    rate("decode_tokens_per_second", calls, timing.milliseconds, request);
  }
  void rate(const char* metric, std::int64_t tokens, double ms, observed::ObservedCase* request) {
    if (tokens <= 0 || ms <= 0) return;
    const double a_second = static_cast<double>(tokens) * 1e3 / ms;
    add_sample(observed_.timings, metric, a_second);
    if (request) add_sample(request->timings, metric, a_second);
  }
  observed::Observed& observed_;
};

constexpr std::string_view k_prefixes[] = {
    "llama_perf_context_print:", "llama_print_timings:", "common_perf_print:"};

// "slot print_timing: id  3 | task 0 | prompt eval time = …"
observed::ObservedCase* request_of(Scan& scan, observed::Observed& observed) {
  const auto slot = scan.until(" | ");
  const auto task = slot ? scan.until(" | ") : std::nullopt;
  if (!task || !task->starts_with("task ")) return nullptr;
  const std::string name = shown_text(*task, 60);
  if (observed.cases.empty() || observed.cases.back().name != name) {
    observed::ObservedCase request;
    request.name = name;
    request.facts["slot"] = shown_text(*slot, 60);
    if (!keep_row(observed.cases, std::move(request), observed)) return nullptr;
  }
  return &observed.cases.back();
}

void read_complaint(std::string_view line, observed::Observed& observed) {
  const std::size_t at = line.find("failed to ");
  const bool error = line.find("error:") != std::string_view::npos ||
                     line.find("error loading") != std::string_view::npos;
  if (at == std::string_view::npos && !error) return;
  if (observed.errors.size() < 100) observed.errors.push_back(shown_text(line, 400));
  const std::size_t open = line.find('\'');
  const std::size_t close = line.find('\'', open + 1);
  if (open == std::string_view::npos || close == std::string_view::npos) return;
  auto& places = observed.context.places;
  std::string place = shown_text(line.substr(open + 1, close - open - 1));
  const bool known = std::find(places.begin(), places.end(), place) != places.end();
  if (!place.empty() && !known && places.size() < 100) places.push_back(std::move(place));
}

// "graph (pp bs=9, tg bs=1): nodes = 167 / 167, splits = 9 / 1, …" of the context's creation.
void read_graph(std::string_view line, observed::Observed& observed) {
  const std::size_t at = line.find("graph (pp bs=");
  if (at != std::string_view::npos) observed.context.facts["graph"] = shown_text(line.substr(at));
}

}  // namespace

int recognises(const Printed& printed) {
  for (const std::string_view prefix : k_prefixes) {
    if (printed.begins(prefix)) return 80;
  }
  if (printed.begins("slot print_timing:")) return 80;
  return printed.begins("llama_completion: error:") || printed.begins("llama_model_load: error") ||
                 printed.begins("llama_bench: error:")
             ? 30
             : 0;
}

Result<observed::Observed> read(const Printed& printed) {
  observed::Observed observed;
  Figures figures(observed);
  for (const std::string_view line : printed.lines()) {
    Scan scan(line);
    observed::ObservedCase* request = nullptr;
    bool ours = std::any_of(std::begin(k_prefixes), std::end(k_prefixes),
                            [&](std::string_view prefix) { return scan.take(prefix); });
    if (!ours && scan.take("slot print_timing:")) {
      request = request_of(scan, observed);
      ours = request != nullptr;
    }
    if (!ours) {
      read_complaint(line, observed);
      read_graph(line, observed);
      continue;
    }
    if (const auto what = scan.until("=")) figures.take(*what, scan, request);
  }
  if (observed::empty(observed)) return nothing_found("llama-perf");
  observed.context.engine = "llama.cpp";
  return observed;
}

}  // namespace weir::adapters::llama_perf

// Prometheus' text format and OpenMetrics, as servers give it on /metrics. Names that weir knows
// become its metrics; everything is kept as a counter under its own name.
//
// Counters count since the server began: rates over them are means of its whole life.

#include "gate/adapters/readers.hpp"
#include "gate/adapters/server_metrics.hpp"

namespace weir::adapters::prometheus {
namespace {

// Returns true if a label's value names the server or the path of its model. Numbers and model
// names that are no paths do not. Values are as written, with each backslash doubled.
bool is_place(std::string_view label, std::string_view value) {
  const std::string name = text::lower(label);
  for (const char* part : {"instance", "host", "node", "pod", "user"}) {
    if (name.find(part) != name.npos) return !value.empty() && !text::to_double(value);
  }
  return name.find("model") != name.npos &&
         (value.find('/') != value.npos || value.find("\\\\") != value.npos);
}

// A histogram's buckets by their upper edge, all its label sets together.
struct Histogram {
  std::map<double, double> buckets;
  std::optional<double> sum, count;
};

// base name -> weir's metric
constexpr std::pair<std::string_view, std::string_view> k_histograms[] = {
    {"vllm:time_to_first_token_seconds", "time_to_first_token_seconds"},
    {"vllm:time_per_output_token_seconds", "time_per_output_token_seconds"},
    {"vllm:inter_token_latency_seconds", "inter_token_latency_seconds"},
    {"vllm:e2e_request_latency_seconds", "end_to_end_latency_seconds"},
    {"agave_ttft_seconds", "time_to_first_token_seconds"},
    {"agave_request_duration_seconds", "end_to_end_latency_seconds"}};

class Reader {
 public:
  explicit Reader(Observed& observed) : observed_(observed) {}

  void add(const PrometheusSample& sample) {
    if (add_to_histogram(sample) || !std::isfinite(sample.value)) return;
    totals_[sample.name] += sample.value;
    add_counter(sample);
  }
  void kind(std::string_view name, std::string_view kind) {
    if (kinds_.size() < k_max_rows) kinds_[display_text(name)] = display_text(kind, 20);
  }

  void finish() {
    for (auto& counter : observed_.counters) {
      counter.kind = look_up(kinds_, counter.name.substr(0, counter.name.find('{')), counter.kind);
    }
    for (const auto& [base, metric] : k_histograms) {
      if (const auto* histogram = look_up(histograms_, base)) add_latencies(*histogram, metric);
    }
    add_rates();
  }

 private:
  void add_counter(const PrometheusSample& sample) {
    const std::string name =
        sample.labels.empty() ? sample.name : fmt::format("{}{{{}}}", sample.name, sample.labels);
    const auto [at, fresh] = rows_.try_emplace(name, observed_.counters.size());
    if (fresh && !append_row_within_limit(observed_.counters, {name, "", "", {}}, observed_)) {
      rows_.erase(at);
      return;
    }
    if (fresh) add_places(sample.labels);
    observed_.counters[at->second].points.push_back({sample.at, sample.value});
  }

  // Adds the places among the labels, which are as written: `le="0.5",model="m"`.
  void add_places(std::string_view labels) {
    for (;;) {
      const std::size_t equals = labels.find("=\"");
      if (equals == labels.npos) return;
      const std::size_t end = skip_prometheus_quoted(labels, equals + 1);
      const std::string_view label = labels.substr(0, equals);
      const std::size_t last = std::min(end, labels.size() + 1) - 1;
      const std::string value(labels.substr(equals + 2, last - equals - 2));
      if (is_place(label, value)) {
        add_place(observed_, value);
        // "box:8080" is the host "box" too.
        const std::size_t colon = value.rfind(':');
        if (colon != value.npos && value.find_first_of("/\\") == value.npos) {
          add_place(observed_, value.substr(0, colon));
        }
      }
      if (end >= labels.size()) return;
      labels.remove_prefix(end);
    }
  }

  // Adds a sample to a histogram that weir uses. Returns false for other samples.
  bool add_to_histogram(const PrometheusSample& sample) {
    for (const auto& [base, metric] : k_histograms) {
      if (!sample.name.starts_with(base)) continue;
      const std::string_view rest = std::string_view(sample.name).substr(base.size());
      Histogram& histogram = histograms_[std::string(base)];
      if (rest == "_bucket") {
        LineScanner labels(sample.labels);
        const auto text = labels.read_until("le=\"") ? labels.read_until("\"") : std::nullopt;
        const auto edge = parse_prometheus_value(text.value_or(""));
        if (edge && !std::isnan(*edge) && std::isfinite(sample.value) &&
            histogram.buckets.size() < 1000) {
          histogram.buckets[*edge] += sample.value;
        }
      } else if (rest == "_sum" && std::isfinite(sample.value)) {
        histogram.sum = histogram.sum.value_or(0) + sample.value;
      } else if (rest == "_count" && std::isfinite(sample.value)) {
        histogram.count = histogram.count.value_or(0) + sample.value;
      } else {
        continue;
      }
      return true;
    }
    return false;
  }

  // Adds the mean and the percentiles of a histogram. The mean is exact; a percentile lies in a
  // bucket, and is at most the bucket's edge.
  void add_latencies(const Histogram& histogram, std::string_view name) {
    const unit::Metric metric = find_time_metric(name);
    const double count = histogram.count.value_or(0);
    if (count <= 0) return;
    if (histogram.sum && *histogram.sum >= 0) {
      observed_.latencies.push_back({metric, "mean", std::nullopt, *histogram.sum / count});
    }
    for (const double percentile : {50.0, 90.0, 99.0}) {
      for (const auto& [edge, below] : histogram.buckets) {
        if (below < count * percentile / 100) continue;
        if (std::isfinite(edge) && edge >= 0) {
          observed_.latencies.push_back({metric, "percentile", percentile, edge, true});
        }
        break;
      }
    }
  }

  // Adds the rates and tokens that servers have counted since they started.
  void add_rates() {
    const double* prompts = look_up(totals_, "llamacpp:prompt_tokens_total");
    const double* seconds = look_up(totals_, "llamacpp:prompt_seconds_total");
    if (prompts != nullptr && seconds != nullptr && *seconds > 0) {
      add_sample(observed_.timings, "prefill_tokens_per_second", *prompts / *seconds);
    }
    // This gauge leaves out the first token of each request, whose time belongs to the prompt.
    if (const double* gauge = look_up(totals_, "llamacpp:predicted_tokens_seconds")) {
      add_sample(observed_.timings, "decode_tokens_per_second", *gauge);
    }
    for (const auto& [prefix, engine] :
         {std::pair{"llamacpp:", "llama.cpp"}, {"vllm:", "vllm"}, {"agave_", "agave"}}) {
      const auto take = [&, before = prefix](std::optional<std::int64_t>& into,
                                             std::initializer_list<const char*> names) {
        for (const char* name : names) {
          const double* value = look_up(totals_, fmt::format("{}{}", before, name));
          if (value == nullptr || *value < 0 || *value > 9e15) continue;
          into = static_cast<std::int64_t>(*value);
          return true;
        }
        return false;
      };
      const bool prompt =
          take(observed_.prompt_tokens, {"prompt_tokens_total", "prefill_tokens_total"});
      const bool generated =
          take(observed_.generated_tokens,
               {"tokens_predicted_total", "generation_tokens_total", "tokens_generated_total"});
      take(observed_.cached_tokens, {"prompt_tokens_cached_total"});
      if (prompt || generated) observed_.context.engine = engine;
    }
  }

  Observed& observed_;
  std::map<std::string, double, std::less<>> totals_;
  std::map<std::string, std::string, std::less<>> kinds_;
  std::map<std::string, Histogram, std::less<>> histograms_;
  std::map<std::string, std::size_t> rows_;
};

}  // namespace

int recognises(const Printed& printed) {
  const auto types = std::ranges::count_if(printed.out(), [](std::string_view line) {
    return line.starts_with("# TYPE ") || line.starts_with("# HELP ");
  });
  if (types > 1) return 80;
  return types == 1 ? 50 : 0;
}

// Reads samples and the types of their metrics:
//
//   # TYPE vllm:generation_tokens counter
//   vllm:generation_tokens_total{model_name="llama"} 1024.0
void read(const Printed& printed, Observed& observed) {
  Reader reading(observed);
  for (const std::string_view line : printed.out()) {
    if (printed.may_be_cut(line) && !line.starts_with("# EOF")) {
      mark_truncated(observed);  // its number may go on
      break;
    }
    LineScanner scan(line);
    std::string_view name, kind;
    if (scan.skip_prefix("# TYPE")) {
      if (scan.read_values("{} {}", name, kind)) reading.kind(name, kind);
    } else if (!line.starts_with('#')) {
      const auto sample = parse_prometheus_sample(line);
      if (sample) {
        reading.add(*sample);
        add_read_parts(observed, "lines");
      } else if (!text::trim(line).empty()) {
        add_unread_part(observed, "lines", "a line is no sample");
      }
    }
  }
  reading.finish();
  if (observed.timings.empty() && observed.latencies.empty() && !observed.prompt_tokens &&
      !observed.generated_tokens && !observed.counters.empty()) {
    add_warning(observed,
                "none of its {} is a rate or a latency that weir knows (of llama-server, vLLM or "
                "Agave), so nothing is compared: weir profile --json lists them",
                text::plural(observed.counters.size(), "counter"));
  }
}

}  // namespace weir::adapters::prometheus

const weir::adapters::Format weir::adapters::k_prometheus(
    "prometheus", "Prometheus text: /metrics of llama-server, vLLM, Agave, …", "", prometheus::read,
    {}, {}, prometheus::recognises);

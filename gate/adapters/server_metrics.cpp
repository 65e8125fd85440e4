// Reads a server's metrics, and compares those before and after a load.
#include "gate/adapters/server_metrics.hpp"

#include <cmath>
#include <limits>

#include "gate/adapters/printed.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::adapters {
namespace {

using profile::ServerFigure;

constexpr std::size_t k_max_names = 256;
constexpr std::size_t k_longest_text = std::size_t{4} << 20;

bool is_name_char(char c, bool first) {
  return text::is_letter(c) || c == '_' || c == ':' || (!first && text::is_digit(c));
}

// Adds up the samples of a text by name.
class MetricsReader {
 public:
  void line(std::string_view line) {
    LineScanner scan(line);
    if (scan.skip_prefix("# TYPE")) {
      const auto name = scan.word(), kind = scan.word();
      if (name && kind && kinds_.size() < k_max_names) {
        kinds_[display_text(*name)] = display_text(*kind, 20);
      }
    } else if (!line.starts_with('#')) {
      if (const auto sample = parse_prometheus_sample(line)) add(*sample);
    }
  }

  ServerMetrics finish() {
    for (const auto& [name, sets] : gauge_sets_) {
      if (sets > 1) metrics_.gauges.erase(name);
    }
    for (const auto& [name, kind] : kinds_) {
      if ((kind == "histogram" || kind == "summary") && metrics_.counters.contains(name + "_sum") &&
          metrics_.counters.contains(name + "_count")) {
        metrics_.histograms.insert(name);
      }
    }
    metrics_.left_out = left_out_.size();
    return std::move(metrics_);
  }

 private:
  enum class SampleKind { counter, gauge, nothing };

  // Returns how a sample of this name is used. In OpenMetrics, the type is listed under the name
  // without "_total".
  [[nodiscard]] SampleKind sample_kind(const std::string& name) const {
    for (const std::string_view end : {"", "_total", "_sum", "_count", "_bucket", "_created"}) {
      if (!name.ends_with(end)) continue;
      const std::string kind = look_up(kinds_, name.substr(0, name.size() - end.size()), "");
      if (kind.empty()) continue;
      const bool is_distribution = kind == "histogram" || kind == "summary";
      if (end == "_created") return SampleKind::nothing;
      if (is_distribution && end != "_sum" && end != "_count") return SampleKind::nothing;
      if (is_distribution || kind == "counter") return SampleKind::counter;
      if (end.empty()) return kind == "gauge" ? SampleKind::gauge : SampleKind::nothing;
    }
    // A name without a type that ends in "_total" is a counter by convention.
    return name.ends_with("_total") ? SampleKind::counter : SampleKind::nothing;
  }

  // Adds a counter to the sum over its label sets, or keeps a gauge.
  void add(const PrometheusSample& sample) {
    const SampleKind kind = sample_kind(sample.name);
    if (kind == SampleKind::nothing || !std::isfinite(sample.value)) return;
    auto& into = kind == SampleKind::counter ? metrics_.counters : metrics_.gauges;
    if (!into.contains(sample.name) &&
        metrics_.counters.size() + metrics_.gauges.size() >= k_max_names) {
      if (left_out_.size() < k_max_names) left_out_.insert(sample.name);
      return;
    }
    if (kind == SampleKind::counter) {
      into[sample.name] += sample.value;
    } else {
      into[sample.name] = sample.value;
      ++gauge_sets_[sample.name];
    }
  }

  ServerMetrics metrics_;
  std::map<std::string, std::string> kinds_;
  std::map<std::string, int> gauge_sets_;
  std::set<std::string> left_out_;
};

}  // namespace

std::size_t skip_prometheus_quoted(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

std::optional<double> parse_prometheus_value(std::string_view text) {
  const std::string word = text::lower(text);
  if (word == "+inf" || word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  return text::to_double(text);
}

// Parses `name{label="text",…} 12.5`, with or without labels.
std::optional<PrometheusSample> parse_prometheus_sample(std::string_view line) {
  std::size_t end = 0;
  while (end < line.size() && is_name_char(line[end], end == 0)) ++end;
  if (end == 0) return std::nullopt;
  PrometheusSample sample;
  sample.name = display_text(line.substr(0, end));
  if (end < line.size() && line[end] == '{') {
    std::size_t at = end + 1;
    while (at < line.size() && line[at] != '}') {
      at = line[at] == '"' ? skip_prometheus_quoted(line, at) : at + 1;
    }
    if (at >= line.size()) return std::nullopt;
    sample.labels = display_text(line.substr(end + 1, at - end - 1), 400);
    end = at + 1;
  } else if (end >= line.size() || (line[end] != ' ' && line[end] != '\t')) {
    return std::nullopt;
  }
  LineScanner scan(line.substr(end));
  const auto word = scan.word();
  const auto value = word ? parse_prometheus_value(*word) : std::nullopt;
  if (!value) return std::nullopt;
  sample.value = *value;
  if (const auto stamp = scan.number()) sample.at = *stamp / 1e3;
  if (!scan.done() && !scan.skip_prefix("#")) return std::nullopt;  // "#": an exemplar follows
  return sample;
}

ServerMetrics read_server_metrics(std::string_view text) {
  MetricsReader reading;
  for (const std::string& line : text::lines(text.substr(0, k_longest_text))) reading.line(line);
  return reading.finish();
}

// Returns the growth of counters and histograms, and the last values of gauges.
std::vector<ServerFigure> between(const ServerMetrics& before, const ServerMetrics& after) {
  std::map<std::string, ServerFigure> figures;
  // A counter that was missing before counts from 0.
  const auto growth = [&](const std::string& name) -> std::optional<double> {
    const double* value = look_up(after.counters, name);
    if (value == nullptr) return std::nullopt;
    const double difference = *value - look_up(before.counters, name, 0);
    return difference >= 0 && std::isfinite(difference) ? std::optional(difference) : std::nullopt;
  };
  for (const auto& [name, value] : after.counters) {
    const auto difference = growth(name);
    if (difference) figures[name] = {name, ServerFigure::Kind::counter, *difference};
  }
  for (const auto& [name, value] : after.gauges) {
    figures[name] = {name, ServerFigure::Kind::gauge, value};
  }
  for (const std::string& name : after.histograms) {
    const auto sum = growth(name + "_sum"), count = growth(name + "_count");
    figures.erase(name + "_sum");
    if (sum && count && *count > 0 && std::isfinite(*sum / *count)) {
      figures[name] = {name, ServerFigure::Kind::mean, *sum / *count};
    }
  }
  return collect<ServerFigure>(figures, [](const auto& pair) { return pair.second; });
}

OwnMetrics own_metrics(const std::vector<ServerFigure>& figures, std::int64_t requests) {
  struct Share {
    const char *metric, *part, *total;  // total "": the number of requests
  };
  static constexpr Share k_shares[] = {
      {"draft_acceptance", "llamacpp:spec_decode_num_accepted_tokens_total",
       "llamacpp:spec_decode_num_draft_tokens_total"},
      {"draft_acceptance", "vllm:spec_decode_num_accepted_tokens_total",
       "vllm:spec_decode_num_draft_tokens_total"},
      {"cached_prompt_share", "vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"},
      {"cached_prompt_share", "sglang:cached_tokens_total", "sglang:prompt_tokens_total"},
      {"preemptions_per_request", "vllm:num_preemptions_total", ""},
  };
  static constexpr std::pair<const char*, const char*> k_readings[] = {
      {"server_queue_seconds", "vllm:request_queue_time_seconds"},
      {"server_queue_seconds", "tgi_request_queue_duration"},
      {"server_batch_size", "llamacpp:n_busy_slots_per_decode"},
      {"server_batch_size", "tgi_batch_next_size"},
      {"kv_cache_share", "vllm:kv_cache_usage_perc"},
      {"kv_cache_share", "vllm:gpu_cache_usage_perc"},
      {"kv_cache_share", "sglang:token_usage"},
  };
  const auto value = [&](std::string_view name) -> std::optional<double> {
    const auto* match =
        find_first(figures, [&](const ServerFigure& figure) { return figure.name == name; });
    return match == nullptr ? std::nullopt : std::optional(match->value);
  };
  const auto whole_number = [&](std::string_view name) -> std::optional<std::int64_t> {
    constexpr double k_max_count = 1e15;
    const auto number = value(name);
    if (!number || !(*number >= 0) || *number > k_max_count || std::floor(*number) != *number) {
      return std::nullopt;
    }
    return static_cast<std::int64_t>(*number);
  };
  OwnMetrics own;
  for (const Share& share : k_shares) {
    const auto part = whole_number(share.part);
    const auto total = *share.total == 0 ? std::optional(requests) : whole_number(share.total);
    if (!part || !total || *total == 0) continue;
    if (const auto rational = Rational::make(*part, *total)) own.shares[share.metric] = *rational;
  }
  for (const auto& [metric, name] : k_readings) {
    const auto reading = value(name);
    const bool has_reading = std::ranges::any_of(
        own.readings, [&](const auto& series) { return series.metric.name == metric; });
    if (reading && !has_reading) own.readings.push_back({*unit::find_metric(metric), {*reading}});
  }
  return own;
}

std::optional<double> generated_tokens_between(const std::vector<ServerFigure>& figures) {
  for (const std::string_view name :
       {"llamacpp:tokens_predicted_total", "vllm:generation_tokens_total", "vllm:generation_tokens",
        "sglang:generation_tokens_total", "agave_tokens_generated_total"}) {
    for (const ServerFigure& figure : figures) {
      if (figure.name == name && figure.kind == ServerFigure::Kind::counter) return figure.value;
    }
  }
  return std::nullopt;
}

}  // namespace weir::adapters

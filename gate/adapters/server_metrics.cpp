#include "gate/adapters/server_metrics.hpp"

#include <cmath>
#include <limits>

#include "gate/adapters/printed.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::adapters {
namespace {

using profile::ServerFigure;

constexpr std::size_t k_most_names = 256;
constexpr std::size_t k_longest_text = std::size_t{4} << 20;

bool name_char(char c, bool first) {
  return text::is_letter(c) || c == '_' || c == ':' || (!first && text::is_digit(c));
}

class MetricsReading {
 public:
  void line(std::string_view line) {
    Scan scan(line);
    if (scan.take("# TYPE")) {
      const auto name = scan.word(), kind = scan.word();
      if (name && kind && kinds_.size() < k_most_names) {
        kinds_[shown_text(*name)] = shown_text(*kind, 20);
      }
    } else if (!line.starts_with('#')) {
      if (const auto sample = prometheus_sample(line)) add(*sample);
    }
  }

  ServerMetrics finish() {
    for (const auto& [name, sets] : gauge_sets_) {
      if (sets > 1) made_.gauges.erase(name);
    }
    for (const auto& [name, kind] : kinds_) {
      if ((kind == "histogram" || kind == "summary") && made_.counters.contains(name + "_sum") &&
          made_.counters.contains(name + "_count")) {
        made_.histograms.insert(name);
      }
    }
    made_.left_out = left_out_.size();
    return std::move(made_);
  }

 private:
  enum class What { counter, gauge, nothing };

  // Of OpenMetrics the type stands under the name without "_total".
  [[nodiscard]] What what(const std::string& name) const {
    for (const std::string_view end : {"", "_total", "_sum", "_count", "_bucket", "_created"}) {
      if (!name.ends_with(end)) continue;
      const std::string kind = look_up(kinds_, name.substr(0, name.size() - end.size()), "");
      if (kind.empty()) continue;
      const bool spread = kind == "histogram" || kind == "summary";
      if (end == "_created" || (spread && end != "_sum" && end != "_count")) return What::nothing;
      if (spread || kind == "counter") return What::counter;
      if (end.empty()) return kind == "gauge" ? What::gauge : What::nothing;
    }
    // Without a word on its type, one that ends so is a counter by custom.
    return name.ends_with("_total") ? What::counter : What::nothing;
  }

  void add(const PrometheusSample& sample) {
    const What is = what(sample.name);
    if (is == What::nothing || !std::isfinite(sample.value)) return;
    auto& into = is == What::counter ? made_.counters : made_.gauges;
    if (!into.contains(sample.name) &&
        made_.counters.size() + made_.gauges.size() >= k_most_names) {
      if (left_out_.size() < k_most_names) left_out_.insert(sample.name);
      return;
    }
    if (is == What::counter) {
      into[sample.name] += sample.value;
    } else {
      into[sample.name] = sample.value;
      ++gauge_sets_[sample.name];
    }
  }

  ServerMetrics made_;
  std::map<std::string, std::string> kinds_;
  std::map<std::string, int> gauge_sets_;
  std::set<std::string> left_out_;
};

}  // namespace

std::size_t past_prometheus_quoted(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

std::optional<double> prometheus_value(std::string_view text) {
  const std::string word = text::lower(text);
  if (word == "+inf" || word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  return text::to_double(text);
}

std::optional<PrometheusSample> prometheus_sample(std::string_view line) {
  std::size_t end = 0;
  while (end < line.size() && name_char(line[end], end == 0)) ++end;
  if (end == 0) return std::nullopt;
  PrometheusSample sample;
  sample.name = shown_text(line.substr(0, end));
  if (end < line.size() && line[end] == '{') {
    std::size_t at = end + 1;
    while (at < line.size() && line[at] != '}') {
      at = line[at] == '"' ? past_prometheus_quoted(line, at) : at + 1;
    }
    if (at >= line.size()) return std::nullopt;
    sample.labels = shown_text(line.substr(end + 1, at - end - 1), 400);
    end = at + 1;
  } else if (end >= line.size() || (line[end] != ' ' && line[end] != '\t')) {
    return std::nullopt;
  }
  Scan scan(line.substr(end));
  const auto word = scan.word();
  const auto value = word ? prometheus_value(*word) : std::nullopt;
  if (!value) return std::nullopt;
  sample.value = *value;
  if (const auto stamp = scan.number()) sample.at = *stamp / 1e3;
  if (!scan.done() && !scan.take("#")) return std::nullopt;  // "#": an exemplar follows
  return sample;
}

ServerMetrics read_server_metrics(std::string_view text) {
  MetricsReading reading;
  for (const std::string& line : text::lines(text.substr(0, k_longest_text))) reading.line(line);
  return reading.finish();
}

std::vector<ServerFigure> between(const ServerMetrics& before, const ServerMetrics& after) {
  std::map<std::string, ServerFigure> figures;
  // A counter that was not there has not counted yet.
  const auto grew = [&](const std::string& name) -> std::optional<double> {
    const double* now = look_up(after.counters, name);
    if (now == nullptr) return std::nullopt;
    const double by = *now - look_up(before.counters, name, 0);
    return by >= 0 && std::isfinite(by) ? std::optional(by) : std::nullopt;
  };
  for (const auto& [name, value] : after.counters) {
    if (const auto by = grew(name)) figures[name] = {name, ServerFigure::Kind::counter, *by};
  }
  for (const auto& [name, value] : after.gauges) {
    figures[name] = {name, ServerFigure::Kind::gauge, value};
  }
  for (const std::string& name : after.histograms) {
    const auto sum = grew(name + "_sum"), count = grew(name + "_count");
    figures.erase(name + "_sum");
    if (sum && count && *count > 0 && std::isfinite(*sum / *count)) {
      figures[name] = {name, ServerFigure::Kind::mean, *sum / *count};
    }
  }
  return collect<ServerFigure>(figures, [](const auto& one) { return one.second; });
}

OwnMetrics own_metrics(const std::vector<ServerFigure>& figures, std::int64_t requests) {
  struct Share {
    const char *metric, *part, *whole;  // "": of requests
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
    const auto* found =
        first_of(figures, [&](const ServerFigure& figure) { return figure.name == name; });
    return found == nullptr ? std::nullopt : std::optional(found->value);
  };
  const auto whole_number = [&](std::string_view name) -> std::optional<std::int64_t> {
    constexpr double k_most = 1e15;
    const auto number = value(name);
    if (!number || !(*number >= 0) || *number > k_most || std::floor(*number) != *number) {
      return std::nullopt;
    }
    return static_cast<std::int64_t>(*number);
  };
  OwnMetrics own;
  for (const Share& share : k_shares) {
    const auto part = whole_number(share.part);
    const auto all = *share.whole == 0 ? std::optional(requests) : whole_number(share.whole);
    if (!part || !all || *all == 0) continue;
    if (const auto rational = Rational::make(*part, *all)) own.shares[share.metric] = *rational;
  }
  for (const auto& [metric, name] : k_readings) {
    const auto reading = value(name);
    const bool known = std::ranges::any_of(
        own.readings, [&](const auto& series) { return series.metric.name == metric; });
    if (reading && !known) own.readings.push_back({*unit::find_metric(metric), {*reading}});
  }
  return own;
}

std::optional<double> generated_between(const std::vector<ServerFigure>& figures) {
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

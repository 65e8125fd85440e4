#include "gate/adapters/prometheus_line.hpp"

#include <limits>

#include "gate/adapters/printed.hpp"
#include "gate/base/text.hpp"

namespace weir::adapters {
namespace {

bool name_char(char c, bool first) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' ||
         (!first && c >= '0' && c <= '9');
}

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

}  // namespace weir::adapters

#include "gate/adapters/readers.hpp"

#include "gate/model/tensor_type.hpp"

namespace weir::adapters {
namespace {

constexpr std::size_t k_most_warnings = 100;
constexpr std::size_t k_most_fields = 256;

// Names of metrics have no blanks and nothing that is not ASCII.
std::string name_of_metric(std::string_view text) {
  std::string name(text.substr(0, 100));
  for (char& c : name) {
    if (c <= ' ' || c >= 0x7F) c = '_';
  }
  return name.empty() ? "metric" : name;
}

}  // namespace

void add_warning(Observed& observed, std::string warning) {
  auto& warnings = observed.warnings;
  if (warnings.size() >= k_most_warnings) return;
  if (!holds(warnings, warning)) warnings.push_back(std::move(warning));
}

bool possible(const ObservedOp& op) {
  for (const auto& value : {op.seconds, op.least, op.most, op.own_seconds, op.flops, op.bytes}) {
    if (value && !(std::isfinite(*value) && *value >= 0)) return false;
  }
  return true;
}

ObservedTiming& timing_of(std::vector<ObservedTiming>& timings, const unit::Metric& metric) {
  auto* known = first_of(timings, [&](const auto& one) { return one.metric == metric; });
  return known != nullptr ? *known : timings.emplace_back(ObservedTiming{metric, {}, {}, {}});
}

void add_call(ObservedOp& row, double seconds) {
  row.calls = row.calls.value_or(0) + 1;
  row.seconds = row.seconds.value_or(0) + seconds;
  row.least = std::min(row.least.value_or(seconds), seconds);
  row.most = std::max(row.most.value_or(seconds), seconds);
}

void add_sample(std::vector<ObservedTiming>& timings, std::string_view metric, double sample) {
  if (!std::isfinite(sample) || sample <= 0) return;
  auto& samples = timing_of(timings, time_named(metric)).samples;
  if (samples.size() < k_most_rows) samples.push_back(sample);
}

void add_sample(Observed& observed, ObservedCase* part, std::string_view metric, double sample) {
  add_sample(observed.timings, metric, sample);
  if (part != nullptr) add_sample(part->timings, metric, sample);
}

ObservedCount& count_of(Observed& observed, std::string_view metric) {
  const unit::Metric wanted = unit::find_metric(metric).value_or(unit::custom_metric(
      name_of_metric(metric), unit::Kind::count, unit::Unit::count, unit::Better::lower));
  auto* known = first_of(observed.counts, [&](const auto& one) { return one.metric == wanted; });
  return known != nullptr ? *known : observed.counts.emplace_back(ObservedCount{wanted, {}});
}

unit::Metric own_time(std::string_view name) {
  return unit::custom_metric(name_of_metric(name), unit::Kind::time, unit::Unit::seconds,
                             unit::Better::lower);
}

unit::Metric time_named(std::string_view name) {
  return unit::find_metric(name).value_or(own_time(name));
}

void mark_truncated(Observed& observed) {
  observed.truncated = true;
  add_warning(observed, "it ends in the middle: weir reads its whole parts");
}

void add_cached(std::int64_t tokens, ObservedCase& one, Observed& observed) {
  if (tokens <= 0) return;
  one.facts["cached_tokens"] = fmt::format("{}", tokens);
  add_warning(observed, "part of a prompt came from the cache: its rate does not compare");
}

void take_tokens_of_only_case(Observed& observed) {
  if (observed.cases.size() != 1) return;
  observed.prompt_tokens = observed.cases.front().prompt_tokens;
  observed.generated_tokens = observed.cases.front().generated_tokens;
}

void read_pieces(const Printed& printed, std::vector<std::string> lists, JsonPieces::Takers takers,
                 Observed& observed) {
  std::size_t broken = 0;
  std::size_t too_long = 0;
  for (const std::string_view text : {printed.document().out, printed.document().err}) {
    JsonPieces pieces(lists, takers);
    pieces.feed(text);
    pieces.finish();
    broken += pieces.losses().broken;
    too_long += pieces.losses().too_long;
    if (pieces.losses().cut) mark_truncated(observed);
  }
  if (broken > 0) {
    add_warning(observed, fmt::format("{} of its parts are no JSON and were left out", broken));
  }
  if (too_long > 0) {
    add_warning(observed, fmt::format("{} of its parts are too long or too deep and were left out",
                                      too_long));
  }
}

void read_documents(const Printed& printed, const std::function<void(const Json&)>& take,
                    Observed& observed) {
  read_pieces(printed, {}, {[&](std::string_view, const Json& element) { take(element); }, take},
              observed);
}

std::optional<double> json_number(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> json_whole(const Json& object, const char* key) {
  const auto value = json_number(object, key);
  constexpr double k_exact = 9007199254740992.0;  // 2^53
  if (!value || *value < 0 || *value > k_exact || *value != std::floor(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::optional<std::string> json_text(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return shown_text(found->get_ref<const std::string&>());
}

bool json_flag(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

std::string json_shown(const Json& value) {
  return value.is_string() ? shown_text(value.get_ref<const std::string&>()) : dump_json(value);
}

tl::unexpected<Error> nothing_found(std::string_view format) {
  return fail(Code::data, "this text has no whole part of the format {}", format);
}

std::vector<std::string> csv_fields(std::string_view line) {
  std::vector<std::string> fields;
  for (std::size_t at = 0; at <= line.size() && fields.size() < k_most_fields;) {
    std::string field;
    if (at < line.size() && line[at] == '"') {
      // A quote ends the value where a comma or the line's end follows: writers that do not double
      // quotes within values are read as well.
      for (++at; at < line.size(); ++at) {
        const bool last = at + 1 == line.size();
        if (line[at] == '"' && (last || line[at + 1] == ',')) break;
        if (line[at] == '"' && line[at + 1] == '"') ++at;
        field += line[at];
      }
      if (at >= line.size()) return {};  // cut within the value
      ++at;
    } else {
      const std::size_t end = std::min(line.find(',', at), line.size());
      field = line.substr(at, end - at);
      at = end;
    }
    fields.push_back(std::move(field));
    ++at;  // past the comma
  }
  return fields;
}

std::optional<SqlRow> sql_row(std::string_view line, std::string_view table) {
  Scan scan(line);
  if (!scan.take("INSERT INTO") || !scan.take(table) || !scan.take("(")) return std::nullopt;
  SqlRow row;
  const auto columns = scan.until(")");
  if (!columns) return std::nullopt;
  for (const std::string& name : text::split(*columns, ',')) {
    if (row.columns.size() < k_most_fields) row.columns.emplace_back(text::trim(name));
  }
  if (!scan.take("VALUES") || !scan.take("(")) return std::nullopt;
  std::string_view rest = scan.rest();
  if (!rest.ends_with(");")) return std::nullopt;  // cut
  rest.remove_suffix(2);
  while (row.values.size() < row.columns.size() && rest.starts_with('\'')) {
    // A quote ends the value where ", '" or the end follows: quotes within are not always doubled.
    const std::size_t end = rest.find("', '", 1);
    const bool last = end == std::string_view::npos;
    if (last && (rest.size() < 2 || rest.back() != '\'')) return std::nullopt;
    row.values.emplace_back(last ? rest.substr(1, rest.size() - 2) : rest.substr(1, end - 1));
    if (last) break;
    rest.remove_prefix(end + 3);
  }
  if (row.values.size() != row.columns.size()) return std::nullopt;
  return row;
}

std::string shape_text(const std::vector<std::int64_t>& sizes) {
  std::size_t used = sizes.size();
  while (used > 1 && sizes[used - 1] == 1) --used;
  std::string text;
  for (std::size_t i = 0; i < used; ++i) {
    if (sizes[i] <= 0) return "";
    text += fmt::format("{}{}", i == 0 ? "" : "x", sizes[i]);
  }
  return text;
}

std::string type_text(std::int64_t number) {
  if (number < 0 || number > 1000) return "";
  const auto* info = model::find_tensor_type(static_cast<std::uint32_t>(number));
  return info == nullptr ? "" : text::lower(info->name);
}

}  // namespace weir::adapters

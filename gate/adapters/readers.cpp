#include "gate/adapters/readers.hpp"

#include "gate/model/tensor_type.hpp"

namespace weir::adapters {
namespace {

constexpr std::size_t k_most_warnings = 100;
constexpr std::size_t k_most_fields = 256;
constexpr std::size_t k_most_places = 256;

// Names of metrics have no blanks and nothing that is not ASCII.
std::string name_of_metric(std::string_view text) {
  std::string name(text.substr(0, 100));
  std::ranges::replace_if(
      name, [](char c) { return c <= ' ' || c >= 0x7F; }, '_');
  return name.empty() ? "metric" : name;
}

}  // namespace

void add_warning(Observed& observed, std::string warning) {
  auto& warnings = observed.warnings;
  if (warnings.size() >= k_most_warnings) return;
  if (!holds(warnings, warning)) warnings.push_back(std::move(warning));
}

bool keep_op(ObservedOp op, Observed& observed) {
  observed::fill_from_shape(op);
  for (const auto& value : {op.seconds, op.least, op.most, op.own_seconds, op.flops, op.bytes}) {
    if (!value || (std::isfinite(*value) && *value >= 0)) continue;
    add_warning(observed, "a row with a time below 0 is left out");
    return false;
  }
  return keep_row(observed.ops, std::move(op), observed);
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

void add_unknown_version(std::string_view version, std::string_view known, Observed& observed) {
  add_warning(observed,
              "version {} of this format is unknown (known: {}): weir reads the parts that it "
              "recognises",
              version, known);
}

void mark_truncated(Observed& observed) {
  observed.truncated = true;
  add_warning(observed, "it ends in the middle: weir reads its whole parts");
}

void add_place(Observed& observed, std::string place) {
  auto& places = observed.context.places;
  if (place.empty() || places.size() >= k_most_places || holds(places, place)) return;
  places.push_back(std::move(place));
}

void add_request(const Request& request, std::int64_t untimed, Observed& observed) {
  ObservedCase one;
  one.name = fmt::format("request {}", observed.cases.size());
  one.prompt_tokens = request.prompt;
  one.generated_tokens = request.generated;
  if (request.cached.value_or(0) > 0) {
    one.facts["cached_tokens"] = fmt::format("{}", *request.cached);
    add_warning(observed, "part of a prompt came from the cache: its rate does not compare");
  }
  const auto rate = [&](const char* metric, std::int64_t tokens, const auto& time) {
    if (!time || *time <= 0) return;
    add_sample(observed, &one, metric, static_cast<double>(tokens) * request.unit / *time);
  };
  rate("prefill_tokens_per_second", request.prompt.value_or(0), request.prompt_time);
  rate("decode_tokens_per_second", request.generated.value_or(0) - untimed, request.generate_time);
  keep_row(observed.cases, std::move(one), observed);
}

void take_tokens_of_only_case(Observed& observed) {
  if (observed.cases.size() != 1) return;
  observed.prompt_tokens = observed.cases.front().prompt_tokens;
  observed.generated_tokens = observed.cases.front().generated_tokens;
}

void read_pieces(const Printed& printed, std::vector<std::string> lists, JsonPieces::Takers takers,
                 Observed& observed, JsonPieceLimits limits) {
  std::size_t broken = 0, too_long = 0;
  for (const std::string_view text : {printed.document().out, printed.document().err}) {
    JsonPieces pieces(lists, takers, limits);
    pieces.feed(text);
    pieces.finish();
    broken += pieces.losses().broken;
    too_long += pieces.losses().too_long;
    if (pieces.losses().cut) mark_truncated(observed);
  }
  if (broken > 0) {
    add_warning(observed, "{} of its parts are no JSON and were left out", broken);
  }
  if (too_long > 0) {
    add_warning(observed, "{} of its parts are too long or too deep and were left out", too_long);
  }
}

void read_documents(const Printed& printed, const std::function<void(const Json&)>& take,
                    Observed& observed) {
  read_pieces(printed, {}, {[&](std::string_view, const Json& element) { take(element); }, take},
              observed);
}

std::optional<double> json_number(const Json& object, const char* key) {
  const Json& found = below(object, key);
  const double value = found.is_number() ? found.get<double>() : NAN;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> json_whole(const Json& object, const char* key) {
  const auto value = json_number(object, key);
  constexpr double k_exact = 9007199254740992.0;  // 2^53
  if (!value || *value < 0 || *value > k_exact || *value != std::floor(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::optional<std::string> json_text(const Json& object, const char* key) {
  const Json& found = below(object, key);
  return found.is_string() ? std::optional(json_shown(found)) : std::nullopt;
}

bool json_flag(const Json& object, const char* key) { return below(object, key) == Json(true); }

std::string json_shown(const Json& value) {
  return value.is_string() ? shown_text(value.get_ref<const std::string&>()) : dump_json(value);
}

void add_facts(const Json& object, std::map<std::string, std::string>& facts) {
  for (const auto& [key, value] : object.items()) {
    if (facts.size() >= 64) return;
    if (value.is_primitive() && !value.is_null()) facts[shown_text(key, 100)] = json_shown(value);
  }
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

std::optional<TableRow> sql_row(std::string_view line, std::string_view table) {
  Scan scan(line);
  if (!scan.take("INSERT INTO") || !scan.take(table) || !scan.take("(")) return std::nullopt;
  const auto columns = scan.until(")");
  if (!columns || !scan.take("VALUES") || !scan.take("(")) return std::nullopt;
  std::string_view rest = scan.rest();
  if (!rest.ends_with(");")) return std::nullopt;  // cut
  rest.remove_suffix(2);
  TableRow row;
  for (const std::string& column : text::split(*columns, ',')) {
    // A quote ends the value where ", '" or the end follows: quotes within are not always doubled.
    const std::size_t end = std::min(rest.find("', '", 1), rest.size() - 1);
    if (rest.size() < 2 || rest.front() != '\'' || rest[end] != '\'') return std::nullopt;
    row.emplace(text::trim(column), rest.substr(1, end - 1));
    rest.remove_prefix(std::min(end + 3, rest.size()));
  }
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

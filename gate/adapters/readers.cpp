// Helpers that the readers of all formats share.
#include "gate/adapters/readers.hpp"

#include "gate/model/tensor_type.hpp"

namespace weir::adapters {
namespace {

constexpr std::size_t k_max_warnings = 100;
constexpr std::size_t k_max_fields = 256;
constexpr std::size_t k_max_places = 256;

// Returns `text` as a metric's name.
std::string valid_metric_name(std::string_view text) {
  const std::string name = unit::work_name("", text);
  return name.empty() ? "metric" : name;
}

}  // namespace

void add_warning(Observed& observed, std::string warning) {
  auto& warnings = observed.warnings;
  if (warnings.size() >= k_max_warnings) return;
  if (!holds(warnings, warning)) warnings.push_back(std::move(warning));
}

// Returns the parts of a kind, "rows"; adds them if there are none yet.
static observed::ObservedParts& find_or_add_parts(Observed& observed, std::string_view kind) {
  auto* match = find_first(observed.parts, [&](const auto& parts) { return parts.kind == kind; });
  if (match != nullptr) return *match;
  return observed.parts.emplace_back(observed::ObservedParts{std::string(kind), 0, 0, {}});
}

void add_read_parts(Observed& observed, std::string_view kind, std::int64_t parts) {
  find_or_add_parts(observed, kind).read += parts;
}

void add_unread_part(Observed& observed, std::string_view kind, std::string reason) {
  constexpr std::size_t k_max_reasons = 4;
  observed::ObservedParts& parts = find_or_add_parts(observed, kind);
  ++parts.unread;
  if (parts.reasons.size() < k_max_reasons && !holds(parts.reasons, reason))
    parts.reasons.push_back(std::move(reason));
}

Result<void> check_all_parts_read(const Observed& observed) {
  for (const auto& parts : observed.parts) {
    if (parts.unread > 0) return fail(Code::data, "{}", observed::unread_warning(parts));
  }
  // read_pieces() may have left out another run.
  for (const std::string& warning : observed.warnings) {
    if (warning.ends_with("were left out")) return fail(Code::data, "{}", warning);
  }
  return {};
}

bool append_valid_op(ObservedOp op, Observed& observed) {
  observed::fill_from_shape(op);
  for (const auto& value : {op.seconds, op.min_seconds, op.max_seconds, op.seconds_without_nested,
                            op.flops, op.bytes}) {
    if (!value || (std::isfinite(*value) && *value >= 0)) continue;
    add_warning(observed, "a row with a time below 0 is left out");
    return false;
  }
  return append_row_within_limit(observed.ops, std::move(op), observed);
}

ObservedTiming& find_or_add_timing(std::vector<ObservedTiming>& timings,
                                   const unit::Metric& metric) {
  auto* match = find_first(timings, [&](const auto& timing) { return timing.metric == metric; });
  return match != nullptr ? *match : timings.emplace_back(ObservedTiming{metric, {}, {}, {}});
}

void add_call(ObservedOp& row, double seconds) {
  row.calls = row.calls.value_or(0) + 1;
  row.seconds = row.seconds.value_or(0) + seconds;
  row.min_seconds = std::min(row.min_seconds.value_or(seconds), seconds);
  row.max_seconds = std::max(row.max_seconds.value_or(seconds), seconds);
}

void add_sample(std::vector<ObservedTiming>& timings, std::string_view metric, double sample) {
  if (!std::isfinite(sample) || sample <= 0) return;
  auto& samples = find_or_add_timing(timings, find_time_metric(metric)).samples;
  if (samples.size() < k_max_rows) samples.push_back(sample);
}

void add_sample(Observed& observed, ObservedCase* part, std::string_view metric, double sample) {
  add_sample(observed.timings, metric, sample);
  if (part != nullptr) add_sample(part->timings, metric, sample);
}

ObservedCount& find_or_add_count(Observed& observed, std::string_view metric) {
  const unit::Metric wanted = unit::find_metric(metric).value_or(unit::custom_metric(
      valid_metric_name(metric), unit::Kind::count, unit::Unit::count, unit::Better::lower));
  auto* match =
      find_first(observed.counts, [&](const auto& count) { return count.metric == wanted; });
  return match != nullptr ? *match : observed.counts.emplace_back(ObservedCount{wanted, {}});
}

unit::Metric custom_time_metric(std::string_view name) {
  return unit::custom_metric(valid_metric_name(name), unit::Kind::time, unit::Unit::seconds,
                             unit::Better::lower);
}

unit::Metric find_time_metric(std::string_view name) {
  return unit::find_metric(name).value_or(custom_time_metric(name));
}

void add_unknown_version(std::string_view version, std::string_view supported, Observed& observed) {
  add_warning(observed,
              "version {} of this format is unknown (known: {}): weir reads the parts that it "
              "recognises",
              version, supported);
}

void mark_truncated(Observed& observed) {
  observed.truncated = true;
  add_warning(observed, "it ends in the middle: weir reads its whole parts");
}

void add_place(Observed& observed, std::string place) {
  auto& places = observed.context.places;
  if (place.empty() || places.size() >= k_max_places || holds(places, place)) return;
  places.push_back(std::move(place));
}

// Adds a request as a case, and its rates to the whole, too. `untimed`: generated tokens that the
// generation time does not cover.
void add_request(const Request& request, std::int64_t untimed, Observed& observed) {
  ObservedCase part;
  part.name = fmt::format("request {}", observed.cases.size());
  part.prompt_tokens = request.prompt;
  part.generated_tokens = request.generated;
  if (request.cached.value_or(0) > 0) {
    part.facts["cached_tokens"] = fmt::format("{}", *request.cached);
    add_warning(observed, "part of a prompt came from the cache: its rate does not compare");
  }
  const auto rate = [&](const char* metric, std::int64_t tokens, const auto& time) {
    if (!time || *time <= 0) return;
    add_sample(observed, &part, metric, static_cast<double>(tokens) * request.unit / *time);
  };
  rate("prefill_tokens_per_second", request.prompt.value_or(0), request.prompt_time);
  rate("decode_tokens_per_second", request.generated.value_or(0) - untimed, request.generate_time);
  append_row_within_limit(observed.cases, std::move(part), observed);
}

void copy_tokens_of_only_case(Observed& observed) {
  if (observed.cases.size() != 1) return;
  observed.prompt_tokens = observed.cases.front().prompt_tokens;
  observed.generated_tokens = observed.cases.front().generated_tokens;
}

// Reads JSON of any size from both streams, piece by piece, and warns about pieces that were lost.
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
  const Json& member = member_or_null(object, key);
  const double value = member.is_number() ? member.get<double>() : NAN;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> json_integer(const Json& object, const char* key) {
  const auto value = json_number(object, key);
  constexpr double k_exact = 9007199254740992.0;  // 2^53
  if (!value || *value < 0 || *value > k_exact || *value != std::floor(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::optional<std::string> json_text(const Json& object, const char* key) {
  const Json& value = member_or_null(object, key);
  return value.is_string() ? std::optional(json_display_text(value)) : std::nullopt;
}

bool json_flag(const Json& object, const char* key) {
  return member_or_null(object, key) == Json(true);
}

std::string json_display_text(const Json& value) {
  return value.is_string() ? display_text(value.get_ref<const std::string&>()) : dump_json(value);
}

void add_facts(const Json& object, std::map<std::string, std::string>& facts) {
  for (const auto& [key, value] : object.items()) {
    if (facts.size() >= 64) return;
    if (value.is_primitive() && !value.is_null())
      facts[display_text(key, 100)] = json_display_text(value);
  }
}

tl::unexpected<Error> nothing_found(std::string_view format) {
  return fail(Code::data, "this text has no whole part of the format {}", format);
}

// Splits a line of CSV, with values in quotes or without. Returns nothing if a quote is not closed.
std::vector<std::string> csv_fields(std::string_view line) {
  std::vector<std::string> fields;
  for (std::size_t at = 0; at <= line.size() && fields.size() < k_max_fields;) {
    std::string field;
    if (at < line.size() && line[at] == '"') {
      // A quote before a comma or the line's end ends the value. So output whose quotes within
      // values are not doubled is read as well.
      for (++at; at < line.size(); ++at) {
        const bool is_last = at + 1 == line.size();
        if (line[at] == '"' && (is_last || line[at + 1] == ',')) break;
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
    ++at;  // after the comma
  }
  return fields;
}

// Parses a line like "INSERT INTO test (model, avg_ns) VALUES ('qwen2', '512');" into values by
// column.
std::optional<TableRow> sql_row(std::string_view line, std::string_view table) {
  LineScanner scan(line);
  if (!scan.skip_prefix("INSERT INTO") || !scan.skip_prefix(table) || !scan.skip_prefix("("))
    return std::nullopt;
  const auto columns = scan.read_until(")");
  if (!columns || !scan.skip_prefix("VALUES") || !scan.skip_prefix("(")) return std::nullopt;
  std::string_view rest = scan.rest();
  if (!rest.ends_with(");")) return std::nullopt;  // cut
  rest.remove_suffix(2);
  TableRow row;
  for (const std::string& column : text::split(*columns, ',')) {
    // A quote before ", '" or the end ends the value, as quotes within are not always doubled.
    const std::size_t end = std::min(rest.find("', '", 1), rest.size() - 1);
    if (rest.size() < 2 || rest.front() != '\'' || rest[end] != '\'') return std::nullopt;
    row.emplace(text::trim(column), rest.substr(1, end - 1));
    rest.remove_prefix(std::min(end + 3, rest.size()));
  }
  return row;
}

std::string shape_text(const std::vector<std::int64_t>& sizes) {
  std::size_t dims = sizes.size();
  while (dims > 1 && sizes[dims - 1] == 1) --dims;
  std::string text;
  for (std::size_t i = 0; i < dims; ++i) {
    if (sizes[i] <= 0) return "";
    text::append_item(text, "x", std::to_string(sizes[i]));
  }
  return text;
}

std::string type_text(std::int64_t number) {
  if (number < 0 || number > 1000) return "";
  const auto* info = model::find_tensor_type(static_cast<std::uint32_t>(number));
  return info == nullptr ? "" : text::lower(info->name);
}

}  // namespace weir::adapters

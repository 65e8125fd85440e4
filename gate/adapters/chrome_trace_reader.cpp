// Reads Chrome traces of any length, event by event.
#include "gate/adapters/chrome_trace_reader.hpp"

#include <charconv>

#include "gate/adapters/chrome_totals.hpp"
#include "gate/adapters/readers.hpp"

namespace weir::adapters {
namespace {

constexpr double k_longest_micros = 1e18;
constexpr const char* k_work = "weirWork";  // rows of the profile that a trace of weir's is of
constexpr std::size_t k_max_work_bytes = std::size_t{64} << 20;  // bytes of them
constexpr std::int64_t k_long_clock = 1'000'000'000;  // microseconds; later clocks get an origin

// Returns the event's phase, one character; '\0' if it has none.
char parse_phase(const ChromeEvent& event) {
  const std::string_view phase = event.phase;
  if (phase.size() == 3 && text::is_letter(phase[1])) return phase[1];  // as every tracer writes it
  const auto text = event_text(phase);
  return text && text->size() == 1 ? text->front() : '\0';
}

// A time as full microseconds and the fraction. A double has no room for fractions of a clock that
// counts from 1970.
struct Moment {
  std::int64_t micros = 0;
  double fraction = 0;
};

// Parses "1700000000123456.789": the digits before the point as an integer, the rest as a fraction.
// Nothing for another form ("1.7e15") or too many digits.
std::optional<Moment> parse_long_moment(std::string_view value) {
  constexpr std::size_t k_max_digits = 18;  // all such numbers fit an int64
  const char* const end = value.data() + value.size();
  Moment moment;
  const auto [point, error] = std::from_chars(value.data(), end, moment.micros);
  const auto digits = static_cast<std::size_t>(point - value.data());
  if (error != std::errc() || moment.micros < 0 || digits > k_max_digits) return std::nullopt;
  if (point == end) return moment;
  if (*point != '.') return std::nullopt;
  const auto fraction = std::from_chars(point, end, moment.fraction, std::chars_format::fixed);
  return fraction.ptr == end ? std::optional(moment) : std::nullopt;
}

// Parses a time in microseconds. A long number is parsed in two parts, because a double holds only
// 15 digits exactly.
std::optional<Moment> parse_moment(std::string_view value) {
  constexpr std::size_t k_exact_digits = 15;
  if (value.size() > k_exact_digits) {
    if (const auto moment = parse_long_moment(value)) return moment;
  }
  const auto number = event_number(value);
  if (!number || !(std::fabs(*number) < k_longest_micros)) return std::nullopt;
  const double micros = std::floor(*number);
  return Moment{.micros = static_cast<std::int64_t>(micros), .fraction = *number - micros};
}

}  // namespace

class ChromeTraceReader::TraceBuilder {
 public:
  TraceBuilder(const ChromeTraceLimits& limits, observed::ObservedMoments* moments)
      : moments_(moments),
        spans_(limits.window, [this](const NestedSpans::Ended& ended) { add_ended_span(ended); }),
        pieces_({"traceEvents", k_work}, {[this](std::string_view list, const Json& element) {
                                            if (list == k_work) return read_work(element);
                                            read_json_event(element);
                                          },
                                          [this](const Json& members) { read_members(members); },
                                          [this](std::string_view list, std::string_view rest) {
                                            return list == k_work ? 0 : read_many(rest);
                                          }}),
        rows_(limits.names),
        tracks_(std::min<std::size_t>(limits.tracks, UINT16_MAX)),
        counters_(limits.points) {}

  void feed(std::string_view chunk) { pieces_.feed(chunk); }
  Result<Observed> finish() {
    pieces_.finish();
    spans_.finish();
    Observed observed;
    observed.format = "chrome-trace";
    observed.version = version_;
    observed.context = std::move(context_);
    if (events_ == 0) return nothing_found("chrome-trace");
    if (moments_ != nullptr) {
      for (const ObservedOp& op : rows_.ops()) {
        moments_->rows.push_back({op.op, op.category, op.shape});
      }
      moments_->tracks = tracks_.names();
      moments_->origin = static_cast<double>(origin_.value_or(0)) / 1e6;
    }
    observed.ops = rows_.take();
    observed.tracks = tracks_.take(spans_);
    observed.counters = counters_.take(tracks_);
    mark_profiler_span(observed);
    if (is_from_weir_) separate_calls(observed);
    if (!work_.is_null()) use_work(observed);
    if (pieces_.losses().cut) mark_truncated(observed);
    add_warnings(observed);
    return observed;
  }

 private:
  // Takes as many events of `rest` as can be scanned directly; returns their bytes.
  std::size_t read_many(std::string_view rest) {
    for (std::size_t at = 0;;) {
      const std::size_t begin = std::min(rest.find_first_not_of(" \n\r\t,", at), rest.size());
      const std::size_t length = scan_chrome_event(rest.substr(begin), event_);
      if (length == 0) return begin;  // the blanks are taken, so they are skipped only once
      read_event();
      at = begin + length;
    }
  }

  // Takes an event that a parser had to read.
  void read_json_event(const Json& event) {
    if (!event.is_object()) return;
    const std::string text = dump_json(event);
    if (scan_chrome_event(text, event_, /*written=*/true) == 0) {  // no tracer writes such
      ++unread_;
      return;
    }
    read_event();
  }

  // Handles event_ by its phase.
  void read_event() {
    if (event_.empty) return;  // rocprof ends its list with {}
    const char kind = parse_phase(event_);
    if (kind == 'M') return tracks_.read_metadata(event_);
    const auto at = kind == '\0' ? std::nullopt : to_time(event_.at);
    if (!at) {
      ++unread_;
      return;
    }
    ++events_;
    if (kind == 'X') {
      add_complete_event(*at);
    } else if (kind == 'B') {
      const std::uint32_t row = find_row();
      rows_.add_call(row);
      rows_.add_bytes(row, event_);
      spans_.add({*at, 0, row, tracks_.track_number(event_), NestedSpans::Event::Kind::begin});
    } else if (kind == 'E') {
      spans_.add({*at, 0, 0, tracks_.track_number(event_), NestedSpans::Event::Kind::end});
    } else if (kind == 'C') {
      counters_.add(event_, *at + static_cast<double>(*origin_));
    } else if (kind == 'i' || kind == 'I' || kind == 'n') {
      rows_.add_call(find_row("instant"));
    } else if (kind == 'b' || kind == 'S') {
      async_.begin(event_, *at, rows_);
    } else if (kind == 'e' || kind == 'F') {
      end_async_event(*at);
    }  // flows, objects, clocks and samples have no durations
  }

  // Returns a time in microseconds from origin_ on. The first event of a long clock sets origin_.
  std::optional<double> to_time(std::string_view value) {
    const auto moment = parse_moment(value);
    if (!moment) return std::nullopt;
    const bool is_long_clock = moment->micros > k_long_clock;
    if (!origin_) origin_ = is_long_clock ? moment->micros : 0;
    return static_cast<double>(moment->micros - *origin_) + moment->fraction;
  }

  std::uint32_t find_row(std::string_view otherwise = "") {
    return rows_.row_number(event_, otherwise, "", tracks_.has_backends() ? &tracks_ : nullptr);
  }
  void add_complete_event(double at) {
    const std::uint32_t row = find_row();
    const auto length = event_number(event_.length);
    if (length && *length >= 0 && *length <= k_longest_micros) {
      spans_.add(
          {at, *length, row, tracks_.track_number(event_), NestedSpans::Event::Kind::complete});
      rows_.add_time(row, *length);
    } else {
      ++unfinished_;
    }
    rows_.add_call(row);
    rows_.add_bytes(row, event_);
  }

  // Adds a part of an Observed to work_: {"ops": [row]}, {"format": "weir-probes"}.
  void read_work(const Json& part) {
    if (!part.is_object()) return;
    work_bytes_ += dump_json(part).size();
    if (work_bytes_ > k_max_work_bytes) return;
    for (const auto& [key, value] : part.items()) {
      Json& target = work_[key];
      if (!value.is_array()) {
        target = value;
        continue;
      }
      if (!target.is_array()) target = Json::array();
      for (const Json& row : value) target.push_back(row);
    }
  }

  // PyTorch's profiler writes a span of its own, as long as all that it recorded.
  static void mark_profiler_span(Observed& observed) {
    for (ObservedOp& op : observed.ops) {
      op.includes_other_rows |= op.category == "Trace" && op.op.starts_with("PyTorch Profiler");
    }
  }

  // Moves calls of the CPU out of the rows of a trace of weir's own, since they are no part of the
  // devices' time. Marks repeat time of other tracks.
  static void separate_calls(Observed& observed) {
    constexpr std::array<std::string_view, 4> k_calls{"submit", "wait", "graph", "transfer"};
    const auto calls = std::ranges::stable_partition(observed.ops, [&](const ObservedOp& op) {
      return std::ranges::find(k_calls, op.category) == k_calls.end();
    });
    observed.cpu_calls.assign(std::make_move_iterator(calls.begin()),
                              std::make_move_iterator(calls.end()));
    observed.ops.erase(calls.begin(), calls.end());
    for (ObservedOp& op : observed.ops) op.includes_other_rows |= op.category == "marks";
  }

  // Replaces the rows of events by those of the profile in work_, if the trace is complete.
  void use_work(Observed& observed) {
    const JsonPieceLosses& losses = pieces_.losses();
    if (losses.cut || losses.broken > 0 || losses.too_long > 0) return;
    work_["schema"] = "weir.observed/1";
    auto work = work_bytes_ > k_max_work_bytes
                    ? fail(Code::data, "more than {} MiB", k_max_work_bytes >> 20)
                    : read_fields<Observed>(work_, k_work);
    if (!work) {
      add_warning(observed, "{} was left out: {}", k_work, work.error().message);
      return;
    }
    work->format = observed.format;
    work->version = observed.version;
    work->context.facts.merge(observed.context.facts);
    work->context.places = std::move(observed.context.places);
    work->tracks = std::move(observed.tracks);
    work->counters = std::move(observed.counters);
    observed = *std::move(work);
  }

  void read_members(const Json& members) {
    is_from_weir_ = json_text(member_or_null(members, "otherData"), "schema") == "weir.trace/1";
    const Json& version = member_or_null(members, "schemaVersion");
    if (version.is_number()) version_ = dump_json(version);
    const Json& devices = list_or_empty(members, "deviceProperties");
    if (!devices.empty() && devices.front().is_object()) {
      context_.device = json_text(devices.front(), "name");
    }
    add_facts(members, context_.facts);
    if (const auto name = json_text(members, "traceName")) context_.places.push_back(*name);
  }

  void add_ended_span(const NestedSpans::Ended& ended) {
    if (ended.from_begin) rows_.add_time(ended.row, ended.length);
    rows_.add_own(ended.row, ended.own);
    if (moments_ != nullptr) {
      moments_->add({ended.at / 1e6, ended.length / 1e6, ended.row, ended.track, false});
    }
  }

  void end_async_event(double at) {
    const auto ended = async_.end(event_, at, rows_);
    if (moments_ == nullptr || !ended) return;
    const auto [begin, row] = *ended;
    moments_->add(
        {begin / 1e6, std::max(0.0, at - begin) / 1e6, row, tracks_.track_number(event_), true});
  }

  void add_warnings(Observed& observed) {
    const auto add_count_warning = [&](std::size_t count, const char* what) {
      if (count > 0) add_warning(observed, "{} {}", count, what);
    };
    add_count_warning(unread_, "events have no phase or no time and were left out");
    add_count_warning(unfinished_, "events have no duration: they were not finished");
    add_count_warning(spans_.unbalanced() + async_.unmatched(),
                      "begins and ends do not match: their times are unknown");
    add_count_warning(spans_.disordered(),
                      "events are too far out of order: own times around them are not right");
    add_count_warning(rows_.lost(),
                      "events have names beyond the most that are kept: \"(other names)\"");
    const JsonPieceLosses& losses = pieces_.losses();
    add_count_warning(losses.broken, "parts are no JSON and were left out");
    add_count_warning(losses.too_long, "parts are too long or too deep and were left out");
  }

  observed::ObservedMoments* moments_;  // null if not requested

  NestedSpans spans_;
  JsonPieces pieces_;
  ChromeRows rows_;
  ChromeTracks tracks_;
  ChromeCounters counters_;
  ChromeAsync async_;
  ChromeEvent event_;                   // the one being taken
  std::optional<std::int64_t> origin_;  // microseconds of the clock; 0 for a short clock
  ObservedContext context_;
  Json work_;
  std::size_t work_bytes_ = 0;
  bool is_from_weir_ = false;
  std::optional<std::string> version_;
  std::size_t events_ = 0, unread_ = 0, unfinished_ = 0;
};

ChromeTraceReader::ChromeTraceReader(const ChromeTraceLimits& limits,
                                     observed::ObservedMoments* moments)
    : builder_(std::make_unique<TraceBuilder>(limits, moments)) {}
ChromeTraceReader::~ChromeTraceReader() = default;

void ChromeTraceReader::feed(std::string_view chunk) { builder_->feed(chunk); }

Result<Observed> ChromeTraceReader::finish() { return builder_->finish(); }

bool begins_chrome_trace(std::string_view head) {
  const auto holds = [&](std::string_view text) { return head.find(text) != head.npos; };
  if (holds("\"traceEvents\"")) return true;
  return text::trim(head).starts_with('[') && holds("\"ph\"") && holds("\"ts\"");
}

namespace chrome {

int recognises(const Printed& printed) {
  return begins_chrome_trace(printed.document().out) ? 60 : 0;
}

Result<Observed> read(const Printed& printed) {
  ChromeTraceReader reader;
  reader.feed(printed.document().out);
  return reader.finish();
}

}  // namespace chrome

const Format k_chrome("chrome-trace", "Chrome trace events: Tracy, rocprof, PyTorch, ggml, weir",
                      "", chrome::read, {{85, {"\"traceEvents\""}}}, {}, chrome::recognises);

}  // namespace weir::adapters

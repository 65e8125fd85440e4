// The readers of a Chrome trace that are compared: weir's, simdjson, nlohmann_json.
#include "benchmarks/self/trace/ways.hpp"

#include <fstream>
#include <functional>
#include <iterator>

#include <nlohmann/json.hpp>
#include <simdjson.h>
#include <sys/resource.h>

#include "gate/adapters/chrome_trace_reader.hpp"
#include "gate/base/json.hpp"
#include "gate/sys/files.hpp"

namespace weir::bench {
namespace {

constexpr std::uint64_t k_chunk = std::uint64_t{1} << 20;

double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// Peak resident memory, without the pages of programs and libraries that are mapped now.
std::uint64_t peak_memory_kib() {
  std::ifstream status("/proc/self/status");
  std::uint64_t peak = 0, mapped = 0;
  for (std::string word; status >> word;) {
    if (word == "VmHWM:") status >> peak;
    if (word == "RssFile:") status >> mapped;
  }
  return peak - mapped;
}

// Calls process(chunk) for the file's chunks in order, and adds up the processor time of the calls.
Result<WalkResult> walk_chunks(const std::string& path,
                               const std::function<void(std::string_view)>& process) {
  WEIR_TRY(const sys::FileReader file, sys::FileReader::open(path));
  WalkResult result;
  for (std::uint64_t offset = 0;;) {
    WEIR_TRY(const std::string chunk, file.read_at(offset, k_chunk));
    if (chunk.empty()) return result;
    const double start = processor_seconds();
    process(chunk);
    result.seconds += processor_seconds() - start;
    offset += chunk.size();
  }
}

// Reads the trace with weir's reader and counts the events of all its tracks.
Result<WalkResult> walk_by_weir(const std::string& path) {
  adapters::ChromeTraceReader reader;
  WEIR_TRY(WalkResult result,
           walk_chunks(path, [&](std::string_view chunk) { reader.feed(chunk); }));
  const double start = processor_seconds();
  WEIR_TRY(const observed::Observed observed, reader.finish());
  result.seconds += processor_seconds() - start;
  for (const observed::ObservedTrack& track : observed.tracks) {
    result.count += static_cast<std::uint64_t>(track.events);
  }
  result.memory_kib = peak_memory_kib();
  return result;
}

// Sums over all values, which keep a walk from being optimized away.
struct Totals {
  std::uint64_t bytes = 0;
  double sum = 0;
};
volatile std::uint64_t g_total = 0;

// Adds the bytes of all strings and the sum of all numbers within a value, recursively. The value
// is read on demand.
void add_values(simdjson::ondemand::value value, Totals& totals) {
  using simdjson::ondemand::json_type;
  switch (json_type(value.type())) {
    case json_type::object:
      for (auto field : value.get_object()) {
        totals.bytes += std::string_view(field.unescaped_key()).size();
        add_values(field.value(), totals);
      }
      break;
    case json_type::array:
      for (auto element : value.get_array()) add_values(element.value(), totals);
      break;
    case json_type::string:
      totals.bytes += std::string_view(value.get_string()).size();
      break;
    case json_type::number:
      totals.sum += double(value.get_double());
      break;
    default:
      break;
  }
}

// Adds the bytes of all strings and the sum of all numbers within a value of simdjson's tree,
// recursively.
void add_values(simdjson::dom::element value, Totals& totals) {
  using simdjson::dom::element_type;
  switch (value.type()) {
    case element_type::OBJECT:
      for (auto field : simdjson::dom::object(value)) {
        totals.bytes += field.key.size();
        add_values(field.value, totals);
      }
      break;
    case element_type::ARRAY:
      for (auto element : simdjson::dom::array(value)) add_values(element, totals);
      break;
    case element_type::STRING:
      totals.bytes += std::string_view(value).size();
      break;
    case element_type::DOUBLE:
    case element_type::INT64:
    case element_type::UINT64:
      totals.sum += double(value);
      break;
    default:
      break;
  }
}

// simdjson takes complete documents. This makes of each chunk an array of the events that end in
// it; it relies on make_trace, which writes one event per line.
class EventArrays {
 public:
  // Returns the text of the array, with the padding that simdjson needs; valid until the next call.
  const std::string& next(std::string_view chunk) {
    const bool first = array_.empty();
    array_.assign("[").append(rest_).append(chunk);
    if (first) array_.erase(0, array_.find("[\n", array_.find("\"traceEvents\"")));
    std::size_t end = array_.rfind("\n],\n");
    if (end == std::string::npos) end = array_.rfind(",\n");
    rest_.assign(array_, end + 2);
    array_.resize(end);
    array_ += ']';
    array_.reserve(array_.size() + simdjson::SIMDJSON_PADDING);
    return array_;
  }

 private:
  std::string array_, rest_;
};

// Reads the trace chunk by chunk and counts its events. `parse_events` parses one array of complete
// events, adds their values to the totals, and returns their number. g_total keeps the compiler
// from leaving the work out.
Result<WalkResult> walk_by_simdjson(
    const std::string& path,
    const std::function<std::uint64_t(const std::string&, Totals&)>& parse_events) {
  EventArrays event_arrays;
  Totals totals;
  std::uint64_t event_count = 0;
  WEIR_TRY(WalkResult result, walk_chunks(path, [&](std::string_view chunk) {
             event_count += parse_events(event_arrays.next(chunk), totals);
           }));
  g_total = totals.bytes + static_cast<std::uint64_t>(totals.sum);
  result.count = event_count;
  result.memory_kib = peak_memory_kib();
  return result;
}

// Reads the trace with simdjson's on-demand parser and counts its events.
Result<WalkResult> walk_on_demand(const std::string& path) {
  simdjson::ondemand::parser parser;
  return walk_by_simdjson(path, [&](const std::string& array, Totals& totals) {
    std::uint64_t events = 0;
    auto document =
        parser.iterate(simdjson::padded_string_view(array.data(), array.size(), array.capacity()));
    for (auto event : document.get_array()) {
      add_values(event.value(), totals);
      ++events;
    }
    return events;
  });
}

// Counts the trace's events with simdjson's parser that makes a whole tree (its DOM).
Result<WalkResult> walk_tree(const std::string& path) {
  simdjson::dom::parser parser;
  return walk_by_simdjson(path, [&](const std::string& array, Totals& totals) {
    std::uint64_t events = 0;
    const simdjson::dom::element document = parser.parse(array.data(), array.size(), false);
    for (auto event : simdjson::dom::array(document)) {
      add_values(event, totals);
      ++events;
    }
    return events;
  });
}

// Counts the values of a text. nlohmann_json is measured by its SAX events, since a tree of a
// gigabyte does not fit into every memory.
struct ValueCounter final : nlohmann::json_sax<nlohmann::json> {
  std::uint64_t values = 0;
  double sum = 0;
  bool add(double value = 0) {
    sum += value;
    ++values;
    return true;
  }
  bool null() override { return add(); }
  bool boolean(bool) override { return add(); }
  bool number_integer(number_integer_t value) override { return add(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return add(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& text) override { return add(static_cast<double>(text.size())); }
  bool binary(binary_t&) override { return add(); }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t& text) override { return add(static_cast<double>(text.size())); }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }
};

Result<WalkResult> walk_by_nlohmann(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  ValueCounter counter;
  const double start = processor_seconds();
  if (!nlohmann::json::sax_parse(file, &counter)) return fail(Code::data, "{}: no JSON", path);
  return WalkResult{processor_seconds() - start, counter.values, peak_memory_kib()};
}

}  // namespace

std::span<const Way> ways() {
  static constexpr Way k_ways[] = {{"weir", walk_by_weir},
                                   {"simdjson", walk_on_demand},
                                   {"simdjson-tree", walk_tree},
                                   {"nlohmann_json", walk_by_nlohmann}};
  return k_ways;
}

}  // namespace weir::bench

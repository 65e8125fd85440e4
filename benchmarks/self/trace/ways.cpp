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

// The kernel's high-water mark, less what is mapped from files now: programs and libraries.
std::uint64_t most_memory_kib() {
  std::ifstream status("/proc/self/status");
  std::uint64_t most = 0, of_files = 0;
  for (std::string word; status >> word;) {
    if (word == "VmHWM:") status >> most;
    if (word == "RssFile:") status >> of_files;
  }
  return most - of_files;
}

// Hands the file over in chunks, and times what is made of them.
Result<Walked> in_chunks(const std::string& path,
                         const std::function<void(std::string_view)>& take) {
  WEIR_TRY(const sys::FileReader file, sys::FileReader::open(path));
  Walked walked;
  for (std::uint64_t at = 0;;) {
    WEIR_TRY(const std::string chunk, file.read_at(at, k_chunk));
    if (chunk.empty()) return walked;
    const double began = processor_seconds();
    take(chunk);
    walked.seconds += processor_seconds() - began;
    at += chunk.size();
  }
}

Result<Walked> by_reader(const std::string& path) {
  adapters::ChromeTraceReader reader;
  WEIR_TRY(Walked walked, in_chunks(path, [&](std::string_view chunk) { reader.feed(chunk); }));
  const double began = processor_seconds();
  WEIR_TRY(const observed::Observed observed, reader.finish());
  walked.seconds += processor_seconds() - began;
  for (const observed::ObservedTrack& track : observed.tracks) {
    walked.found += static_cast<std::uint64_t>(track.events);
  }
  walked.memory_kib = most_memory_kib();
  return walked;
}

// What keeps a walk from being optimized away.
struct Seen {
  std::uint64_t bytes = 0;
  double sum = 0;
};
volatile std::uint64_t g_seen = 0;

void look(simdjson::ondemand::value value, Seen& seen) {
  using simdjson::ondemand::json_type;
  switch (json_type(value.type())) {
    case json_type::object:
      for (auto field : value.get_object()) {
        seen.bytes += std::string_view(field.unescaped_key()).size();
        look(field.value(), seen);
      }
      break;
    case json_type::array:
      for (auto element : value.get_array()) look(element.value(), seen);
      break;
    case json_type::string:
      seen.bytes += std::string_view(value.get_string()).size();
      break;
    case json_type::number:
      seen.sum += double(value.get_double());
      break;
    default:
      break;
  }
}

void look(simdjson::dom::element value, Seen& seen) {
  using simdjson::dom::element_type;
  switch (value.type()) {
    case element_type::OBJECT:
      for (auto field : simdjson::dom::object(value)) {
        seen.bytes += field.key.size();
        look(field.value, seen);
      }
      break;
    case element_type::ARRAY:
      for (auto element : simdjson::dom::array(value)) look(element, seen);
      break;
    case element_type::STRING:
      seen.bytes += std::string_view(value).size();
      break;
    case element_type::DOUBLE:
    case element_type::INT64:
    case element_type::UINT64:
      seen.sum += double(value);
      break;
    default:
      break;
  }
}

// simdjson takes whole documents: of each chunk, an array of the events that end in it. That an
// event is a line is known of the made trace.
class EventArrays {
 public:
  // The array's text, with room behind it for simdjson; valid until the next.
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

template <class WalkArray>
Result<Walked> by_simdjson(const std::string& path, const WalkArray& walk_array) {
  EventArrays arrays;
  Seen seen;
  std::uint64_t events = 0;
  WEIR_TRY(Walked walked, in_chunks(path, [&](std::string_view chunk) {
             events += walk_array(arrays.next(chunk), seen);
           }));
  g_seen = seen.bytes + static_cast<std::uint64_t>(seen.sum);
  walked.found = events;
  walked.memory_kib = most_memory_kib();
  return walked;
}

Result<Walked> on_demand(const std::string& path) {
  simdjson::ondemand::parser parser;
  return by_simdjson(path, [&](const std::string& array, Seen& seen) {
    std::uint64_t events = 0;
    auto document =
        parser.iterate(simdjson::padded_string_view(array.data(), array.size(), array.capacity()));
    for (auto event : document.get_array()) {
      look(event.value(), seen);
      ++events;
    }
    return events;
  });
}

Result<Walked> as_tree(const std::string& path) {
  simdjson::dom::parser parser;
  return by_simdjson(path, [&](const std::string& array, Seen& seen) {
    std::uint64_t events = 0;
    const simdjson::dom::element document = parser.parse(array.data(), array.size(), false);
    for (auto event : simdjson::dom::array(document)) {
      look(event, seen);
      ++events;
    }
    return events;
  });
}

// nlohmann_json pulls its text; its events, as a tree of a gigabyte does not fit everywhere.
struct Counting final : nlohmann::json_sax<nlohmann::json> {
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

Result<Walked> by_nlohmann(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Counting counting;
  const double began = processor_seconds();
  if (!nlohmann::json::sax_parse(file, &counting)) return fail(Code::data, "{}: no JSON", path);
  return Walked{processor_seconds() - began, counting.values, most_memory_kib()};
}

}  // namespace

std::span<const Way> ways() {
  static constexpr Way k_ways[] = {{"weir", by_reader},
                                   {"simdjson", on_demand},
                                   {"simdjson-tree", as_tree},
                                   {"nlohmann_json", by_nlohmann}};
  return k_ways;
}

}  // namespace weir::bench

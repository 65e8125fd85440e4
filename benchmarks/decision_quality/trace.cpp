// Reads files of recorded runs and replays them as scenarios.
#include "benchmarks/decision_quality/trace.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "gate/base/text.hpp"

namespace weir::quality {
namespace {

// Splits a line at spaces and tabs. Returns at most four words: three are the most a line may have.
std::vector<std::string_view> split_words(std::string_view line) {
  constexpr std::string_view k_white = " \t";
  std::vector<std::string_view> words;
  std::size_t at = line.find_first_not_of(k_white);
  while (at != std::string_view::npos && words.size() < 4) {
    const std::size_t end = std::min(line.find_first_of(k_white, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(k_white, end);
  }
  return words;
}

// Returns the natural logarithm of a positive number.
Result<double> parse_log(std::string_view word) {
  const std::optional<double> number = text::to_double(word);
  if (!number || !(*number > 0)) {
    return fail(Code::data, "not a positive number: \"{}\"", text::printable(word));
  }
  return std::log(*number);
}

// Returns a file's name without folders and extension.
std::string stem(std::string_view file) {
  file.remove_prefix(std::min(file.size(), file.find_last_of('/') + 1));
  const std::size_t dot = file.find_last_of('.');
  return std::string(dot == std::string_view::npos || dot == 0 ? file : file.substr(0, dot));
}

// Reads the lines of one file. The number of words of the first line decides their shape.
struct Reader {
  std::size_t words_per_line = 0;  // 0 before the first line
  std::size_t count = 0;
  Trace trace;  // from lines with one or two words
  struct TimedRun {
    double epoch, log;
  };
  std::map<std::string, std::vector<TimedRun>, std::less<>> runs_by_kind;  // lines of three words

  // Adds one line to `trace` or `runs_by_kind`.
  Result<void> read_line(std::string_view line) {
    const std::vector<std::string_view> words = split_words(line);
    if (words.size() > 3) return fail(Code::data, "more than three words");
    if (words_per_line == 0) words_per_line = words.size();
    if (words.size() != words_per_line) {
      return fail(Code::data, "{} words, where the lines before have {}", words.size(),
                  words_per_line);
    }
    ++count;
    if (count > k_trace_runs) return fail(Code::data, "more than {} runs", k_trace_runs);
    if (words_per_line == 3) return read_timed_run(words);
    WEIR_TRY(const double first, parse_log(words[0]));
    if (words_per_line == 1) {
      trace.runs.push_back(first);
      return {};
    }
    WEIR_TRY(const double second, parse_log(words[1]));
    trace.pairs.push_back({first, second});
    return {};
  }

  // Reads "epoch_ns pp|tg ns".
  Result<void> read_timed_run(const std::vector<std::string_view>& words) {
    const std::optional<double> epoch = text::to_double(words[0]);
    if (!epoch) return fail(Code::data, "not a time: \"{}\"", text::printable(words[0]));
    if (words[1] != "pp" && words[1] != "tg") {
      return fail(Code::data, "neither pp nor tg: \"{}\"", text::printable(words[1]));
    }
    WEIR_TRY(const double log, parse_log(words[2]));
    runs_by_kind[std::string(words[1])].push_back({*epoch, log});
    return {};
  }
};

// Deals out the runs of a recording by a stationary bootstrap (next_index).
class TraceRuns final : public Runs {
 public:
  TraceRuns(const std::vector<double>& runs, Random& random)
      : runs_(runs), at_(random.below(runs.size())) {}
  double next(Random& random, const Slot& slot) override {
    const double run = runs_[at_];
    at_ = next_index(at_, runs_.size(), k_mean_block_length, random);
    return run + slot.effect;
  }

 private:
  const std::vector<double>& runs_;
  std::size_t at_;
};

// The same for the pairs of a recording; `effect` is added to each candidate.
class TracePairs final : public Pairs {
 public:
  TracePairs(const std::vector<stats::Pair>& pairs, Random random, double effect)
      : pairs_(pairs), random_(random), effect_(effect), at_(random_.below(pairs.size())) {}
  stats::Pair next() override {
    stats::Pair pair = pairs_[at_];
    at_ = next_index(at_, pairs_.size(), k_mean_block_length / 2, random_);
    pair.candidate += effect_;
    return pair;
  }

 private:
  const std::vector<stats::Pair>& pairs_;
  Random random_;
  double effect_;
  std::size_t at_;
};

}  // namespace

// Reads a file of recorded runs. Runs of two kinds give two traces, each sorted by time. Fails with
// file and line if there are too few runs.
Result<std::vector<Trace>> read_trace(std::string_view file, std::string_view text) {
  if (text.size() > k_trace_bytes) return fail(Code::data, "{}: too long", file);
  Reader reader;
  reader.trace.name = stem(file);
  std::size_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text::trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const Result<void> read = line.size() <= k_trace_line
                                  ? reader.read_line(line)
                                  : fail(Code::data, "longer than {} characters", k_trace_line);
    if (!read) {
      return tl::unexpected(add_prefix(fmt::format("{}:{}", file, line_number), read.error()));
    }
  }
  std::vector<Trace> traces;
  if (reader.words_per_line != 3) {
    if (reader.count < k_min_trace_runs) {
      return fail(Code::data, "{}:{}: fewer than {} runs", file, line_number, k_min_trace_runs);
    }
    traces.push_back(std::move(reader.trace));
    return traces;
  }
  for (auto& [kind, runs] : reader.runs_by_kind) {
    if (runs.size() < k_min_trace_runs) {
      return fail(Code::data, "{}:{}: fewer than {} runs of {}", file, line_number,
                  k_min_trace_runs, kind);
    }
    std::stable_sort(runs.begin(), runs.end(),
                     [](const auto& a, const auto& b) { return a.epoch < b.epoch; });
    Trace trace;
    trace.name = reader.trace.name + "-" + kind;
    for (const Reader::TimedRun& run : runs) trace.runs.push_back(run.log);
    traces.push_back(std::move(trace));
  }
  return traces;
}

// Reads a known ratio of a trace's times, "53/48" or "TRACE=53/48".
Result<KnownRatio> read_known_ratio(std::string_view text) {
  KnownRatio result;
  std::string_view ratio = text;
  if (const std::size_t equals = text.find_last_of('='); equals != std::string_view::npos) {
    result.trace = text.substr(0, equals);
    ratio = text.substr(equals + 1);
  }
  const std::size_t slash = ratio.find('/');
  if (slash == std::string_view::npos) {
    return fail(Code::usage, "\"{}\": a ratio is written 53/48 or TRACE=53/48", text);
  }
  const auto numerator = parse_log(ratio.substr(0, slash));
  const auto denominator = parse_log(ratio.substr(slash + 1));
  if (!numerator || !denominator) {
    return fail(Code::usage, "\"{}\": not a ratio of positive numbers", text);
  }
  result.ratio = std::exp(*numerator - *denominator);
  return result;
}

std::size_t next_index(std::size_t at, std::size_t size, double mean_block, Random& random) {
  if (random.chance(1 / mean_block)) return random.below(size);
  return at + 1 < size ? at + 1 : 0;
}

// Makes a scenario that replays a recording: single runs of one program, or pairs of two. `ratio`
// is the true ratio of the recorded pairs' times, if it is known.
Scenario scenario_of_trace(const Trace& trace, const std::optional<double>& ratio) {
  // Shared: the closures are copied, the recording is not.
  const auto recording = std::make_shared<const Trace>(trace);
  if (trace.pairs.empty()) {
    const auto start = [recording](Random& random) -> std::unique_ptr<Runs> {
      return std::make_unique<TraceRuns>(recording->runs, random);
    };
    return scenario_of_runs(trace.name, /*same_program=*/true, start);
  }
  Scenario scenario;
  scenario.name = trace.name;
  scenario.same_program = false;
  if (ratio) {
    // Once with the recorded change taken out, and once as recorded.
    scenario.effects = {Effect{.drop = 0.0, .log = -std::log(*ratio)},
                        Effect{.drop = 1 - 1 / *ratio, .log = 0}};
  } else {
    scenario.effects = {Effect{.drop = std::nullopt, .log = 0}};
  }
  scenario.start = [recording](Random random, double effect, Coin /*coin*/) {
    return std::make_unique<TracePairs>(recording->pairs, random, effect);
  };
  return scenario;
}

}  // namespace weir::quality

#include "benchmarks/decision_quality/trace.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "gate/base/text.hpp"

namespace weir::quality {
namespace {

// At most four words: more is a mistake, however many they are.
std::vector<std::string_view> words(std::string_view line) {
  constexpr std::string_view k_white = " \t";
  std::vector<std::string_view> found;
  std::size_t at = line.find_first_not_of(k_white);
  while (at != std::string_view::npos && found.size() < 4) {
    const std::size_t end = std::min(line.find_first_of(k_white, at), line.size());
    found.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(k_white, end);
  }
  return found;
}

Result<double> log_of(std::string_view word) {
  const std::optional<double> number = text::to_double(word);
  if (!number || !(*number > 0)) {
    return fail(Code::data, "not a positive number: \"{}\"", text::printable(word));
  }
  return std::log(*number);
}

std::string stem(std::string_view file) {
  file.remove_prefix(std::min(file.size(), file.find_last_of('/') + 1));
  const std::size_t dot = file.find_last_of('.');
  return std::string(dot == std::string_view::npos || dot == 0 ? file : file.substr(0, dot));
}

struct Reader {
  std::size_t shape = 0;  // words a line; 0 before the first
  std::size_t count = 0;
  Trace one;
  struct Timed {
    double epoch, log;
  };
  std::map<std::string, std::vector<Timed>, std::less<>> kinds;

  Result<void> line(std::string_view text) {
    const std::vector<std::string_view> word = words(text);
    if (word.size() > 3) return fail(Code::data, "more than three words");
    if (shape == 0) shape = word.size();
    if (word.size() != shape) {
      return fail(Code::data, "{} words, where the lines before have {}", word.size(), shape);
    }
    if (++count > k_trace_runs) return fail(Code::data, "more than {} runs", k_trace_runs);
    if (shape == 3) return timed(word);
    WEIR_TRY(const double first, log_of(word[0]));
    if (shape == 1) {
      one.runs.push_back(first);
      return {};
    }
    WEIR_TRY(const double second, log_of(word[1]));
    one.pairs.push_back({first, second});
    return {};
  }

  Result<void> timed(const std::vector<std::string_view>& word) {
    const std::optional<double> epoch = text::to_double(word[0]);
    if (!epoch) return fail(Code::data, "not a time: \"{}\"", text::printable(word[0]));
    if (word[1] != "pp" && word[1] != "tg") {
      return fail(Code::data, "neither pp nor tg: \"{}\"", text::printable(word[1]));
    }
    WEIR_TRY(const double log, log_of(word[2]));
    kinds[std::string(word[1])].push_back({*epoch, log});
    return {};
  }
};

class RunsOfTrace final : public Runs {
 public:
  RunsOfTrace(const std::vector<double>& runs, Random& random)
      : runs_(runs), at_(random.below(runs.size())) {}
  double next(Random& random, const Slot& slot) override {
    const double run = runs_[at_];
    at_ = next_place(at_, runs_.size(), k_mean_block, random);
    return run + slot.effect;
  }

 private:
  const std::vector<double>& runs_;
  std::size_t at_;
};

class PairsOfTrace final : public Pairs {
 public:
  PairsOfTrace(const std::vector<stats::Pair>& pairs, Random random, double effect)
      : pairs_(pairs), random_(random), effect_(effect), at_(random_.below(pairs.size())) {}
  stats::Pair next() override {
    stats::Pair pair = pairs_[at_];
    at_ = next_place(at_, pairs_.size(), k_mean_block / 2, random_);
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

Result<std::vector<Trace>> read_trace(std::string_view file, std::string_view text) {
  if (text.size() > k_trace_bytes) return fail(Code::data, "{}: too long", file);
  Reader reader;
  reader.one.name = stem(file);
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text::trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const Result<void> read = line.size() <= k_trace_line
                                  ? reader.line(line)
                                  : fail(Code::data, "longer than {} characters", k_trace_line);
    if (!read) {
      return tl::unexpected(with_context(fmt::format("{}:{}", file, number), read.error()));
    }
  }
  std::vector<Trace> traces;
  if (reader.shape != 3) {
    if (reader.count < k_trace_least) {
      return fail(Code::data, "{}:{}: fewer than {} runs", file, number, k_trace_least);
    }
    traces.push_back(std::move(reader.one));
    return traces;
  }
  for (auto& [kind, runs] : reader.kinds) {
    if (runs.size() < k_trace_least) {
      return fail(Code::data, "{}:{}: fewer than {} runs of {}", file, number, k_trace_least, kind);
    }
    std::stable_sort(runs.begin(), runs.end(),
                     [](const auto& a, const auto& b) { return a.epoch < b.epoch; });
    Trace trace;
    trace.name = reader.one.name + "-" + kind;
    for (const Reader::Timed& run : runs) trace.runs.push_back(run.log);
    traces.push_back(std::move(trace));
  }
  return traces;
}

Result<KnownRatio> read_known_ratio(std::string_view text) {
  KnownRatio known;
  std::string_view ratio = text;
  if (const std::size_t equals = text.find_last_of('='); equals != std::string_view::npos) {
    known.trace = text.substr(0, equals);
    ratio = text.substr(equals + 1);
  }
  const std::size_t slash = ratio.find('/');
  if (slash == std::string_view::npos) {
    return fail(Code::usage, "\"{}\": a ratio is written 53/48 or TRACE=53/48", text);
  }
  const auto above = log_of(ratio.substr(0, slash));
  const auto below = log_of(ratio.substr(slash + 1));
  if (!above || !below) {
    return fail(Code::usage, "\"{}\": not a ratio of positive numbers", text);
  }
  known.ratio = std::exp(*above - *below);
  return known;
}

std::size_t next_place(std::size_t at, std::size_t size, double mean_block, Random& random) {
  if (random.chance(1 / mean_block)) return random.below(size);
  return at + 1 < size ? at + 1 : 0;
}

Scenario scenario_of_trace(const Trace& trace, const std::optional<double>& ratio) {
  // Shared: the closures are copied, the recording is not.
  const auto kept = std::make_shared<const Trace>(trace);
  if (trace.pairs.empty()) {
    return scenario_of_runs(trace.name, true, [kept](Random& random) -> std::unique_ptr<Runs> {
      return std::make_unique<RunsOfTrace>(kept->runs, random);
    });
  }
  Scenario scenario;
  scenario.name = trace.name;
  scenario.same_program = false;
  if (ratio) {
    scenario.effects = {{0.0, -std::log(*ratio)}, {1 - 1 / *ratio, 0}};
  } else {
    scenario.effects = {{std::nullopt, 0}};
  }
  scenario.start = [kept](Random random, double effect, Coin) {
    return std::make_unique<PairsOfTrace>(kept->pairs, random, effect);
  };
  return scenario;
}

}  // namespace weir::quality

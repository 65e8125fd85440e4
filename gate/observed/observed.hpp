// The report of an engine or a profiler on one run, whatever its format: the common shape that
// readers (adapters/format.hpp) fill, and that profiles, comparisons and explanations read.
//
// Base units only: seconds, bytes, counts, tokens a second. Absent is absent, never 0. A part that
// a format lacks is empty. A suspicion (truncated, unknown version) is a warning. All texts are as
// the document held them, cut in length and fit to show (text::printable), and hostile still:
// whoever writes HTML or Markdown escapes them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/json_fwd.hpp"
#include "gate/base/rational.hpp"
#include "gate/base/result.hpp"
#include "gate/unit/metric.hpp"

namespace weir::observed {
enum class Phase { unknown, load, prefill, decode, other };
// The phase of work that computes so many rows (tokens) at once; 0: nobody knows.
[[nodiscard]] constexpr Phase phase_of_rows(std::int64_t rows) {
  if (rows == 0) return Phase::unknown;
  return rows == 1 ? Phase::decode : Phase::prefill;
}

// The engine, model, device and place of the run, as the document has them.
struct ObservedContext {
  std::optional<std::string> engine;        // "agave", "llama.cpp"
  std::optional<std::string> engine_build;  // commit or version
  std::optional<std::string> model;         // the engine's description, or its file
  std::optional<std::string> backend;       // the one that did the work: "CPU", "Vulkan"
  std::optional<std::string> device;        // "llvmpipe (LLVM 15.0.6, 256 bits)"
  std::optional<std::string> command;
  std::map<std::string, std::string> facts;  // anything else, by the document's own names
  // Texts above and in rows that are paths or names of hosts: what is published hides them.
  std::vector<std::string> places;

  friend bool operator==(const ObservedContext&, const ObservedContext&) = default;
};

// ObservedOp::op for the part of a layer's time that the document gives to none of its ops.
inline constexpr std::string_view k_not_listed = "(not listed)";

// One row of a table of work: equal calls, or one call. `seconds` is for all calls together,
// `least` and `most` for one.
struct ObservedOp {
  std::string op;        // the engine's graph's: "MUL_MAT"; as the document names it
  std::string kernel;    // kernel, or fusion of several ops: "RMS_NORM_MUL"; "" when not said
  std::string type;      // as in OpCount: "q8_0,f32->f32"; "" when not said
  std::string shape;     // as in OpCount: "256x64,256->64"; else as the document words it
  std::string backend;   // "Vulkan0"; "" when not said
  std::string node;      // the engine's name of the result: "Qcur-0"
  std::string buffer;    // label of the command buffer that it is in; "" when not said
  std::string category;  // in a trace: "kernel", "cpu_op", "async"; "copy" for moved data
  std::optional<std::int64_t> layer;
  Phase phase = Phase::unknown;
  std::optional<std::size_t> step;  // index into Observed::steps
  std::optional<std::int64_t> calls;
  std::optional<double> seconds, min_seconds, max_seconds;
  std::optional<double> seconds_without_nested;  // without the calls nested in it
  std::optional<double> flops, bytes;     // per call, as the document says or the shape gives
  std::optional<double> seconds_at_peak;  // for all calls, at the measured peak of their backend
  bool includes_other_rows = false;       // its time is that of other rows too: not to be summed

  friend bool operator==(const ObservedOp&, const ObservedOp&) = default;
};

// A token, a graph or a pass of several tokens, in order.
struct ObservedStep {
  std::string label;  // "token 15", "graph 3"
  Phase phase = Phase::unknown;
  std::optional<std::int64_t> tokens;  // number that it covers
  std::optional<double> seconds;
  std::int64_t labels_left_out = 0;  // command buffers without a row

  friend bool operator==(const ObservedStep&, const ObservedStep&) = default;
};

// A command buffer, or all of one label together (`buffers` > 1), in order of arrival.
struct ObservedBuffer {
  std::string label;
  std::int64_t buffers = 1;
  std::optional<std::size_t> step;
  std::optional<std::int64_t> dispatches, barriers, syncs;
  std::optional<double> seconds, min_seconds, max_seconds;  // for all together; for one

  friend bool operator==(const ObservedBuffer&, const ObservedBuffer&) = default;
};

// A count under weir's name where it means the same ("dispatches_per_token"), else a custom metric
// of kind count. `values`: one a token (per_token) or one in all, in order.
struct ObservedCount {
  unit::Metric metric;
  std::vector<std::int64_t> values;

  // The mean of the values; nothing without any.
  [[nodiscard]] std::optional<Rational> mean() const {
    return Rational::share(values, static_cast<std::int64_t>(values.size()));
  }

  friend bool operator==(const ObservedCount&, const ObservedCount&) = default;
};

// A rate, a time or memory under weir's name. A document without samples has only a mean.
struct ObservedTiming {
  unit::Metric metric;
  std::vector<double> samples;
  std::optional<double> mean, stddev;

  // The median of the samples, else the mean; nothing when there is neither.
  [[nodiscard]] std::optional<double> value() const;
  friend bool operator==(const ObservedTiming&, const ObservedTiming&) = default;
};

// One figure of a distribution of latencies: TTFT, TPOT, …
struct ObservedLatency {
  unit::Metric metric;
  std::string figure;                // "mean", "stddev", "median", "percentile"
  std::optional<double> percentile;  // 0 < p < 100, for "percentile"
  double seconds = 0;
  bool at_most = false;  // the upper edge of a histogram's bucket: the figure is not above it

  friend bool operator==(const ObservedLatency&, const ObservedLatency&) = default;
};

// One result of a document that holds several: a test of llama-bench, a row of Google Benchmark.
struct ObservedCase {
  std::string name;                          // "pp16", "tg8 @ d32", "BM_gemv/64"
  std::map<std::string, std::string> facts;  // its settings, by the document's own names
  std::optional<std::int64_t> prompt_tokens, generated_tokens, depth;
  std::vector<ObservedTiming> timings;
  std::optional<std::string> error;          // it was not measured: its times mean nothing
  std::vector<ObservedLatency> latencies{};  // empty if the whole has those of its only case

  friend bool operator==(const ObservedCase&, const ObservedCase&) = default;
};

// One stretch of a graph on one backend. `inputs` are copied there before it runs.
struct ObservedSplit {
  struct Input {
    std::string name;
    std::int64_t bytes = 0;  // rounded as the document has it
    friend bool operator==(const Input&, const Input&) = default;
  };
  std::size_t graph = 0;  // which graph of the document, from 0
  std::int64_t number = 0;
  std::string backend;
  std::optional<std::int64_t> ops;  // nothing if the document lists none
  std::vector<Input> inputs;

  friend bool operator==(const ObservedSplit&, const ObservedSplit&) = default;
};

// A gauge or counter, over time or once.
struct ObservedCounter {
  struct Point {
    std::optional<double> at;  // seconds on the document's clock
    double value = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };
  std::string name;   // with labels: "llamacpp:requests{slot=\"1\"}"
  std::string track;  // process or thread it belongs to; "" when there is none
  std::string kind;   // "counter", "gauge", "histogram", ""
  std::vector<Point> points;

  friend bool operator==(const ObservedCounter&, const ObservedCounter&) = default;
};

// A thread, queue or stream of a trace.
struct ObservedTrack {
  std::string process, name;
  std::int64_t events = 0;
  double seconds = 0;  // its outermost spans together

  friend bool operator==(const ObservedTrack&, const ObservedTrack&) = default;
};

// Parts of one kind that a reader recognised in a document: how many it read, and how many not.
struct ObservedParts {
  std::string kind;  // plural: "rows", "requests"
  std::int64_t read = 0, unread = 0;
  std::vector<std::string> reasons;  // why parts were not read, each once: "column ot holds a bar"

  friend bool operator==(const ObservedParts&, const ObservedParts&) = default;
};

struct Observed {
  std::string format;                  // the reader's name: "agave", "vk-perf-logger"
  std::optional<std::string> version;  // the format's, if it has one
  ObservedContext context;
  std::vector<ObservedOp> ops;  // in the document's order
  // The CPU's calls that gave devices work or waited for them, most time first; their category is
  // "submit", "wait", "graph" or "transfer". Devices work meanwhile: no sum of `ops` has them.
  std::vector<ObservedOp> cpu_calls;
  std::vector<ObservedStep> steps;
  // The tokens that the decode rows of `ops` cover together, where there are no steps to count.
  std::optional<std::int64_t> profiled_tokens;
  std::vector<ObservedBuffer> buffers;
  std::vector<ObservedCount> counts;
  std::vector<ObservedTiming> timings;  // for the whole run
  std::vector<ObservedLatency> latencies;
  std::vector<ObservedCase> cases;
  std::vector<std::string> case_settings;  // facts by which cases differ, as "flash_attn"
  std::vector<ObservedSplit> splits;
  std::vector<ObservedCounter> counters;
  std::vector<ObservedTrack> tracks;
  std::optional<std::int64_t> prompt_tokens, cached_tokens, generated_tokens;
  std::vector<std::string> errors;   // errors that the engine reported, in order
  std::vector<ObservedParts> parts;  // kinds of which the reader counted its parts
  bool truncated = false;            // it ends in the middle: complete parts are here
  std::vector<std::string> warnings;

  friend bool operator==(const Observed&, const Observed&) = default;
};

// Returns true if there is no row, number, error or fact.
[[nodiscard]] bool empty(const Observed& observed);

// Returns the warning about parts that were not read, "4 of 9 rows not read: …"; "" if all were.
[[nodiscard]] std::string unread_warning(const ObservedParts& parts);

// weir.observed/1. Values that are absent, empty or at their default are left out. Indices that
// lead are refused.
void fields(Fields& io, Observed& observed);

[[nodiscard]] std::string_view to_string(Phase phase);  // "decode"

// The moments of a trace's events, for a timeline: an Observed only has their sums.
//
// Filled by the reader of Chrome traces on request. Bounded. Texts are as in an Observed: fit to
// show, hostile still. Pure.

struct ObservedMoments {
  struct Row {
    std::string name, category, shape;
  };
  struct Track {
    std::string process, name;
  };
  struct Span {
    double at = 0, length = 0;  // seconds from `origin`
    std::uint32_t row = 0;      // index into rows
    std::uint16_t track = 0;    // index into tracks
    bool async = false;         // overlaps others of its track
  };
  static constexpr std::size_t k_max_spans = 4'000'000;  // 96 MB

  // Seconds on the document's clock. With a clock that counts from 1970, a number has no room for
  // times below a microsecond.
  double origin = 0;
  std::vector<Row> rows;
  std::vector<Track> tracks;
  std::vector<Span> spans;   // in the order in which they ended or were found to have ended
  std::size_t left_out = 0;  // spans beyond the most

  void add(const Span& span) {
    if (spans.size() < k_max_spans) {
      spans.push_back(span);
    } else {
      ++left_out;
    }
  }
};

}  // namespace weir::observed

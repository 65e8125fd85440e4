// The formats of output that weir reads, each with a line in a list (readers.hpp) and a file
// (read_*.cpp). A format recognises a text and reads it into an Observed. Some have an adapter,
// which makes the report of a gated engine.
//
// All of them accept text that is coloured, has CR/LF, log lines in between or either decimal mark.
// Of text that ends in the middle the complete parts are read, with a warning. Pure.
#pragma once

#include <span>
#include <variant>

#include "gate/adapters/printed.hpp"
#include "gate/base/result.hpp"
#include "gate/config/pattern.hpp"
#include "gate/config/settings.hpp"
#include "gate/observed/observed.hpp"
#include "gate/profile/record.hpp"

namespace weir::adapters {

using observed::Observed, observed::ObservedBuffer, observed::ObservedCase,
    observed::ObservedContext, observed::ObservedCount, observed::ObservedCounter,
    observed::ObservedLatency, observed::ObservedOp, observed::ObservedSplit,
    observed::ObservedStep, observed::ObservedTiming, observed::ObservedTrack, observed::Phase;

// Output of a finished process (already within output_limit), and its request.
struct Output {
  std::string_view out, err;
  profile::RunParameters parameters;
  std::string_view device;                         // the backend's device, "vulkan"
  const config::GenericOutput* generic = nullptr;  // for the generic adapter
  // Values that must be there: times in a timed pass, counts in a counted one. Left out: any.
  std::optional<profile::Pass> pass;
  // Patterns of metrics of single ops that are wanted ("op:lm_head", "op_calls:gemv_*").
  std::span<const std::string> works{};
  config::WantedLoad wanted_load{};  // for results of tools that load servers
};

// Engines report counts always, or in the counted pass if weir.yaml turns that on
// (profile_args, counted_env). Counts of the generic adapter come from its rules. Results of a tool
// that loads servers have no counts; they may be given as files (weir gate --results).
enum class Counts { none, on_request, always, results };

// A format as the output of an engine that is gated.
struct Adapter {
  using Counts = adapters::Counts;
  using Reader = Result<profile::EngineReport> (*)(const Output& output);

  std::string_view name{};  // as `output:` has it; "": no gate takes the format
  int place = 0;            // in the list of values of `output:`
  Counts counts = Counts::none;
  Reader own = nullptr;       // if the report is not made from an Observed
  std::string_view format{};  // the format that has this adapter

  // Fails with Code::data when the text is no valid output of this engine: empty, garbage,
  // truncated, NaN, or another number of results than requested. The message is ready to show under
  // a cell.
  [[nodiscard]] Result<profile::EngineReport> read(const Output& output) const;
};

[[nodiscard]] const std::vector<Adapter>& table();  // by their places
[[nodiscard]] const Adapter* find(std::string_view name);
[[nodiscard]] std::vector<std::string> names();

// A text is of a format if it contains any of these. "^A" must begin a line; "A & B" needs both.
struct Mark {
  int sure = 0;  // 100: it says so itself
  std::vector<std::string_view> any;
};

struct Format {
  // Reads the text into `observed`, which is empty. The caller reports that nothing was found.
  using Read = void (*)(const Printed& printed, Observed& observed);
  // The same; fails with Code::data if the document as a whole cannot be read.
  using ReadWhole = Result<Observed> (*)(const Printed& printed);
  using Recognise = int (*)(const Printed& printed);
  Format(std::string_view name_, std::string_view what_, std::string_view engine_,
         std::variant<Read, ReadWhole> read_, std::vector<Mark> marks_, Adapter adapter_ = {},
         Recognise recognises_ = nullptr)
      : name(name_),
        what(what_),
        engine(engine_),
        read(read_),
        marks(std::move(marks_)),
        adapter(adapter_),
        recognises(recognises_) {}

  std::string_view name;    // "agave"
  std::string_view what;    // one line for people
  std::string_view engine;  // the one that writes it; "": several do, or the document says
  std::variant<Read, ReadWhole> read;
  std::vector<Mark> marks;  // the first that fits counts
  Adapter adapter;
  // How sure the text is of this format, beyond its marks; 0: not at all. May be null.
  Recognise recognises;
};

[[nodiscard]] const std::vector<Format>& formats();

// The most text that is read at once. A Chrome trace may be longer (chrome_trace_reader.hpp).
constexpr std::size_t k_max_read_bytes = std::size_t{64} << 20;
// The same for results of tools that load servers, which may list every token of a run.
constexpr std::size_t k_max_result_bytes = std::size_t{256} << 20;

// Fails with Code::data: nothing recognises it (the message names what weir reads), it is empty or
// too long, or its format finds nothing in it.
[[nodiscard]] Result<Observed> read_any(const Document& document);
// Reads a text as one format, whatever it looks like. Fails with Code::usage on an unknown name.
[[nodiscard]] Result<Observed> read_as(std::string_view format, const Document& document);
// Returns how many runs of a load a result of a tool that loads servers holds.
[[nodiscard]] std::size_t count_runs(const Observed& result, const config::WantedLoad& wanted);
// Returns the concurrencies of its runs if there are several, each of another; else nothing.
[[nodiscard]] std::vector<std::int64_t> list_concurrencies(const Observed& result);
// The formats that recognise it, surest first.
[[nodiscard]] std::vector<const Format*> find_formats(const Printed& printed);

// Returns true if a rule of `output: generic` with this pattern finds something in what was
// printed.
[[nodiscard]] bool matches_a_line(const config::Pattern& pattern, std::string_view printed);
// Returns an expression that would find the metric in what was printed; "" if weir sees none.
[[nodiscard]] std::string suggest_pattern(const std::string& metric, std::string_view printed);

// Returns the message by which an engine says that its backend has no kernel for the model. An
// engine that stops then does the right thing, and its message becomes the cell's error. The last
// such message in a failed program's standard error counts (of its last 64 KiB), without a prefix
// ("thread 1 panic: "), shortened and printable. Nothing when there is none. Supported are
// weir-engine, Agave, ggml's backends, PyTorch and CUDA (missing_kernel.cpp).
[[nodiscard]] std::optional<std::string> missing_kernel(std::string_view err);

}  // namespace weir::adapters

// The formats of output that weir reads, one line of a list (readers.hpp) and one file (read_*.cpp)
// each: which format a text is of, and what it says as an Observed; and of some of them what an
// engine that is gated reports (its adapter).
//
// All of them take text that is coloured, has CR/LF, log lines in between, either decimal mark, or
// ends in the middle: what was whole is read, and a warning says that the rest is missing. Pure.
#pragma once

#include <span>
#include <variant>

#include "gate/adapters/printed.hpp"
#include "gate/base/result.hpp"
#include "gate/config/settings.hpp"
#include "gate/observed/observed.hpp"
#include "gate/profile/record.hpp"

namespace weir::adapters {

using observed::Observed, observed::ObservedBuffer, observed::ObservedCase,
    observed::ObservedContext, observed::ObservedCount, observed::ObservedCounter,
    observed::ObservedLatency, observed::ObservedOp, observed::ObservedSplit,
    observed::ObservedStep, observed::ObservedTiming, observed::ObservedTrack, observed::Phase;

// What a finished process printed (already within output_limit) and what it was asked for.
struct Output {
  std::string_view out, err;
  profile::Asked asked;
  std::string_view device;                         // what the backend asked for, "vulkan"
  const config::GenericOutput* generic = nullptr;  // for the generic adapter
  // Which values have to be there: times in a timed pass, counts in a counted one. Left out: any.
  std::optional<profile::Pass> pass;
  // Patterns of metrics of single ops that are wanted ("op:lm_head", "op_calls:gemv_*").
  std::span<const std::string> works{};
};

// Its engines tell counts: always, or in the counted pass where weir.yaml turns on (profile_args,
// counted_env) what tells them. The generic one's are what its rules read. Results are those of a
// tool that loads servers, which has no counts; they may be given as files (weir gate --results).
enum class Counts { none, asked, always, results };

// A format as the output of an engine that is gated.
struct Adapter {
  using Counts = adapters::Counts;
  using Reader = Result<profile::EngineReport> (*)(const Output& output);

  std::string_view name{};  // as `output:` has it; "": no gate takes the format
  int place = 0;            // in the list of what `output:` takes
  Counts counts = Counts::none;
  Reader own = nullptr;       // where the report is not made of an Observed
  std::string_view format{};  // whose adapter it is

  // Fails with Code::data when the text is not what this engine prints: empty, garbage, truncated,
  // NaN, another number of results than asked for. The message is ready to show under a cell.
  [[nodiscard]] Result<profile::EngineReport> read(const Output& output) const;
};

[[nodiscard]] const std::vector<Adapter>& table();  // by their places
[[nodiscard]] const Adapter* find(std::string_view name);
[[nodiscard]] std::vector<std::string> names();

// What tells a text of a format: it holds any of these. "^A" has to begin a line; of "A & B" it has
// to hold both.
struct Mark {
  int sure = 0;  // 100: it says so itself
  std::vector<std::string_view> any;
};

struct Format {
  // Puts what it finds into `observed`, which is empty; that it found nothing the caller says.
  using Read = void (*)(const Printed& printed, Observed& observed);
  // The same; fails with Code::data where the document as a whole cannot be read.
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
  std::string_view engine;  // that writes it; "": several do, or the document says
  std::variant<Read, ReadWhole> read;
  std::vector<Mark> marks;  // the first that fits counts
  Adapter adapter;
  // How sure the text is of this format by what no mark says; 0: not at all. May be null.
  Recognise recognises;
};

[[nodiscard]] const std::vector<Format>& formats();

// The most text that is read at once. A Chrome trace may be longer (chrome_trace_reader.hpp).
constexpr std::size_t k_most_read = std::size_t{64} << 20;

// Fails with Code::data: nothing recognises it (the message names what weir reads), it is empty or
// too long, or its format finds nothing in it.
[[nodiscard]] Result<Observed> read_any(const Document& document);
// As one format, whatever the text looks like. Fails with Code::usage on an unknown name.
[[nodiscard]] Result<Observed> read_as(std::string_view format, const Document& document);
// The formats that recognise it, surest first.
[[nodiscard]] std::vector<const Format*> recognised(const Printed& printed);

// The message by which an engine says that its backend has no kernel for what a model needs: an
// engine that stops in such a case does the right thing, and the cell's error is then what it said.
// The last one in what a failed program wrote to standard error (of which the last 64 KiB are
// looked at), without what stands before it ("thread 1 panic: "), cut in length and fit to show.
// Nothing when there is none. Known forms are those of weir-engine, Agave, ggml's backends, PyTorch
// and CUDA (missing_kernel.cpp).
[[nodiscard]] std::optional<std::string> missing_kernel(std::string_view err);

}  // namespace weir::adapters

// Profile lines of hf2q, which prints what mlx-native measures: tables of command buffers by label
// (GPU time), encoding times of a token by part (CPU time), and dispatches by pipeline.
//
// Current Apple hardware has no times of single dispatches, so their absence is normal.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::hf2q {
namespace {

// Heading of a table: "[CB_PROFILE:forward_gpu seq_len=512 layers=40] total=83.10ms across 12
// labels:". Without a title the table is of one token.
struct Heading {
  std::string title;
  double seconds = 0;
  std::int64_t labels = 0;
};
std::optional<Heading> parse_heading(std::string_view line) {
  std::string_view title;
  double total = 0;
  std::int64_t labels = 0;
  LineScanner scan(line);
  if (!scan.read_until("[CB_PROFILE")) return std::nullopt;
  if (!scan.read_values("{}]  total={} ms across {} labels:", title, total, labels) || total < 0)
    return std::nullopt;
  return Heading{title.starts_with(':') ? display_text(title.substr(1)) : "", total / 1e3, labels};
}

// Parses a row: "   45.2%      4.71ms  count=40    avg= 117.8µs  min=110.2µs  max=140.9µs
// layer.attn_moe_ffn".
std::optional<ObservedBuffer> parse_row(std::string_view line) {
  double share = 0, total = 0, mean = 0, least = 0, most = 0;
  ObservedBuffer buffer;
  LineScanner scan(line);
  constexpr std::string_view k_form =
      "{} %  {} ms  count={}  avg={} \xC2\xB5s  min={} \xC2\xB5s  max={} \xC2\xB5s";
  if (!scan.read_values(k_form, share, total, buffer.buffers, mean, least, most) || scan.done() ||
      buffer.buffers == 0)
    return std::nullopt;
  buffer.seconds = total / 1e3;
  buffer.min_seconds = least / 1e6;
  buffer.max_seconds = most / 1e6;
  buffer.label = display_text(scan.rest());
  return buffer;
}

// Reads the text after "[GREEDY_PROFILE]": "linear_attn=1.2ms full_attn=0.4ms … cmd_bufs=102
// dispatches=1350".
void read_parts(std::string_view text, std::size_t step, Phase phase, Observed& observed) {
  LineScanner scan(text);
  while (const auto word = scan.word()) {
    LineScanner value(*word);
    const std::string_view name = value.read_until("=").value_or("");
    if (name.empty()) continue;
    if (word->ends_with("ms")) {
      const auto ms = value.number();
      if (!ms || *ms < 0) {
        add_unread_part(observed, "parts",
                        fmt::format("\"{}\" is no time", display_text(*word, 60)));
        continue;
      }
      ObservedOp op;
      op.op = display_text(name);
      op.category = "encode";  // the CPU's time to write commands, not the device's to run them
      op.phase = phase;
      op.step = step;
      op.seconds = *ms / 1e3;
      op.includes_other_rows = name == "total_layers";
      append_valid_op(std::move(op), observed);
    } else if (const auto count = value.integer(); count && value.done()) {
      if (name == "dispatches")
        find_or_add_count(observed, "dispatches_per_token").values.push_back(*count);
      if (name == "cmd_bufs")
        find_or_add_count(observed, "submits_per_token").values.push_back(*count);
    }
  }
}

// Reads the steps. A token's decode prints two lines: the layers, then the output head. A table of
// its command buffers may follow, or be all that is printed for it.
class StepReader {
 public:
  explicit StepReader(Observed& observed) : observed_(observed) {}

  // Takes the heading of a table. Returns false for other lines.
  bool read_table(std::string_view line) {
    const auto heading = parse_heading(line);
    if (!heading) return false;
    const bool is_of_last_step = heading->title.empty() && last_is_token_;
    last_is_token_ = false;
    head_may_follow_ = false;
    if (!is_of_last_step) {
      ObservedStep step{heading->title, Phase::decode, 1, {}, 0};
      if (heading->title.empty()) {
        step.label = fmt::format("token {}", tokens_);
        ++tokens_;
      } else {
        const std::size_t rows = step.label.find("seq_len=");
        step.tokens.reset();
        if (rows != std::string::npos)
          step.tokens = LineScanner(std::string_view(step.label).substr(rows + 8)).integer();
        step.phase = observed::phase_of_rows(step.tokens.value_or(0));
      }
      if (!append_row_within_limit(observed_.steps, std::move(step), observed_)) return false;
    }
    observed_.steps.back().seconds = heading->seconds;
    // Only the longest labels are printed; add_buffer_row() subtracts each of them.
    observed_.steps.back().labels_left_out = heading->labels;
    return true;
  }
  void add_buffer_row(ObservedBuffer buffer) {
    ObservedStep& step = observed_.steps.back();
    step.labels_left_out = std::max<std::int64_t>(step.labels_left_out - 1, 0);
    buffer.step = observed_.steps.size() - 1;
    append_row_within_limit(observed_.buffers, std::move(buffer), observed_);
  }

  // Takes a line of times by part. Returns false for other lines.
  bool read_line(std::string_view line) {
    for (const auto& [mark, phase] :
         {std::pair{std::string_view("[GREEDY_PROFILE]"), Phase::decode},
          {std::string_view("[DECODE_PROFILE]"), Phase::other}}) {
      const std::size_t at = line.find(mark);
      if (at == std::string_view::npos) continue;
      const std::string_view parts = line.substr(at + mark.size());
      const bool is_token = phase == Phase::decode;
      const bool is_head = is_token && parts.find("output_head=") != std::string_view::npos;
      const std::string label = is_token ? fmt::format("token {}", tokens_) : "forward";
      const auto tokens = is_token ? std::optional<std::int64_t>(1) : std::nullopt;
      if (!(is_head && head_may_follow_)) {
        if (is_token) ++tokens_;
        if (!append_row_within_limit(observed_.steps, {label, phase, tokens, {}, 0}, observed_))
          return true;
      }
      head_may_follow_ = is_token && !is_head;
      last_is_token_ = is_token;
      read_parts(parts, observed_.steps.size() - 1, phase, observed_);
      return true;
    }
    return false;
  }

 private:
  Observed& observed_;
  std::size_t tokens_ = 0;
  bool head_may_follow_ = false;  // the output head of the last step may follow
  bool last_is_token_ = false;    // the last step is a token without a table
};

Phase phase_named(std::string_view text) {
  if (text.find("prefill") != std::string_view::npos) return Phase::prefill;
  return text.find("decode") != std::string_view::npos ? Phase::decode : Phase::unknown;
}

// Reads "PHASE category: NAME: T ms / N calls".
std::optional<ObservedOp> parse_category(LineScanner scan) {
  const auto phase = scan.read_until(" category: ");
  const auto name = phase ? scan.read_until(": ") : std::nullopt;
  double ms = 0;
  std::int64_t calls = 0;
  if (!name || !scan.read_values("{} ms / {} calls", ms, calls)) return std::nullopt;
  ObservedOp op;
  op.op = display_text(*name);
  op.phase = phase_named(*phase);
  op.calls = calls;
  op.seconds = ms / 1e3;
  return op;
}

// Reads "PHASE dispatch: PIPELINE: N".
std::optional<ObservedOp> parse_dispatch(LineScanner scan) {
  const auto phase = scan.read_until(" dispatch: ");
  const auto name = phase ? scan.read_until_last(": ") : std::nullopt;
  std::int64_t calls = 0;
  if (!name || !scan.read_values("{}", calls) || !scan.done()) return std::nullopt;
  ObservedOp op;
  op.kernel = display_text(*name);
  op.category = "dispatch";
  op.phase = phase_named(*phase);
  op.calls = calls;
  return op;
}

// Reads DeepSeek-V4's stages: a title with their phase, then a line for each. Returns false for
// other lines. Categories and dispatches begin with "DeepSeek-V4 " as well.
//
//   DeepSeek-V4 decode GPU stages at position 128
//     attention: 12.5 ms total over 61 layers (min 0.1 ms; max 0.4 ms)
bool read_stage(std::string_view line, Phase& phase, Observed& observed) {
  LineScanner marked(line);
  if (marked.read_until("DeepSeek-V4 ")) {
    if (line.find(" GPU stages at position ") != std::string_view::npos) {
      phase = phase_named(line);
      return true;
    }
    const bool is_category = marked.rest().find(" category: ") != std::string_view::npos;
    auto op = is_category ? parse_category(marked) : parse_dispatch(marked);
    if (op) append_valid_op(*std::move(op), observed);
    return true;
  }
  if (phase == Phase::unknown || !line.starts_with("  ")) return false;
  LineScanner scan(line);
  const auto name = scan.read_until(": ");
  std::int64_t calls = 0;
  double ms = 0, least = 0, most = 0;
  if (!name || !scan.read_values("{} ms total over {} layers (min {} ms; max {} ms)", ms, calls,
                                 least, most))
    return false;
  ObservedOp op;
  op.op = display_text(*name);
  op.phase = phase;
  op.calls = calls;
  op.seconds = ms / 1e3;
  op.min_seconds = least / 1e3;
  op.max_seconds = most / 1e3;
  append_valid_op(std::move(op), observed);
  return true;
}

// Reads a decode rate: "Decode tok/s: 41.2" or "--- mlx-native …: 128 tokens in 3.10 s".
bool read_rate(std::string_view line, Observed& observed) {
  if (LineScanner decode(line); decode.read_until("Decode tok/s:")) {
    if (const auto rate = decode.number()) {
      add_sample(observed.timings, "decode_tokens_per_second", *rate);
    }
    return true;
  }
  if (!line.starts_with("--- mlx-native")) return false;
  LineScanner scan(line);
  if (!scan.read_until(": ")) return true;
  std::int64_t tokens = 0;
  double seconds = 0;
  if (!scan.read_values("{} tokens in {} s", tokens, seconds) || seconds <= 0) return true;
  observed.generated_tokens = tokens;
  add_sample(observed.timings, "decode_tokens_per_second", static_cast<double>(tokens) / seconds);
  return true;
}

}  // namespace

// Reads tables of command buffers, lines of steps, stages and rates, and warnings of mlx-native.
void read(const Printed& printed, Observed& observed) {
  StepReader steps(observed);
  bool in_table = false;
  Phase stage = Phase::unknown;
  for (const std::string_view line : printed.lines()) {
    if (printed.may_be_cut(line)) {
      mark_truncated(observed);
      continue;
    }
    if (steps.read_table(line)) {
      in_table = true;
    } else if (auto buffer = in_table ? parse_row(line) : std::nullopt) {
      steps.add_buffer_row(std::move(*buffer));
    } else if (steps.read_line(line) || read_stage(line, stage, observed) ||
               read_rate(line, observed)) {
      in_table = false;
    } else if (LineScanner log(line); log.read_until("[mlx-native] ")) {
      add_warning(observed, display_text(log.rest(), 400));
    } else if (line.find("[CB_PROFILE") != line.npos) {
      add_unread_part(observed, "tables of command buffers", "a heading has another form");
    } else if (in_table && line.find(" count=") != line.npos) {
      add_unread_part(observed, "rows of command buffers", "a row has another form");
    }
  }
  std::int64_t left_out = 0;
  for (const ObservedStep& step : observed.steps) {
    left_out = std::max(left_out, step.labels_left_out);
  }
  if (left_out > 0) {
    add_warning(observed, fmt::format("tables of command buffers list only those with most time: "
                                      "up to {} labels of one are not in it",
                                      left_out));
  }
  // In complete output, a warning alone is a result.
  if (!observed::empty(observed) || (!observed.warnings.empty() && !observed.truncated))
    observed.context.backend = "Metal";
}

}  // namespace weir::adapters::hf2q

const weir::adapters::Format weir::adapters::k_hf2q(
    "hf2q", "profile lines of hf2q and mlx-native", "hf2q", hf2q::read,
    {{90, {"[CB_PROFILE", "[GREEDY_PROFILE]", "[DECODE_PROFILE]"}},
     {70, {"^DeepSeek-V4 "}},
     {60, {"[mlx-native] ", "^--- mlx-native", "^Decode tok/s:"}}},
    {"hf2q", 5, Counts::on_request});

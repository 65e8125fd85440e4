#include <algorithm>

#include "gate/adapters/read_agave.hpp"
#include "gate/adapters/readers.hpp"

namespace weir::adapters::agave {
namespace {

constexpr std::string_view k_times = "\xC3\x97";         // "×"
constexpr std::string_view k_ellipsis = "\xE2\x80\xA6";  // "…"

struct Token {
  std::int64_t number = 0;
  double seconds = 0;
};

// The text of a token may hold quotes: it ends at the last one.
std::optional<Token> token_of(std::string_view line) {
  Scan scan(line);
  if (!scan.take("Token")) return std::nullopt;
  const auto number = scan.whole();
  if (!number || !scan.take(": \"") || !scan.until_last("\" (")) return std::nullopt;
  const auto ms = scan.number();
  if (!ms || *ms < 0 || !scan.take("ms)")) return std::nullopt;
  return Token{*number, *ms / 1e3};
}

}  // namespace

bool recognises_tokens(const Printed& printed) {
  return std::any_of(printed.lines().begin(), printed.lines().end(),
                     [](std::string_view line) { return token_of(line).has_value(); });
}

bool Tokens::take(std::string_view line) {
  last_was_counter_ = false;
  if (take_token(line) || take_counter(line)) return true;
  if (Scan time(line); time.take("Token time:")) {
    // Of the counters above it: "71ms (14.1 tok/s)".
    const auto ms = time.number();
    if (ms && time.take("ms (")) {
      if (const auto rate = time.number(); rate && time.take("tok/s)")) {
        add_sample(observed_.timings, "decode_tokens_per_second", *rate);
      }
    }
    return true;
  }
  if (line.starts_with("  ") && in_token_) return take_part(line);
  in_token_ = false;
  return false;
}

bool Tokens::take_token(std::string_view line) {
  const auto token = token_of(line);
  if (!token) return false;
  in_counters_ = false;
  in_token_ =
      keep_row(observed_.steps,
               {fmt::format("token {}", token->number), observed::Phase::decode, 1, token->seconds},
               observed_);
  return true;
}

bool Tokens::take_counter(std::string_view line) {
  Scan scan(line);
  if (scan.take("Metal counters:") && scan.done()) {
    in_counters_ = true;
    in_token_ = false;
    return true;
  }
  if (!in_counters_) return false;
  constexpr std::pair<std::string_view, const char*> k_names[] = {
      {"Dispatches:", "dispatches_per_token"},
      {"Barriers:", "barriers_per_token"},
      {"Syncs:", "syncs_per_token"}};
  for (const auto& [name, metric] : k_names) {
    if (!scan.take(name)) continue;
    scan.take("~");
    const auto value = scan.whole();
    if (!value) return false;
    count_of(observed_, metric).values.push_back(*value);
    last_was_counter_ = true;
    return true;
  }
  in_counters_ = false;
  return false;
}

// "  lm_head_gemv: 12.1ms", "  layer 0: 8.1ms (rmsNorm: 0.3ms, gemv×3: 6.2ms, ...)", "  ..."
bool Tokens::take_part(std::string_view line) {
  Scan scan(line);
  const auto name = scan.until(": ");
  const auto ms = name ? scan.number() : std::nullopt;
  if (!ms || *ms < 0 || !scan.take("ms")) return scan.take("...") || scan.take(k_ellipsis);
  Scan layer(*name);
  if (layer.take("layer")) {
    if (const auto number = layer.whole()) {
      const std::string_view rest = scan.rest();
      add_layer(*number, *ms / 1e3, rest.starts_with('(') ? rest.substr(1) : "");
      return true;
    }
  }
  add(*name, *ms / 1e3, 1, std::nullopt, false);
  return true;
}

// The list may be incomplete: what it does not name of the layer's time is a row of its own, so
// that rows add up to the layer.
void Tokens::add_layer(std::int64_t layer, double seconds, std::string_view list) {
  double named = 0;
  std::size_t parts = 0;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(", "), list.size());
    Scan scan(list.substr(0, end));
    list.remove_prefix(std::min(end + 2, list.size()));
    const auto name = scan.until(": ");
    const auto ms = name ? scan.number() : std::nullopt;
    if (!ms || *ms < 0 || !scan.take("ms")) continue;
    const std::size_t times = name->find(k_times);
    std::int64_t calls = 1;
    if (times != std::string_view::npos) {
      calls = Scan(name->substr(times + k_times.size())).whole().value_or(1);
    }
    add(name->substr(0, times), *ms / 1e3, calls, layer, false);
    named += *ms / 1e3;
    ++parts;
  }
  if (parts == 0) return add("layer", seconds, 1, layer, false);
  add("layer", seconds, 1, layer, true);
  // Sums of numbers with one decimal differ from the layer's own by rounding alone.
  if (const double rest = seconds - named; rest > 0.00005)
    add("(not listed)", rest, {}, layer, false);
}

void Tokens::add(std::string_view name, double seconds, std::optional<std::int64_t> calls,
                 std::optional<std::int64_t> layer, bool covers_others) {
  observed::ObservedOp op;
  op.op = shown_text(name);
  op.layer = layer;
  op.phase = observed::Phase::decode;
  op.step = observed_.steps.size() - 1;
  op.calls = calls;
  op.seconds = seconds;
  op.covers_others = covers_others;
  op.backend = observed_.context.backend.value_or("");
  keep_row(observed_.ops, std::move(op), observed_);
}

// A count at the very end may have lost its last digits.
void Tokens::finish(bool open) {
  if (!open || !last_was_counter_) return;
  for (auto& count : observed_.counts) {
    if (&count == &observed_.counts.back() && !count.values.empty()) count.values.pop_back();
  }
  if (!observed_.counts.empty() && observed_.counts.back().values.empty())
    observed_.counts.pop_back();
  mark_truncated(observed_);
}

}  // namespace weir::adapters::agave

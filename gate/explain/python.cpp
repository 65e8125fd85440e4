// Finds what the host does for each token in Python: functions that are called more or less often,
// and lines that run.
#include "gate/explain/patterns.hpp"
#include "gate/profile/costly_calls.hpp"

namespace weir::explain {
namespace {

using Changes = std::vector<verdict::Changed>;

constexpr std::size_t k_max_lines = 6;
// A call is worth less than a dispatch, which takes some calls.
constexpr double k_call_units = 0.02, k_costly_units = 5;

// "schedule"
std::string_view short_name(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == name.npos ? name : name.substr(dot + 1);
}

bool is_costly_call(const verdict::Changed& call) {
  return call.name.starts_with(profile::k_host_wait) ||
         profile::rank_costly_call(profile::function_of(call.name)).has_value();
}

// Returns the Python calls that changed in the direction of `delta`, either costly ones or the
// others. New calls come first, then the most telling, then the largest change.
Changes select_calls(const Changes& calls, const Rational& delta, bool is_costly) {
  Changes selected = calls;
  std::erase_if(selected, [&](const verdict::Changed& call) {
    return !same_sign(delta_of(call), delta) || is_costly_call(call) != is_costly;
  });
  std::ranges::stable_sort(selected, std::greater(), [](const verdict::Changed& call) {
    const bool is_new = call.baseline.value_or(k_zero) == k_zero;
    const auto rank = static_cast<std::int64_t>(
        profile::rank_costly_call(profile::function_of(call.name)).value_or(0));
    return std::tuple(is_new, -rank, absolute_value(delta_of(call)));
  });
  return selected;
}

// Returns "The host calls `schedule` twice a token; it was once.", or for a new call "The host now
// calls `sleep`, once a token."
std::string call_headline(const ExplainState& state, const verdict::Changed& call) {
  const Rational before = call.baseline.value_or(k_zero), after = call.current.value_or(k_zero);
  const std::string name = safe_name(short_name(profile::function_of(call.name)));
  // Functions are counted per token also where their sum has no straight line, but not where all
  // runs have the same length.
  const bool is_at_length = state.evidence.scope == unit::Scope::at_length;
  const bool is_total = is_at_length && state.evidence.length == 1;
  const auto frequency = [&](const Rational& times) {
    if (is_total) return frequency_text(times, unit::Scope::at_length) + " a run";
    return frequency_text(times, is_at_length ? unit::Scope::per_token : state.evidence.scope);
  };
  if (before == k_zero) return fmt::format("The host now calls `{}`, {}.", name, frequency(after));
  if (after == k_zero) {
    return fmt::format("The host no longer calls `{}`; it was {}.", name, frequency(before));
  }
  return fmt::format("The host calls `{}` {}; it was {}.", name, frequency(after), before.str());
}

// Lists the first changes as lines and numbers.
void add_lines(const Changes& calls, Finding& finding) {
  for (const verdict::Changed& call : std::span(calls).first(std::min(calls.size(), k_max_lines))) {
    finding.lines.push_back(fmt::format(
        "{} {} ({} → {})", signed_text(delta_of(call)), safe_name(profile::function_of(call.name)),
        call.baseline.value_or(k_zero).str(), call.current.value_or(k_zero).str()));
    finding.numbers.push_back({call.name, delta_of(call), {}, {}});
  }
}

// Adds a finding about Python calls that wait, log, copy or read back: one of them costs more than
// many others.
void find_costly_calls(ExplainState& state) {
  const char* base = "costly_calls";
  if (state.unexplained_change(base) == k_zero) base = "costly_thread_calls";
  const Rational delta = state.unexplained_change(base);
  if (delta == k_zero) return;
  const bool is_increase = delta > k_zero;
  const Changes calls = select_calls(state.evidence.host_calls, delta, /*is_costly=*/true);
  Finding finding =
      state.finding_about(is_increase ? kind::costly_call_added : kind::costly_call_removed, base);
  finding.headline = calls.empty()
                         ? fmt::format("The host makes {} calls that wait, log, copy or read back.",
                                       is_increase ? "more" : "fewer")
                         : call_headline(state, calls.front());
  add_lines(calls, finding);
  state.mark_explained(base);
  if (is_increase) {
    finding.cause = "each token waits for it.";
    finding.look_at = "who calls it: a breakpoint there, or python -m trace --trackcalls.";
  }
  state.add(std::move(finding), k_costly_units * absolute_value(delta));
}

// Adds a finding about Python functions that are called more or less often, or about a loop that
// runs more lines.
void find_plain_calls(ExplainState& state) {
  Rational delta = k_zero;
  for (const char* base : profile::k_host_counts) {
    if (delta == k_zero) delta = state.unexplained_change(base);
  }
  if (delta == k_zero) return;
  const bool is_increase = delta > k_zero;
  const Changes calls = select_calls(state.evidence.host_calls, delta, /*is_costly=*/false);
  const Rational line_delta = state.unexplained_change("python_lines");
  const Changes line_changes =
      select_calls(state.evidence.host_lines, line_delta, /*is_costly=*/false);
  if (calls.empty() && line_changes.empty()) return;
  Finding finding =
      state.finding_about(is_increase ? kind::host_calls_added : kind::host_calls_removed,
                          calls.empty() ? "python_lines" : "python_calls");
  constexpr double k_lines_a_call = 20;  // more than that of lines are a loop
  double calls_delta = 1;
  for (const verdict::Changed& call : calls) calls_delta += absolute_value(delta_of(call));
  const bool is_loop = !line_changes.empty() &&
                       (calls.empty() || absolute_value(line_delta) > k_lines_a_call * calls_delta);
  finding.headline =
      is_loop ? fmt::format("The host runs {} {} lines{} in `{}`.", magnitude(line_delta).str(),
                            is_increase ? "more" : "fewer", state.per_unit_text(),
                            safe_name(short_name(profile::function_of(line_changes.front().name))))
              : call_headline(state, calls.front());
  add_lines(is_loop ? line_changes : calls, finding);
  for (const char* base : profile::k_host_counts) {
    const Rational change = state.unexplained_change(base);
    if (change != k_zero) add_number({readable_name(base), change}, finding);
    state.mark_explained(base);
  }
  if (is_increase) {
    finding.cause = state.evidence.device == "cpu"
                        ? "the host does more for the same result."
                        : "the GPU waits for the host where a step has little work for it.";
    finding.look_at = "what changed in these functions and in those that call them.";
  }
  state.add(std::move(finding), k_call_units * absolute_value(delta));
}

}  // namespace

void find_python(ExplainState& state) {
  find_costly_calls(state);
  find_plain_calls(state);
}

}  // namespace weir::explain

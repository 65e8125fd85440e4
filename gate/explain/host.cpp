// Finds what the host does beside the work: system calls by name, and threads.

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

constexpr const char* k_threads = "threads_peak";
constexpr const char* k_program_start = "execve";  // the call that starts a program

// Returns "write +1 a token (0 → 1)".
std::string call_text(const ExplainState& state, const verdict::Changed& call) {
  return fmt::format("{} {}{} ({} → {})",
                     safe_name(call.name.substr(profile::k_system_call.size())),
                     signed_text(delta_of(call)), state.per_unit_text(),
                     call.baseline.value_or(k_zero).str(), call.current.value_or(k_zero).str());
}

// Sets the cause and where to look, if the system call `most` occurs more often.
void set_cause(const std::string& call, bool more, Finding& finding) {
  if (!more) return;
  if (call == k_program_start) {
    finding.cause = "a new program is started each time, and makes the other calls.";
    finding.look_at = "who starts it: strace -f -e trace=execve.";
  } else if (call.starts_with("futex")) {
    finding.cause = "threads wait for each other: a lock, a barrier or a queue.";
    finding.look_at = "who holds what: perf lock, or a debugger while it runs.";
  } else {
    finding.cause = "the engine asks the system for something each time.";
    finding.look_at = fmt::format("who calls it: strace -f -k -e trace={}.", safe_name(call));
  }
}

}  // namespace

// Adds a finding about system calls that are made more or less often, up to six: starts of
// programs, then the largest change first.
void find_calls(ExplainState& state) {
  std::vector<verdict::Changed> calls = state.evidence.calls;
  if (calls.empty()) return;
  std::ranges::stable_sort(calls, std::greater(),
                           [](const auto& call) { return absolute_value(delta_of(call)); });
  const double most = absolute_value(delta_of(calls.front()));
  // A program that starts makes many calls of other names, so it comes before them.
  std::ranges::stable_partition(calls, [](const verdict::Changed& call) {
    return call.name.ends_with(fmt::format(" {}", k_program_start)) && delta_of(call) > k_zero;
  });
  const std::string base =
      calls.front().name.ends_with("futex wait") ? "futex_waits" : "system_calls";
  Finding finding = state.finding_about(kind::calls_changed, base);
  for (const verdict::Changed& call :
       std::span(calls).first(std::min<std::size_t>(calls.size(), 6))) {
    finding.lines.push_back(call_text(state, call));
    finding.numbers.push_back({call.name, delta_of(call), {}, {}});
  }
  finding.headline = fmt::format("System calls: {}.", finding.lines.front());
  finding.lines.erase(finding.lines.begin());
  set_cause(calls.front().name.substr(profile::k_system_call.size()),
            delta_of(calls.front()) > k_zero, finding);
  state.mark_all_explained(
      {"system_calls", "memory_calls", "futex_waits", "futex_wakes", "poll_calls"});
  state.add(std::move(finding), most);
}

// Adds a finding if the engine has another peak number of threads than before.
void find_threads(ExplainState& state) {
  const MetricValue* before = look_up(state.evidence.before.metrics, k_threads);
  const MetricValue* after = look_up(state.evidence.after.metrics, k_threads);
  if (before == nullptr || after == nullptr || before->value() == after->value()) return;
  Finding finding = make_finding(kind::threads_changed, k_threads);
  state.mark_explained(k_threads);
  finding.headline = fmt::format("The engine has {:g} threads at once, before {:g}.",
                                 after->value(), before->value());
  if (after->value() > before->value()) {
    finding.cause = "a thread that spins takes a core from the others, whether it works or not.";
    finding.look_at = "what they do: top -H -p PID, or gdb's thread apply all bt.";
  }
  state.add(std::move(finding), /*units=*/0.5);  // ranks behind the system calls that threads make
}

}  // namespace weir::explain

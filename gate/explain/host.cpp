// What the host does beside the work: system calls by name, and threads.

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

constexpr const char* k_threads = "threads_peak";

Rational change_of(const verdict::Changed& call) {
  return call.current.value_or(k_none).minus(call.baseline.value_or(k_none)).value_or(k_none);
}

// "write +1 a token (0 → 1)"
std::string call_words(const Board& board, const verdict::Changed& call) {
  return fmt::format("{} {}{} ({} → {})", safe(call.name.substr(profile::k_system_call.size())),
                     signed_text(change_of(call)), board.per(),
                     call.baseline.value_or(k_none).str(), call.current.value_or(k_none).str());
}

void set_cause(const std::string& most, bool more, Finding& finding) {
  if (!more) return;
  if (most.starts_with("futex")) {
    finding.cause = "threads wait for each other: a lock, a barrier or a queue.";
    finding.look_at = "who holds what: perf lock, or a debugger while it runs.";
  } else {
    finding.cause = "the engine asks the system for something each time.";
    finding.look_at = fmt::format("who calls it: strace -f -k -e trace={}.", safe(most));
  }
}

}  // namespace

void find_calls(Board& board) {
  std::vector<verdict::Changed> calls = board.evidence.calls;
  if (calls.empty()) return;
  std::ranges::stable_sort(calls, std::greater(),
                           [](const auto& call) { return size_of(change_of(call)); });
  const std::string base =
      calls.front().name.ends_with("futex wait") ? "futex_waits" : "system_calls";
  Finding finding = board.about(kind::calls_changed, base);
  for (const verdict::Changed& call :
       std::span(calls).first(std::min<std::size_t>(calls.size(), 6))) {
    finding.lines.push_back(call_words(board, call));
    finding.numbers.push_back({call.name, change_of(call), {}, {}});
  }
  finding.headline = fmt::format("System calls: {}.", finding.lines.front());
  finding.lines.erase(finding.lines.begin());
  set_cause(calls.front().name.substr(profile::k_system_call.size()),
            change_of(calls.front()) > k_none, finding);
  board.take_all({"system_calls", "memory_calls", "futex_waits", "futex_wakes", "poll_calls"});
  board.add(std::move(finding), size_of(change_of(calls.front())));
}

void find_threads(Board& board) {
  const Known* before = look_up(board.evidence.before.metrics, k_threads);
  const Known* after = look_up(board.evidence.after.metrics, k_threads);
  if (before == nullptr || after == nullptr || before->value() == after->value()) return;
  Finding finding = finding_of(kind::threads_changed, k_threads);
  board.take(k_threads);
  finding.headline = fmt::format("The engine has {:g} threads at once, before {:g}.",
                                 after->value(), before->value());
  if (after->value() > before->value()) {
    finding.cause = "a thread that spins takes a core from the others, whether it works or not.";
    finding.look_at = "what they do: top -H -p PID, or gdb's thread apply all bt.";
  }
  board.add(std::move(finding), 0.5);  // behind the calls that it makes
}

}  // namespace weir::explain

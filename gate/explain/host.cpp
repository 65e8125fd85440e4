// What the host and the server do beside the work: system calls by name, threads; and of a counted
// burst drafts that were accepted, prompts that a cache answered.

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

// Shares that a server reports of a counted burst.
struct Share {
  const char *metric, *words, *cause, *look_at;
};
constexpr std::array k_shares{
    Share{"cached_prompt_share", "of the prompts came from a cache",
          "the cache of prompts is off, too small, or no longer recognizes what it holds.",
          "the server's options for caches, and how it compares a prompt with its slots."},
    Share{"draft_acceptance", "of the drafted tokens were accepted",
          "the draft model is another one, or sees another context than the model.",
          "the draft model's file, and what both are given."},
};

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

void find_served(Board& board) {
  for (const Share& share : k_shares) {
    const auto both = exact_values(board.evidence, share.metric);
    if (!both || both->before == both->after) continue;
    const double was = both->before.value(), is = both->after.value();
    Finding finding = finding_of(kind::served_changed, share.metric);
    constexpr double k_percent = 100;
    finding.headline =
        fmt::format("{:.3g} % {}, before {:.3g} %.", k_percent * is, share.words, k_percent * was);
    if (is < was) {
      finding.cause = share.cause;
      finding.look_at = share.look_at;
    }
    // What the server computes itself instead is graphs, and all that is in them. A small change of
    // the share may itself follow from other work, and explains little of it.
    constexpr double k_much = 0.1;
    const Rational graphs = board.open("graphs");
    const bool leads =
        std::fabs(is - was) >= k_much && graphs != k_none && (is < was) == (graphs > k_none);
    board.take_all({"graphs", "splits", "backend_syncs", "tensor_sets", "cpu_ops"});
    if (leads) {
      for (const auto& [count, delta] : board.found.counts) board.take(count);
    }
    board.take(share.metric);
    board.add(std::move(finding), 1, leads ? -1 : 0);
  }
}

}  // namespace weir::explain

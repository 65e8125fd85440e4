// Writes weir.explanation/1 and weir.comparison/1.

#include "gate/explain/compare.hpp"
#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

constexpr auto k_shifts =
    names_in_order<Shift>("new", "gone", "slower", "more_calls", "fewer_calls", "faster", "same");

}  // namespace

static void fields(Fields& io, Total& total) {
  io("name", total.name);
  io("baseline", total.before);
  io("current", total.after);
}

static void fields(Fields& io, Hint& hint) {
  io("metric", hint.metric);
  io("value", hint.value);
  io("text", hint.text);
}

static void fields(Fields& io, Check& check) {
  io("question", check.question);
  io.write_only("answer", to_string(check.answer));
  io("note", check.note);
}

// Reads or writes an explanation of a cell's changes as JSON, whichever `io` does.
void fields(Fields& io, Explanation& explanation) {
  io("cell", explanation.cell);
  if (explanation.is_alone) io("alone", explanation.is_alone);
  io("differs", explanation.sides_differ);
  io("findings", explanation.findings);
  io("totals", explanation.totals);
  io("hints", explanation.hints);
  io("checklist", explanation.checklist);
  io("doubts", explanation.warnings);
  if (explanation.verdict.empty()) return;
  io("verdict", explanation.verdict);
  io("reason", explanation.reason);
}

static void fields(Fields& io, ComparedOp& op) {
  io.optional("names", op.names);
  io.optional("types", op.types);
  io.optional("shapes", op.shapes);
  io.optional("backends", op.backends);
  io.optional("calls", op.calls);
  io.optional("seconds", op.seconds);
}

static void fields(Fields& io, OpChange& op) {
  io("role", op.role);
  io.write_only("change", to_string(op.shift));
  io.optional("part", op.part);
  io.optional("a", op.a);
  io.optional("b", op.b);
  auto ratio = op.time_ratio(), each = op.each_ratio();
  io.optional("time_ratio", ratio);
  io.optional("each_ratio", each);
}

static void fields(Fields& io, MetricChange& change) {
  io("metric", change.name);
  io.write_only("unit", unit::to_string(change.metric.unit));
  io.optional("a", change.a);
  io.optional("b", change.b);
}

static void side_fields(Fields& io, ComparedInput& side, std::optional<double>& seconds) {
  io("name", side.name);
  io("format", side.format);
  io("words", side.words);
  io.optional("tokens", side.tokens);
  io.optional("seconds", seconds);
}

// Reads or writes a comparison of two inputs, A and B, as JSON, whichever `io` does.
void fields(Fields& io, Comparison& both) {
  io.object("a", [&](Fields& a) { side_fields(a, both.a, both.seconds_a); });
  io.object("b", [&](Fields& b) { side_fields(b, both.b, both.seconds_b); });
  if (both.untimed_ops > 0) io.write_only("untimed", both.untimed_ops);
  io("decoding", both.decoding);
  io("per", NullIfEmpty{both.per});
  io("ops", both.ops);
  io.optional("buffers", both.buffers);
  io("metrics", both.metrics);
  io("findings", both.findings);
  io("doubts", both.warnings);
}

std::string_view to_string(Shift shift) { return weir::name_of(k_shifts, shift); }

}  // namespace weir::explain

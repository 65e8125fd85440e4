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
  io.derived("answer", to_string(check.answer));
  io("note", check.note);
}

// Lists the fields of an explanation in JSON.
void fields(Fields& io, Explanation& explanation) {
  io("cell", explanation.cell);
  if (explanation.alone) io("alone", explanation.alone);
  io("differs", explanation.differs);
  io("findings", explanation.findings);
  io("totals", explanation.totals);
  io("hints", explanation.hints);
  io("checklist", explanation.checklist);
  io("doubts", explanation.doubts);
  if (explanation.verdict.empty()) return;
  io("verdict", explanation.verdict);
  io("reason", explanation.reason);
}

static void fields(Fields& io, ComparedOp& op) {
  io.sparse("names", op.names);
  io.sparse("types", op.types);
  io.sparse("shapes", op.shapes);
  io.sparse("backends", op.backends);
  io.sparse("calls", op.calls);
  io.sparse("seconds", op.seconds);
}

static void fields(Fields& io, OpChange& op) {
  io("role", op.role);
  io.derived("change", to_string(op.change));
  io.sparse("part", op.part);
  io.sparse("a", op.a);
  io.sparse("b", op.b);
  auto ratio = op.time_ratio(), each = op.each_ratio();
  io.sparse("time_ratio", ratio);
  io.sparse("each_ratio", each);
}

static void fields(Fields& io, MetricChange& change) {
  io("metric", change.name);
  io.derived("unit", unit::to_string(change.metric.unit));
  io.sparse("a", change.a);
  io.sparse("b", change.b);
}

static void side_fields(Fields& io, ComparedInput& side, std::optional<double>& seconds) {
  io("name", side.name);
  io("format", side.format);
  io("words", side.words);
  io.sparse("tokens", side.tokens);
  io.sparse("seconds", seconds);
}

// Lists the fields of a comparison in JSON.
void fields(Fields& io, Comparison& both) {
  io.object("a", [&](Fields& a) { side_fields(a, both.a, both.seconds_a); });
  io.object("b", [&](Fields& b) { side_fields(b, both.b, both.seconds_b); });
  if (both.untimed > 0) io.derived("untimed", both.untimed);
  io("decoding", both.decoding);
  io("per", NullIfEmpty{both.per});
  io("ops", both.ops);
  io.sparse("buffers", both.buffers);
  io("metrics", both.metrics);
  io("findings", both.findings);
  io("doubts", both.doubts);
}

std::string_view to_string(Shift change) { return weir::name_of(k_shifts, change); }

}  // namespace weir::explain

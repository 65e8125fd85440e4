#include "gate/explain/explain.hpp"
#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

Json exact_json(const Rational& value) {
  return value.whole() ? Json(value.numerator()) : Json(value.str());
}

}  // namespace

Json to_json(const Explanation& explanation) {
  Json findings = Json::array(), totals = Json::array(), hints = Json::array();
  Json checks = Json::array();
  for (const Finding& one : explanation.findings) findings.push_back(verdict::to_json(one));
  for (const Total& one : explanation.totals) {
    totals.push_back({{"name", one.name},
                      {"baseline", exact_json(one.before)},
                      {"current", exact_json(one.after)}});
  }
  for (const Hint& one : explanation.hints) {
    hints.push_back({{"metric", one.metric}, {"value", one.value}, {"text", one.text}});
  }
  for (const Check& one : explanation.checklist) {
    checks.push_back(
        {{"question", one.question}, {"answer", to_string(one.answer)}, {"note", one.note}});
  }
  Json json = {{"cell", explanation.cell},
               {"differs", explanation.differs},
               {"findings", findings},
               {"totals", totals},
               {"hints", hints},
               {"checklist", checks},
               {"doubts", explanation.doubts}};
  if (!explanation.verdict.empty()) {
    json["verdict"] = explanation.verdict;
    json["reason"] = explanation.reason;
  }
  return json;
}

}  // namespace weir::explain

// weir.comparison/1.
#include "gate/explain/compare.hpp"

namespace weir::explain {
namespace {

Json json_of(const ComparedSide& side) {
  Json json = {{"name", side.name}, {"format", side.format}, {"words", side.words}};
  if (side.tokens) json["tokens"] = *side.tokens;
  return json;
}

Json json_of(const ComparedOp& op) {
  Json json = Json::object();
  const auto texts = [&](const char* key, const std::set<std::string>& all) {
    if (!all.empty()) json[key] = all;
  };
  texts("names", op.names);
  texts("types", op.types);
  texts("shapes", op.shapes);
  texts("backends", op.backends);
  if (op.calls) json["calls"] = *op.calls;
  if (op.seconds) json["seconds"] = *op.seconds;
  return json;
}

Json json_of(const OpChange& op) {
  Json json = {{"role", op.role}, {"change", to_string(op.change)}};
  if (!op.part.empty()) json["part"] = op.part;
  if (op.a) json["a"] = json_of(*op.a);
  if (op.b) json["b"] = json_of(*op.b);
  if (const auto ratio = op.time_ratio()) json["time_ratio"] = *ratio;
  if (const auto ratio = op.each_ratio()) json["each_ratio"] = *ratio;
  return json;
}

Json json_of(const MetricChange& one) {
  Json json = {{"metric", one.name}, {"unit", unit::to_string(one.metric.unit)}};
  if (one.a) json["a"] = *one.a;
  if (one.b) json["b"] = *one.b;
  return json;
}

}  // namespace

std::string_view to_string(Shift change) {
  switch (change) {
    case Shift::fresh:
      return "new";
    case Shift::gone:
      return "gone";
    case Shift::slower:
      return "slower";
    case Shift::more_calls:
      return "more_calls";
    case Shift::fewer_calls:
      return "fewer_calls";
    case Shift::faster:
      return "faster";
    case Shift::same:
      break;
  }
  return "same";
}

Json to_json(const Comparison& comparison) {
  Json json = {{"a", json_of(comparison.a)}, {"b", json_of(comparison.b)}};
  json["decoding"] = comparison.decoding;
  json["per"] = comparison.per.empty() ? Json(nullptr) : Json(comparison.per);
  if (comparison.seconds_a) json["a"]["seconds"] = *comparison.seconds_a;
  if (comparison.seconds_b) json["b"]["seconds"] = *comparison.seconds_b;
  json["ops"] = Json::array();
  for (const OpChange& op : comparison.ops) json["ops"].push_back(json_of(op));
  json["metrics"] = Json::array();
  for (const MetricChange& one : comparison.metrics) json["metrics"].push_back(json_of(one));
  json["findings"] = Json::array();
  for (const auto& finding : comparison.findings) {
    json["findings"].push_back(verdict::to_json(finding));
  }
  json["doubts"] = comparison.doubts;
  return json;
}

}  // namespace weir::explain

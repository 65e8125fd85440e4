#include "gate/verdict/finding.hpp"

#include "gate/base/text.hpp"
#include "gate/profile/metric_json.hpp"

namespace weir::verdict {
namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

std::string Finding::text() const {
  std::string all = headline;
  for (const std::string& line : lines) all += "\n" + line;
  return all;
}

Json to_json(const Finding& finding) {
  return {{"kind", finding.kind},
          {"metric", text_or_null(finding.metric)},
          {"delta", finding.delta ? profile::rational_to_json(*finding.delta) : Json()},
          {"per_layer", finding.per_layer ? Json(*finding.per_layer) : Json()},
          {"layers", finding.layers},
          {"tensors", finding.tensors},
          {"ops", finding.ops},
          {"text", finding.text()},
          {"cause", text_or_null(finding.cause)},
          {"look_at", text_or_null(finding.look_at)},
          {"also", finding.also},
          {"score", finding.score}};
}

Result<Finding> finding_from_json(const Json& json) {
  Finding finding;
  JsonReader read(json, "findings");
  finding.kind = read.string("kind");
  finding.metric = read.optional_string("metric").value_or("");
  if (read.has("delta")) finding.delta = profile::rational_from_json(json["delta"]);
  finding.per_layer = read.optional_integer("per_layer");
  if (read.has("layers")) {
    for (const Json& layer : read.array("layers")) {
      if (layer.is_number_integer()) finding.layers.push_back(layer.get<std::int64_t>());
    }
  }
  finding.tensors = read.strings("tensors");
  finding.ops = read.strings("ops");
  finding.lines = text::lines(read.string("text"));
  if (!finding.lines.empty()) {
    finding.headline = finding.lines.front();
    finding.lines.erase(finding.lines.begin());
  }
  finding.cause = read.optional_string("cause").value_or("");
  finding.look_at = read.optional_string("look_at").value_or("");
  finding.also = read.optional_boolean("also").value_or(false);
  finding.score = read.optional_number("score").value_or(0);
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return finding;
}

}  // namespace weir::verdict

#include "gate/verdict/finding.hpp"

#include "gate/base/fields.hpp"
#include "gate/base/text.hpp"

namespace weir::verdict {

std::string Finding::text() const {
  std::string all = headline;
  for (const std::string& line : lines) all += "\n" + line;
  return all;
}

void fields(Fields& io, Finding& finding) {
  io("kind", finding.kind);
  io.always("metric", NullIfEmpty{finding.metric});
  io.always("delta", finding.delta);
  io.always("per_layer", finding.per_layer);
  io.always("layers", finding.layers);
  io.always("tensors", finding.tensors);
  io.always("ops", finding.ops);
  std::string text = io.reads() ? "" : finding.text();
  io("text", text);
  io.always("cause", NullIfEmpty{finding.cause});
  io.always("look_at", NullIfEmpty{finding.look_at});
  io.always("also", finding.also);
  io.always("score", finding.score);
  if (!io.reads()) return;
  finding.lines = text::lines(text);
  if (finding.lines.empty()) return;
  finding.headline = finding.lines.front();
  finding.lines.erase(finding.lines.begin());
}

}  // namespace weir::verdict

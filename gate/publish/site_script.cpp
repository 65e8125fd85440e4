// One JSON document as a script.
#include "gate/publish/site_parts.hpp"

namespace weir::publish {

std::string site_script(std::string_view name, const Json& document) {
  const std::string json = dump_json(document);
  std::string script = fmt::format("weirData(\"{}\",", name);
  script.reserve(script.size() + json.size() + 4);
  for (std::size_t i = 0; i < json.size(); ++i) {
    // '<' and '>' stand in strings alone; so do U+2028 and U+2029, which end lines of scripts.
    if (json[i] == '<') {
      script += "\\u003c";
    } else if (json[i] == '>') {
      script += "\\u003e";
    } else if (json.compare(i, 3, "\xe2\x80\xa8") == 0) {
      script += "\\u2028";
      i += 2;
    } else if (json.compare(i, 3, "\xe2\x80\xa9") == 0) {
      script += "\\u2029";
      i += 2;
    } else {
      script += json[i];
    }
  }
  return script + ");\n";
}

}  // namespace weir::publish

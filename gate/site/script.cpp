// One JSON document as a script. It is handed over as text: JSON.parse reads much text sooner than
// a script is read, and gives no name a meaning ("__proto__").
#include "gate/site/parts.hpp"

namespace weir::site {

std::string site_script(std::string_view name, const Json& document) {
  const std::string json = dump_json(document);
  std::string script = fmt::format("weirData(\"{}\",'", name);
  script.reserve(script.size() + json.size() + json.size() / 16);
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '\\' || json[i] == '\'') {
      script += '\\';
      script += json[i];
    } else if (json[i] == '<' || json[i] == '>') {  // "</script>", "<!--", "-->"
      script += json[i] == '<' ? "\\u003c" : "\\u003e";
    } else if (json.compare(i, 3, "\xe2\x80\xa8") == 0) {  // these end lines of scripts
      script += "\\u2028";
      i += 2;
    } else if (json.compare(i, 3, "\xe2\x80\xa9") == 0) {
      script += "\\u2029";
      i += 2;
    } else {
      script += json[i];
    }
  }
  return script + "');\n";
}

}  // namespace weir::site

// `extra_body` of an engine that serves: fields of one's own in each request, from YAML to JSON.
#include <algorithm>
#include <array>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/config/parse.hpp"

namespace weir::config {
namespace {

constexpr std::size_t k_most_levels = 8;
constexpr std::size_t k_most_bytes = std::size_t{64} << 10;
constexpr std::size_t k_longest_name = 128;

// Where weir.yaml says what weir sends as this member.
std::string_view said_by(std::string_view member) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 14> k_places{
      {{"prompt", "text or file of the prompt"},
       {"messages", "text or file of the prompt"},
       {"max_tokens", "tokens of the prompt"},
       {"max_completion_tokens", "tokens of the prompt"},
       {"n_predict", "tokens of the prompt"},
       {"options.num_predict", "tokens of the prompt"},
       {"seed", "seed of the engine"},
       {"options.seed", "seed of the engine"},
       {"temperature", "nothing: sampling is greedy"},
       {"options.temperature", "nothing: sampling is greedy"},
       {"model", "model_name"},
       {"ignore_eos", "own_fields"},
       {"cache_prompt", "own_fields"},
       {"n", "nothing: one answer each"}}};
  const auto* found = std::find_if(k_places.begin(), k_places.end(),
                                   [&](const auto& place) { return place.first == member; });
  return found == k_places.end() ? std::string_view("nothing: answers are read so") : found->second;
}

class ExtraBody {
 public:
  ExtraBody(const std::vector<std::string>& sent, Problems& problems)
      : sent_(sent), problems_(problems) {}

  Json object(const Node& node, const std::string& path, std::size_t depth) {
    Json json = Json::object();
    for (const Entry& entry : node.entries) {
      if (entry.key.empty() || entry.key.size() > k_longest_name) {
        add(entry.key_at, fmt::format("the name of a field has 1 to {} bytes", k_longest_name));
        continue;
      }
      const std::string member = path.empty() ? entry.key : path + "." + entry.key;
      if (is_sent(member, entry.value)) {
        add(entry.key_at,
            fmt::format("\"{}\" is what weir itself sends; what says it in weir.yaml: {}",
                        text::printable(member.substr(0, 80)), said_by(member)));
        continue;
      }
      json[entry.key] = value(entry.value, member, depth + 1);
    }
    return json;
  }

 private:
  void add(Place at, const std::string& words) { problems_.add(at, "extra_body: " + words); }

  // Itself, or in place of an object that has it.
  [[nodiscard]] bool is_sent(const std::string& member, const Node& node) const {
    return std::any_of(sent_.begin(), sent_.end(), [&](const std::string& sent) {
      return sent == member || (node.kind != Node::Kind::map && sent.starts_with(member + "."));
    });
  }

  Json value(const Node& node, const std::string& path, std::size_t depth) {
    if (depth > k_most_levels) {
      if (!too_deep_) add(node.at, fmt::format("deeper than {} levels", k_most_levels));
      too_deep_ = true;
      return nullptr;
    }
    switch (node.kind) {
      case Node::Kind::null:
        break;
      case Node::Kind::map:
        return object(node, path, depth);
      case Node::Kind::list: {
        Json list = Json::array();
        // What stands in a list of its own is no member that weir sends.
        for (const Node& item : node.items) list.push_back(value(item, path + "[]", depth + 1));
        return list;
      }
      case Node::Kind::scalar:
        return scalar(node);
    }
    return nullptr;
  }

  // As YAML's core schema reads it, but for numbers that JSON can not write.
  Json scalar(const Node& node) {
    if (node.quoted) return node.text;
    if (node.text == "true") return true;
    if (node.text == "false") return false;
    if (const auto whole = text::to_int(node.text)) return *whole;
    const bool digits =
        !node.text.empty() &&
        node.text.find_first_not_of("0123456789", node.text[0] == '-' ? 1 : 0) == std::string::npos;
    if (digits && node.text != "-") {
      add(node.at, "a whole number that no server could read; write it in quotes");
      return nullptr;
    }
    if (const auto number = text::to_double(node.text)) return *number;
    return node.text;
  }

  const std::vector<std::string>& sent_;
  Problems& problems_;
  bool too_deep_ = false;
};

}  // namespace

std::string read_extra_body(const Node& node, const std::vector<std::string>& sent,
                            Problems& problems) {
  if (node.kind != Node::Kind::map) {
    problems.add(node.at,
                 fmt::format("extra_body is a mapping of the fields that each request has besides, "
                             "as in {{cache_salt: x}}: not {}",
                             describe(node)));
    return "";
  }
  const Json body = ExtraBody(sent, problems).object(node, "", 0);
  std::string text = body.empty() ? "" : dump_json(body);
  if (text.size() > k_most_bytes) {
    problems.add(node.at, fmt::format("extra_body: more than {} KiB, sent with each request",
                                      k_most_bytes >> 10));
  }
  return text;
}

}  // namespace weir::config

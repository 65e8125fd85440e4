#include "gate/config/veil.hpp"

#include <algorithm>
#include <set>

#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/config/container.hpp"

namespace weir::config {
namespace {

constexpr std::size_t k_digits = 4, k_more_digits = 8;

// Short aliases that would meet each other or a real name get more digits, whatever the order.
template <class Section>
std::map<std::string, std::string> aliases_of(std::string_view kind, const Section& section) {
  const auto alias = [&](const std::string& name, std::size_t digits) {
    return fmt::format("{}-{}", kind, short_hash(fmt::format("{}\n{}", kind, name), digits));
  };
  std::multiset<std::string> taken;
  for (const auto& entry : section) {
    taken.insert(entry.is_private ? alias(entry.name, k_digits) : entry.name);
  }
  std::map<std::string, std::string> aliases;
  for (const auto& entry : section) {
    if (!entry.is_private) continue;
    const std::string brief = alias(entry.name, k_digits);
    aliases[entry.name] = taken.count(brief) == 1 ? brief : alias(entry.name, k_more_digits);
  }
  return aliases;
}

// Without ".", "..", and doubled slashes, as far as the text alone can tell.
std::string normal(std::string_view path) {
  const bool absolute = path.starts_with('/');
  std::vector<std::string> parts;
  for (std::string& part : text::split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == ".." && !parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (part != ".." || !absolute) {
      parts.push_back(std::move(part));
    }
  }
  return (absolute ? "/" : "") + text::join(parts, "/");
}

bool of_a_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '_' || byte >= 0x80U || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
         (c >= 'a' && c <= 'z');
}

bool stands_at(std::string_view text, std::size_t at, std::string_view word) {
  if (text.compare(at, word.size(), word) != 0) return false;
  const std::size_t end = at + word.size();
  const bool begins = at == 0 || !of_a_word(word.front()) || !of_a_word(text[at - 1]);
  const bool ends = end == text.size() || !of_a_word(word.back()) || !of_a_word(text[end]);
  return begins && ends;
}

}  // namespace

Veil::Veil(const Settings& settings, std::string_view folder)
    : engines_(aliases_of("engine", settings.engines)),
      models_(aliases_of("model", settings.models)),
      prompts_(aliases_of("prompt", settings.prompts)) {
  for (const EngineSettings& engine : settings.engines) {
    if (!engine.is_private) continue;
    const std::string& alias = engines_.at(engine.name);
    add(engine.name, alias);
    for (std::size_t i = 0; i < engine.command.size(); ++i) {
      const std::string& word = engine.command[i];
      // The program, and what else of the command is a file: a script, a library.
      const bool file = i == 0 || word.find('/') != std::string::npos;
      // Docker and its kin are no secret.
      if (i == 0 && engine.container && begins_with(engine.command, engine.container->runtime)) {
        continue;
      }
      if (file && word.find('{') == std::string::npos) add_path(word, folder, alias);
    }
    if (engine.container && !engine.container->image.empty()) {
      add_path(engine.container->image, folder, alias);
    }
  }
  for (const ModelSettings& model : settings.models) {
    if (!model.is_private) continue;
    add(model.name, models_.at(model.name));
    add_path(model.path, folder, models_.at(model.name));
  }
  for (const PromptSettings& prompt : settings.prompts) {
    if (!prompt.is_private) continue;
    const std::string& alias = prompts_.at(prompt.name);
    add(prompt.name, alias);
    if (prompt.file) add_path(*prompt.file, folder, alias);
    if (!prompt.text) continue;
    add(std::string(text::trim(*prompt.text)), alias);
    constexpr std::size_t k_telling = 8;  // shorter lines are words like any other
    for (const std::string& line : text::lines(*prompt.text)) {
      if (text::trim(line).size() >= k_telling) add(std::string(text::trim(line)), alias);
    }
  }
  // An alias stands for itself, so that hidden text can be hidden again.
  for (const Aliases* aliases : {&engines_, &models_, &prompts_}) {
    for (const auto& [name, alias] : *aliases) add(alias, alias);
  }
  std::stable_sort(words_.begin(), words_.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
}

void Veil::add(std::string word, const std::string& alias) {
  if (!word.empty()) words_.emplace_back(std::move(word), alias);
}

void Veil::add_path(const std::string& path, std::string_view folder, const std::string& alias) {
  const std::string written = normal(path);
  const std::string file = written.substr(written.rfind('/') + 1);  // npos + 1 is 0
  add(path, alias);
  add(written, alias);
  if (!path.starts_with('/')) add(normal(fmt::format("{}/{}", folder, path)), alias);
  add(file, alias);
  // "weights" of "weights.gguf": shards and caches are named like that.
  if (const std::size_t dot = file.rfind('.'); dot != std::string::npos) {
    add(file.substr(0, dot), alias);
  }
}

profile::CellKey Veil::cell(profile::CellKey key) const {
  const auto hide = [](const Aliases& aliases, std::string& name) {
    if (const auto found = aliases.find(name); found != aliases.end()) name = found->second;
  };
  hide(engines_, key.engine);
  hide(models_, key.model);
  hide(prompts_, key.prompt);
  return key;
}

std::string Veil::cell_name(const std::string& name) const {
  const auto key = profile::CellKey::parse(name);
  return key ? cell(*key).str() : text(name);
}

std::string Veil::text(std::string_view text) const {
  if (words_.empty()) return std::string(text);
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const auto found = std::find_if(words_.begin(), words_.end(), [&](const auto& word) {
      return stands_at(text, at, word.first);
    });
    if (found == words_.end()) {
      shown += text[at++];
    } else {
      shown += found->second;
      at += found->first.size();
    }
  }
  return shown;
}

}  // namespace weir::config

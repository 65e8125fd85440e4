// Makes aliases of private names, and replaces the names in texts.
#include "gate/config/redactor.hpp"

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/config/container.hpp"
#include "gate/profile/reach.hpp"

namespace weir::config {
namespace {

constexpr std::size_t k_digits = 4, k_more_digits = 8;

// Returns the aliases of a section's private names. A short alias that equals another or a public
// name gets more digits, whatever the order of the section.
template <class Section>
std::map<std::string, std::string> make_aliases(std::string_view kind, const Section& section) {
  const auto alias = [&](const std::string& name, std::size_t digits) {
    return fmt::format("{}-{}", kind, short_hash(fmt::format("{}\n{}", kind, name), digits));
  };
  std::multiset<std::string> names;
  for (const auto& entry : section) {
    names.insert(entry.is_private ? alias(entry.name, k_digits) : entry.name);
  }
  std::map<std::string, std::string> aliases;
  for (const auto& entry : section) {
    if (!entry.is_private) continue;
    const std::string brief = alias(entry.name, k_digits);
    aliases[entry.name] = names.count(brief) == 1 ? brief : alias(entry.name, k_more_digits);
  }
  return aliases;
}

bool is_word_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '_' || byte >= 0x80U || text::is_alphanumeric(c);
}

}  // namespace

Redactor::Redactor(const Settings& settings, std::string_view folder)
    : folder_(folder),
      engines_(make_aliases("engine", settings.engines)),
      models_(make_aliases("model", settings.models)),
      prompts_(make_aliases("prompt", settings.prompts)) {
  for (const EngineSettings& engine : settings.engines) {
    if (!engine.is_private) continue;
    const std::string& alias = engines_.at(engine.name);
    add(engine.name, alias);
    Arguments command = engine.command;
    if (engine.container) command = add_container(engine, alias);
    if (engine.server && !engine.server->url.empty()) add(engine.server->url, alias);
    if (engine.server && !engine.server->model_name.empty()) add(engine.server->model_name, alias);
    for (std::size_t i = 0; i < command.size(); ++i) {
      const std::string& word = command[i];
      // The program, and other files in the command such as a script or a library.
      const bool is_file =
          (i == 0 && !word.starts_with('-')) || word.find('/') != std::string::npos;
      if (is_file && word.find('{') == std::string::npos) add_path(word, alias);
    }
  }
  for (const ModelSettings& model : settings.models) {
    if (!model.is_private) continue;
    add(model.name, models_.at(model.name));
    add_path(model.path, models_.at(model.name));
  }
  for (const PromptSettings& prompt : settings.prompts) {
    if (!prompt.is_private) continue;
    const std::string& alias = prompts_.at(prompt.name);
    add(prompt.name, alias);
    if (prompt.file) add_path(*prompt.file, alias);
    if (!prompt.text) continue;
    add(std::string(text::trim(*prompt.text)), alias);
    constexpr std::size_t k_shortest = 8;  // shorter lines may be ordinary words
    for (const std::string& line : text::lines(*prompt.text)) {
      if (text::trim(line).size() >= k_shortest) add(std::string(text::trim(line)), alias);
    }
  }
  // Aliases are kept as they are, so that redacted text can be redacted again.
  for (const Aliases* aliases : {&engines_, &models_, &prompts_}) {
    for (const auto& [name, alias] : *aliases) add(alias, alias);
  }
  std::ranges::stable_sort(words_, {}, &Word::first);
  const auto repeated = std::ranges::unique(words_, {}, &Word::first);
  words_.erase(repeated.begin(), repeated.end());
}

void Redactor::add(std::string word, const std::string& alias) {
  if (!word.empty()) words_.emplace_back(std::move(word), alias);
}

void Redactor::add_path(const std::string& path, const std::string& alias) {
  const std::string normal = profile::normal_path(path);
  const std::string file = normal.substr(normal.rfind('/') + 1);  // npos + 1 is 0
  add(path, alias);
  add(normal, alias);
  if (!path.starts_with('/')) add(profile::normal_path(fmt::format("{}/{}", folder_, path)), alias);
  add(file, alias);
  // "weights" of "weights.gguf": shards and caches are named like that.
  if (const std::size_t dot = file.rfind('.'); dot != std::string::npos) {
    add(file.substr(0, dot), alias);
  }
}

Arguments Redactor::add_container(const EngineSettings& engine, const std::string& alias) {
  const ContainerSettings& container = *engine.container;
  const bool srun = container.runtime == Runtime::srun;
  Arguments options = container.args, command = engine.command;
  std::string image = container.image;
  if (begins_with(command, container.runtime)) {
    std::erase(command, "{args}");  // may stand among the options
    const auto parts = parse_runtime_line(command, container.runtime);
    if (!parts) return command;
    const auto at = command.begin() + static_cast<std::ptrdiff_t>(parts->image);
    options.assign(command.begin() + static_cast<std::ptrdiff_t>(parts->options), at);
    if (!srun && at != command.end()) image = *at;
    command.erase(command.begin(), !srun && at != command.end() ? at + 1 : at);
  }
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string& word = options[i];
    if (srun && word == k_container_image && i + 1 < options.size()) {
      add_image(options[++i], alias);
    } else if (srun && matches_option(word, k_container_image)) {
      add_image(word.substr(std::min(word.size(), k_container_image.size() + 1)), alias);
    } else {
      add_places(word, alias);
    }
  }
  add_image(image, alias);
  return command;
}

void Redactor::add_image(const std::string& image, const std::string& alias) {
  if (image.empty() || image.find('{') != std::string::npos) return;
  add_path(image, alias);
  if (image.starts_with('/') || image.starts_with('.')) return;  // a file, or a folder
  const std::size_t digest = image.find('@');
  if (digest != std::string::npos) add(image.substr(digest + 1), alias);
  std::string name = image.substr(0, digest);
  const std::size_t colon = name.rfind(':');
  const bool has_tag = colon != std::string::npos && name.find('/', colon) == std::string::npos;
  // With and without its tag: the whole name, and each part after a "/" (or enroot's "#").
  for (std::string rest : {name, has_tag ? name.substr(0, colon) : std::string()}) {
    for (;;) {
      add(rest, alias);
      const std::size_t part = rest.find_first_of("/#");
      if (part == std::string::npos) break;
      rest.erase(0, part + 1);
    }
  }
}

void Redactor::add_places(std::string word, const std::string& alias) {
  // Folders of every machine reveal nothing, and replacing them would spoil other text.
  static const std::set<std::string> k_everywhere{"bin",  "dev",  "etc", "lib", "lib64",
                                                  "proc", "sbin", "sys", "usr"};
  static const std::set<std::string> k_tops{"home", "media", "mnt", "opt", "root",
                                            "run",  "srv",   "tmp", "var"};
  std::ranges::replace_if(
      word, [](char c) { return c == '=' || c == ','; }, ':');
  for (const std::string& piece : text::split(word, ':')) {
    if (!piece.starts_with('/') || piece.find('{') != std::string::npos) continue;
    const std::string path = profile::normal_path(piece);
    const std::size_t second = path.find('/', 1);
    const std::string top = path.substr(1, second == std::string::npos ? second : second - 1);
    if (top.empty() || k_everywhere.contains(top)) continue;
    if (second == std::string::npos && k_tops.contains(top)) continue;
    add(piece, alias);
    add(path, alias);
  }
}

profile::CellKey Redactor::cell(profile::CellKey key) const {
  const auto hide = [](const Aliases& aliases, std::string& name) {
    name = look_up(aliases, name, name);
  };
  hide(engines_, key.engine);
  hide(models_, key.model);
  hide(prompts_, key.prompt);
  return key;
}

std::string Redactor::cell_name(const std::string& name) const {
  const auto key = profile::CellKey::parse(name);
  return key ? cell(*key).str() : text(name);
}

// Returns the longest word that stands at `at`, with no letters or digits adjoining; null if there
// is none. Prompts bring many words. Those that the text begins with here all sort before it, so we
// go from one to the next by binary search.
const Redactor::Word* Redactor::find_word_at(std::string_view text, std::size_t at) const {
  if (at > 0 && is_word_byte(text[at - 1]) && is_word_byte(text[at])) return nullptr;
  const std::string_view rest = text.substr(at);
  for (std::size_t size = rest.size(); size > 0;) {
    const std::string_view begin = rest.substr(0, size);
    const auto after = std::ranges::upper_bound(
        words_, begin, {}, [](const Word& word) { return std::string_view(word.first); });
    if (after == words_.begin()) return nullptr;
    const auto word = std::prev(after);
    const std::string& last = word->first;
    const auto common =
        static_cast<std::size_t>(std::ranges::mismatch(last, begin).in1 - last.begin());
    const bool ends = common == rest.size() || common == 0 || !is_word_byte(last[common - 1]) ||
                      !is_word_byte(rest[common]);
    if (common == last.size() && ends) return &*word;
    size = common < last.size() ? common : common - 1;
  }
  return nullptr;
}

std::string Redactor::text(std::string_view text) const {
  if (words_.empty()) return std::string(text);
  std::string redacted;
  for (std::size_t at = 0; at < text.size();) {
    const Word* match = find_word_at(text, at);
    if (match == nullptr) {
      redacted += text[at];
      ++at;
    } else {
      redacted += match->second;
      at += match->first.size();
    }
  }
  return redacted;
}

}  // namespace weir::config

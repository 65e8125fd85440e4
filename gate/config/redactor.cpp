// Makes aliases of private names, and replaces the names in texts.
#include "gate/config/redactor.hpp"

#include <charconv>
#include <numeric>

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/config/container.hpp"
#include "gate/profile/reach.hpp"

namespace weir::config {
namespace {

constexpr std::size_t k_alias_digits = 4, k_long_alias_digits = 8;

// Returns aliases for the private names of a section, such as "model-1a2b". An alias that equals
// another or a public name gets more digits, whatever the order of the section.
std::map<std::string, std::string> make_aliases(std::string_view kind, const auto& section) {
  const auto alias = [&](const std::string& name, std::size_t digits) {
    return fmt::format("{}-{}", kind, short_hash(fmt::format("{}\n{}", kind, name), digits));
  };
  std::multiset<std::string> names;
  for (const auto& entry : section) {
    names.insert(entry.is_private ? alias(entry.name, k_alias_digits) : entry.name);
  }
  std::map<std::string, std::string> aliases;
  for (const auto& entry : section) {
    if (!entry.is_private) continue;
    const std::string brief = alias(entry.name, k_alias_digits);
    aliases[entry.name] = names.count(brief) == 1 ? brief : alias(entry.name, k_long_alias_digits);
  }
  return aliases;
}

bool is_word_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '_' || byte >= 0x80U || text::is_alphanumeric(c);
}

// A text in lower case, and the place in the original at which each of its bytes begins; one more
// is its end.
struct DecodedText {
  std::string text;
  std::vector<std::size_t> source_offsets;
};

DecodedText decode_identity(std::string_view original) {
  DecodedText decoded{text::lower(original), std::vector<std::size_t>(original.size() + 1)};
  std::iota(decoded.source_offsets.begin(), decoded.source_offsets.end(), 0);
  return decoded;
}

// Returns the value of the `digits` hexadecimal digits of `text` at `at`; nothing if it has fewer.
std::optional<char32_t> read_hex(std::string_view text, std::size_t at, std::size_t digits) {
  if (at + digits > text.size()) return std::nullopt;
  std::uint32_t value = 0;
  const char* end = text.data() + at + digits;
  const auto [stop, error] = std::from_chars(text.data() + at, end, value, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::string utf8(char32_t code) {
  constexpr char32_t k_two = 0x80, k_three = 0x800, k_four = 0x10000;
  const auto tail = [&](unsigned shift) {
    return static_cast<char>(0x80U | ((code >> shift) & 0x3FU));
  };
  if (code < k_two) return {static_cast<char>(code)};
  if (code < k_three) return {static_cast<char>(0xC0U | (code >> 6U)), tail(0)};
  if (code < k_four) return {static_cast<char>(0xE0U | (code >> 12U)), tail(6), tail(0)};
  return {static_cast<char>(0xF0U | ((code >> 18U) & 7U)), tail(12), tail(6), tail(0)};
}

// An escape at the beginning of a text: its length, and the bytes that it stands for.
struct Escape {
  std::size_t size = 0;
  std::string bytes;
};

// Reads the escape that the text begins with, %XX of an address or \n and \uXXXX of a JSON string:
// its size, and the bytes that it stands for. Nothing if there is none.
std::optional<Escape> read_escape(std::string_view text) {
  if (text.front() == '%') {
    const auto byte = read_hex(text, 1, 2);
    return byte ? std::optional(Escape{3, {static_cast<char>(*byte)}}) : std::nullopt;
  }
  if (text.front() != '\\' || text.size() < 2) return std::nullopt;
  if (text[1] == 'u') {
    auto code = read_hex(text, 2, 4);
    if (!code) return std::nullopt;
    const bool has_second = *code >= 0xD800 && *code < 0xDC00 && text.substr(6).starts_with("\\u");
    const auto second = has_second ? read_hex(text, 8, 4) : std::nullopt;
    if (!second) return Escape{6, utf8(*code)};
    return Escape{12, utf8(0x10000 + ((*code - 0xD800) << 10U) + (*second & 0x3FFU))};
  }
  constexpr std::string_view k_letters = "nrtbf", k_controls = "\n\r\t\b\f", k_plain = "\"/\\";
  if (const std::size_t letter = k_letters.find(text[1]); letter != std::string_view::npos) {
    return Escape{2, {k_controls[letter]}};
  }
  if (k_plain.find(text[1]) != std::string_view::npos) return Escape{2, {text[1]}};
  return std::nullopt;
}

// Returns the text with its escapes replaced, in lower case, and where each byte comes from;
// nothing if it has no escapes.
std::optional<DecodedText> unescape(const DecodedText& decoded) {
  const std::string_view escaped = decoded.text;
  if (escaped.find_first_of("%\\") == std::string_view::npos) return std::nullopt;
  DecodedText plain;
  for (std::size_t position = 0; position < escaped.size();) {
    const auto escape = read_escape(escaped.substr(position));
    const std::string bytes =
        escape ? text::lower(escape->bytes) : std::string(1, escaped[position]);
    plain.text += bytes;
    plain.source_offsets.insert(plain.source_offsets.end(), bytes.size(),
                                decoded.source_offsets[position]);
    position += escape ? escape->size : 1;
  }
  plain.source_offsets.push_back(decoded.source_offsets.back());
  if (plain.text.size() == escaped.size()) return std::nullopt;
  return plain;
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
  drop_repeated();
}

void Redactor::join(const Redactor& other) {
  engines_.insert(other.engines_.begin(), other.engines_.end());
  models_.insert(other.models_.begin(), other.models_.end());
  prompts_.insert(other.prompts_.begin(), other.prompts_.end());
  private_words_.insert(private_words_.end(), other.private_words_.begin(),
                        other.private_words_.end());
  drop_repeated();
}

// Sorts the words, and leaves the first of equal ones.
void Redactor::drop_repeated() {
  std::ranges::stable_sort(private_words_, {}, &Word::first);
  const auto repeated = std::ranges::unique(private_words_, {}, &Word::first);
  private_words_.erase(repeated.begin(), repeated.end());
}

void Redactor::add(const std::string& word, const std::string& alias) {
  if (!word.empty()) private_words_.emplace_back(text::lower(word), alias);
}

// Hides a path under `alias`, as well as its file name, and that name without endings and without
// the number of a shard.
void Redactor::add_path(const std::string& path, const std::string& alias) {
  const std::string normal = profile::normal_path(path);
  const std::string file = normal.substr(normal.rfind('/') + 1);  // npos + 1 is 0
  add(path, alias);
  add(normal, alias);
  if (!path.starts_with('/')) add(profile::normal_path(fmt::format("{}/{}", folder_, path)), alias);
  add(file, alias);
  // "weights", "weights.q4" and "weights.q4-00001-of-00002" of "weights.q4-00001-of-00002.gguf":
  // caches, logs and other shards are named so.
  std::string stem = file;
  for (std::size_t dot = stem.rfind('.'); dot != std::string::npos; dot = stem.rfind('.')) {
    stem.resize(dot);
    add(stem, alias);
    constexpr std::string_view k_shard = "-00000-of-00000";
    const std::size_t shard = stem.size() - std::min(stem.size(), k_shard.size());
    if (text::has_form(stem.substr(shard), k_shard)) add(stem.substr(0, shard), alias);
  }
}

// Hides the container's image and the paths among its options under `alias`. Image and options
// stand in the configuration, or in the engine's command if that begins with docker, podman or
// srun. Returns the rest of the command, which is the engine's own. srun has no image in its
// command: it names it in an option.
Arguments Redactor::add_container(const EngineSettings& engine, const std::string& alias) {
  const ContainerSettings& container = *engine.container;
  const bool is_srun = container.runtime == Runtime::srun;
  Arguments options = container.args, command = engine.command;
  std::string image = container.image;
  if (begins_with(command, container.runtime)) {
    std::erase(command, "{args}");  // may stand among the options
    const auto line = parse_runtime_line(command, container.runtime);
    if (!line) return command;
    auto engine_begin = command.begin() + static_cast<std::ptrdiff_t>(line->image);
    options.assign(command.begin() + static_cast<std::ptrdiff_t>(line->options), engine_begin);
    if (!is_srun && engine_begin != command.end()) {
      image = *engine_begin;
      ++engine_begin;
    }
    command.erase(command.begin(), engine_begin);
  }
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string& word = options[i];
    if (is_srun && word == k_container_image && i + 1 < options.size()) {
      ++i;
      add_image(options[i], alias);
    } else if (is_srun && matches_option(word, k_container_image)) {
      add_image(word.substr(std::min(word.size(), k_container_image.size() + 1)), alias);
    } else {
      add_places(word, alias);
    }
  }
  add_image(image, alias);
  return command;
}

// Hides the name of a container's image under `alias`: whole, without tag, each part of it, and
// its digest.
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

// Hides the absolute paths in an option, which may contain several: "/a:/b",
// "source=/a,target=/b". Folders that every machine has stay.
void Redactor::add_places(std::string word, const std::string& alias) {
  // Folders of every machine reveal nothing, and replacing them would spoil other text.
  static const std::set<std::string> k_system_folders{"bin",  "dev",  "etc", "lib", "lib64",
                                                      "proc", "sbin", "sys", "usr"};
  static const std::set<std::string> k_common_tops{"home", "media", "mnt", "opt", "root",
                                                   "run",  "srv",   "tmp", "var"};
  std::ranges::replace_if(
      word, [](char c) { return c == '=' || c == ','; }, ':');
  for (const std::string& piece : text::split(word, ':')) {
    if (!piece.starts_with('/') || piece.find('{') != std::string::npos) continue;
    const std::string path = profile::normal_path(piece);
    const std::size_t second_slash = path.find('/', 1);
    const std::string top =
        path.substr(1, second_slash == std::string::npos ? second_slash : second_slash - 1);
    if (top.empty() || k_system_folders.contains(top)) continue;
    if (second_slash == std::string::npos && k_common_tops.contains(top)) continue;
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

// Returns the longest private word at position `at`, without letters or digits next to it; null if
// there is none. Searches the sorted words from the longest possible beginning on.
const Redactor::Word* Redactor::find_word_at(std::string_view text, std::size_t at) const {
  if (at > 0 && is_word_byte(text[at - 1]) && is_word_byte(text[at])) return nullptr;
  const std::string_view rest = text.substr(at);
  for (std::size_t size = rest.size(); size > 0;) {
    const std::string_view begin = rest.substr(0, size);
    const auto after = std::ranges::upper_bound(
        private_words_, begin, {}, [](const Word& word) { return std::string_view(word.first); });
    if (after == private_words_.begin()) return nullptr;
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

// Returns the text with aliases for private words, also where it is escaped, up to three times.
std::string Redactor::text(std::string_view original) const {
  std::string redacted(original);
  if (private_words_.empty()) return redacted;
  // An escaped text may hold another one.
  constexpr int k_max_escape_levels = 3;
  for (int level = 0; level < k_max_escape_levels; ++level) {
    DecodedText decoded = decode_identity(redacted);
    for (int i = 0; i < level; ++i) {
      std::optional<DecodedText> unescaped = unescape(decoded);
      if (!unescaped) return redacted;
      decoded = *std::move(unescaped);
    }
    redacted = replace_private(redacted, decoded.text, decoded.source_offsets);
  }
  return redacted;
}

// Returns `original` with an alias for each private word of `decoded`, the same text without
// escapes. `source_offsets[i]` is where decoded[i] begins in `original`; the last is its end.
std::string Redactor::replace_private(std::string_view original, std::string_view decoded,
                                      std::span<const std::size_t> source_offsets) const {
  std::string redacted;
  for (std::size_t position = 0; position < decoded.size();) {
    if (const Word* match = find_word_at(decoded, position)) {
      const auto& [word, alias] = *match;
      redacted += alias;
      position += word.size();
    } else {
      const std::size_t begin = source_offsets[position], end = source_offsets[position + 1];
      redacted += original.substr(begin, end - begin);
      ++position;
    }
  }
  return redacted;
}

}  // namespace weir::config

// Reads the presets that are built in.
#include "gate/config/presets.hpp"

#include "gate/config/parse.hpp"

namespace weir::config {

using PresetText = std::pair<std::string_view, std::string_view>;
extern const std::span<const PresetText> k_preset_texts;

namespace {

// Reads a preset, the settings for one known engine. Only a few of the engine's keys are parsed
// here; the rest is parsed with the weir.yaml that uses it.
Result<Preset> read_preset(const PresetText& file) {
  const std::string place = fmt::format("configs/presets/{}.yaml", file.first);
  WEIR_TRY(Node tree, parse_yaml(file.second, place));
  Preset preset;
  preset.name = file.first;
  const Supported nothing;
  Parsing parsing{nothing, Problems(place), {}};
  Fields fields(tree, "the preset", parsing.problems);
  fields.read({"version"}, preset.version, WholeNumber{1, 1'000'000});
  fields.read({"about"}, preset.about, k_text);
  fields.read({"tried"}, preset.tried, k_text);
  fields.read({"programs"}, preset.programs, k_text_list);
  fields.read({"packages"}, preset.packages, k_text_list);
  fields.read({"loads"}, preset.loads, k_text);
  fields.read({"unasked"}, preset.unasked, k_text);
  fields.read({"build"}, preset.build, k_arguments);
  if (const Node* flags = fields.find({"flags"})) {
    for (const Entry& flag : flags->entries) preset.flags[flag.key] = flag.value.text;
  }
  fields.find({"models"});
  fields.find({"limits"});
  if (const Node* engine = fields.require({"engine"})) {
    const auto read_key = [&](const char* key, auto& target, const auto& read) {
      if (const Node* node = engine->find(key)) target = read(*node, key, parsing.problems);
    };
    read_key("command", preset.command, read_arguments);
    read_key("probes", preset.probes, read_texts);
    if (const Node* output = engine->find("output")) preset.output = output->text;
  }
  if (const Node* devices = fields.require({"devices"})) {
    for (const Entry& entry : devices->entries) {
      Fields inside(entry.value, entry.key, parsing.problems);
      preset.devices.push_back({entry.key, {}});
      parse_extra(inside, preset.devices.back().extra, parsing);
    }
  }
  if (const Node* prompts = fields.require({"prompts"})) {
    parse_prompts(*prompts, parsing);
    preset.prompts = std::move(parsing.settings.prompts);
  }
  fields.finish();
  if (parsing.problems.any()) return tl::unexpected(parsing.problems.error());
  preset.tree = std::make_shared<const Node>(std::move(tree));
  return preset;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const auto k_presets = collect<Preset>(
      k_preset_texts, [](const PresetText& file) { return read_preset(file).value(); });
  return k_presets;
}

std::vector<std::string> preset_names() { return section_names(presets()); }

bool loads_model(std::string_view loads, std::string_view path, bool folder) {
  if (loads.empty() || loads == "folder") return loads.empty() || folder;
  return !folder && text::lower(path).ends_with("." + std::string(loads));
}

const Preset* find_preset_by_program(std::string_view file_name) {
  return find_first(presets(),
                    [&](const Preset& preset) { return holds(preset.programs, file_name); });
}

}  // namespace weir::config

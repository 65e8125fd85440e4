#include "gate/config/starter.hpp"

#include <cmath>
#include <map>
#include <set>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/placeholders.hpp"
#include "gate/config/presets.hpp"

namespace weir::config {

extern const std::string_view k_config_form, k_github_form, k_gitlab_form;

namespace {

// A form of starter/*.yml with its {words} filled in. A line that begins with "?word " stands there
// where that has a value.
std::string filled(std::string_view form, const std::map<std::string, std::string>& values) {
  const auto value = [&](std::string_view word) { return values.at(std::string(word)); };
  std::string text;
  for (std::string_view line : text::split(form, '\n')) {
    if (line.starts_with('?')) {
      const std::size_t end = line.find(' ');
      if (value(line.substr(1, end - 1)).empty()) continue;
      line.remove_prefix(end + 1);
    }
    text += substitute(line, value) + "\n";
  }
  text.pop_back();
  return text;
}

// A name that the config will have, beside what was found.
struct Named {
  std::string name;
  const StarterEngine* engine;
  const Preset* preset;
};
// With names of their own, in their order.
std::vector<Named> named_engines(const StarterInput& found) {
  std::vector<Named> list;
  std::set<std::string> taken;
  for (const StarterEngine& engine : found.engines) {
    const Preset* preset = find_named(presets(), engine.preset);
    if (preset == nullptr) continue;
    list.push_back({fresh_name(engine.name, "engine", taken), &engine, preset});
  }
  return list;
}

std::string without_last_break(const std::string& text) {
  return text.substr(0, text.empty() ? 0 : text.size() - 1);
}

std::string engines(const StarterInput& found, const std::vector<Named>& all) {
  std::string text;
  for (const Named& one : all) {
    text += fmt::format("  {}: {{preset: {}, program: {}{}}}\n", one.name, one.preset->name,
                        yaml_scalar(one.engine->program), found.has_probes ? "" : ", probes: []");
    if (!one.preset->build.empty()) {
      text += fmt::format("    # For --against REF the base is built by an engine's build: {}\n",
                          yaml_list(one.preset->build));
    }
  }
  return without_last_break(text);
}

// Those that an engine can load; all where nothing is known of an engine.
std::string models(const StarterInput& found, const std::vector<Named>& all) {
  std::string text;
  std::set<std::string> taken;
  for (const StarterModel& model : found.models) {
    const auto loads = [&](const Named& one) {
      const std::string& only = one.preset->loads;
      return only.empty() || (only == "folder") == model.folder;
    };
    if (!all.empty() && std::ranges::none_of(all, loads)) continue;
    text +=
        fmt::format("  {}: {}\n", fresh_name(model.name, "model", taken), yaml_scalar(model.path));
  }
  return without_last_break(text);
}

// The CPU and Vulkan where an engine runs there, and for one that runs on neither its own device.
std::string backends(const StarterInput& found, const std::vector<Named>& all) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (!holds(names, name)) names.push_back(name);
  };
  for (const Named& one : all) {
    const std::size_t before = names.size();
    for (const Preset::Device& device : one.preset->devices) {
      if (device.name == "cpu" || (device.name == "vulkan" && found.has_vulkan)) add(device.name);
    }
    if (names.size() == before && find_named(one.preset->devices, "cpu") == nullptr) {
      add(one.preset->devices.front().name);
    }
  }
  if (all.empty()) names = {"cpu"};
  return fmt::format("{{{}: {{}}}}", text::join(names, ": {}, "));
}

// Where the Action and the releases are.
constexpr const char* k_home = "OWNER/weir";
constexpr const char* k_vulkan_packages = " libvulkan1 mesa-vulkan-drivers";

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

}  // namespace

std::string fresh_name(std::string_view wanted, std::string_view fallback,
                       std::set<std::string>& taken) {
  constexpr std::size_t k_longest = 56;  // leaves room for a number
  std::string name;
  for (const char c : wanted) {
    const bool plain = text::is_alphanumeric(c);
    const bool inside = c == '.' || c == '_' || c == '-';
    if (plain || (inside && !name.empty())) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
    if (name.size() == k_longest) break;
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  if (name.empty()) name = fallback;
  std::string unique = name;
  for (int i = 2; !taken.insert(text::lower(unique)).second; ++i) {
    unique = fmt::format("{}-{}", name, i);
  }
  return unique;
}

std::string yaml_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text::printable(text)) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n' || c == '\t') continue;
    result += c;
  }
  return result + '"';
}

std::string starter_config(const StarterInput& found) {
  const std::vector<Named> all = named_engines(found);
  return filled(k_config_form, {{"home", k_home},
                                {"none", all.empty() ? "yes" : ""},
                                {"engines", engines(found, all)},
                                {"models", models(found, all)},
                                {"no_model", models(found, all).empty() ? "yes" : ""},
                                {"backends", backends(found, all)}});
}

std::string starter_github(const StarterCi& found) {
  // A scalar that GitHub takes for text, whatever is in it.
  const auto scalar = [](const std::string& text) {
    return yaml_quoted(replaced(text, "${{", "${{ '${{' }}"));
  };
  return filled(k_github_form, {{"home", k_home},
                                {"minutes", fmt::format("{:.0f}", std::ceil(found.minutes))},
                                {"vulkan", found.vulkan ? k_vulkan_packages : ""},
                                {"folder", found.folder == "." ? "" : scalar(found.folder)},
                                {"file", found.file == "weir.yaml" ? "" : scalar(found.file)},
                                {"stored", found.builds ? "" : "yes"}});
}

std::string starter_gitlab(const StarterCi& found) {
  // One word of a POSIX shell.
  const auto word = [](const std::string& text) {
    return "'" + replaced(text, "'", "'\\''") + "'";
  };
  const bool here = found.folder == ".";
  const auto made = [&](const char* file) {
    return yaml_quoted((here ? "" : found.folder + "/") + file);
  };
  std::string gate =
      "weir gate --counts-only --json verdict.json --junit weir.xml --openmetrics metrics.txt";
  if (found.file != "weir.yaml") gate += " --config " + word(found.file);
  return filled(k_gitlab_form, {{"home", k_home},
                                {"minutes", fmt::format("{:.0f}", std::ceil(found.minutes))},
                                {"vulkan", found.vulkan ? k_vulkan_packages : ""},
                                {"version", found.version},
                                {"folder", here ? "" : yaml_quoted("cd " + word(found.folder))},
                                {"gate", yaml_quoted(gate)},
                                {"verdict", made("verdict.json")},
                                {"out", made("weir-out/")},
                                {"junit", made("weir.xml")},
                                {"metrics", made("metrics.txt")}});
}

}  // namespace weir::config

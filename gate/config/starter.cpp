#include "gate/config/starter.hpp"

#include <cmath>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/placeholders.hpp"
#include "gate/config/presets.hpp"

namespace weir::config {

extern const std::string_view k_config_form, k_github_form, k_post_form, k_gitlab_form,
    k_gitlab_note;

namespace {

// A form of starter/*.yml with its {words} filled in. A line that begins with "?word " stands there
// where that has a value; "?word" alone is an empty line.
std::string filled(std::string_view form, const std::map<std::string, std::string>& values) {
  const auto value = [&](std::string_view word) { return values.at(std::string(word)); };
  std::vector<std::string> lines;
  for (std::string_view line : text::split(form, '\n')) {
    if (line.starts_with('?')) {
      const std::size_t end = std::min(line.find(' '), line.size());
      if (value(line.substr(1, end - 1)).empty()) continue;
      line.remove_prefix(std::min(end + 1, line.size()));
    }
    lines.push_back(substitute(line, value));
  }
  return text::join(lines, "\n");
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

std::string engines(const StarterInput& found, const std::vector<Named>& all) {
  std::vector<std::string> lines;
  for (const Named& one : all) {
    const std::string& program = one.engine->program;
    const std::string keys =
        fmt::format("{{preset: {}{}{}", one.preset->name,
                    program.empty() ? "" : ", program: " + yaml_scalar(program),
                    found.has_probes ? "" : ", probes: []");
    // A program of this checkout: a base has its own, which is built.
    if (found.build.empty() || !one.engine->program.starts_with("./")) {
      lines.push_back(fmt::format("  {}: {}}}", one.name, keys));
      continue;
    }
    lines.push_back(fmt::format(
        "  {}:\n    {},\n     # How to build a base, to compare with (--against):\n     build: "
        "{}}}",
        one.name, keys, one.preset->build.empty() ? found.build : yaml_list(one.preset->build)));
  }
  return text::join(lines, "\n");
}

// Those that an engine can load; all where nothing is known of an engine.
std::string models(const StarterInput& found, const std::vector<Named>& all) {
  std::vector<std::string> lines;
  std::set<std::string> taken;
  for (const StarterModel& model : found.models) {
    const auto loads = [&](const Named& one) {
      return loads_model(one.preset->loads, model.path, model.folder);
    };
    if (!all.empty() && std::ranges::none_of(all, loads)) continue;
    lines.push_back(
        fmt::format("  {}: {}", fresh_name(model.name, "model", taken), yaml_scalar(model.path)));
  }
  return text::join(lines, "\n");
}

// The CPU and Vulkan where an engine runs there, and for one that runs on neither its own device.
std::string backends(const StarterInput& found, const std::vector<Named>& all) {
  if (!found.twin.empty()) {
    return fmt::format("{{{0}: {{device: {1}, twin: {0}}}}}", found.twin, found.twin_device);
  }
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
  if (all.empty() && found.has_vulkan) names.emplace_back("vulkan");
  return fmt::format("{{{}: {{}}}}", text::join(names, ": {}, "));
}

// Where the Action and the releases are.
constexpr const char* k_home = "OWNER/weir";
constexpr const char* k_vulkan_packages = " libvulkan1 mesa-vulkan-drivers";

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// On one line: a name may hold a line break.
std::string one_line(std::string_view text) { return replaced(text::printable(text), "\n", ""); }

// `text` as a scalar: double quotes take any, paths may hold blanks, quotes and what YAML means
// something by.
std::string yaml_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : replaced(one_line(text), "\t", "")) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
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

std::string starter_config(const StarterInput& found) {
  const std::vector<Named> all = named_engines(found);
  const std::string loaded = models(found, all);
  return filled(k_config_form, {{"home", k_home},
                                {"none", all.empty() ? "yes" : ""},
                                {"probed", all.empty() && found.has_probes ? "yes" : ""},
                                {"engines", engines(found, all)},
                                {"models", loaded},
                                {"no_model", loaded.empty() ? "yes" : ""},
                                {"backends", backends(found, all)}});
}

std::string missing_build(const std::string& program) {
  return fmt::format(
      "the runner has no {} unless a step gets it: \"build:\" is missing in weir.yaml", program);
}

namespace {

// One word of a POSIX shell.
std::string word(const std::string& text) {
  return "'" + replaced(one_line(text), "'", "'\\''") + "'";
}

// What a job does before weir is asked, a command a line; as one script, or each for itself. `file`
// is the workflow's name.
std::vector<std::string> steps_of(const StarterCi& found, const std::string& file, bool script) {
  std::vector<std::string> lines;
  if (script && found.folder != ".") lines.push_back("cd " + word(found.folder));
  lines.insert(lines.end(), found.builds.begin(), found.builds.end());
  const auto ask = [&](const std::string& test, const std::string& place, const std::string& what) {
    lines.push_back(
        fmt::format("{} || {{ echo {}; exit 1; }}", test,
                    word(fmt::format("::error title=weir::{}: {} {}", file, what, place))));
  };
  for (const std::string& program : found.programs) {
    if (script) lines.push_back("# " + missing_build(program));
    ask("command -v " + word(program) + " >/dev/null", program,
        "build the engine here, and say so in weir.yaml as well (build: [./build.sh]):");
  }
  for (const std::string& model : found.models) {
    ask("test -e " + word(model), model, "fetch this model here:");
  }
  return lines;
}

std::string indented(const std::vector<std::string>& lines, std::string_view indent) {
  const auto shown = [&](const std::string& line) { return std::string(indent) + one_line(line); };
  return text::join(collect<std::string>(lines, shown), "\n");
}

std::string below_root(const StarterCi& found, const std::string& file) {
  return (found.folder == "." ? "" : found.folder + "/") + file;
}

std::map<std::string, std::string> github_values(const StarterCi& found) {
  // Text that GitHub takes for text, whatever is in it.
  const auto plain = [](const std::string& text) { return replaced(text, "${{", "${{ '${{' }}"); };
  const auto scalar = [&](const std::string& text) { return yaml_quoted(plain(text)); };
  std::vector<std::string> paths;
  for (const std::string& model : found.models) paths.push_back(below_root(found, model));
  const std::string folder = found.folder == "." ? "" : scalar(found.folder);
  const std::string file = found.file == "weir.yaml" ? "" : scalar(found.file);
  constexpr std::string_view k_block = "            ";
  const auto own = [&](const std::string& value) { return found.forks ? "" : value; };
  return {
      {"home", k_home},
      {"own", own("yes")},
      {"own_folder", own(folder)},
      {"own_file", own(file)},
      {"judge", found.forks ? "weir-post.yml" : "the job \"post\""},
      {"minutes", fmt::format("{:.0f}", std::ceil(found.minutes))},
      {"vulkan", found.vulkan ? k_vulkan_packages : ""},
      {"fetched", found.models.empty() ? "" : "yes"},
      {"paths", plain(indented(paths, k_block))},
      {"bases", found.has_base ? "yes" : ""},
      {"steps", plain(indented(steps_of(found, ".github/workflows/weir.yml", true), "          "))},
      {"folder", folder},
      {"file", file},
      {"config", folder + file},
      {"stored", found.has_base ? "" : "yes"},
      {"made", plain(indented(found.made, k_block))}};
}

}  // namespace

std::string starter_github(const StarterCi& found) {
  return filled(k_github_form, github_values(found));
}

std::string starter_github_post(const StarterCi& found) {
  return filled(k_post_form, github_values(found));
}

std::string starter_gitlab(const StarterCi& found) {
  const bool here = found.folder == ".";
  const auto made = [&](const char* file) { return yaml_quoted(below_root(found, file)); };
  // GitLab fills in "$NAME" in a variable's value.
  const auto value = [](const std::string& text) { return yaml_quoted(replaced(text, "$", "$$")); };
  const std::string config = found.file == "weir.yaml" ? "" : " --config " + word(found.file);
  std::string gate =
      "weir gate --counts-only --require-baseline --json verdict.json --markdown weir.md --junit "
      "weir.xml --openmetrics metrics.txt --rules-from \"$rules\"" +
      config;
  gate += found.has_base ? " --against \"$base\" || code=$?" : " || code=$?";
  std::vector<std::string> steps = steps_of(found, ".gitlab-ci.yml", false);
  for (const std::string& model : found.made) {
    steps.push_back(
        fmt::format("test -e {0} || weir model make {1}", model.substr(0, model.find(' ')), model));
  }
  // In a shell of its own: what is done later begins at the repository's root.
  std::vector<std::string> lines;
  for (const std::string& step : steps) {
    lines.push_back(
        "- " + yaml_quoted(here ? step : fmt::format("(cd {} && {})", word(found.folder), step)));
  }
  std::string cached;
  for (const std::string& model : found.models) cached += ", " + made(model.c_str());
  return filled(k_gitlab_form,
                {{"home", k_home},
                 {"minutes", fmt::format("{:.0f}", std::ceil(found.minutes))},
                 {"packages", found.vulkan ? k_vulkan_packages : ""},
                 {"version", found.version},
                 {"cached", cached},
                 {"steps", indented(lines, "    ") + (lines.empty() ? "" : "\n")},
                 {"folder", here ? "" : yaml_quoted("cd " + word(found.folder))},
                 {"gate", yaml_quoted(gate)},
                 {"accept", yaml_quoted("weir baseline accept --counts-only" + config)},
                 {"baselines", made("baselines/")},
                 {"verdict", made("verdict.json")},
                 {"junit", made("weir.xml")},
                 {"report", made("weir.md")},
                 {"metrics", made("metrics.txt")}}) +
         "\n" +
         replaced(std::string(k_gitlab_note), "\"0.1.0\", WEIR_FOLDER: ., WEIR_CONFIG: weir.yaml",
                  fmt::format("\"{}\", WEIR_FOLDER: {}, WEIR_CONFIG: {}", found.version,
                              value(found.folder), value(found.file)));
}

}  // namespace weir::config

// Writes the starter weir.yaml and its CI workflows from forms.
#include "gate/config/starter.hpp"

#include <cmath>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/placeholders.hpp"
#include "gate/config/presets.hpp"

namespace weir::config {

extern const std::string_view k_config_form, k_github_form, k_post_form, k_gitlab_form,
    k_gitlab_note, k_waive_workflow, k_nightly_workflow;

namespace {

// Returns a form of starter/*.yml with values for its {words}. A line that begins with "?word "
// stays if that word has a value; "?word" alone becomes an empty line.
std::string fill_form(std::string_view form, const std::map<std::string, std::string>& values) {
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

// An engine with the name that it gets in the config.
struct NamedEngine {
  std::string name;
  const StarterEngine* engine;
  const Preset* preset;
};
// Returns the engines with known presets, in their order, each under a unique name.
std::vector<NamedEngine> named_engines(const StarterInput& input) {
  std::vector<NamedEngine> list;
  std::set<std::string> names;
  for (const StarterEngine& engine : input.engines) {
    const Preset* preset = find_named(presets(), engine.preset);
    if (preset == nullptr) continue;
    list.push_back({fresh_name(engine.name, "engine", names), &engine, preset});
  }
  return list;
}

// Returns the entries of `engines` in a new weir.yaml, one for each engine that was detected.
std::string engines_section(const StarterInput& input, const std::vector<NamedEngine>& engines) {
  std::vector<std::string> lines;
  for (const NamedEngine& engine : engines) {
    const std::string& program = engine.engine->program;
    std::string keys = fmt::format("{{preset: {}", engine.preset->name);
    if (!program.empty()) keys += ", program: " + yaml_scalar(program);
    if (!input.has_probes) keys += ", probes: []";
    // A program of this checkout: comparing with a base builds the base's own.
    const bool is_built = program.starts_with("./") && !engine.engine->is_installed;
    if (input.build.empty() || !is_built) {
      lines.push_back(fmt::format("  {}: {}}}", engine.name, keys));
      continue;
    }
    lines.push_back(fmt::format(
        "  {}:\n    {},\n     # How to build a base, to compare with (--against):\n     build: "
        "{}}}",
        engine.name, keys,
        engine.preset->build.empty() ? input.build : yaml_list(engine.preset->build)));
  }
  return text::join(lines, "\n");
}

// Returns the entries of `models` in a new weir.yaml: those that a detected engine can load, or
// all without engines.
std::string models_section(const StarterInput& input, const std::vector<NamedEngine>& engines) {
  std::vector<std::string> lines;
  std::set<std::string> names;
  for (const StarterModel& model : input.models) {
    const auto loads = [&](const NamedEngine& engine) {
      return loads_model(engine.preset->loads, model.path, model.folder);
    };
    if (!engines.empty() && std::ranges::none_of(engines, loads)) continue;
    lines.push_back(
        fmt::format("  {}: {}", fresh_name(model.name, "model", names), yaml_scalar(model.path)));
  }
  return text::join(lines, "\n");
}

// Returns `backends` of a new weir.yaml: CPU and Vulkan if an engine runs there, else an engine's
// first device. A twin (simulated GPU) is the only backend if one is given.
std::string backends_section(const StarterInput& input, const std::vector<NamedEngine>& engines) {
  if (!input.twin_name.empty()) {
    return fmt::format("{{{0}: {{device: {1}, twin: {0}}}}}", input.twin_name,
                       input.imitated_device);
  }
  std::vector<std::string> backends;
  const auto add_backend = [&](const std::string& name) {
    if (!holds(backends, name)) backends.push_back(name);
  };
  for (const NamedEngine& engine : engines) {
    const std::size_t count_before = backends.size();
    for (const Preset::Device& device : engine.preset->devices) {
      const bool is_usable = device.name == "cpu" || (device.name == "vulkan" && input.has_vulkan);
      if (is_usable) add_backend(device.name);
    }
    const bool has_cpu = find_named(engine.preset->devices, "cpu") != nullptr;
    if (backends.size() == count_before && !has_cpu) {
      add_backend(engine.preset->devices.front().name);
    }
  }
  if (engines.empty()) {
    add_backend("cpu");
    if (input.has_vulkan) add_backend("vulkan");
  }
  return fmt::format("{{{}: {{}}}}", text::join(backends, ": {}, "));
}

// Repository of the GitHub Action and the releases.
constexpr const char* k_home = "OWNER/weir";
constexpr const char* k_vulkan_packages = " libvulkan1 mesa-vulkan-drivers";

std::string replace_all(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// Returns `text` printable and on one line, as a name may hold a line break.
std::string single_line(std::string_view text) {
  return replace_all(text::printable(text), "\n", "");
}

// Returns `text` as a double-quoted YAML scalar, which can hold any text.
std::string yaml_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : replace_all(single_line(text), "\t", "")) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

}  // namespace

// Returns a valid and unused name made of `wanted`, with '-' for other characters, and adds it to
// `used_names`. `fallback` replaces an empty name; a number makes it unique.
std::string fresh_name(std::string_view wanted, std::string_view fallback,
                       std::set<std::string>& used_names) {
  constexpr std::size_t k_max_name_length = 56;  // leaves room for a number
  std::string name;
  for (const char c : wanted) {
    const bool may_begin = text::is_alphanumeric(c);
    const bool may_follow = c == '.' || c == '_' || c == '-';
    if (may_begin || (may_follow && !name.empty())) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
    if (name.size() == k_max_name_length) break;
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  if (name.empty()) name = fallback;
  std::string unique = name;
  for (int i = 2; used_names.contains(text::lower(unique)); ++i) {
    unique = fmt::format("{}-{}", name, i);
  }
  used_names.insert(text::lower(unique));
  return unique;
}

std::string starter_config(const StarterInput& input) {
  const std::vector<NamedEngine> all = named_engines(input);
  const std::string loaded = models_section(input, all);
  return fill_form(k_config_form, {{"home", k_home},
                                   {"none", all.empty() ? "yes" : ""},
                                   {"probed", all.empty() && input.has_probes ? "yes" : ""},
                                   {"engines", engines_section(input, all)},
                                   {"models", loaded},
                                   {"no_model", loaded.empty() ? "yes" : ""},
                                   {"backends", backends_section(input, all)}});
}

namespace {

// Returns `text` as one quoted word of a POSIX shell.
std::string shell_word(const std::string& text) {
  return "'" + replace_all(single_line(text), "'", "'\\''") + "'";
}

// Returns the commands that a CI job runs before weir: builds, and checks that programs and models
// exist. `script`: they form one script. `file` is the workflow's name, for messages.
std::vector<std::string> setup_steps(const StarterCi& ci, const std::string& file, bool is_script) {
  std::vector<std::string> lines;
  if (is_script && ci.folder != ".") lines.push_back("cd " + shell_word(ci.folder));
  lines.insert(lines.end(), ci.builds.begin(), ci.builds.end());
  const auto add_check = [&](const std::string& test, const std::string& place,
                             const std::string& what) {
    lines.push_back(
        fmt::format("{} || {{ echo {}; exit 1; }}", test,
                    shell_word(fmt::format("::error title=weir::{}: {} {}", file, what, place))));
  };
  for (const std::string& program : ci.programs) {
    const bool is_installed = is_looked_up(program);
    if (is_script && !is_installed) {
      lines.push_back(
          fmt::format("# The runner has no {}: name the command that builds it (build: in "
                      "weir.yaml), or get it here",
                      program));
    }
    add_check(
        "command -v " + shell_word(program) + " >/dev/null", program,
        is_installed
            ? "install this program here:"
            : "build the engine here, and say so in weir.yaml as well (build: [./build.sh]):");
  }
  for (const std::string& model : ci.models) {
    add_check("test -e " + shell_word(model), model, "fetch this model here:");
  }
  return lines;
}

std::string indent_lines(const std::vector<std::string>& lines, std::string_view indent) {
  const auto shown = [&](const std::string& line) {
    return std::string(indent) + single_line(line);
  };
  return text::join(collect<std::string>(lines, shown), "\n");
}

std::string below_root(const StarterCi& ci, const std::string& file) {
  return (ci.folder == "." ? "" : ci.folder + "/") + file;
}

// Returns the values of the words in the forms of the GitHub workflows; "" drops the lines of a
// word.
std::map<std::string, std::string> github_values(const StarterCi& ci) {
  // GitHub would evaluate "${{" as an expression.
  const auto without_expressions = [](const std::string& text) {
    return replace_all(text, "${{", "${{ '${{' }}");
  };
  const auto quoted_scalar = [&](const std::string& text) {
    return yaml_quoted(without_expressions(text));
  };
  const std::string folder = ci.folder == "." ? "" : quoted_scalar(ci.folder);
  const std::string file = ci.file == "weir.yaml" ? "" : quoted_scalar(ci.file);
  constexpr std::string_view k_block = "            ";
  const bool has_post_job = !ci.forks || ci.queue;
  const auto if_post_job = [&](const std::string& value) { return has_post_job ? value : ""; };
  const auto if_counts = [&](const std::string& value) { return ci.has_counts ? value : ""; };
  return {{"home", k_home},
          {"kind", ci.has_counts ? "counts" : "times"},
          {"counts", if_counts("yes")},
          {"times", ci.has_counts ? "" : "yes"},
          {"branch", ci.has_counts || ci.comments ? "yes" : ""},
          {"own", ci.forks ? "" : "yes"},
          {"queue", ci.queue ? "yes" : ""},
          {"queue_alone", ci.queue && ci.forks ? "yes" : ""},
          {"posts", if_post_job("yes")},
          {"posts_counts", if_post_job(if_counts("yes"))},
          {"posts_branch", if_post_job(ci.has_counts || ci.comments ? "yes" : "")},
          {"posts_folder", if_post_job(folder)},
          {"posts_file", if_post_job(file)},
          {"judge", ci.forks ? "weir-post.yml" : "the job \"post\""},
          {"minutes", fmt::format("{:.0f}", std::ceil(ci.minutes))},
          {"vulkan", ci.vulkan ? k_vulkan_packages : ""},
          {"steps", without_expressions(indent_lines(
                        setup_steps(ci, ".github/workflows/weir.yml", true), "          "))},
          {"folder", folder},
          {"file", file},
          {"baselines_config", if_counts(folder + file)},
          {"baselines_folder", if_counts(folder)},
          {"baselines_file", if_counts(file)},
          {"stored", ci.has_base ? "" : "yes"},
          {"base", ci.has_base ? "yes" : ""},
          {"made", without_expressions(indent_lines(ci.generated_models, k_block))}};
}

}  // namespace

bool is_looked_up(const std::string& program) { return program.find('/') == std::string::npos; }

std::string starter_github(const StarterCi& ci) {
  return fill_form(k_github_form, github_values(ci));
}

std::string starter_github_post(const StarterCi& ci) {
  return fill_form(k_post_form, github_values(ci));
}

// The lines of docs/ci/nightly.yml with its example of a model.
constexpr std::string_view k_nightly_models =
    "          # Made where it is not there: FILE and options of weir model make. Fetch other "
    "models "
    "in a step before.\n"
    "          models: models/tiny.gguf --layers 2 --embedding 128\n";

std::string starter_github_waive() { return std::string(k_waive_workflow); }

// Returns the GitHub workflow that measures every night. Lines of the template are replaced by
// this repository's steps, models and options.
std::string starter_github_nightly(const StarterCi& ci) {
  auto values = github_values(ci);
  const auto line_if = [&](const char* name, const std::string& key) {
    return values[name].empty() ? "" : fmt::format("          {}: {}\n", key, values[name]);
  };
  const std::string steps =
      values["steps"].empty()
          ? ""
          : fmt::format("      - name: The engine and its models\n        run: |\n{}\n",
                        values["steps"]);
  const std::string models =
      values["made"].empty() ? "" : fmt::format("          models: |\n{}\n", values["made"]);
  std::string text =
      replace_all(std::string(k_nightly_workflow),
                  "      - name: Build the engine\n        run: ./build.sh\n", steps);
  text = replace_all(text, std::string(k_nightly_models), models);
  return replace_all(text, "          against: none\n",
                     line_if("folder", "working-directory") + line_if("file", "config") +
                         "          against: none\n");
}

std::string starter_gitlab(const StarterCi& ci) {
  const bool is_root = ci.folder == ".";
  const auto quoted_path = [&](const char* file) { return yaml_quoted(below_root(ci, file)); };
  // GitLab fills in "$NAME" in a variable's value.
  const auto value = [](const std::string& text) {
    return yaml_quoted(replace_all(text, "$", "$$"));
  };
  const std::string config = ci.file == "weir.yaml" ? "" : " --config " + shell_word(ci.file);
  const std::string counts_only = ci.has_counts ? " --counts-only" : "";
  std::string gate = fmt::format(
      "weir gate --out \"$out\"{} --require-baseline --json verdict.json --markdown "
      "weir.md --junit weir.xml --openmetrics metrics.txt --rules-from \"$rules\" "
      "\"${{words[@]}}\"{}",
      counts_only, config);
  gate += ci.has_base ? " --against \"$base\" || code=$?" : " || code=$?";
  std::vector<std::string> steps = setup_steps(ci, ".gitlab-ci.yml", false);
  for (const std::string& model : ci.generated_models) {
    steps.push_back(
        fmt::format("test -e {0} || weir model make {1}", model.substr(0, model.find(' ')), model));
  }
  // Each step runs in a subshell, so that later ones begin at the repository's root.
  std::vector<std::string> lines;
  for (const std::string& step : steps) {
    lines.push_back(
        "- " +
        yaml_quoted(is_root ? step : fmt::format("(cd {} && {})", shell_word(ci.folder), step)));
  }
  const std::string folder = is_root ? "" : yaml_quoted("cd " + shell_word(ci.folder));
  const std::string judged_again =
      replace_all(std::string(k_gitlab_note), "\"0.1.0\", WEIR_FOLDER: ., WEIR_CONFIG: weir.yaml",
                  fmt::format("\"{}\", WEIR_FOLDER: {}, WEIR_CONFIG: {}", ci.version,
                              value(ci.folder), value(ci.file)));
  return fill_form(k_gitlab_form,
                   {{"home", k_home},
                    {"kind", ci.has_counts ? "counts" : "times"},
                    {"counts", ci.has_counts ? "yes" : ""},
                    {"times", ci.has_counts ? "" : "yes"},
                    {"minutes", fmt::format("{:.0f}", std::ceil(ci.minutes))},
                    {"packages", ci.vulkan ? k_vulkan_packages : ""},
                    {"version", ci.version},
                    {"steps", indent_lines(lines, "    ") + (lines.empty() ? "" : "\n")},
                    {"folder", folder},
                    {"baselines_folder", ci.has_counts ? folder : ""},
                    {"gate", yaml_quoted(gate)},
                    {"accept", yaml_quoted("weir baseline accept --counts-only" + config)},
                    {"baselines", quoted_path("baselines/")},
                    {"verdict", quoted_path("verdict.json")},
                    {"junit", quoted_path("weir.xml")},
                    {"report", quoted_path("weir.md")},
                    {"metrics", quoted_path("metrics.txt")}}) +
         "\n" + replace_all(judged_again, " --counts-only", counts_only);
}

}  // namespace weir::config

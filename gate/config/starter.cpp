#include "gate/config/starter.hpp"

#include <array>
#include <cmath>
#include <map>
#include <set>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/placeholders.hpp"

namespace weir::config {

extern const std::string_view k_config_form, k_engine_form, k_github_form, k_gitlab_form,
    k_gitlab_note;

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

// What the engine of an adapter is asked with, behind its program; counts come from `probes`, where
// one can see it. The flags are those of the engine's own help.
struct EngineKind {
  std::string_view adapter;
  std::string_view arguments;
  // What a prompt is to it: a number of tokens to read or to write, a text, or a number of both.
  enum class Prompt { tokens, text, both } prompt = Prompt::tokens;
  bool gguf = true, folder = true;  // the models that it loads
  bool metal = false;               // it runs on Apple's devices alone
  std::string_view note = "";
  // Arguments that choose a device; "": it chooses by itself.
  std::string_view cpu = "", vulkan = "";
  std::string_view profile = "";  // turns its own profile on, which has the calls of ops
};

// A name that the config will have, beside what was found.
struct Named {
  std::string name;
  const StarterEngine* engine;
  const EngineKind* kind;  // null: generic
};

bool of_llama(std::string_view adapter) {
  return adapter == "llama-bench" || adapter == "llama-perf";
}

// Letters, digits, ".", "_" and "-", at most 64, a letter or digit first; not yet in `taken`.
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

constexpr std::string_view k_llama_cpu = "-ngl, \"0\", -dev, none", k_llama_vulkan = "-ngl, \"99\"";

// What `weir init` writes for the engines that it knows: one line each.
constexpr std::array k_engines{
    EngineKind{"llama-bench",
               "-m, \"{model}\", -p, \"{prompt_tokens}\",\n"
               "              -n, \"{tokens}\", -d, \"{depth}\", -r, \"{repeats}\",\n"
               "              -t, \"{threads}\", -o, json",
               EngineKind::Prompt::tokens, true, false, false, "", k_llama_cpu, k_llama_vulkan},
    EngineKind{"llama-perf",
               "-m, \"{model}\", -p, \"{prompt}\", -n, \"{tokens}\",\n"
               "              -no-cnv, --ignore-eos, -s, \"{seed}\", -t, \"{threads}\"",
               EngineKind::Prompt::text, true, false, false,
               "llama-bench says more where there is one: its prompt is a number of tokens.",
               k_llama_cpu, k_llama_vulkan},
    EngineKind{"agave",
               "\"{model}\", -n, \"{tokens}\", --seed, \"{seed}\", --json,\n"
               "              --repeat-penalty, \"2\", \"{args}\", \"{prompt}\"",
               EngineKind::Prompt::text, true, true, false,
               "It stops after six equal tokens: the penalty keeps the lengths apart.",
               "--backend, cpu", "--backend, vulkan", "--profile"},
    EngineKind{"hf2q",
               "generate, --model, \"{model}\", --prompt, \"{prompt}\",\n"
               "              --max-tokens, \"{tokens}\", --temperature, \"0\"",
               EngineKind::Prompt::text, true, false, true},
    EngineKind{"mlx-lm",
               "--model, \"{model}\", -p, \"{prompt_tokens}\", -g, \"{tokens}\",\n"
               "              -n, \"{repeats}\"",
               EngineKind::Prompt::both, false, true, true},
};

const EngineKind* kind_of(std::string_view adapter) {
  return first_of(k_engines, [&](const EngineKind& one) { return one.adapter == adapter; });
}

// `kind` is null for an engine that is not known.
std::string engine(const std::string& name, std::string_view program, const EngineKind* kind,
                   const StarterInput& found) {
  constexpr EngineKind k_generic{"generic", "\"{model}\", -n, \"{tokens}\", \"{args}\""};
  const EngineKind& as = kind == nullptr ? k_generic : *kind;
  const bool probed = kind != nullptr && found.has_probes && !as.metal;
  const bool llama = probed && of_llama(as.adapter), vulkan = found.has_vulkan;
  const char* counted = vulkan ? "dispatches, barriers, syncs and ops" : "ops and what is copied";
  return filled(k_engine_form, {{"name", name},
                                {"note", std::string(as.note)},
                                {"program", yaml_quoted(program)},
                                {"arguments", std::string(as.arguments)},
                                {"output", std::string(as.adapter)},
                                {"generic", kind == nullptr ? "yes" : ""},
                                {"llama", llama ? counted : ""},
                                {"probes", vulkan ? "vulkan, ggml" : "ggml"},
                                {"markers", llama && vulkan ? "yes" : ""},
                                {"others", probed && !llama && vulkan ? "vulkan" : ""},
                                {"build", program.starts_with("./") ? found.build : ""},
                                {"profile", std::string(as.profile)}});
}

// With names of their own, in their order.
std::vector<Named> named_engines(const StarterInput& found) {
  std::vector<Named> list;
  std::set<std::string> taken;
  for (const StarterEngine& engine : found.engines) {
    list.push_back({fresh_name(engine.name, "engine", taken), &engine, kind_of(engine.adapter)});
  }
  return list;
}

// An example where there are none.
std::string engines(const StarterInput& found, const std::vector<Named>& all) {
  if (all.empty()) return engine("my-engine", "my-engine", nullptr, found);
  std::string text;
  for (const Named& one : all) text += engine(one.name, one.engine->program, one.kind, found);
  return text;
}

// Those that an engine can load, by the names they get; all where nothing is known of an engine.
struct NamedModel {
  std::string name;
  const StarterModel* model;
};
bool loads(const EngineKind* engine, const StarterModel& model) {
  return engine == nullptr || (model.folder ? engine->folder : engine->gguf);
}
std::vector<NamedModel> named_models(const StarterInput& found, const std::vector<Named>& all) {
  std::vector<NamedModel> list;
  std::set<std::string> taken;
  for (const StarterModel& model : found.models) {
    const bool wanted = all.empty() || std::any_of(all.begin(), all.end(), [&](const Named& one) {
                          return loads(one.kind, model);
                        });
    if (wanted) list.push_back({fresh_name(model.name, "model", taken), &model});
  }
  return list;
}

std::string models(const std::vector<NamedModel>& all) {
  std::string text;
  for (const NamedModel& one : all) {
    text += fmt::format("  {}: {}\n", one.name, yaml_quoted(one.model->path));
  }
  if (all.empty()) {
    text +=
        "  # None was found. A small one of your own architecture takes the same code path as a\n"
        "  # large one: weir model make, weir model twin.\n"
        "  my-model: models/my-model.gguf\n";
  }
  return text;
}

// "    vulkan: {args: […], engines: {agave: {args: […]}}}"
std::string backend(std::string_view name, const std::vector<Named>& all,
                    std::string_view EngineKind::*args, std::string_view env) {
  std::string each;
  for (const Named& one : all) {
    if (one.kind == nullptr || (one.kind->*args).empty()) continue;
    each +=
        fmt::format("{}{}: {{args: [{}]}}", each.empty() ? "" : ", ", one.name, one.kind->*args);
  }
  const bool alone = all.size() == 1 && of_llama(all.front().engine->adapter);
  std::string inside = alone          ? fmt::format("args: [{}]", all.front().kind->*args)
                       : each.empty() ? ""
                                      : fmt::format("engines: {{{}}}", each);
  if (!env.empty()) inside += fmt::format("{}env: {{{}}}", inside.empty() ? "" : ", ", env);
  return fmt::format("  {}: {{{}}}\n", name, inside);
}

bool any_engine(const std::vector<Named>& all, bool (*wanted)(const Named&)) {
  return std::any_of(all.begin(), all.end(), wanted);
}
bool is_llama(const Named& one) { return of_llama(one.engine->adapter); }
bool on_metal(const Named& one) { return one.kind != nullptr && one.kind->metal; }
// What may go to any device, as far as is known.
bool takes_backends(const Named& one) { return one.kind != nullptr && !one.kind->vulkan.empty(); }
bool takes(const Named& one, EngineKind::Prompt prompt) {
  return one.kind != nullptr && one.kind->prompt == prompt;
}

bool has_vulkan_backend(const StarterInput& found, const std::vector<Named>& all) {
  return found.has_vulkan && any_engine(all, takes_backends);
}
bool has_cpu_backend(const std::vector<Named>& all) {
  return all.empty() || any_engine(all, [](const Named& one) { return !on_metal(one); });
}

std::string backends(const StarterInput& found, const std::vector<Named>& all) {
  const bool llama = any_engine(all, is_llama);
  std::string text;
  if (has_cpu_backend(all)) {
    if (llama)
      text += "  # With -ngl 0 alone ggml still sends large products to a GPU that it sees.\n";
    text += backend("cpu", all, &EngineKind::cpu, "");
  }
  if (any_engine(all, on_metal)) text += "  metal: {}\n";
  if (!has_vulkan_backend(found, all)) return text;
  const bool named = found.vulkan_is_cpu && llama;
  if (named) text += "  # ggml leaves out Vulkan devices that are CPUs, unless they are named.\n";
  return text +
         backend("vulkan", all, &EngineKind::vulkan, named ? "GGML_VK_VISIBLE_DEVICES: \"0\"" : "");
}

bool has_prefill(const std::vector<Named>& all) {
  return any_engine(all, [](const Named& one) { return takes(one, EngineKind::Prompt::tokens); });
}
bool has_decode(const std::vector<Named>& all) {
  return all.empty() || has_prefill(all) ||
         any_engine(all, [](const Named& one) { return one.kind == nullptr; });
}

std::string prompts(const std::vector<Named>& all) {
  const auto takes_text = [](const Named& one) { return takes(one, EngineKind::Prompt::text); };
  const auto takes_both = [](const Named& one) { return takes(one, EngineKind::Prompt::both); };
  std::string text;
  if (has_prefill(all)) text += "  prefill: {prompt_tokens: 64, tokens: 0}\n";
  if (has_decode(all)) text += "  decode: {prompt_tokens: 0, tokens: 32}\n";
  if (any_engine(all, takes_text)) {
    text +=
        "  story: {text: \"Tell me a story about a river.\", tokens: 32}   # engines that take "
        "text\n";
  }
  if (any_engine(all, takes_both)) text += "  both: {prompt_tokens: 64, tokens: 32}\n";
  return text;
}

// What the product holds and no engine can do.
std::string exclusions(const StarterInput& found, const std::vector<Named>& all,
                       const std::vector<NamedModel>& models) {
  std::string text;
  const auto leave_out = [&](const Named& one, std::string_view what, std::string_view name) {
    text += fmt::format("    - {{engine: {}, {}: {}}}\n", one.name, what, name);
  };
  const bool metal = any_engine(all, on_metal);
  for (const Named& one : all) {
    for (const NamedModel& model : models) {
      if (!loads(one.kind, *model.model)) leave_out(one, "model", model.name);
    }
    if (on_metal(one) && has_cpu_backend(all)) leave_out(one, "backend", "cpu");
    if (!takes_backends(one) && has_vulkan_backend(found, all)) leave_out(one, "backend", "vulkan");
    if (!on_metal(one) && metal) leave_out(one, "backend", "metal");
    // It reads a prompt and writes an answer, always both.
    if (!takes(one, EngineKind::Prompt::both)) continue;
    if (has_prefill(all)) leave_out(one, "prompt", "prefill");
    if (has_decode(all)) leave_out(one, "prompt", "decode");
  }
  return text;
}

// Calls of ops, of engines whose own profile has them.
std::string own_limits(const std::vector<Named>& all) {
  std::string text;
  for (const Named& one : all) {
    if (one.kind == nullptr || one.kind->profile.empty()) continue;
    text += fmt::format("  - {{match: {{engine: {}}}, metrics: \"op_calls:*\", exact: true}}\n",
                        one.name);
  }
  return std::string(text::trim(text)).insert(0, text.empty() ? "" : "  ");
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
  const std::vector<NamedModel> loaded = named_models(found, all);
  return filled(k_config_form, {{"none", all.empty() ? "yes" : ""},
                                {"engines", engines(found, all)},
                                {"models", models(loaded)},
                                {"backends", backends(found, all)},
                                {"prompts", prompts(all)},
                                {"exclusions", exclusions(found, all, loaded)},
                                {"limits", own_limits(all)}});
}

namespace {

// One word of a POSIX shell, on one line: a name may hold a line break.
std::string word(const std::string& text) {
  return "'" + replaced(replaced(text::printable(text), "\n", ""), "'", "'\\''") + "'";
}

// What a job does before weir is asked, a command a line. `file` is the workflow's name.
std::vector<std::string> steps_of(const StarterCi& found, const std::string& file, bool folder) {
  std::vector<std::string> lines;
  if (folder && found.folder != ".") lines.push_back("cd " + word(found.folder));
  lines.insert(lines.end(), found.builds.begin(), found.builds.end());
  const auto ask = [&](const std::string& place, const std::string& what) {
    lines.push_back(
        fmt::format("test -e {} || {{ echo {}; exit 1; }}", word(place),
                    word(fmt::format("::error title=weir::{}: {} {}", file, what, place))));
  };
  for (const std::string& program : found.programs) {
    ask(program, "build the engine here, and say so in weir.yaml as well (build: [./build.sh]):");
  }
  for (const std::string& model : found.models) ask(model, "fetch this model here:");
  return lines;
}

std::string indented(const std::vector<std::string>& lines, std::string_view indent) {
  std::string text;
  for (const std::string& line : lines) {
    text += (text.empty() ? "" : "\n") + std::string(indent) +
            replaced(text::printable(line), "\n", "");
  }
  return text;
}

std::string below_root(const StarterCi& found, const std::string& file) {
  return (found.folder == "." ? "" : found.folder + "/") + file;
}

}  // namespace

std::string starter_github(const StarterCi& found) {
  // Text that GitHub takes for text, whatever is in it.
  const auto plain = [](const std::string& text) { return replaced(text, "${{", "${{ '${{' }}"); };
  const auto scalar = [&](const std::string& text) { return yaml_quoted(plain(text)); };
  std::vector<std::string> paths;
  for (const std::string& model : found.models) paths.push_back(below_root(found, model));
  const std::string folder = found.folder == "." ? "" : scalar(found.folder);
  const std::string file = found.file == "weir.yaml" ? "" : scalar(found.file);
  constexpr std::string_view k_block = "            ";
  return filled(k_github_form,
                {{"home", k_home},
                 {"minutes", fmt::format("{:.0f}", std::ceil(found.minutes))},
                 {"vulkan", found.vulkan ? k_vulkan_packages : ""},
                 {"fetched", found.models.empty() ? "" : "yes"},
                 {"paths", plain(indented(paths, k_block))},
                 {"bases", found.has_base ? "yes" : ""},
                 {"steps", plain(indented(steps_of(found, ".github/workflows/weir.yml", true),
                                          "          "))},
                 {"folder", folder},
                 {"file", file},
                 {"config", folder + file},
                 {"stored", found.has_base ? "" : "yes"},
                 {"made", plain(indented(found.made, k_block))}});
}

std::string starter_gitlab(const StarterCi& found) {
  const bool here = found.folder == ".";
  const auto made = [&](const char* file) { return yaml_quoted(below_root(found, file)); };
  const std::string config = found.file == "weir.yaml" ? "" : " --config " + word(found.file);
  std::string gate =
      "weir gate --counts-only --require-baseline --json verdict.json --markdown weir.md --junit "
      "weir.xml --openmetrics metrics.txt --rules-from \"$base\"" +
      config;
  if (found.has_base) gate += " --against \"$base\"";
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
                 {"out", made("weir-out/")},
                 {"junit", made("weir.xml")},
                 {"report", made("weir.md")},
                 {"metrics", made("metrics.txt")}}) +
         "\n" +
         (here ? std::string(k_gitlab_note)
               : replaced(std::string(k_gitlab_note), "weir.md",
                          word(below_root(found, "weir.md"))));
}

}  // namespace weir::config

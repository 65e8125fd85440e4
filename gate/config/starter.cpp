#include "gate/config/starter.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "gate/base/text.hpp"

namespace weir::config {
namespace {

// What the engine of an adapter is asked with, behind its program; counts come from `probes`, where
// one can see it. The flags are those of the engine's own help.
struct EngineKind {
  std::string_view adapter;
  std::string_view arguments;
  bool text = false;                // it takes a text; else a number of prompt tokens
  bool gguf = true, folder = true;  // the models that it loads
  bool metal = false;               // it runs on Apple's devices alone
  std::string_view comment = "";
};

// A name that the config will have, beside what was found.
struct Named {
  std::string name;
  const StarterEngine* engine;
  const EngineKind* kind;  // null: generic
};

bool of_llama(const StarterEngine& engine) {
  return engine.adapter == "llama-bench" || engine.adapter == "llama-perf";
}

// Letters, digits, ".", "_" and "-", at most 64, a letter or digit first; not yet in `taken`.
std::string fresh_name(std::string_view wanted, std::string_view fallback,
                       std::set<std::string>& taken) {
  constexpr std::size_t k_longest = 56;  // leaves room for a number
  std::string name;
  for (const char c : wanted) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
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

std::string llama_probes(bool with_vulkan) {
  std::string text = fmt::format(
      "    # Counts {} from outside, in a pass of its own: times are taken\n"
      "    # with nothing attached.\n"
      "    probes: [{}]\n",
      with_vulkan ? "dispatches, barriers, syncs and ops" : "ops and what is copied",
      with_vulkan ? "vulkan, ggml" : "ggml");
  if (with_vulkan) {
    text += "    counted_env: {GGML_VK_DEBUG_MARKERS: \"1\"}   # gives kernels their names\n";
  }
  return text +
         "    # Any other op that runs on the CPU fails the cells that ask for a GPU.\n"
         "    cpu_ops_allowed: {GET_ROWS: \"embedding row: one look-up is cheaper than a "
         "dispatch\"}\n";
}

std::string generic(const std::string& name, std::string_view program) {
  return fmt::format(
      "  {}:\n"
      "    # One argument an entry; no shell is involved. weir fills in what stands in braces.\n"
      "    command: [{}, \"{{model}}\", -n, \"{{tokens}}\", \"{{args}}\"]\n"
      "    output: generic\n"
      "    # Group 1 of an expression that is held against each line of the output, or\n"
      "    # {{pointer: /a/JSON/pointer}}. Counts an engine prints itself go here as well:\n"
      "    # syncs_per_token: {{regex: '(\\d+) syncs'}}\n"
      "    metrics:\n"
      "      decode_tokens_per_second: {{regex: '([\\d.]+) tok/s'}}\n",
      name, yaml_quoted(program));
}

constexpr std::array k_engines{
    EngineKind{"llama-bench",
               "-m, \"{model}\", -p, \"{prompt_tokens}\",\n"
               "              -n, \"{tokens}\", -d, \"{depth}\", -r, \"{repeats}\",\n"
               "              -t, \"{threads}\", -o, json",
               false, true, false},
    EngineKind{
        "llama-perf",
        "-m, \"{model}\", -p, \"{prompt}\", -n, \"{tokens}\",\n"
        "              -no-cnv, --ignore-eos, -s, \"{seed}\", -t, \"{threads}\"",
        true, true, false, false,
        "    # llama-bench says more where there is one: its prompt is a number of tokens.\n"},
    EngineKind{"agave",
               "\"{model}\", -n, \"{tokens}\", --seed, \"{seed}\", --json,\n"
               "              \"{args}\", \"{prompt}\"",
               true, true, true},
    EngineKind{"hf2q",
               "generate, --model, \"{model}\", --prompt, \"{prompt}\",\n"
               "              --max-tokens, \"{tokens}\", --temperature, \"0\"",
               true, true, false, true},
    EngineKind{"mlx-lm",
               "--model, \"{model}\", -p, \"{prompt_tokens}\", -g, \"{tokens}\",\n"
               "              -n, \"{repeats}\"",
               false, false, true, true},
};

const EngineKind* kind_of(std::string_view adapter) {
  const auto found = std::find_if(k_engines.begin(), k_engines.end(),
                                  [&](const EngineKind& one) { return one.adapter == adapter; });
  return found == k_engines.end() ? nullptr : &*found;
}

std::string engine_of_kind(const std::string& name, const StarterEngine& engine,
                           const EngineKind& kind, const StarterInput& found) {
  std::string text = fmt::format(
      "  {}:\n"
      "{}"
      "    # One argument an entry; no shell is involved. weir fills in what stands in braces.\n"
      "    command: [{}, {}]\n"
      "    output: {}\n",
      name, kind.comment, yaml_quoted(engine.program), kind.arguments, kind.adapter);
  if (!found.has_probes || kind.metal) return text;
  if (of_llama(engine)) return text + llama_probes(found.has_vulkan);
  if (found.has_vulkan) {
    text += "    # Counted from outside, in a pass of its own.\n    probes: [vulkan]\n";
  }
  return text;
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

// The section `engines:` of these; an example where there are none.
std::string starter_engines(const StarterInput& found, const std::vector<Named>& all) {
  std::string text = "engines:\n";
  for (const Named& one : all) {
    text += one.kind == nullptr ? generic(one.name, one.engine->program)
                                : engine_of_kind(one.name, *one.engine, *one.kind, found);
  }
  if (all.empty()) {
    text += "  # None that weir knows was found: put your program and its output in.\n";
    text += generic("my-engine", "my-engine");
  }
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
  std::string text = "\nmodels:\n";
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
                    std::string_view of_llama_args, std::string_view of_agave_args,
                    std::string_view env) {
  std::string each;
  for (const Named& one : all) {
    const std::string_view args = of_llama(*one.engine)            ? of_llama_args
                                  : one.engine->adapter == "agave" ? of_agave_args
                                                                   : "";
    if (args.empty()) continue;
    each += fmt::format("{}{}: {{args: [{}]}}", each.empty() ? "" : ", ", one.name, args);
  }
  const bool alone = all.size() == 1 && of_llama(*all.front().engine);
  std::string inside = alone          ? fmt::format("args: [{}]", of_llama_args)
                       : each.empty() ? ""
                                      : fmt::format("engines: {{{}}}", each);
  if (!env.empty()) inside += fmt::format("{}env: {{{}}}", inside.empty() ? "" : ", ", env);
  return fmt::format("  {}: {{{}}}\n", name, inside);
}

bool any_engine(const std::vector<Named>& all, bool (*wanted)(const Named&)) {
  return std::any_of(all.begin(), all.end(), wanted);
}
bool is_llama(const Named& one) { return of_llama(*one.engine); }
bool on_metal(const Named& one) { return one.kind != nullptr && one.kind->metal; }
// What may go to any device, as far as is known.
bool takes_backends(const Named& one) { return is_llama(one) || one.engine->adapter == "agave"; }

bool has_vulkan_backend(const StarterInput& found, const std::vector<Named>& all) {
  return found.has_vulkan && any_engine(all, takes_backends);
}
bool has_cpu_backend(const std::vector<Named>& all) {
  return all.empty() || any_engine(all, [](const Named& one) { return !on_metal(one); });
}

std::string backends(const StarterInput& found, const std::vector<Named>& all) {
  const bool llama = any_engine(all, is_llama);
  std::string text =
      "\n# Where it shall run. The name says what must really do the work (or device: does): work\n"
      "# that silently moves to the CPU fails the gate.\n"
      "backends:\n";
  if (has_cpu_backend(all)) {
    if (llama)
      text += "  # With -ngl 0 alone ggml still sends large products to a GPU that it sees.\n";
    text += backend("cpu", all, "-ngl, \"0\", -dev, none", "--backend, cpu", "");
  }
  if (any_engine(all, on_metal)) text += "  metal: {}\n";
  if (!has_vulkan_backend(found, all)) return text;
  const bool named = found.vulkan_is_cpu && llama;
  if (named) text += "  # ggml leaves out Vulkan devices that are CPUs, unless they are named.\n";
  return text + backend("vulkan", all, "-ngl, \"99\"", "--backend, vulkan",
                        named ? "GGML_VK_VISIBLE_DEVICES: \"0\"" : "");
}

bool has_prefill(const std::vector<Named>& all) {
  return any_engine(all, [](const Named& one) { return one.engine->adapter == "llama-bench"; });
}
bool has_decode(const std::vector<Named>& all) {
  return all.empty() || has_prefill(all) ||
         any_engine(all, [](const Named& one) { return one.kind == nullptr; });
}

std::string prompts(const std::vector<Named>& all) {
  const auto takes_text = [](const Named& one) { return one.kind != nullptr && one.kind->text; };
  const auto of_mlx = [](const Named& one) { return one.engine->adapter == "mlx-lm"; };
  std::string text =
      "\n# What is asked. Each combination of engine, model, backend and prompt is a cell.\n"
      "prompts:\n";
  if (has_prefill(all)) text += "  prefill: {prompt_tokens: 64, tokens: 0}\n";
  if (has_decode(all)) text += "  decode: {prompt_tokens: 0, tokens: 32}\n";
  if (any_engine(all, takes_text)) {
    text +=
        "  story: {text: \"Tell me a story about a river.\", tokens: 32}   # engines that take "
        "text\n";
  }
  if (any_engine(all, of_mlx)) text += "  both: {prompt_tokens: 64, tokens: 32}\n";
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
    if (one.engine->adapter != "mlx-lm") continue;
    if (has_prefill(all)) leave_out(one, "prompt", "prefill");
    if (has_decode(all)) leave_out(one, "prompt", "decode");
  }
  if (text.empty()) return "";
  return "\n# Left out of the product: what an engine does not load, or where it does not run.\n"
         "matrix:\n  exclude:\n" +
         text;
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
  std::string text =
      "# weir: a performance-regression gate. `weir run` measures this, `weir baseline accept`\n"
      "# keeps what it measured, `weir gate` compares and fails when a limit is broken.\n"
      "version: 1\n\n";
  const std::vector<Named> all = named_engines(found);
  const std::vector<NamedModel> loaded = named_models(found, all);
  text += starter_engines(found, all) + models(loaded) + backends(found, all) + prompts(all);
  text += exclusions(found, all, loaded);
  text +=
      "\n# Counts and kernels must not change: that is the default, and holds on any machine, "
      "since\n"
      "# they do not vary. Times vary with the machine, so they are only reported at first. Once\n"
      "# you know yours, give them a limit that it can hold: {metrics: \"*_tokens_per_second\",\n"
      "# max_drop: 5%}.\n"
      "limits:\n"
      "  - {metrics: [\"*_per_second\", \"*_seconds*\", peak_rss_bytes], mode: report}\n";
  return text;
}

}  // namespace weir::config

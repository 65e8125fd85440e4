#include "gate/config/starter_engines.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "gate/base/text.hpp"

namespace weir::config {
namespace {

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

std::string llama_bench(const std::string& name, const StarterEngine& engine, bool with_probes,
                        bool with_vulkan) {
  std::string text = fmt::format(
      "  {}:\n"
      "    # One argument an entry; no shell is involved. weir fills in what stands in braces.\n"
      "    command: [{}, -m, \"{{model}}\", -p, \"{{prompt_tokens}}\",\n"
      "              -n, \"{{tokens}}\", -d, \"{{depth}}\", -r, \"{{repeats}}\",\n"
      "              -t, \"{{threads}}\", -o, json]\n"
      "    output: llama-bench\n",
      name, yaml_quoted(engine.program));
  return with_probes ? text + llama_probes(with_vulkan) : text;
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
    EngineKind{"llama-bench", "", false, true, false},
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
  if (kind.adapter == "llama-bench") {
    return llama_bench(name, engine, found.has_probes, found.has_vulkan);
  }
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

}  // namespace

bool of_llama(const StarterEngine& engine) {
  return engine.adapter == "llama-bench" || engine.adapter == "llama-perf";
}

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

std::vector<Named> named_engines(const StarterInput& found) {
  std::vector<Named> list;
  std::set<std::string> taken;
  for (const StarterEngine& engine : found.engines) {
    list.push_back({fresh_name(engine.name, "engine", taken), &engine, kind_of(engine.adapter)});
  }
  return list;
}

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

}  // namespace weir::config

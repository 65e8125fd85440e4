#include "gate/config/starter.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "gate/base/text.hpp"

namespace weir::config {
namespace {

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
  if (!with_probes) return text;
  text += fmt::format(
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

std::string engines(const StarterInput& found) {
  std::string text = "engines:\n";
  std::set<std::string> taken;
  for (const StarterEngine& engine : found.engines) {
    const std::string name = fresh_name(engine.name, "engine", taken);
    text += engine.adapter == "llama-bench"
                ? llama_bench(name, engine, found.has_probes, found.has_vulkan)
                : generic(name, engine.program);
  }
  if (found.engines.empty()) {
    text += "  # None that weir knows was found: put your program and its output in.\n";
    text += generic("my-engine", "my-engine");
  }
  return text;
}

std::string models(const StarterInput& found) {
  std::string text = "\nmodels:\n";
  std::set<std::string> taken;
  for (const StarterModel& model : found.models) {
    text +=
        fmt::format("  {}: {}\n", fresh_name(model.name, "model", taken), yaml_quoted(model.path));
  }
  if (found.models.empty()) {
    text +=
        "  # None was found. A small one of your own architecture takes the same code path as a\n"
        "  # large one: weir model make, weir model twin.\n"
        "  my-model: models/my-model.gguf\n";
  }
  return text;
}

std::string backends(const StarterInput& found) {
  const bool llama = std::any_of(found.engines.begin(), found.engines.end(),
                                 [](const auto& one) { return one.adapter == "llama-bench"; });
  std::string text =
      "\n# Where it shall run. The name says what must really do the work (or device: does): work\n"
      "# that silently moves to the CPU fails the gate.\n"
      "backends:\n";
  text += llama ? "  # With -ngl 0 alone ggml still sends large products to a GPU that it sees.\n"
                  "  cpu: {args: [-ngl, \"0\", -dev, none]}\n"
                : "  cpu: {}\n";
  if (!found.has_vulkan || !llama) return text;
  if (found.vulkan_is_cpu) {
    text +=
        "  # ggml leaves out Vulkan devices that are CPUs, unless they are named.\n"
        "  vulkan: {args: [-ngl, \"99\"], env: {GGML_VK_VISIBLE_DEVICES: \"0\"}}\n";
  } else {
    text += "  vulkan: {args: [-ngl, \"99\"]}\n";
  }
  return text;
}

std::string prompts(const StarterInput& found) {
  const bool llama = std::any_of(found.engines.begin(), found.engines.end(),
                                 [](const auto& one) { return one.adapter == "llama-bench"; });
  std::string text =
      "\n# What is asked. Each combination of engine, model, backend and prompt is a cell.\n"
      "prompts:\n";
  if (llama) text += "  prefill: {prompt_tokens: 64, tokens: 0}\n";
  return text + "  decode: {prompt_tokens: 0, tokens: 32}\n";
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
  text += engines(found) + models(found) + backends(found) + prompts(found);
  text +=
      "\n# Counts and kernels must not change: that is the default, and holds on any machine, "
      "since\n"
      "# they do not vary. Times vary with the machine, so they are only reported at first. Once\n"
      "# you know yours, give them a limit that it can hold: {metrics: \"*_tokens_per_second\",\n"
      "# max_drop: 5%}.\n"
      "limits:\n"
      "  - {metrics: [\"*_tokens_per_second\", \"*_seconds*\", peak_rss_bytes], mode: report}\n";
  return text;
}

}  // namespace weir::config

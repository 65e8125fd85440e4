// Makes names and texts of a drawn run, and writes it as run.jsonl and weir.yaml.
#include "tests/hostile_records/draft.hpp"

#include <array>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/run/journal.hpp"

namespace weir::hostile {
namespace {

using profile::CellFacts;
using profile::Pass;
using profile::RunRecord;
using profile::Side;

constexpr std::array k_words{"mul_mat",    "mul", "add",      "rms_norm",    "norm",    "rope",
                             "soft_max",   "cpy", "get_rows", "set_rows",    "silu",    "glu",
                             "flash_attn", "fa",  "gemm",     "mul_mat_vec", "scale",   "id",
                             "quantize",   "f16", "q4_0",     "f32",         "split_k", "topk_moe"};
constexpr std::array k_odd{"`",  "|", "<b>", "\x1b[31m", "&amp;", "\xF0\x9F\x90\xA2", "\\",  "\"",
                           "\n", "*", "]]>", "\x7f",     "%2F",   "\\u0041",          "://", "@"};

// Returns "a", "b", … "z", "ba", …
std::string letters(std::size_t number) {
  std::string text;
  do {
    text += static_cast<char>('a' + number % 26);
    number /= 26;
  } while (number > 0);
  return text;
}

run::Step step_of(const RunRecord& record, std::size_t cell, Side side) {
  run::Step step;
  step.cell = cell;
  step.pass = record.pass;
  step.parameters = record.parameters;
  step.counts = record.counts;
  step.twin_fill = record.twin_fill;
  step.side = side;
  step.pair = record.pair;
  step.with_probes = record.with_probes;
  return step;
}

}  // namespace

NameStyle Draft::draw_style() {
  constexpr std::array k_styles{
      NameStyle::brief,         NameStyle::brief,   NameStyle::words,     NameStyle::words,
      NameStyle::shared_prefix, NameStyle::longest, NameStyle::templated, NameStyle::odd};
  return random.pick(k_styles);
}

std::string Draft::name(NameStyle style, std::size_t i) {
  switch (style) {
    case NameStyle::brief:
      return letters(i);
    case NameStyle::words: {
      std::string words;
      std::size_t rest = i * 2654435761U;
      for (std::size_t k = 1 + rest % 4; k > 0; --k, rest /= k_words.size()) {
        words += std::string(k_words[rest % k_words.size()]) + "_";
      }
      return words + letters(i);
    }
    case NameStyle::shared_prefix:
      return std::string(40, 'a') + "_mul_mat_" + letters(i);
    case NameStyle::longest:
      return letters(i) + std::string(480, 'k');
    case NameStyle::templated:
      return fmt::format("void ns::mul_mat_q<(ggml_type){}, {}, true>(float const*, int)", i,
                         i % 7);
    case NameStyle::odd:
      return fmt::format("{}{}{}", k_odd[i % k_odd.size()], letters(i),
                         k_odd[i / 3 % k_odd.size()]);
  }
  return letters(i);
}

std::string Draft::text(std::size_t bytes) {
  std::string text;
  switch (random.below(4)) {
    case 0:
      return std::string(bytes, 'x');
    case 1:
      while (text.size() < bytes) text += random.pick(k_odd);
      return text;
    case 2:
      while (text.size() < bytes) text += letters(random.below(1000)) + "\n";
      return text;
    default:
      while (text.size() < bytes) text += std::string(random.pick(k_words)) + " ";
      return text;
  }
}

std::size_t Draft::add_cell(const std::string& device) {
  const std::size_t i = cells.size();
  CellFacts facts;
  facts.cell.engine = "e" + letters(i / 10'000);
  facts.cell.model = "m" + letters(i / 100 % 100);
  facts.cell.backend = device;
  facts.cell.prompt = "p" + letters(i % 100);
  facts.device = device;
  facts.sweep = profile::Sweep::tokens;
  facts.engine_source = "llama-bench";
  facts.provenance.fingerprint = "0011223344556677";
  facts.provenance.fingerprint_parts = {{"prompt", "00112233"}};
  facts.provenance.device_class = device + "-1-2-3-4-5";
  facts.provenance.device_name = "A card";
  facts.provenance.machine_class = "machine";
  facts.provenance.machine_name = "A machine";
  cells.push_back(std::move(facts));
  return i;
}

std::size_t Draft::some_cell(const std::string& device) {
  if (!cells.empty() && random.chance(85)) {
    const std::size_t first = random.below(cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::size_t cell = (first + i) % cells.size();
      if (device.empty() || cells[cell].device == device) return cell;
    }
  }
  return add_cell(device.empty() ? "vulkan" : device);
}

RunRecord& Draft::add_record(std::size_t cell, Pass pass, Side side) {
  RunRecord& record = records.emplace_back();
  record.cell = cells[cell].cell.str();
  record.pass = pass;
  record.side = side;
  record.parameters.tokens = 8;
  return record;
}

std::string Draft::config() const {
  constexpr const char* k_engine =
      "{command: [./bench, '{model}', '{prompt_tokens}', '{tokens}', '{depth}', '{threads}', "
      "'{repeats}'], output: llama-bench}";
  constexpr const char* k_prompt = "{prompt_tokens: 0, tokens: 8}";
  using Names = std::map<std::string, std::string>;
  Names engine_names, model_names, backend_names, prompt_names;
  for (const CellFacts& facts : cells) {
    engine_names[facts.cell.engine] = k_engine;
    model_names[facts.cell.model] = "m.gguf";
    backend_names[facts.cell.backend] = fmt::format("{{device: {}}}", facts.device);
    prompt_names[facts.cell.prompt] = k_prompt;
  }
  const auto section = [](std::string_view head, const Names& names,
                          const std::vector<std::string>& more) {
    std::vector<std::string> items = more;
    for (const auto& [name, value] : names) items.push_back(fmt::format("{}: {}", name, value));
    return fmt::format("{}: {{{}}}\n", head, text::join(items, ", "));
  };
  if (!is_product) {
    engine_names = {{"e", k_engine}};
    model_names = {{"m", "m.gguf"}};
    backend_names = {{"cpu", "{}"}, {"vulkan", "{}"}};
    prompt_names = {{"p", k_prompt}};
  }
  std::string yaml = "version: 1\n";
  yaml += section("engines", engine_names, engines);
  yaml += section("models", model_names, models);
  yaml += section("backends", backend_names, backends);
  yaml += section("prompts", prompt_names, prompts);
  if (!limits.empty()) yaml += fmt::format("limits: [{}]\n", text::join(limits, ",\n"));
  if (!explain_rules.empty()) {
    yaml += fmt::format("explain: {{rules: [{}]}}\n", text::join(explain_rules, ",\n"));
  }
  return yaml + more_config;
}

std::string Draft::journal(Sides sides) const {
  run::RunHeader header;
  header.weir_version = "0.1.0";
  header.started_at = 1'790'000'000;
  header.config_file = "weir.yaml";
  header.config_text = config();
  header.machine.cpu_model = "A processor";
  header.cells = cells;
  if (sides == Sides::both) header.base_cells = cells;
  header.unavailable = unavailable;
  header.notes = notes;
  header.extra = extra;
  if (sides == Sides::both && !header.extra.contains("against")) {
    header.extra["against"] = {{"words", "another commit"}};
  }
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < cells.size(); ++i) places[cells[i].cell.str()] = i;
  std::string text;
  for (RunRecord record : records) {
    if (sides != Sides::both) {
      const Side side = sides == Sides::base ? Side::base : Side::candidate;
      if (record.side != side || record.pair) continue;
      record.side = Side::candidate;
    }
    record.order = static_cast<std::int64_t>(header.steps.size());
    header.steps.push_back(step_of(record, places.at(record.cell), record.side));
    text += dump_json(write_fields(record)) + "\n";
  }
  std::string all = dump_json(run::to_json(header)) + "\n" + lines + text;
  if (sides == Sides::both) all += "{\"steps\":[]}\n";
  return all;
}

}  // namespace weir::hostile

// A cell and numbers -> the command line of one process, and what each pass asks for.
#include "gate/config/matrix.hpp"
#include "gate/config/placeholders.hpp"

namespace weir::config {

CommandLine fill(const Cell& cell, const Filling& filling) {
  const auto value = [&](std::string_view name) -> std::string {
    if (name == "model") return filling.model;
    if (name == "prompt") return cell.text.value_or("");
    if (name == "prompt_file") return filling.prompt_file;
    if (name == "prompt_tokens") return std::to_string(filling.asked.prompt_tokens);
    if (name == "tokens") return std::to_string(filling.asked.tokens);
    if (name == "repeats") return std::to_string(filling.asked.repeats);
    if (name == "depth") return std::to_string(filling.asked.depth);
    if (name == "threads") {
      // Threads that wait for each other by spinning never take the same number of instructions.
      if (filling.instructions) return "1";
      return std::to_string(cell.threads > 0 ? cell.threads : filling.threads);
    }
    if (name == "seed") return std::to_string(cell.seed);
    if (name == "out") return filling.out;
    if (name == "probe_dir") return filling.probe_dir;
    if (name == "port") return filling.port;
    return "";  // the parser lets no other through
  };
  const bool counted = filling.pass == profile::Pass::counted && !filling.instructions;
  CommandLine line;
  for (const std::string& argument : cell.command) line.argv.push_back(substitute(argument, value));
  for (const auto& [name, text] : cell.env) line.env[name] = substitute(text, value);
  if (counted) {
    for (const std::string& argument : cell.profile_args) {
      line.argv.push_back(substitute(argument, value));
    }
    for (const auto& [name, text] : cell.counted_env) line.env[name] = substitute(text, value);
  }
  return line;
}

profile::Asked timed_asked(const Cell& cell, const GateSettings& gate) {
  if (cell.engine != nullptr && cell.engine->server) {
    return {cell.prompt_tokens, cell.tokens, cell.requests, 0};
  }
  const bool repeats = uses(cell.command, cell.env, "repeats");
  return {cell.prompt_tokens, cell.tokens, repeats ? gate.repeats : 1, cell.depth};
}

std::vector<profile::Asked> counted_asked(const Cell& cell, std::span<const std::int64_t> lengths) {
  std::vector<profile::Asked> asked;
  switch (cell.sweep) {
    case profile::Sweep::tokens: {
      const std::vector<std::int64_t> points =
          lengths.size() != 3 ? profile::decode_lengths(cell.tokens)
                              : std::vector<std::int64_t>(lengths.begin(), lengths.end());
      for (const std::int64_t tokens : points) {
        asked.push_back({cell.prompt_tokens, tokens, 1, cell.depth});
      }
      break;
    }
    case profile::Sweep::repeats:
      for (const std::int64_t repeats : {1, 2, 3}) {
        asked.push_back({cell.prompt_tokens, cell.tokens, repeats, cell.depth});
      }
      break;
    case profile::Sweep::overlapping:
      asked.push_back({cell.prompt_tokens, cell.tokens, cell.requests, 0});
      break;
    case profile::Sweep::none:
      asked.push_back({cell.prompt_tokens, cell.tokens, 1, cell.depth});
      break;
  }
  return asked;
}

std::vector<profile::Asked> instructions_asked(const Cell& cell) {
  std::vector<profile::Asked> asked;
  switch (cell.sweep) {
    case profile::Sweep::tokens:
      for (const std::int64_t tokens : profile::instruction_lengths(cell.tokens)) {
        asked.push_back({cell.prompt_tokens, tokens, 1, cell.depth});
      }
      break;
    case profile::Sweep::repeats:
      for (const std::int64_t repeats : profile::instruction_repeats(cell.prompt_tokens)) {
        asked.push_back({cell.prompt_tokens, cell.tokens, repeats, cell.depth});
      }
      break;
    case profile::Sweep::overlapping:
      asked.push_back({cell.prompt_tokens, cell.tokens, cell.requests, 0});
      break;
    case profile::Sweep::none:
      asked.push_back({cell.prompt_tokens, cell.tokens, 1, cell.depth});
      break;
  }
  return asked;
}

}  // namespace weir::config

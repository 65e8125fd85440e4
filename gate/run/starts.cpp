#include "gate/run/starts.hpp"

#include "gate/config/placeholders.hpp"
#include "gate/run/engine_call.hpp"

namespace weir::run {
namespace {

bool may_share(const PreparedCell& cell, const Step& step) {
  const config::ServerSettings* server = server_to_start(cell);
  // Which of its slots a server takes first depends on whom it served before.
  if (step.pass == profile::Pass::counted && cell.cell.sweep == profile::Sweep::held) return false;
  return server != nullptr && server->share_start && server->warm_up > 0 && !step.pair &&
         !step.bare();
}

// All that a server is started with, but for its port and its place.
std::string start_of(const PreparedCell& cell, const Step& step, std::int64_t round) {
  const config::CommandLine line = line_of(cell, step, "{out}", "{probe_dir}", "{port}");
  return dump_json({cell.cell.engine->name, line.argv, line.env, cell.program, cell.model,
                    cell.folder, cell.cell.device, cell.probes, static_cast<int>(step.pass),
                    round});
}

}  // namespace

const config::ServerSettings* server_to_start(const PreparedCell& cell) {
  const config::EngineSettings* engine = cell.cell.engine;
  const bool ours = engine != nullptr && engine->server && !engine->command.empty();
  return ours ? &*engine->server : nullptr;
}

std::string only_address(const PreparedCell& cell) {
  const config::ServerSettings* server = server_to_start(cell);
  return server == nullptr || config::uses({server->url}, {}, "port") ? "" : server->url;
}

std::vector<std::size_t> starts_of(const Plan& plan) {
  std::vector<std::size_t> starts;
  std::map<std::string, std::size_t> first;
  std::map<std::string, std::int64_t> rounds;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const PreparedCell& cell = plan.cell_of(step);
    starts.push_back(i);
    if (!may_share(cell, step)) continue;
    const profile::Asked& asked = step.asked;
    const std::string load = dump_json({step.cell, static_cast<int>(step.pass), asked.prompt_tokens,
                                        asked.tokens, asked.repeats, asked.depth, step.twin_fill});
    const std::int64_t round = rounds[load]++;
    starts.back() = first.emplace(start_of(cell, step, round), i).first->second;
  }
  return starts;
}

Result<Secret> server_token(const std::string& variable, Secret held) {
  if (held.empty()) {
    return fail(Code::config,
                "the environment has no {} (token_env), or nothing in it; set it to the server's "
                "token, or take token_env out",
                variable);
  }
  const std::string& text = held.reveal();
  // What a header can hold; a file's last line break is the usual one that cannot.
  if (!std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; })) {
    return fail(Code::config,
                "{} (token_env) holds a line break, a space or another character that no token "
                "has; set it to the token alone",
                variable);
  }
  if (text.size() < Masker::k_shortest) {
    return fail(Code::config,
                "{} (token_env) has fewer than {} characters: too few to be kept out of what a "
                "server says back",
                variable, Masker::k_shortest);
  }
  return held;
}

}  // namespace weir::run

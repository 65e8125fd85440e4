// Decides which steps share one start of a server.
#include "gate/run/starts.hpp"

#include "gate/config/placeholders.hpp"
#include "gate/run/engine_call.hpp"

namespace weir::run {
namespace {

// Returns true if the step may run on a server that other steps use too.
bool may_share(const PreparedCell& cell, const Step& step) {
  const config::ServerSettings* server = server_to_start(cell);
  // Which slot a server takes first depends on its earlier requests.
  if (step.pass == profile::Pass::counted && cell.cell.sweep == profile::Sweep::burst) return false;
  return server != nullptr && server->share_start && server->warm_up > 0 && !step.pair &&
         !step.is_counted_apart();
}

// Returns everything that a server is started with, except its port and folder, as a key.
std::string start_key(const PreparedCell& cell, const Step& step, std::int64_t round) {
  const config::CommandLine line = make_command_line(cell, step, "{out}", "{probe_dir}", "{port}");
  return dump_json({cell.cell.engine->name, line.argv, line.env, cell.program, cell.model,
                    cell.folder, cell.cell.device, cell.probes, static_cast<int>(step.pass),
                    round});
}

}  // namespace

const config::ServerSettings* server_to_start(const PreparedCell& cell) {
  const config::EngineSettings* engine = cell.cell.engine;
  const bool is_ours = engine != nullptr && engine->server && !engine->command.empty();
  return is_ours ? &*engine->server : nullptr;
}

std::string only_address(const PreparedCell& cell) {
  const config::ServerSettings* server = server_to_start(cell);
  return server == nullptr || config::uses({server->url}, {}, "port") ? "" : server->url;
}

// Returns, for each step, the first step of the server start that it uses. Steps share a start if
// they need the same server and none repeats a load within it.
std::vector<std::size_t> group_starts(const Plan& plan) {
  std::vector<std::size_t> starts;
  std::map<std::string, std::size_t> first_step;
  std::map<std::string, std::int64_t> load_repeats;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const PreparedCell& cell = plan.cell_of(step);
    starts.push_back(i);
    if (!may_share(cell, step)) continue;
    const profile::RunParameters& parameters = step.parameters;
    const std::string load =
        dump_json({step.cell, static_cast<int>(step.pass), parameters.prompt_tokens,
                   parameters.tokens, parameters.repeats, parameters.depth, step.twin_fill});
    const std::int64_t load_repeat = load_repeats[load];
    ++load_repeats[load];
    const auto [entry, is_new] = first_step.try_emplace(start_key(cell, step, load_repeat), i);
    starts.back() = entry->second;
  }
  return starts;
}

// Returns the token if it can be sent in a header and is long enough to be redacted. Fails, naming
// the variable, if it is empty, too short or has other characters.
Result<Secret> check_server_token(const std::string& variable, Secret token) {
  if (token.empty()) {
    return fail(Code::config,
                "the environment has no {} (token_env), or nothing in it; set it to the server's "
                "token, or take token_env out",
                variable);
  }
  const std::string& text = token.reveal();
  // A header can hold these characters; the usual mistake is a file's last line break.
  if (!std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; })) {
    return fail(Code::config,
                "{} (token_env) holds a line break, a space or another character that no token "
                "has; set it to the token alone",
                variable);
  }
  if (text.size() < Masker::k_min_secret_bytes) {
    return fail(Code::config,
                "{} (token_env) has fewer than {} characters: too few to be kept out of what a "
                "server says back",
                variable, Masker::k_min_secret_bytes);
  }
  return token;
}

}  // namespace weir::run

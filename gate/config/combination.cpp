#include "gate/config/combination.hpp"

#include "gate/config/placeholders.hpp"

namespace weir::config {
namespace {

// A server is asked over HTTP: for a prompt and at least one token.
std::optional<std::string> server_misfit(const Cell& cell) {
  if (cell.depth != 0) return "a server has no depth to be asked for";
  if (cell.tokens == 0) return "a server is asked for at least one token, and the prompt for none";
  if (!cell.text && !cell.prompt_file && cell.prompt_tokens == 0) {
    return "a server wants a prompt: text, file or prompt_tokens";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> misfit(const Cell& cell, const Combination& of,
                                  const Settings& settings) {
  const auto has = [&](std::string_view name) { return uses(cell.command, cell.env, name); };
  const auto no_placeholder = [](std::string_view name) {
    return fmt::format("the command has no {{{}}}", name);
  };
  const std::optional<ServerSettings>& server = of.engine->server;
  const Extra of_model = of.model->extra.for_engine(of.engine->name);
  const bool model_matters =
      settings.models.size() > 1 && !has("model") && of_model.args.empty() && of_model.env.empty();
  if (model_matters) {
    return "the command has no {model}, so that all models would be the same";
  }
  if (cell.threads != 0 && !has("threads")) return no_placeholder("threads") + " for \"threads\"";
  if (server) return server_misfit(cell);
  if (has("port")) return "{port} is for engines that serve (kind: server)";
  if (!of.prompt->concurrency.empty() || of.prompt->rate || of.prompt->requests) {
    return "concurrency, rate and requests are asked of servers (kind: server)";
  }
  if (cell.prompt_tokens != 0 && !has("prompt_tokens")) return no_placeholder("prompt_tokens");
  if (cell.tokens != 0 && !has("tokens")) return no_placeholder("tokens");
  if (cell.depth != 0 && !has("depth")) return no_placeholder("depth");
  if (cell.text && !has("prompt") && !has("prompt_file")) {
    return "the command takes no text (it has neither {prompt} nor {prompt_file})";
  }
  if (cell.prompt_file && !has("prompt_file")) return no_placeholder("prompt_file");
  if (!cell.text && !cell.prompt_file && (has("prompt") || has("prompt_file"))) {
    return "the command wants a text, and the prompt has none";
  }
  return std::nullopt;
}

}  // namespace weir::config

// weir serve: serves the pages of a history, uploads and queries over HTTP.
#include "gate/flow/serve.hpp"

#include "gate/app/options.hpp"

namespace weir::app {
namespace {

// Adds `weir serve token` with add, list and revoke.
void add_tokens(const Verb& serve) {
  const Verb token = serve.subcommand("token", "Manage tokens for reading and uploading");
  token->require_subcommand(1);
  const Verb add = token.subcommand("add", "Make a token, shown once");
  const auto add_options = add.set_flow_with_new_options(flow::add_token);
  add_store_options(add, add_options->store);
  add.option_with_default("--project", add_options->project, "GLOB",
                          "Projects that it is for ('*' is any text)");
  add.list_option(
         "--scope", add_options->scopes, "",
         "What it may do: read, upload, delete, or admin (all, and acknowledge); repeatable")
      ->required()
      ->check(CLI::IsMember({"read", "upload", "delete", "admin"}));
  add.option("--name", add_options->name, "TEXT", "Name of its owner");
  add.option("--expires", add_options->expires, "TIME",
             "Last day, 2027-01-31, or time from now, 2160h");
  add->footer(
      "Examples:\n"
      "  weir serve token add --project engine --scope upload --name ci\n"
      "  weir serve token add --scope read --expires 2160h");
  const Verb list = token.subcommand("list", "List tokens by id, without their secrets");
  const auto list_options = list.set_flow_with_new_options(flow::list_tokens);
  add_store_options(list, list_options->store);
  list.add_json_option();
  list->footer(
      "Example:\n"
      "  weir serve token list --json | jq '.[] | select(.good)'");
  const Verb revoke = token.subcommand("revoke", "Revoke a token");
  const auto revoke_options = revoke.set_flow_with_new_options(flow::revoke_token);
  add_store_options(revoke, revoke_options->store);
  revoke.option("ID", revoke_options->id, "", "The twelve digits after \"weir_\"")->required();
  revoke->footer(
      "A running service stops accepting it within seconds.\n\n"
      "Example:\n"
      "  weir serve token revoke 0123456789ab");
}

}  // namespace

void add_serve(const Verb& verb) {
  const auto chosen = verb.set_flow_with_new_options(flow::serve_history);
  flow::ServeOptions& options = *chosen;
  verb.option_with_default("--listen", options.listen, "ADDRESS:PORT",
                           "Address to listen on; port 0 takes a free one");
  add_store_options(verb, options.store);
  CLI::Option* certificate =
      verb.option("--tls-cert", options.certificate, "FILE", "Certificates (PEM)");
  verb.option("--tls-key", options.key, "FILE", "Their key (PEM); needs --tls-cert")
      ->needs(certificate);
  verb.flag("--plain-http", options.plain_http,
            "Listen without TLS beyond this machine, where others can read tokens");
  verb.list_option("--trusted-proxy", options.trusted_proxies, "ADDRESS[/BITS]",
                   "Trust X-Forwarded-For and -Proto from this address; repeatable");
  verb.range("--threads", options.threads, 1, 64, "Query threads; as many again serve sockets");
  verb.option_with_default(
          "--upload-rate", options.upload_rate, "NUMBER",
          "Uploads per token and second, on average; a burst may hold ten seconds' worth")
      ->check(CLI::Range(0.01, 100'000.0));
  verb.option_with_default("--project-quota", options.quota, "SIZE",
                           "Most that uploads of a project may hold");
  verb.option_with_default("--daily-quota", options.daily_quota, "SIZE",
                           "Most that a project and a token may upload per day (UTC)");
  verb.option_with_default("--daily-runs", options.daily_runs, "N", "Most runs of both per day")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}));
  CLI::Option* open =
      verb.flag("--public", options.is_public,
                "Let anybody read (default on a loopback address without --trusted-proxy)");
  verb.flag("--private", options.is_private, "Require a token to read (default unless --public)")
      ->excludes(open);
  verb.flag("--public-badges", options.public_badges, "Let anybody see badges");
  verb.option("--title", options.title, "TEXT", "Title of all pages");
  verb.option("--repo-url", options.repo_url, "URL",
              "Home of commits, shown at URL/commit/NAME: https://github.com/me/engine");
  verb.option("--repository", options.repository, "DIR",
              "Checkout whose commits give the order (default: order by time)");
  verb.list_option("--gate", options.gates, "PROJECT=FOLDER",
                   "Judge uploads of PROJECT by weir.yaml and the baselines in FOLDER; repeatable");
  verb.list_option("--post", options.posts, "PROJECT=OWNER/NAME",
                   "Post verdicts of PROJECT to this GitHub repository; repeatable");
  verb.option("--token-file", options.access.token_file, "FILE",
              "File that holds GitHub's token (default: WEIR_TOKEN, GITHUB_TOKEN or GH_TOKEN)");
  verb.option("--api", options.access.api_url, "URL",
              "GitHub's API (default: https://api.github.com)");
  verb.list_option(
      "--oidc", options.jobs, "PROJECT=OWNER/NAME@REF",
      "Let GitHub jobs of this repository and ref ('*' is any text) upload; repeatable");
  verb.option("--oidc-audience", options.audience, "URL",
              "Audience that their tokens name: the address of this service");
  verb.option_with_default(
      "--oidc-issuer", options.issuer, "URL",
      "Who signs their tokens; GitHub Enterprise Server: https://HOST/_services/token");
  verb.option_with_default("--log", options.log, "", "Format of the request log")
      ->check(CLI::IsMember({"text", "json", "none"}));
  verb.option("--check", options.check, "URL",
              "Ask the service at URL whether it is healthy, and exit");
  add_tokens(verb);
  verb->footer(
      "Examples:\n"
      "  weir serve                                pages on http://127.0.0.1:8080/\n"
      "  weir serve token add --project 'engine*' --scope upload --name ci\n"
      "  weir serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem\n"
      "  weir serve --private --trusted-proxy 127.0.0.1       behind nginx or Caddy\n"
      "  weir serve --check http://127.0.0.1:8080             exit code 0: healthy\n\n"
      "docs/how-to/serve.md has the API, the limits and the deployment.\n"
      "Exit codes: 0 on SIGTERM; 3 with --check, if the service is not healthy.");
}

}  // namespace weir::app

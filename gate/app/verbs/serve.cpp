// weir serve: the pages of a history live, uploads, queries.
#include "gate/flow/serve.hpp"

#include "gate/app/options.hpp"

namespace weir::app {
namespace {

void add_reading(const Verb& verb, flow::ServeOptions& options) {
  CLI::Option* open = verb.flag("--public", options.is_public,
                                "Anybody who reaches it may read (default: on a loopback\n"
                                "address without --trusted-proxy)");
  verb.flag("--private", options.is_private, "Reading needs a token (default: else)")
      ->excludes(open);
  verb.flag("--public-badges", options.public_badges, "Anybody may see badges");
}

void add_places(const Verb& verb, flow::ServeOptions& options) {
  verb.preset("--listen", options.listen, "ADDRESS:PORT",
              "Where it listens; port 0 is any that is free");
  add_store_options(verb, options.store);
  CLI::Option* certificate =
      verb.option("--tls-cert", options.certificate, "FILE", "Its certificates (PEM)");
  verb.option("--tls-key", options.key, "FILE", "Their key (PEM)")->needs(certificate);
  verb.repeated("--trusted-proxy", options.trusted_proxies, "ADDRESS[/BITS]",
                "Believe X-Forwarded-For and -Proto of this address; repeatable");
  verb.range("--threads", options.threads, 1, 64, "That ask the history, and as many for sockets");
  verb.preset("--upload-rate", options.upload_rate, "NUMBER",
              "Uploads of one token a second, on average; ten seconds' worth may come at once")
      ->check(CLI::Range(0.01, 100'000.0));
}

void add_pages(const Verb& verb, flow::ServeOptions& options) {
  verb.option("--title", options.title, "TEXT", "What stands above all pages");
  verb.option("--repo-url", options.repo_url, "URL",
              "Where commits are shown, at URL/commit/NAME: https://github.com/me/engine");
  verb.option("--repository", options.repository, "DIR",
              "A checkout whose commits give the order (default: series go by time)");
}

void add_arrivals(const Verb& verb, flow::ServeOptions& options) {
  verb.repeated("--gate", options.gates, "PROJECT=FOLDER",
                "Judge runs of PROJECT as they come, by weir.yaml and the baselines in\n"
                "FOLDER; repeatable");
  verb.repeated("--post", options.posts, "PROJECT=OWNER/NAME",
                "Post what was judged to this repository on GitHub; repeatable");
  verb.option("--token-file", options.access.token_file, "FILE",
              "GitHub's token (default: WEIR_TOKEN, GITHUB_TOKEN or GH_TOKEN)");
  verb.option("--api", options.access.api_url, "URL",
              "GitHub's API (default: https://api.github.com)");
}

void add_tokens(const Verb& serve) {
  const Verb token = serve.below("token", "Who may read and upload");
  token->require_subcommand(1);
  auto adding = std::make_shared<flow::TokenOptions>();
  const Verb add = token.below("add", "Make a token; it is shown once");
  add_store_options(add, adding->store);
  add.preset("--project", adding->project, "GLOB", "Of which projects ('*' stands for any text)");
  add.repeated("--scope", adding->scopes, "",
               "read, upload, or admin (both, and acknowledgements); repeatable")
      ->required()
      ->check(CLI::IsMember({"read", "upload", "admin"}));
  add.option("--name", adding->name, "TEXT", "Whose it is, for people");
  add.option("--expires", adding->expires, "TIME", "2027-01-31, or how long from now: 2160h");
  add->footer(
      "Examples:\n  weir serve token add --project engine --scope upload --name ci\n"
      "  weir serve token add --scope read --expires 2160h");
  add.runs(adding, flow::add_token);
  auto listing = std::make_shared<flow::TokenOptions>();
  const Verb list = token.below("list", "One line a token, without the tokens");
  add_store_options(list, listing->store);
  list.takes_json();
  list->footer("Examples:\n  weir serve token list --json | jq '.[] | select(.good)'");
  list.runs(listing, flow::list_tokens);
  auto revoking = std::make_shared<flow::TokenOptions>();
  const Verb revoke = token.below("revoke", "Make a token good for nothing");
  add_store_options(revoke, revoking->store);
  revoke.option("ID", revoking->id, "", "The twelve digits behind \"weir_\"")
      ->type_name("")
      ->required();
  revoke->footer(
      "Examples:\n  weir serve token revoke 0123456789ab\nA service that runs knows it "
      "within seconds.");
  revoke.runs(revoking, flow::revoke_token);
}

}  // namespace

void add_serve(const Verb& verb) {
  auto options = std::make_shared<flow::ServeOptions>();
  add_places(verb, *options);
  add_reading(verb, *options);
  add_pages(verb, *options);
  add_arrivals(verb, *options);
  verb.preset("--log", options->log, "", "A line for each request: text, json or none")
      ->check(CLI::IsMember({"text", "json", "none"}));
  verb.option("--check", options->check, "URL", "Only ask the service at URL whether it is well");
  add_tokens(verb);
  verb->footer(
      "Examples:\n"
      "  weir serve                                   pages on http://127.0.0.1:8080/\n"
      "  weir serve token add --project 'engine*' --scope upload --name ci\n"
      "  weir serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem\n"
      "  weir serve --private --trusted-proxy 127.0.0.1      behind nginx or Caddy\n"
      "  weir serve --check http://127.0.0.1:8080     is it well? 0 yes, 3 no\n"
      "docs/how-to/serve.md has the API, the limits and how to run it. Ends with 0 on SIGTERM.");
  verb.runs(options, flow::serve_history);
}

}  // namespace weir::app

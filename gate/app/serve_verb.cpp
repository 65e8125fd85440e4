// weir serve: the pages of a history live, uploads, queries.
#include "gate/app/serve.hpp"
#include "gate/app/trend.hpp"

namespace weir::app {
namespace {

#ifndef WEIR_SERVE
Result<ExitCode> none_here() {
  return fail(Code::unavailable,
              "this weir was built without its service (WEIR_SERVE=OFF)\n"
              "  weir trend site writes the same pages; a weir built from its sources serves them");
}
#endif

void add_reading(CLI::App& verb, ServeOptions& options) {
  CLI::Option* open = verb.add_flag("--public", options.is_public,
                                    "Anybody who reaches it may read (default: on a loopback\n"
                                    "address without --trusted-proxy)");
  verb.add_flag("--private", options.is_private, "Reading needs a token (default: else)")
      ->excludes(open);
  verb.add_flag("--public-badges", options.public_badges, "Anybody may see badges");
}

void add_places(CLI::App& verb, ServeOptions& options) {
  verb.add_option("--listen", options.listen, "Where it listens; port 0 is any that is free")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
  add_store_options(verb, options.store);
  CLI::Option* certificate =
      verb.add_option("--tls-cert", options.certificate, "Its certificates (PEM)")
          ->type_name("FILE");
  verb.add_option("--tls-key", options.key, "Their key (PEM)")
      ->type_name("FILE")
      ->needs(certificate);
  verb.add_option("--trusted-proxy", options.trusted_proxies,
                  "Believe X-Forwarded-For and -Proto of this address; repeatable")
      ->type_name("ADDRESS[/BITS]")
      ->allow_extra_args(false);
  verb.add_option("--threads", options.threads, "That ask the history, and as many for sockets")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  verb.add_option("--upload-rate", options.upload_rate,
                  "Uploads of one token a second, on average; ten seconds' worth may come at once")
      ->check(CLI::Range(0.01, 100'000.0))
      ->type_name("NUMBER")
      ->capture_default_str();
}

void add_pages(CLI::App& verb, ServeOptions& options) {
  verb.add_option("--title", options.title, "What stands above all pages")->type_name("TEXT");
  verb.add_option("--repo-url", options.repo_url,
                  "Where commits are shown, at URL/commit/NAME: https://github.com/me/engine")
      ->type_name("URL");
  verb.add_option("--repository", options.repository,
                  "A checkout whose commits give the order (default: series go by time)")
      ->type_name("DIR");
}

void add_arrivals(CLI::App& verb, ServeOptions& options) {
  verb.add_option("--gate", options.gates,
                  "Judge runs of PROJECT as they come, by weir.yaml and the baselines in\n"
                  "FOLDER; repeatable")
      ->type_name("PROJECT=FOLDER")
      ->allow_extra_args(false);
  verb.add_option("--post", options.posts,
                  "Post what was judged to this repository on GitHub; repeatable")
      ->type_name("PROJECT=OWNER/NAME")
      ->allow_extra_args(false);
  verb.add_option("--token-file", options.token_file,
                  "GitHub's token (default: WEIR_TOKEN, GITHUB_TOKEN or GH_TOKEN)")
      ->type_name("FILE");
  verb.add_option("--api", options.api_url, "GitHub's API (default: https://api.github.com)")
      ->type_name("URL");
}

}  // namespace

void add_serve(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("serve", "History, pages and the upload API over HTTP");
  auto options = std::make_shared<ServeOptions>();
  add_places(*verb, *options);
  add_reading(*verb, *options);
  add_pages(*verb, *options);
  add_arrivals(*verb, *options);
  verb->add_option("--log", options->log, "A line for each request: text, json or none")
      ->check(CLI::IsMember({"text", "json", "none"}))
      ->capture_default_str();
  verb->add_option("--check", options->check, "Only ask the service at URL whether it is well")
      ->type_name("URL");
  auto chosen = std::make_shared<Action>();
  add_serve_tokens(*verb, chosen);
  verb->footer(
      "Examples:\n"
      "  weir serve                                   pages on http://127.0.0.1:8080/\n"
      "  weir serve token add --project 'engine*' --scope upload --name ci\n"
      "  weir serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem\n"
      "  weir serve --private --trusted-proxy 127.0.0.1      behind nginx or Caddy\n"
      "  weir serve --check http://127.0.0.1:8080     is it well? 0 yes, 3 no\n"
      "docs/serve.md has the API, the limits and how to run it. Ends with 0 on SIGTERM.");
#ifdef WEIR_SERVE
  set_action(*verb, [options, chosen]() -> Result<ExitCode> {
    if (*chosen) return (*chosen)();
    return options->check.empty() ? serve(*options) : check_service(options->check);
  });
#else
  set_action(*verb, none_here);
#endif
}

}  // namespace weir::app

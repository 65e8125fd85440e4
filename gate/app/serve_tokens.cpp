// weir serve token add|list|revoke: who may read and upload.
#include "gate/app/serve.hpp"
#include "gate/app/version.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/history/iso_time.hpp"
#include "gate/history/service_store.hpp"
#include "gate/sys/clock.hpp"
#include "gate/unit/metric.hpp"
#ifdef WEIR_SERVE
#include "gate/serve/token.hpp"
#endif

namespace weir::app {
namespace {

struct TokenOptions {
  StoreOptions store;
  CommonOptions common;
  std::string project = "*", name, expires, id;
  std::vector<std::string> scopes;
};

#ifdef WEIR_SERVE
// A date, or how long from now.
Result<std::optional<double>> expiry_of(const std::string& text, double now) {
  if (text.empty()) return std::nullopt;
  std::optional<double> at = history::parse_time(text);
  if (!at) {
    const auto seconds = unit::parse_duration_seconds(text);
    if (seconds) at = now + *seconds;
  }
  if (!at || *at <= now) {
    return fail(Code::usage, "--expires {}: no time to come: 2027-01-31, or 2160h",
                text::printable(text));
  }
  return at;
}

Result<ExitCode> add_token(const TokenOptions& options) {
  const double now = sys::RealClock().now();
  history::StoredToken wanted;
  wanted.project = options.project;
  wanted.scopes = text::join(options.scopes, " ");
  wanted.name = options.name.empty() ? "" : history::kept_name(options.name);
  wanted.made_at = now;
  if (history::kept_name(wanted.project) != wanted.project) {
    return fail(Code::usage, "--project: no name that a project could have");
  }
  WEIR_TRY(wanted.expires_at, expiry_of(options.expires, now));
  WEIR_TRY(const auto store, open_service_history(options.store, true));
  WEIR_TRY(const serve::NewToken made, serve::make_token(std::move(wanted)));
  WEIR_CHECK(store->add_token(made.stored));
  talk(options.common,
       fmt::format("weir: {} {} may do that with projects {}; the token is shown this once",
                   made.stored.id, made.stored.scopes, text::printable(made.stored.project)));
  say(made.text.reveal() + "\n");
  return ExitCode::pass;
}

std::string state_of(const history::StoredToken& token, double now) {
  if (token.revoked_at) return "revoked " + sys::date_of(*token.revoked_at);
  if (!token.expires_at) return "good";
  return (now < *token.expires_at ? "good until " : "over since ") +
         sys::date_of(*token.expires_at);
}

Result<ExitCode> list_tokens(const TokenOptions& options) {
  WEIR_TRY(const auto store, open_service_history(options.store, false));
  WEIR_TRY(const auto tokens, store->tokens());
  const double now = sys::RealClock().now();
  std::string lines;
  Json json = Json::array();
  for (const history::StoredToken& one : tokens) {
    lines += fmt::format("{}  {}  {:<16}  {}  {}{}{}\n", one.id, sys::date_of(one.made_at),
                         state_of(one, now), one.scopes, text::printable(one.project),
                         one.name.empty() ? "" : "  ", text::printable(one.name));
    const auto time = [](const std::optional<double>& at) {
      return at ? Json(sys::time_of(*at)) : Json();
    };
    json.push_back({{"id", one.id},
                    {"project", one.project},
                    {"scopes", text::split(one.scopes, ' ')},
                    {"name", one.name},
                    {"made_at", sys::time_of(one.made_at)},
                    {"expires_at", time(one.expires_at)},
                    {"revoked_at", time(one.revoked_at)},
                    {"good", serve::is_good(one, now)}});
  }
  answer(options.common, tokens.empty() ? "no tokens: weir serve token add makes one\n" : lines);
  WEIR_CHECK(write_json(options.common, dump_json(json, 1) + "\n"));
  return ExitCode::pass;
}

Result<ExitCode> revoke_token(const TokenOptions& options) {
  WEIR_TRY(const auto store, open_service_history(options.store, false));
  WEIR_TRY(const bool there, store->revoke_token(options.id, sys::RealClock().now()));
  if (!there) {
    return fail(Code::usage, "{}: no such token: weir serve token list",
                text::printable(options.id));
  }
  say(options.id + " is good for nothing any more\n");
  return ExitCode::pass;
}
#else
Result<ExitCode> no_tokens(const TokenOptions& /*options*/) { return ExitCode::unmeasured; }
constexpr auto add_token = no_tokens, list_tokens = no_tokens, revoke_token = no_tokens;
#endif

}  // namespace

void add_serve_tokens(CLI::App& serve, std::shared_ptr<Action> chosen) {
  CLI::App* token = serve.add_subcommand("token", "Who may read and upload");
  token->require_subcommand(1);
  const auto on = [chosen](CLI::App* verb, const std::shared_ptr<TokenOptions>& options,
                           auto what) {
    verb->callback(
        [chosen, options, what] { *chosen = [options, what] { return what(*options); }; });
  };
  auto adding = std::make_shared<TokenOptions>();
  CLI::App* add = token->add_subcommand("add", "Make a token; it is shown once");
  add_store_options(*add, adding->store);
  add->add_option("--project", adding->project, "Of which projects ('*' stands for any text)")
      ->type_name("GLOB")
      ->capture_default_str();
  add->add_option("--scope", adding->scopes,
                  "read, upload, or admin (both, and acknowledgements); repeatable")
      ->required()
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"read", "upload", "admin"}));
  add->add_option("--name", adding->name, "Whose it is, for people")->type_name("TEXT");
  add->add_option("--expires", adding->expires, "2027-01-31, or how long from now: 2160h")
      ->type_name("TIME");
  add->footer(
      "Examples:\n  weir serve token add --project engine --scope upload --name ci\n"
      "  weir serve token add --scope read --expires 2160h");
  on(add, adding, add_token);
  auto listing = std::make_shared<TokenOptions>();
  CLI::App* list = token->add_subcommand("list", "One line a token, without the tokens");
  add_store_options(*list, listing->store);
  list->add_option("--json", listing->common.json,
                   "Write the result as JSON to FILE, or to standard output")
      ->type_name("[FILE]")
      ->expected(0, 1)
      ->default_str("-");
  list->footer("Examples:\n  weir serve token list --json | jq '.[] | select(.good)'");
  on(list, listing, list_tokens);
  auto revoking = std::make_shared<TokenOptions>();
  CLI::App* revoke = token->add_subcommand("revoke", "Make a token good for nothing");
  add_store_options(*revoke, revoking->store);
  revoke->add_option("ID", revoking->id, "The twelve digits behind \"weir_\"")
      ->type_name("")
      ->required();
  revoke->footer(
      "Examples:\n  weir serve token revoke 0123456789ab\nA service that runs knows it "
      "within seconds.");
  on(revoke, revoking, revoke_token);
}

}  // namespace weir::app

// weir bisect: the first commit that broke a cell.
#include <memory>

#include "gate/app/bisecting.hpp"
#include "gate/app/command_line.hpp"
#include "gate/app/veiled.hpp"
#include "gate/base/text.hpp"
#include "gate/report/formats.hpp"

namespace weir::app {
namespace {

struct BisectOptions {
  CommonOptions common;
  BisectWanted wanted;
};

bool was_found(const Bisected& made) { return made.suspects.size() == 1; }

const BisectStep* step_of(const Bisected& made, const std::string& commit) {
  for (const BisectStep& step : made.steps) {
    if (step.commit == commit) return &step;
  }
  return nullptr;
}

std::string tally(const Bisected& made) {
  std::size_t built = 0, skipped = 0;
  for (const BisectStep& step : made.steps) {
    built += step.built ? 1 : 0;
    skipped += step.tried == source::Tried::skipped ? 1 : 0;
  }
  return fmt::format("{} of {} commits tried, {} skipped, {} built, {}", made.steps.size(),
                     made.commits + 1, skipped, built, unit::show_duration(made.seconds));
}

std::string text_of(const Bisected& made) {
  std::string text;
  if (was_found(made)) {
    text = fmt::format("weir bisect: the first bad commit is\n  {}\n  \"{}\"\n", made.suspects[0],
                       made.bad_subject);
  } else {
    text = fmt::format(
        "weir bisect: could not be decided: the first bad commit is one of these {}, of which only "
        "the\nfirst is known to be bad:\n",
        made.suspects.size());
    for (const std::string& commit : made.suspects) {
      const BisectStep* step = step_of(made, commit);
      if (step == nullptr) continue;
      text += fmt::format("  {} \"{}\"\n", commit, step->subject);
      if (step->tried == source::Tried::skipped) text += fmt::format("    {}\n", step->reason);
    }
  }
  text += fmt::format("({}; {})\n", tally(made), made.folder);
  for (const std::string& note : made.asked.notes) text += fmt::format("note: {}\n", note);
  return made.veil.text(text);
}

Json json_of(const Bisected& made, const verdict::GateVerdict& shown) {
  Json steps = Json::array(), suspects = Json::array();
  for (const BisectStep& step : made.steps) {
    Json json = to_json(step);
    json["subject"] = made.veil.text(step.subject);
    steps.push_back(std::move(json));
  }
  for (const std::string& commit : made.suspects) {
    const BisectStep* step = step_of(made, commit);
    suspects.push_back({{"commit", commit},
                        {"subject", made.veil.text(step == nullptr ? "" : step->subject)},
                        {"tried", step == nullptr ? "skipped" : to_string(step->tried)}});
  }
  Json json = {
      {"schema", "weir.bisect/1"},       {"result", was_found(made) ? "found" : "undecided"},
      {"good", made.asked.good},         {"bad", made.asked.bad},
      {"times", made.asked.times},       {"commits", made.commits},
      {"suspects", std::move(suspects)}, {"steps", std::move(steps)},
      {"notes", made.asked.notes},       {"folder", made.folder},
      {"seconds", made.seconds},         {"verdict", verdict::to_json(shown)}};
  json["first_bad"] = was_found(made) ? Json(made.suspects.front()) : Json();
  return json;
}

Result<ExitCode> bisect_verb(const BisectOptions& options) {
  const BisectWanted& wanted = options.wanted;
  if (wanted.resume && !wanted.good.empty()) {
    return fail(Code::usage,
                "--resume goes on between the commits that it was begun with: give none");
  }
  if (wanted.resume && (wanted.times || !options.common.cells.empty())) {
    return fail(Code::usage,
                "--resume goes on with the cells and the judge that it was begun with");
  }
  if (!wanted.resume && wanted.good.empty()) {
    return fail(Code::usage, "weir bisect GOOD BAD: a commit that is good, and one that is bad");
  }
  sys::RealFiles files;
  WEIR_TRY(const Bisected made, bisect(options.common, wanted, files));
  const verdict::GateVerdict shown = veiled(*made.verdict, made.veil);
  const int stream = answer_stream(options.common);
  answer(options.common, text_of(made) + "\n");
  answer(options.common, report::terminal(shown, {.color = colored(options.common, stream),
                                                  .width = width_of(stream),
                                                  .verbose = false,
                                                  .verbs = {}}));
  WEIR_CHECK(write_json(options.common, dump_json(json_of(made, shown), 1) + "\n"));
  return was_found(made) ? ExitCode::pass : ExitCode::unmeasured;
}

}  // namespace

void add_bisect(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("bisect", "The first commit that broke a cell");
  auto options = std::make_shared<BisectOptions>();
  options->wanted.bad = "HEAD";
  add_common(*verb, options->common, Takes::matrix);
  verb->add_option("good", options->wanted.good, "A commit that is good")->type_name("GOOD");
  verb->add_option("bad", options->wanted.bad, "A commit that is bad")
      ->type_name("BAD")
      ->capture_default_str();
  verb->add_flag("--times", options->wanted.times,
                 "Judge by times, in pairs beside GOOD's program, in place of counts");
  verb->add_option("--resume", options->wanted.resume,
                   "Go on with an interrupted bisection (default: newest)")
      ->type_name("[FOLDER]")
      ->expected(0, 1)
      ->default_str("");
  verb->footer(
      "Examples:\n"
      "  weir bisect v1.2 main --cell '*/vulkan/decode'    by counts: one run decides\n"
      "  weir bisect v1.2 main --cell '*/cpu/*' --times    by times, in pairs beside v1.2\n"
      "  weir bisect --resume                              go on after a kill\n\n"
      "Each commit is checked out and built in weir's cache; your checkout stays as it is.\n"
      "Exit codes: 0 found, 2 usage, or GOOD is bad already, or BAD is good, 3 could not be\n"
      "decided, 130 interrupted.");
  set_action(*verb, [options] { return bisect_verb(*options); });
}

}  // namespace weir::app

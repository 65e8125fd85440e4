// weir explain: why a cell failed, or what differs between two profiles. Judges nothing.
#include <memory>

#include "gate/app/command_line.hpp"
#include "gate/app/explaining.hpp"
#include "gate/app/session.hpp"
#include "gate/app/two_sides.hpp"
#include "gate/app/veiled.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/report/texts.hpp"
#include "gate/run/journal.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

using explain::Explanation;

struct ExplainOptions {
  CommonOptions common;
  std::vector<std::string> what;  // none, a run or verdict, or two sides
  std::string model;
  bool checklist = false;
};

constexpr std::uint64_t k_longest_document = std::uint64_t{64} << 20;

Result<ExitCode> tell(const ExplainOptions& options, const std::vector<Explanation>& all) {
  const int stream = answer_stream(options.common);
  answer(options.common, report::explain_text(all, {.color = colored(options.common, stream),
                                                    .width = width_of(stream),
                                                    .checklist = options.checklist}));
  WEIR_CHECK(write_json(options.common, dump_json(report::explain_json(all), 1) + "\n"));
  return ExitCode::pass;
}

Result<std::optional<explain::ModelFacts>> named_model(const ExplainOptions& options,
                                                       const sys::Files& files) {
  if (options.model.empty()) return std::nullopt;
  WEIR_TRY(explain::ModelFacts facts, read_model_facts(options.model, files));
  return facts;
}

// --- a run that was judged ---------------------------------------------------------------------

struct Judged {
  verdict::GateVerdict gate;
  std::string run;  // its folder; "" where there is none beside it
};

Result<Judged> judged_run(const ExplainOptions& options, const sys::Files& files) {
  Judged judged;
  std::string path = options.what.empty() ? "" : options.what.front();
  if (path.empty()) {
    WEIR_TRY(path, run::newest_run(files, options.common.out));
  }
  if (files.kind(path) == sys::Kind::folder) {
    judged.run = path;
    path = sys::join_path(path, "verdict.json");
    if (files.kind(path) != sys::Kind::file) {
      return fail(Code::usage,
                  "{}: this run was not judged, so there is no verdict to explain\n"
                  "  weir gate --from {} judges it; weir explain RUN OTHER compares two runs",
                  judged.run, text::shell_word(judged.run));
    }
  }
  WEIR_TRY(const std::string text, files.read_prefix(path, k_longest_document));
  auto json = parse_json(text);
  if (!json) return tl::unexpected(with_context(path, std::move(json).error()));
  auto gate = verdict::verdict_from_json(*json);
  if (!gate) return tl::unexpected(with_context(path, std::move(gate).error()));
  judged.gate = std::move(*gate);
  return judged;
}

Result<ExitCode> explain_verdict(const ExplainOptions& options, const sys::Files& files) {
  WEIR_TRY(const Judged judged, judged_run(options, files));
  WEIR_TRY(const auto named, named_model(options, files));
  // The run's own configuration leads to its models. A verdict may be all there is.
  CommonOptions every = options.common;
  every.cells.clear();
  std::optional<Measured> measured;
  if (!judged.run.empty()) {
    if (auto read = read_measured(every, judged.run, files)) measured = std::move(*read);
  }
  std::optional<ModelHeaders> models;
  explain::Options settings{explain::default_bands(), {}};
  if (measured) {
    models.emplace(*measured->settings, measured->config_file, files);
    settings = explain_options(*measured->settings);
  }
  std::vector<Explanation> all;
  for (const verdict::CellVerdict& cell : judged.gate.cells) {
    if (!cell_wanted(options.common, cell.cell.str())) continue;
    const explain::ModelFacts* model = named ? &*named : nullptr;
    if (model == nullptr && models) model = models->of(cell.cell.model);
    if (measured) {
      settings.cpu_ops_allowed = allowed_ops_of(*measured->settings, cell.cell.engine);
    }
    auto why = explain::explain(explain::evidence_of(cell), model, settings);
    // The gate knew the model and the true names, and its rules were held against these.
    if (model == nullptr && !cell.findings.empty()) why.findings = cell.findings;
    all.push_back(measured ? veiled(std::move(why), measured->veil) : std::move(why));
  }
  if (all.empty()) return fail(Code::usage, "no cell of this verdict is selected by --cell");
  return tell(options, all);
}

// --- two sides ---------------------------------------------------------------------------------

Result<ExitCode> explain_two(const ExplainOptions& options, const sys::Files& files) {
  WEIR_TRY(const auto named, named_model(options, files));
  std::optional<Measured> run_a, run_b;
  WEIR_TRY(const ProfileFile a, read_side(options.common, options.what[0], files, run_a));
  WEIR_TRY(const ProfileFile b, read_side(options.common, options.what[1], files, run_b));
  std::optional<ModelHeaders> models;
  explain::Options settings{explain::default_bands(), {}};
  if (run_b) {
    models.emplace(*run_b->settings, run_b->config_file, files);
    settings = explain_options(*run_b->settings);
  }
  std::vector<Explanation> all;
  if (a.observed.has_value() != b.observed.has_value()) {
    return fail(Code::usage,
                "one side is a profiler's output and the other is not:\n"
                "  they hold other things: weir compare puts them beside each other");
  }
  if (a.observed) {
    all.push_back(explain::explain(explain::evidence_of(*a.observed, *b.observed),
                                   named ? &*named : nullptr, settings));
    return tell(options, all);
  }
  for (const auto& [before, after] : cell_pairs(a, b, options.common)) {
    const explain::ModelFacts* model = named ? &*named : nullptr;
    if (model == nullptr && models) model = models->of(after->cell.model);
    if (run_b) settings.cpu_ops_allowed = allowed_ops_of(*run_b->settings, after->cell.engine);
    auto why = explain::explain(explain::evidence_of(*before, *after), model, settings);
    all.push_back(run_b ? veiled(std::move(why), run_b->veil) : std::move(why));
  }
  if (all.empty()) {
    return fail(Code::usage, "{} and {} have no cell in common{}", options.what[0], options.what[1],
                options.common.cells.empty() ? "" : " that --cell selects");
  }
  return tell(options, all);
}

Result<ExitCode> explain_what(const ExplainOptions& options) {
  const sys::RealFiles files;
  return options.what.size() == 2 ? explain_two(options, files) : explain_verdict(options, files);
}

}  // namespace

void add_explain(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("explain", "Why a cell changed: what fits the differences");
  auto options = std::make_shared<ExplainOptions>();
  verb->add_option("WHAT", options->what,
                   "A judged run or its verdict.json (the newest run when none is named), or two\n"
                   "sides: runs, files of weir run --json, or what engines and profilers wrote")
      ->expected(0, 2);
  verb->add_option("--model", options->model,
                   "Whose layers counts are held against: GGUF or config.json")
      ->type_name("FILE");
  verb->add_flag("--checklist", options->checklist,
                 "Also the checklist for slow engines, and counts outside of the usual");
  add_common(*verb, options->common, Takes::runs);
  refuse_option(*verb, "-c,--config", "a run's own configuration, kept in it, names its models");
  refuse_option(*verb, "--baselines", "what judged a run stands in its verdict");
  verb->footer(
      "Judges nothing: exit code 0 whatever it finds.\n\n"
      "Examples:\n"
      "  weir explain                               why the newest run's cells failed\n"
      "  weir explain --cell '*/vulkan/decode' --json\n"
      "  weir explain weir-out/A weir-out/B         what differs between two runs\n"
      "  weir explain before.json after.json --model model.gguf\n"
      "  weir explain old.stderr.txt new.stderr.txt   as GGML_VK_PERF_LOGGER=1 prints it");
  set_action(*verb, [options] { return explain_what(*options); });
}

}  // namespace weir::app

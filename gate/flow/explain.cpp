// weir explain and weir compare: why a cell changed, and how two runs or profiles differ.
#include "gate/flow/explain.hpp"

#include "gate/adapters/format.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/judge.hpp"
#include "gate/flow/newest_run.hpp"
#include "gate/flow/profile_files.hpp"
#include "gate/model/gguf.hpp"
#include "gate/report/compare_text.hpp"
#include "gate/report/explain_text.hpp"
#include "gate/report/formats.hpp"
#include "gate/report/markdown.hpp"
#include "gate/run/journal.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr std::uint64_t k_longest_config = std::uint64_t{4} << 20;

// Returns the file that describes a model's folder: config.json, else its first GGUF file.
std::optional<std::string> find_header(const std::string& folder, const sys::Files& files) {
  const std::string config = sys::join_path(folder, "config.json");
  if (files.kind(config) == sys::Kind::file) return config;
  for (const std::string& name : files.list(folder).value_or(std::vector<std::string>())) {
    if (text::lower(name).ends_with(".gguf")) return sys::join_path(folder, name);
  }
  return std::nullopt;
}

// Reads a model's facts (layers, sizes) from a GGUF file, a config.json, or a folder that has one
// of them.
Result<explain::ModelFacts> read_model_facts(const std::string& path, const sys::Files& files) {
  if (files.kind(path) == sys::Kind::folder) {
    const auto header_file = find_header(path, files);
    if (!header_file)
      return fail(Code::data, "{}: neither config.json nor a GGUF file in it", path);
    return read_model_facts(*header_file, files);
  }
  if (text::lower(path).ends_with(".json")) {
    WEIR_TRY(const std::string config, files.read_prefix(path, k_longest_config));
    return explain::model_facts_from_config(config).map_error(with_prefix(path));
  }
  const auto read_header = [&](std::uint64_t bytes) { return files.read_prefix(path, bytes); };
  WEIR_TRY(const auto header, model::load_gguf(read_header).map_error(with_prefix(path)));
  return explain::model_facts(header);
}

// The models of a configuration, each read once and only on demand. Private models and those that
// cannot be read have no facts. Not thread-safe.
class ModelHeaders {
 public:
  // `settings` is the caller's. Relative paths start at the folder of `config_file`; if that is "",
  // no model is read.
  ModelHeaders(const config::Settings& settings, std::string config_file, const sys::Files& files)
      : settings_(settings), config_file_(std::move(config_file)), files_(files) {}

  // Returns null for a model without facts. Valid as long as this object.
  [[nodiscard]] const explain::ModelFacts* find(const std::string& model) {
    const auto [entry, is_new] = facts_.try_emplace(model);
    const config::ModelSettings* settings = is_new ? find_named(settings_.models, model) : nullptr;
    // A private model keeps its layers private too.
    if (settings != nullptr && !settings->is_private && !config_file_.empty()) {
      const std::string folder = sys::absolute(sys::folder_of(config_file_));
      auto facts = read_model_facts(sys::join_path(folder, settings->path), files_);
      if (facts) entry->second = std::move(*facts);
    }
    return entry->second ? &*entry->second : nullptr;
  }

 private:
  const config::Settings& settings_;
  std::string config_file_;
  const sys::Files& files_;
  std::map<std::string, std::optional<explain::ModelFacts>> facts_;
};

explain::Options explain_options(const config::Settings& settings) {
  explain::Options options{explain::default_bands(), settings.explain.rules};
  for (const auto& [metric, band] : settings.explain.bands) options.bands[metric] = band;
  return options;
}

}  // namespace

explain::AllowedOps allowed_cpu_ops(const config::Settings& settings,
                                    const profile::CellKey& cell) {
  const config::EngineSettings* engine = find_named(settings.engines, cell.engine);
  if (engine == nullptr) return std::nullopt;
  std::set<std::string> ops;
  for (const config::CpuOp& op : engine->cpu_ops_in(cell)) ops.insert(op.op);
  return ops;
}

// Adds explanations to cells that failed, improved or were waived, at most 8 each besides those of
// the config's own rules.
void explain_cells(std::vector<verdict::CellVerdict>& cells, const config::Settings& settings,
                   const std::string& config_file, const sys::Files& files) {
  using verdict::Outcome;
  constexpr Outcome k_explained[] = {Outcome::fail, Outcome::improved, Outcome::waived};
  constexpr std::size_t k_max_findings = 8;
  ModelHeaders models(settings, config_file, files);
  const explain::Options options = explain_options(settings);
  for (verdict::CellVerdict& cell : cells) {
    if (!holds(k_explained, cell.verdict)) continue;
    auto why =
        explain::explain(explain::make_evidence(cell), models.find(cell.cell.model), options);
    // Findings of the config's own rules come last, and none of them is dropped.
    const auto own_findings = std::ranges::find_if(
        why.findings, [](const auto& finding) { return finding.kind == explain::kind::user_rule; });
    const auto max_findings = static_cast<std::ptrdiff_t>(k_max_findings);
    if (own_findings - why.findings.begin() > max_findings)
      why.findings.erase(why.findings.begin() + max_findings, own_findings);
    cell.findings = std::move(why.findings);
  }
}

namespace {

using explain::Explanation;

Result<Answer> explanation_answer(const Job& job, const ExplainOptions& options,
                                  const std::vector<Explanation>& explanations) {
  return Answer{report::explain_text(
                    explanations,
                    {.color = job.colored(), .width = job.width(), .checklist = options.checklist}),
                json_document(report::explain_json(explanations))};
}

// The inputs of explanations besides the measurements: models and rules of a run's configuration.
struct ExplainContext {
  const MeasuredRun* run = nullptr;
  std::optional<explain::ModelFacts> given_model{};  // --model
  std::optional<ModelHeaders> models{};
  explain::Options settings{explain::default_bands(), {}};

  [[nodiscard]] static Result<ExplainContext> make(const Job& job, const ExplainOptions& options) {
    ExplainContext context;
    if (!options.model.empty())
      WEIR_TRY_SET(context.given_model, read_model_facts(options.model, job.files()));
    return context;
  }
  void use_configuration_of(const MeasuredRun& measured, const sys::Files& files) {
    run = &measured;
    models.emplace(*measured.configuration.settings, measured.configuration.file, files);
    settings = explain_options(*measured.configuration.settings);
  }
  // Returns the facts of a cell's model, null if there are none.
  [[nodiscard]] const explain::ModelFacts* find_model(const profile::CellKey& cell) {
    if (given_model) return &*given_model;
    return models ? models->find(cell.model) : nullptr;
  }
  Explanation explain_cell(const explain::Evidence& evidence, const profile::CellKey& cell) {
    if (run != nullptr) {
      settings.cpu_ops_allowed = allowed_cpu_ops(*run->configuration.settings, cell);
    }
    return explain::explain(evidence, find_model(cell), settings);
  }
  // Returns the other quantizations of the cell's model in `alike`, with their decode rates.
  // `alike` are the cells that differ from `cell` in the model alone.
  [[nodiscard]] std::vector<std::string> other_quantizations(
      std::span<const verdict::CellVerdict* const> same_place_cells, const profile::CellKey& cell) {
    std::vector<std::string> others;
    const explain::ModelFacts* mine = find_model(cell);
    if (given_model || mine == nullptr || mine->layers == 0) return others;
    for (const verdict::CellVerdict* other : same_place_cells) {
      const explain::ModelFacts* facts = find_model(other->cell);
      if (other->cell == cell || facts == nullptr || *facts != *mine) continue;
      const auto* rate = find_first(other->judgements, [](const verdict::Judgement& metric) {
        return metric.metric.name == "decode_tokens_per_second" && metric.current;
      });
      others.push_back(other->cell.model +
                       (rate ? " " + unit::show(rate->metric, *rate->current) : ""));
    }
    return others;
  }
  // Returns the explanation with private names hidden.
  [[nodiscard]] Explanation hide_private(Explanation why) const {
    return run != nullptr ? redacted(std::move(why), run->configuration.redactor) : why;
  }
};

// --- a run that was judged ---------------------------------------------------------------------

// A verdict that was read, and where from.
struct VerdictFile {
  verdict::GateVerdict gate;
  std::string run;  // its folder; "" if the verdict lies elsewhere
};

// Explains each cell of a verdict, with the models and profiles of its run if that can be read.
Result<Answer> explain_verdict(const Job& job, const ExplainOptions& options,
                               const VerdictFile& judged) {
  WEIR_TRY(ExplainContext context, ExplainContext::make(job, options));
  // The run's configuration leads to its models. The verdict's file may be all there is.
  Job all_cells_job = job;
  all_cells_job.selection.cells.clear();
  const auto measured = judged.run.empty() ? Result<MeasuredRun>(fail(Code::data, "no run"))
                                           : read_measured(all_cells_job, judged.run);
  std::map<profile::CellKey, const profile::Profile*> profiles;
  if (measured) {
    context.use_configuration_of(*measured, job.files());
    for (const profile::Profile& profile : measured->profiles) profiles[profile.cell] = &profile;
  }
  std::vector<Explanation> explanations;
  const auto without_model = [](profile::CellKey cell) {
    cell.model.clear();
    return cell;
  };
  std::map<profile::CellKey, std::vector<const verdict::CellVerdict*>> cells_by_place;
  for (const verdict::CellVerdict& cell : judged.gate.cells) {
    cells_by_place[without_model(cell.cell)].push_back(&cell);
  }
  for (const verdict::CellVerdict& cell : judged.gate.cells) {
    if (!job.selection.wants(cell.cell.str())) continue;
    context.settings.other_quantizations =
        context.other_quantizations(cells_by_place[without_model(cell.cell)], cell.cell);
    explain::Evidence evidence = explain::make_evidence(cell);
    if (const auto* profile = look_up(profiles, cell.cell)) {
      evidence.fusible = explain::find_fusible(**profile);
    }
    explanations.push_back(context.hide_private(context.explain_cell(evidence, cell.cell)));
  }
  if (explanations.empty())
    return fail(Code::usage, "no cell of this verdict is selected by --cell");
  return explanation_answer(job, options, explanations);
}

// --- one profile, or a run that was not judged ------------------------------------------------

// Explains profiles that were not judged: those of a run or a file.
Result<Answer> explain_alone(const Job& job, const ExplainOptions& options,
                             const std::string& path) {
  WEIR_TRY(ExplainContext context, ExplainContext::make(job, options));
  std::optional<MeasuredRun> run;
  WEIR_TRY(const ProfileFile file, read_profiles(job, path, run));
  if (run) context.use_configuration_of(*run, job.files());
  std::vector<Explanation> explanations;
  if (file.observed) {
    explanations.push_back(explain::explain(explain::make_evidence(*file.observed),
                                            context.given_model ? &*context.given_model : nullptr,
                                            context.settings));
  }
  for (const profile::Profile& profile : file.profiles) {
    if (!job.selection.wants(profile.cell.str())) continue;
    explanations.push_back(
        context.hide_private(context.explain_cell(explain::make_evidence(profile), profile.cell)));
  }
  if (explanations.empty()) return fail(Code::usage, "{} has no cell that --cell selects", path);
  if (run && job.files().kind(path) == sys::Kind::folder) {
    job.log(
        fmt::format("{0}: this run was not judged: weir gate --from {0} judges it,\n"
                    "  weir explain RUN OTHER compares two runs",
                    text::shell_word(path)));
  }
  return explanation_answer(job, options, explanations);
}

// Returns true if the file names itself a verdict. One that cannot be read is no profile either.
bool names_verdict(const std::string& file, const sys::Files& files) {
  const auto text = files.read(file, adapters::k_max_read_bytes);
  return text && text->find("\"weir.verdict/") != std::string::npos;
}

// Returns the newest run, of the hook, too.
Result<std::string> newest_run_or_hook(const Job& job) {
  auto newest = newest_run(job);
  const auto of_hook = newest_run(job.below("hook"));
  if (!of_hook) return newest;
  if (!newest) return newest.error().code == Code::usage ? of_hook : newest;
  WEIR_TRY(const double began_at, run::read_started_at(job.files(), *newest));
  WEIR_TRY(const double hook_began_at, run::read_started_at(job.files(), *of_hook));
  return hook_began_at > began_at ? of_hook : newest;
}

// Explains one verdict, run or profile; by default the newest run.
Result<Answer> explain_one(const Job& job, const ExplainOptions& options) {
  const sys::Files& files = job.files();
  std::string path = options.what.empty() ? "" : options.what.front();
  if (path.empty()) {
    WEIR_TRY_SET(path, newest_run_or_hook(job));
    job.log("explaining " + path);
  }
  const bool is_folder = files.kind(path) == sys::Kind::folder;
  const bool is_judged =
      is_folder ? files.kind(sys::join_path(path, run::k_verdict_name)) == sys::Kind::file
                : names_verdict(path, files);
  const bool has_runs =
      is_folder && !holds_run(path, files) && !run::list_runs(files, path).empty();
  if (!is_judged && !has_runs) return explain_alone(job, options, path);
  WEIR_TRY(const std::string file, find_verdict(path, files));
  WEIR_TRY(verdict::GateVerdict verdict, read_verdict(file, files));
  return explain_verdict(job, options, {std::move(verdict), is_folder ? path : ""});
}

// --- two sides ---------------------------------------------------------------------------------

struct ProfilePair {
  ProfileFile a, b;
  std::optional<MeasuredRun> run_a{}, run_b{};
};

Result<ProfilePair> read_profile_pair(const Job& job, const std::string& a, const std::string& b) {
  ProfilePair sides;
  WEIR_TRY(sides.a, read_profiles(job, a, sides.run_a));
  WEIR_TRY(sides.b, read_profiles(job, b, sides.run_b));
  return sides;
}

tl::unexpected<Error> no_common_cell(const Job& job, const std::string& a, const std::string& b) {
  return fail(Code::usage, "{} and {} have no cell in common{}", a, b,
              job.selection.cells.empty() ? "" : " that --cell selects");
}

// Explains how the second of two profiles or runs differs from the first.
Result<Answer> explain_two(const Job& job, const ExplainOptions& options) {
  WEIR_TRY(ExplainContext context, ExplainContext::make(job, options));
  WEIR_TRY(const ProfilePair profiles, read_profile_pair(job, options.what[0], options.what[1]));
  const ProfileFile &a = profiles.a, &b = profiles.b;
  if (profiles.run_b) context.use_configuration_of(*profiles.run_b, job.files());
  std::vector<Explanation> explanations;
  if (a.observed.has_value() != b.observed.has_value()) {
    return fail(Code::usage,
                "one side is a profiler's output and the other is not:\n"
                "  they hold other things: weir compare puts them beside each other");
  }
  if (a.observed) {
    explanations.push_back(explain::explain(explain::make_evidence(*a.observed, *b.observed),
                                            context.given_model ? &*context.given_model : nullptr,
                                            context.settings));
    return explanation_answer(job, options, explanations);
  }
  for (const auto& [before, after] : cell_pairs(a, b, job)) {
    explanations.push_back(context.hide_private(
        context.explain_cell(explain::make_evidence(*before, *after), after->cell)));
  }
  if (explanations.empty()) return no_common_cell(job, options.what[0], options.what[1]);
  return explanation_answer(job, options, explanations);
}

}  // namespace

Result<Answer> explain_changes(const Job& job, const ExplainOptions& options) {
  return options.what.size() == 2 ? explain_two(job, options) : explain_one(job, options);
}

namespace {

using explain::Comparison;

// --- two runs ----------------------------------------------------------------------------------

// Judges the candidate run by the limits of its configuration, with the other run as base.
Result<Answer> compare_runs(const Job& job, const CompareOptions& options) {
  if (options.top_is_set) return fail(Code::usage, "--top is for profiles: these are runs");
  WEIR_TRY(MeasuredRun base, read_measured(job, options.base));
  WEIR_TRY(MeasuredRun candidate, read_measured(job, options.candidate));
  WEIR_TRY(verdict::GateVerdict verdict,
           judge_against(candidate, base, gate_policy(candidate, /*require_baseline=*/false),
                         job.files()));
  base.profiles = {};
  candidate.profiles = {};  // reports are made of the verdict alone
  verdict.run.reset();      // a comparison is not the run's own verdict
  verdict.runs = {options.base, options.candidate};
  // A name that is private in either run stays hidden.
  return publish_verdict(job, options.files,
                         redacted(std::move(verdict), base.configuration.redactor),
                         candidate.configuration.redactor);
}

// --- two profiles ------------------------------------------------------------------------------

// Fails if a report was requested that needs a verdict: profiles are not judged.
Result<void> check_report_options(const CompareOptions& options) {
  for (std::size_t i = 0; i < options.files.files.size(); ++i) {
    if (!options.files.files[i] || &*options.files.files[i] == &*options.files.markdown()) continue;
    return fail(Code::usage,
                "{} is for two runs: profiles are not judged\n"
                "  --json and --markdown write what differs",
                report::report_formats()[i].option);
  }
  return {};
}

// Returns a short name for one side of a comparison: its file, or folder with the one around it.
std::string side_name(const std::string& path, const sys::Files& files) {
  std::string_view trimmed = path;
  while (trimmed.size() > 1 && trimmed.ends_with('/')) trimmed.remove_suffix(1);
  const std::string name = sys::file_name_of(std::string(trimmed));
  if (files.kind(path) != sys::Kind::folder) return name;
  // A folder of probe files says little by itself; a full path would show where both lie.
  const std::string around = sys::file_name_of(sys::folder_of(std::string(trimmed)));
  return around.empty() || around == "." ? name : around + "/" + name;
}

// Compares two profiles of one kind, and lists what explains the difference.
template <class Profile>
Comparison compare_pair(const std::pair<std::string, std::string>& names, const Profile& a,
                        const Profile& b, const explain::Options& settings) {
  Comparison comparison = explain::compare({names.first, &a}, {names.second, &b});
  comparison.findings = explain::explain(explain::make_evidence(a, b), nullptr, settings).findings;
  explain::shift_named_rows(comparison);
  return comparison;
}

// Returns the only selected profile of one file, to compare with the output of a profiler. Fails if
// there are none or several.
Result<const profile::Profile*> only_profile(const Job& job, const ProfileFile& file,
                                             const std::string& path) {
  const profile::Profile* only = nullptr;
  for (const profile::Profile& cell_profile : file.profiles) {
    if (!job.selection.wants(cell_profile.cell.str())) continue;
    if (only != nullptr) {
      return fail(Code::usage,
                  "{} holds several cells, and the other side is one profile:\n"
                  "  --cell selects one of them, such as {}",
                  path, text::shell_word(only->cell.str()));
    }
    only = &cell_profile;
  }
  if (only == nullptr) return fail(Code::usage, "{} has no cell that --cell selects", path);
  return only;
}

// Compares the cells of two files of profiles, or what two profilers wrote, or one with the other.
Result<std::vector<Comparison>> compare_cells(const Job& job, const CompareOptions& options,
                                              const ProfileFile& a, const ProfileFile& b,
                                              const explain::Options& settings) {
  const std::pair names{side_name(options.base, job.files()),
                        side_name(options.candidate, job.files())};
  std::vector<Comparison> comparisons;
  if (a.observed && b.observed) {
    comparisons.push_back(compare_pair(names, *a.observed, *b.observed, settings));
    return comparisons;
  }
  if (a.observed || b.observed) {
    const bool base_is_observed = a.observed.has_value();
    WEIR_TRY(const profile::Profile* profile,
             only_profile(job, base_is_observed ? b : a,
                          base_is_observed ? options.candidate : options.base));
    const observed::Observed& observed = base_is_observed ? *a.observed : *b.observed;
    comparisons.push_back(
        base_is_observed ? explain::compare({names.first, &observed}, {names.second, profile})
                         : explain::compare({names.first, profile}, {names.second, &observed}));
    return comparisons;
  }
  for (const auto& [before, after] : cell_pairs(a, b, job)) {
    comparisons.push_back(compare_pair(names, *before, *after, settings));
  }
  if (comparisons.empty()) return no_common_cell(job, options.base, options.candidate);
  return comparisons;
}

// Compares two profiles and shows the differences; nothing is judged.
Result<Answer> compare_profiles(const Job& job, const CompareOptions& options) {
  WEIR_CHECK(check_report_options(options));
  WEIR_TRY(const ProfilePair profiles, read_profile_pair(job, options.base, options.candidate));
  const explain::Options settings = profiles.run_b
                                        ? explain_options(*profiles.run_b->configuration.settings)
                                        : explain::Options{explain::default_bands(), {}};
  WEIR_TRY(auto comparisons, compare_cells(job, options, profiles.a, profiles.b, settings));
  for (Comparison& comparison : comparisons) {
    for (const auto* run : {&profiles.run_a, &profiles.run_b}) {
      if (*run) comparison = redacted(std::move(comparison), (*run)->configuration.redactor);
    }
  }
  if (const auto& file = options.files.markdown()) {
    WEIR_CHECK(job.files().write_atomic(
        *file, report::compare_markdown(comparisons, options.top, report::k_comment_limit)));
  }
  return Answer{
      report::compare_text(comparisons,
                           {.color = job.colored(), .width = job.width(), .max_rows = options.top}),
      json_document(report::compare_json(comparisons))};
}

}  // namespace

Result<Answer> compare(const Job& job, const CompareOptions& options) {
  const bool runs =
      holds_run(options.base, job.files()) && holds_run(options.candidate, job.files());
  return runs ? compare_runs(job, options) : compare_profiles(job, options);
}

}  // namespace weir::flow

#include "gate/flow/explain.hpp"

#include "gate/adapters/format.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/judge.hpp"
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

// What of a folder tells most: config.json, else its first GGUF file.
std::optional<std::string> header_in(const std::string& folder, const sys::Files& files) {
  const std::string config = sys::join_path(folder, "config.json");
  if (files.kind(config) == sys::Kind::file) return config;
  for (const std::string& name : files.list(folder).value_or(std::vector<std::string>())) {
    if (text::lower(name).ends_with(".gguf")) return sys::join_path(folder, name);
  }
  return std::nullopt;
}

// A GGUF file, a config.json, or a folder that holds one of them.
Result<explain::ModelFacts> read_model_facts(const std::string& path, const sys::Files& files) {
  if (files.kind(path) == sys::Kind::folder) {
    const auto inside = header_in(path, files);
    if (!inside) return fail(Code::data, "{}: neither config.json nor a GGUF file in it", path);
    return read_model_facts(*inside, files);
  }
  if (text::lower(path).ends_with(".json")) {
    WEIR_TRY(const std::string config, files.read_prefix(path, k_longest_config));
    return explain::model_facts_from_config(config).map_error(in_context(path));
  }
  const auto read = [&](std::uint64_t bytes) { return files.read_prefix(path, bytes); };
  WEIR_TRY(const auto header, model::load_gguf(read).map_error(in_context(path)));
  return explain::model_facts(header);
}

// The models of a configuration, each read once and only when asked for. What cannot be read, and
// what is private, has no facts: an explanation goes without. Not thread-safe.
class ModelHeaders {
 public:
  // `settings` is the caller's; relative paths count from the folder of `config_file`, "": none is
  // read.
  ModelHeaders(const config::Settings& settings, std::string config_file, const sys::Files& files)
      : settings_(settings), config_file_(std::move(config_file)), files_(files) {}

  // Null where nothing is known. Valid as long as this object.
  [[nodiscard]] const explain::ModelFacts* of(const std::string& model) {
    const auto [entry, fresh] = known_.try_emplace(model);
    const config::ModelSettings* found = fresh ? find_named(settings_.models, model) : nullptr;
    // What is called private keeps its layers to itself too.
    if (found != nullptr && !found->is_private && !config_file_.empty()) {
      const std::string folder = sys::absolute(sys::folder_of(config_file_));
      auto facts = read_model_facts(sys::join_path(folder, found->path), files_);
      if (facts) entry->second = std::move(*facts);
    }
    return entry->second ? &*entry->second : nullptr;
  }

 private:
  const config::Settings& settings_;
  std::string config_file_;
  const sys::Files& files_;
  std::map<std::string, std::optional<explain::ModelFacts>> known_;
};

explain::Options explain_options(const config::Settings& settings) {
  explain::Options options{explain::default_bands(), settings.explain.rules};
  for (const auto& [metric, band] : settings.explain.bands) options.bands[metric] = band;
  return options;
}

}  // namespace

explain::AllowedOps allowed_ops_of(const config::Settings& settings, const profile::CellKey& cell) {
  const config::EngineSettings* found = find_named(settings.engines, cell.engine);
  if (found == nullptr) return std::nullopt;
  std::set<std::string> ops;
  for (const config::CpuOp& one : found->cpu_ops_in(cell)) ops.insert(one.op);
  return ops;
}

void explain_cells(std::vector<verdict::CellVerdict>& cells, const config::Settings& settings,
                   const std::string& config_file, const sys::Files& files) {
  using verdict::Outcome;
  constexpr Outcome k_explained[] = {Outcome::fail, Outcome::improved, Outcome::accepted};
  constexpr std::size_t k_most_findings = 8;
  ModelHeaders models(settings, config_file, files);
  const explain::Options options = explain_options(settings);
  for (verdict::CellVerdict& cell : cells) {
    if (!holds(k_explained, cell.verdict)) continue;
    auto why = explain::explain(explain::evidence_of(cell), models.of(cell.cell.model), options);
    // What the rules of the config say comes last, and is all kept.
    const auto own = std::ranges::find_if(
        why.findings, [](const auto& one) { return one.kind == explain::kind::user_rule; });
    const auto most = static_cast<std::ptrdiff_t>(k_most_findings);
    if (own - why.findings.begin() > most) why.findings.erase(why.findings.begin() + most, own);
    cell.findings = std::move(why.findings);
  }
}

namespace {

using explain::Explanation;

Result<Answer> told(const Job& job, const ExplainOptions& options,
                    const std::vector<Explanation>& all) {
  return Answer{
      report::explain_text(
          all, {.color = job.colored(), .width = job.width(), .checklist = options.checklist}),
      document(report::explain_json(all))};
}

// What explanations are made with: the models and rules of a run's configuration, or none.
struct Rulebook {
  const Measured* run = nullptr;
  std::optional<explain::ModelFacts> named{};  // --model
  std::optional<ModelHeaders> models{};
  explain::Options settings{explain::default_bands(), {}};

  [[nodiscard]] static Result<Rulebook> make(const Job& job, const ExplainOptions& options) {
    Rulebook made;
    if (!options.model.empty()) WEIR_SET(made.named, read_model_facts(options.model, job.files()));
    return made;
  }
  void take(const Measured& measured, const sys::Files& files) {
    run = &measured;
    models.emplace(*measured.known.settings, measured.known.file, files);
    settings = explain_options(*measured.known.settings);
  }
  // Of a cell. The model is null where nothing is known of it.
  [[nodiscard]] const explain::ModelFacts* model_of(const profile::CellKey& cell) {
    if (named) return &*named;
    return models ? models->of(cell.model) : nullptr;
  }
  Explanation explained(const explain::Evidence& evidence, const profile::CellKey& cell) {
    if (run != nullptr) {
      settings.cpu_ops_allowed = allowed_ops_of(*run->known.settings, cell);
    }
    return explain::explain(evidence, model_of(cell), settings);
  }
  // What the other models of its shape do in the cell's place, of `alike`: the cells in that place.
  [[nodiscard]] std::vector<std::string> other_quantizations(
      std::span<const verdict::CellVerdict* const> alike, const profile::CellKey& cell) {
    std::vector<std::string> others;
    const explain::ModelFacts* mine = model_of(cell);
    if (named || mine == nullptr || mine->layers == 0) return others;
    for (const verdict::CellVerdict* other : alike) {
      const explain::ModelFacts* facts = model_of(other->cell);
      if (other->cell == cell || facts == nullptr || *facts != *mine) continue;
      const auto* rate = first_of(other->judgements, [](const verdict::Judgement& metric) {
        return metric.metric.name == "decode_tokens_per_second" && metric.current;
      });
      others.push_back(other->cell.model +
                       (rate ? " " + unit::show(rate->metric, *rate->current) : ""));
    }
    return others;
  }
  [[nodiscard]] Explanation shown(Explanation why) const {
    return run != nullptr ? redacted(std::move(why), run->known.redactor) : why;
  }
};

// --- a run that was judged ---------------------------------------------------------------------

struct JudgedRun {
  verdict::GateVerdict gate;
  std::string run;  // its folder; "" where there is none beside it
};

Result<Answer> explain_verdict(const Job& job, const ExplainOptions& options,
                               const JudgedRun& judged) {
  WEIR_TRY(Rulebook book, Rulebook::make(job, options));
  // The run's own configuration leads to its models. A verdict may be all there is.
  Job every = job;
  every.asked.cells.clear();
  const auto measured = judged.run.empty() ? Result<Measured>(fail(Code::data, "no run"))
                                           : read_measured(every, judged.run);
  std::map<profile::CellKey, const profile::Profile*> profiles;
  if (measured) {
    book.take(*measured, job.files());
    for (const profile::Profile& profile : measured->profiles) profiles[profile.cell] = &profile;
  }
  std::vector<Explanation> all;
  const auto place_of = [](profile::CellKey cell) {
    cell.model.clear();
    return cell;
  };
  std::map<profile::CellKey, std::vector<const verdict::CellVerdict*>> places;
  for (const verdict::CellVerdict& cell : judged.gate.cells) {
    places[place_of(cell.cell)].push_back(&cell);
  }
  for (const verdict::CellVerdict& cell : judged.gate.cells) {
    if (!job.asked.wants(cell.cell.str())) continue;
    book.settings.other_quantizations =
        book.other_quantizations(places[place_of(cell.cell)], cell.cell);
    explain::Evidence evidence = explain::evidence_of(cell);
    if (const auto* profile = look_up(profiles, cell.cell)) {
      evidence.fusible = explain::fusible_of(**profile);
    }
    all.push_back(book.shown(book.explained(evidence, cell.cell)));
  }
  if (all.empty()) return fail(Code::usage, "no cell of this verdict is selected by --cell");
  return told(job, options, all);
}

// --- one profile, or a run that was not judged ------------------------------------------------

Result<Answer> explain_alone(const Job& job, const ExplainOptions& options,
                             const std::string& path) {
  WEIR_TRY(Rulebook book, Rulebook::make(job, options));
  std::optional<Measured> run;
  WEIR_TRY(const ProfileFile file, read_profiles(job, path, run));
  if (run) book.take(*run, job.files());
  std::vector<Explanation> all;
  if (file.observed) {
    all.push_back(explain::explain(explain::evidence_of(*file.observed),
                                   book.named ? &*book.named : nullptr, book.settings));
  }
  for (const profile::Profile& profile : file.profiles) {
    if (!job.asked.wants(profile.cell.str())) continue;
    all.push_back(book.shown(book.explained(explain::evidence_of(profile), profile.cell)));
  }
  if (all.empty()) return fail(Code::usage, "{} has no cell that --cell selects", path);
  if (run && job.files().kind(path) == sys::Kind::folder) {
    job.talk(
        fmt::format("{0}: this run was not judged: weir gate --from {0} judges it,\n"
                    "  weir explain RUN OTHER compares two runs",
                    text::shell_word(path)));
  }
  return told(job, options, all);
}

// Names itself a verdict: if it cannot be read as one it is no profile either.
bool names_verdict(const std::string& file, const sys::Files& files) {
  const auto text = files.read(file, adapters::k_most_read);
  return text && text->find("\"weir.verdict/") != std::string::npos;
}

Result<Answer> explain_what_there_is(const Job& job, const ExplainOptions& options) {
  const sys::Files& files = job.files();
  std::string path = options.what.empty() ? "" : options.what.front();
  if (path.empty()) WEIR_SET(path, run::newest_run(files, job.asked.out));
  const bool folder = files.kind(path) == sys::Kind::folder;
  const bool judged = folder
                          ? files.kind(sys::join_path(path, run::k_verdict_name)) == sys::Kind::file
                          : names_verdict(path, files);
  const bool has_runs = folder && !holds_run(path, files) && !run::list_runs(files, path).empty();
  if (!judged && !has_runs) return explain_alone(job, options, path);
  WEIR_TRY(const std::string file, find_verdict(path, files));
  WEIR_TRY(verdict::GateVerdict verdict, read_verdict(file, files));
  return explain_verdict(job, options, {std::move(verdict), folder ? path : ""});
}

// --- two sides ---------------------------------------------------------------------------------

struct TwoSides {
  ProfileFile a, b;
  std::optional<Measured> run_a{}, run_b{};
};

Result<TwoSides> read_sides(const Job& job, const std::string& a, const std::string& b) {
  TwoSides sides;
  WEIR_TRY(sides.a, read_profiles(job, a, sides.run_a));
  WEIR_TRY(sides.b, read_profiles(job, b, sides.run_b));
  return sides;
}

tl::unexpected<Error> nothing_in_common(const Job& job, const std::string& a,
                                        const std::string& b) {
  return fail(Code::usage, "{} and {} have no cell in common{}", a, b,
              job.asked.cells.empty() ? "" : " that --cell selects");
}

Result<Answer> explain_two(const Job& job, const ExplainOptions& options) {
  WEIR_TRY(Rulebook book, Rulebook::make(job, options));
  WEIR_TRY(const TwoSides sides, read_sides(job, options.what[0], options.what[1]));
  const ProfileFile &a = sides.a, &b = sides.b;
  if (sides.run_b) book.take(*sides.run_b, job.files());
  std::vector<Explanation> all;
  if (a.observed.has_value() != b.observed.has_value()) {
    return fail(Code::usage,
                "one side is a profiler's output and the other is not:\n"
                "  they hold other things: weir compare puts them beside each other");
  }
  if (a.observed) {
    all.push_back(explain::explain(explain::evidence_of(*a.observed, *b.observed),
                                   book.named ? &*book.named : nullptr, book.settings));
    return told(job, options, all);
  }
  for (const auto& [before, after] : cell_pairs(a, b, job)) {
    all.push_back(book.shown(book.explained(explain::evidence_of(*before, *after), after->cell)));
  }
  if (all.empty()) return nothing_in_common(job, options.what[0], options.what[1]);
  return told(job, options, all);
}

}  // namespace

Result<Answer> explain_changes(const Job& job, const ExplainOptions& options) {
  return options.what.size() == 2 ? explain_two(job, options) : explain_what_there_is(job, options);
}

namespace {

using explain::Comparison;

// --- two runs ----------------------------------------------------------------------------------

Result<Answer> compare_runs(const Job& job, const CompareOptions& options) {
  if (options.top_given) return fail(Code::usage, "--top is for profiles: these are runs");
  WEIR_TRY(const Measured base, read_measured(job, options.base));
  WEIR_TRY(Measured candidate, read_measured(job, options.candidate));
  verdict::GateVerdict verdict =
      judge_against(candidate, base, policy_of(candidate, false), job.files());
  verdict.run.reset();  // a comparison is not the run's own verdict
  verdict.runs = {options.base, options.candidate};
  // What either side calls private stays so.
  return publish_verdict(job, options.files, redacted(verdict, base.known.redactor),
                         candidate.known.redactor);
}

// --- two profiles ------------------------------------------------------------------------------

// What has a verdict in it can be made of runs alone.
Result<void> refuse_reports(const CompareOptions& options) {
  for (std::size_t i = 0; i < options.files.files.size(); ++i) {
    if (!options.files.files[i] || &*options.files.files[i] == &*options.files.markdown()) continue;
    return fail(Code::usage,
                "{} is for two runs: profiles are not judged\n"
                "  --json and --markdown write what differs",
                report::report_formats()[i].option);
  }
  return {};
}

std::string name_of_side(const std::string& path, const sys::Files& files) {
  std::string_view trimmed = path;
  while (trimmed.size() > 1 && trimmed.ends_with('/')) trimmed.remove_suffix(1);
  const std::string name = sys::file_name_of(std::string(trimmed));
  if (files.kind(path) != sys::Kind::folder) return name;
  // Of a folder of probe files the one around it says more; where both lie is nobody's business.
  const std::string around = sys::file_name_of(sys::folder_of(std::string(trimmed)));
  return around.empty() || around == "." ? name : around + "/" + name;
}

template <class Profile>
Comparison comparison_of(const std::pair<std::string, std::string>& names, const Profile& a,
                         const Profile& b, const explain::Options& settings) {
  Comparison made = explain::compare({names.first, &a}, {names.second, &b});
  made.findings = explain::explain(explain::evidence_of(a, b), nullptr, settings).findings;
  explain::shift_named_rows(made);
  return made;
}

// The one profile of a side that stands beside what a profiler wrote.
Result<const profile::Profile*> only_profile(const Job& job, const ProfileFile& side,
                                             const std::string& path) {
  const profile::Profile* only = nullptr;
  for (const profile::Profile& one : side.profiles) {
    if (!job.asked.wants(one.cell.str())) continue;
    if (only != nullptr) {
      return fail(Code::usage,
                  "{} holds several cells, and the other side is one profile:\n"
                  "  --cell selects one of them, such as {}",
                  path, text::shell_word(only->cell.str()));
    }
    only = &one;
  }
  if (only == nullptr) return fail(Code::usage, "{} has no cell that --cell selects", path);
  return only;
}

Result<std::vector<Comparison>> comparisons_of(const Job& job, const CompareOptions& options,
                                               const ProfileFile& a, const ProfileFile& b,
                                               const explain::Options& settings) {
  const std::pair names{name_of_side(options.base, job.files()),
                        name_of_side(options.candidate, job.files())};
  std::vector<Comparison> all;
  if (a.observed && b.observed) {
    all.push_back(comparison_of(names, *a.observed, *b.observed, settings));
    return all;
  }
  if (a.observed || b.observed) {
    const bool first = a.observed.has_value();
    WEIR_TRY(const profile::Profile* profile,
             only_profile(job, first ? b : a, first ? options.candidate : options.base));
    const observed::Observed& observed = first ? *a.observed : *b.observed;
    all.push_back(first ? explain::compare({names.first, &observed}, {names.second, profile})
                        : explain::compare({names.first, profile}, {names.second, &observed}));
    return all;
  }
  for (const auto& [before, after] : cell_pairs(a, b, job)) {
    all.push_back(comparison_of(names, *before, *after, settings));
  }
  if (all.empty()) return nothing_in_common(job, options.base, options.candidate);
  return all;
}

Result<Answer> compare_profiles(const Job& job, const CompareOptions& options) {
  WEIR_CHECK(refuse_reports(options));
  WEIR_TRY(const TwoSides sides, read_sides(job, options.base, options.candidate));
  const explain::Options settings = sides.run_b ? explain_options(*sides.run_b->known.settings)
                                                : explain::Options{explain::default_bands(), {}};
  WEIR_TRY(auto all, comparisons_of(job, options, sides.a, sides.b, settings));
  for (Comparison& one : all) {
    for (const auto* run : {&sides.run_a, &sides.run_b}) {
      if (*run) one = redacted(std::move(one), (*run)->known.redactor);
    }
  }
  if (const auto& file = options.files.markdown()) {
    WEIR_CHECK(job.files().write_atomic(
        *file, report::compare_markdown(all, options.top, report::k_comment_limit)));
  }
  return Answer{report::compare_text(
                    all, {.color = job.colored(), .width = job.width(), .most_rows = options.top}),
                document(report::compare_json(all))};
}

}  // namespace

Result<Answer> compare(const Job& job, const CompareOptions& options) {
  const bool runs =
      holds_run(options.base, job.files()) && holds_run(options.candidate, job.files());
  return runs ? compare_runs(job, options) : compare_profiles(job, options);
}

}  // namespace weir::flow

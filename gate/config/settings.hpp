// weir.yaml as data: its sections as written and checked, before the matrix is expanded. Pure.
#pragma once

#include <memory>
#include <set>

#include "gate/base/json_fwd.hpp"
#include "gate/explain/rules.hpp"
#include "gate/profile/served.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::config {

using Arguments = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

// Arguments and environment that an engine, variant, backend, model or prompt brings along.
struct Extra {
  Arguments args;
  Environment env;
  std::optional<std::int64_t> threads, seed;
  // Under `env` without a value: the variable of weir's own environment, which would be withheld.
  std::set<std::string> passed_variables{};
  std::map<std::string, std::string> replaced_flags{};  // values of flags that the command has
  // Appends `more`'s arguments; its other values replace those here.
  void add(const Extra& more);
};

// `extra` for every engine, and what stands under `engines: {NAME: {...}}` for one of them.
struct PerEngine {
  Extra extra;
  std::map<std::string, Extra> engines;
  // Both, the engine's own last.
  [[nodiscard]] Extra for_engine(const std::string& engine) const;
};

// A value the generic adapter finds in the output: by regular expression (group 1) or by JSON
// pointer, scaled to the base unit.
struct ValueRule {
  std::string metric;                  // full metric name
  std::optional<unit::Metric> custom;  // declared with kind/unit/better in the config
  std::string regex;                   // one of regex and pointer
  std::string pointer;                 // "/timings/predicted_per_second"
  std::optional<unit::Scale> scale;
  enum class Stream { either, out, err } stream = Stream::either;
  // How several matches become one value. Default: the last; for counts see
  // adapters/own_counts.hpp.
  enum class Pick { last, first, all, sum, max, median };
  std::optional<Pick> pick{};
  std::string source{};  // "weir.yaml:7:7"; "": unknown

  // The metric of this name: the declared one, or weir's own. Nothing for a fact.
  [[nodiscard]] std::optional<unit::Metric> find_metric() const {
    return custom ? custom : unit::find_metric(metric);
  }
};
// Texts the generic adapter takes for facts rather than metrics: generated_tokens, prompt_tokens,
// output_digest, model, engine_build.
struct GenericOutput {
  std::vector<ValueRule> values;
  std::vector<ValueRule> facts;  // `metric` holds the fact's name
};

// How the probe `instructions` counts: perf events where the machine has them (else not at all,
// which is said), perf events or an error, or valgrind.
enum class InstructionsBy { automatic, perf, valgrind };

// Runtime of an engine that does not run here directly: a container, or a node of Slurm.
enum class Runtime { docker, podman, srun };
struct ContainerSettings {
  Runtime runtime = Runtime::docker;
  std::string image;  // "" where the command begins with the runtime itself
  Arguments args;     // for the runtime, before the image
};

// An engine that serves (`kind: server`): weir starts its command, or finds it under a URL, and
// sends it the prompts over HTTP.
struct ServerSettings {
  std::string url;         // without a path; may hold {port}; "": http://127.0.0.1:{port}
  std::string api;         // "completions", "chat", "llama", "ollama"
  std::string ready_url;   // a path of the server or a whole URL that answers 2xx once it is up
  std::string ready_line;  // instead: a regular expression that a line of its output matches
  double ready_seconds = 60;
  std::string model_name;          // sent with each request; "": none
  std::int64_t warm_up = 2;        // requests before the load, one after the other
  bool sends_extra_fields = true;  // as in adapters/serving.hpp
  bool share_start = true;   // one start serves all cells whose server is started in the same way
  std::string extra_body{};  // fields that each request has besides: a JSON object; "": none
  // Beside a base program: into how many blocks each side's requests are split, which take turns
  // while both servers are up. 0: one server after the other.
  std::int64_t blocks = 4;
  std::string metrics;    // a path of the server or a whole URL of its own metrics; "": not asked
  std::string token_env;  // the variable of weir's environment that holds its token; "": none
  // So many requests of a load may be answered otherwise than most of them are; absent: a warning.
  std::optional<std::int64_t> max_different_outputs{};
  profile::ServedObjectives objectives;
  std::optional<double> max_divergence{};  // largest output_kl, in nats; absent: not measured

  friend bool operator==(const ServerSettings&, const ServerSettings&) = default;
};

// `output` of a server: its times come from weir's own measurement of requests.
inline constexpr const char* k_requests = "requests";

// An op that may run on the CPU in cells that ask for a device.
struct CpuOp {
  std::string op{}, why{};
  std::string when{};      // condition on the op's shape (profile::shape_fits); "": any
  verdict::Match match{};  // cells of the engine in which it may
  friend bool operator==(const CpuOp&, const CpuOp&) = default;
};

// The variable that tells a twin what to answer when a program reads values back
// (gate/probes/twin/blob.h).
inline constexpr std::string_view k_reads_variable = "WEIR_TWIN_READS";

// A role that processes of an engine play: those whose name or command line has `pattern` in it,
// where * is any text.
struct ProcessRole {
  std::string name, pattern;
  friend bool operator==(const ProcessRole&, const ProcessRole&) = default;
};

struct EngineSettings {
  std::string name;
  std::string preset;  // "llama-bench 1", with its version; "": none
  // argv[0] is the program; empty: a server that runs already, or results that come as files.
  Arguments command;
  std::string output;     // adapter; of a server k_requests
  GenericOutput generic;  // for output: generic
  std::vector<std::string> probes;
  InstructionsBy instructions = InstructionsBy::automatic;
  bool python_lines = false;  // the probe python counts lines as well
  Arguments counted_run_args;
  Environment counted_run_env;
  std::string kernel_names;  // pattern of shader files that name kernels without names; "": none
  std::string gpu_code;      // the library with GPU code that the program opens by itself; "": none
  std::vector<ProcessRole> processes;  // those that count, in order; empty: all
  Extra extra;  // env (with k_reads_variable for `reads`), threads, seed on the engine
  std::vector<CpuOp> cpu_ops_allowed;
  double timeout_seconds = 300;
  std::int64_t output_limit = std::int64_t{16} << 20;
  std::vector<std::int64_t> ok_exit_codes;  // besides 0: it did its work all the same
  bool exclusive = false;                   // no two of its processes at once
  Arguments build;
  std::optional<ContainerSettings> container{};
  std::optional<ServerSettings> server{};
  bool is_private = false;
  std::string source;  // "weir.yaml:3:3"

  // Its output has counts: always, or if profile_args or counted_env ask for them.
  bool always_reports_counts = false, reports_counts_on_request = false;

  // Returns those entries of cpu_ops_allowed that apply to `cell`.
  [[nodiscard]] std::vector<CpuOp> cpu_ops_in(const profile::CellKey& cell) const;

  // Its output is said to hold counts: by its adapter, or a count among the generic one's values.
  [[nodiscard]] bool reports_counts() const;
};

struct ModelSettings {
  std::string name;
  std::string path;  // as written
  PerEngine extra;
  bool is_private = false;
  std::string source;
};

// Value of `compile` for kernels that are not compiled.
inline constexpr std::string_view k_no_compiler = "off";

struct BackendSettings {
  std::string name;
  std::string device;  // "cpu", or an API of unit/device_api.hpp
  std::optional<std::string> twin;
  std::int64_t devices = 1;  // number of twins, all alike
  // Compiler of recorded kernels ("radv-navi31"), or k_no_compiler. "": the one that the twin's
  // description names.
  std::string compile{};
  std::vector<std::string> runner{};  // labels of the machine that its cells need (weir plan)
  std::string gpu{};                  // GPU that weir cannot query itself: "NVIDIA H100"
  PerEngine extra;
  std::string source;
};

struct VariantSettings {
  std::string name;
  // Not made for engines it does not name, unless it names none.
  PerEngine extra;
  std::string source;
};

// The load that a prompt asks for of a tool whose result is a file. Absent: any.
struct WantedLoad {
  std::optional<std::int64_t> requests{}, concurrency{};
  std::optional<double> rate{};               // requests a second
  std::optional<std::int64_t> tokens{};       // the most that a request may generate
  std::optional<verdict::Amount> may_fail{};  // the limit on failed_requests; absent: none may
  // Returns true if `failed` of `requests` may have failed.
  [[nodiscard]] bool allows_failed(std::int64_t failed, std::int64_t all_requests) const {
    return static_cast<double>(failed) <=
           may_fail.value_or(verdict::Amount{}).of(static_cast<double>(all_requests));
  }
};

struct PromptSettings {
  std::string name;
  std::optional<std::int64_t> prompt_tokens, tokens;
  std::vector<std::int64_t> depth;  // as written; empty: unset
  bool depth_is_list = false;
  // Load of a server: requests under way at once, or arrivals a second, and requests in a run.
  std::vector<std::int64_t> concurrency;  // as written; empty: unset
  bool concurrency_is_list = false;
  std::optional<double> rate;
  std::optional<std::int64_t> requests;
  // Counted passes: all requests are queued before the server begins; unset: where that can be.
  std::optional<bool> hold{};
  bool allows_cached_prompts = false;        // prompts may be answered from the server's caches
  std::optional<double> duration_seconds{};  // length of a timed run, in place of `requests`
  // The rates between which the highest is looked for that keeps the engine's slo.
  std::optional<std::pair<double, double>> capacity{};
  std::optional<std::string> workload{};  // a file of requests: their prompts, lengths, arrivals
  std::int64_t turns = 1;                 // turns per conversation of the workload
  std::vector<std::int64_t> threads{};    // each makes a cell; 0: all cores; empty: no list
  std::optional<std::string> text, file;
  PerEngine extra;
  bool is_private = false;
  std::string source;
};

// One entry of matrix.include / matrix.exclude: globs; empty: everything.
struct MatrixEntry {
  verdict::Match match;
  std::string source;
};

struct GateSettings {
  double false_alarm = 0.001;
  double missed = 0.01;
  bool strict = false;  // false_alarm holds for every drop up to `tolerate`, not for none alone
  double budget_seconds = 600;
  std::int64_t runs = 10;
  std::int64_t repeats = 3;
  double stored_level = 0.05;
  bool fail_on_inconclusive = false;
  // A cell or metric that the base's rules cover but the pull request removed: fail, else only
  // report it.
  bool fail_on_removed = true;
  verdict::Comment comment = verdict::Comment::changed;
  bool waive_own = false;  // the author of a pull request may waive what it changes
  // A drop that stored samples suggest is confirmed by pairs beside this REF's base before it
  // fails; absent: the branch a pull request is to be merged into, where a CI system names it.
  std::optional<std::string> confirm{};
  bool confirms = true;
  // The cell of a pinned program that tells how fast the machine is, and where it was named.
  std::optional<std::string> reference{};
  std::string reference_source{};  // "weir.yaml:14:3"
};

// A team's additions to the built-in explanations.
struct ExplainSettings {
  std::vector<explain::Rule> rules;
  explain::Bands bands;  // in place of the usual ones, by metric
};

// Stands for the file of settings that were typed.
inline constexpr const char* k_command_line = "the command line";

struct Settings {
  std::string file;  // as given: "weir.yaml"; k_command_line: none
  std::vector<EngineSettings> engines;
  std::vector<ModelSettings> models;
  std::vector<BackendSettings> backends;
  std::vector<VariantSettings> variants;  // {"default"} when left out
  std::vector<PromptSettings> prompts;
  std::vector<MatrixEntry> include;  // empty: the whole product
  std::vector<MatrixEntry> exclude;
  std::vector<verdict::LimitEntry> limits;
  GateSettings gate;
  ExplainSettings explain{};
  // Notes on parts of presets that this file leaves out, for people.
  std::vector<std::string> notes{};
  // The file with its presets filled in: mappings, lists, and scalars as text. For comparisons of
  // two files key by key (rules.hpp). Null for settings that were not parsed.
  std::shared_ptr<const Json> tree{};
  // Limits and gate come from another text (rules.hpp) and may name cells that are not here.
  bool has_replaced_rules = false;
};

// Names that weir.yaml may use, and today's date.
struct Supported {
  std::string today;                  // "2026-11-20": an `until` before it has expired
  std::vector<std::string> adapters;  // names `output:` may take
  std::vector<std::string> probes;    // names `probes:` may take in this build
  std::optional<std::vector<std::string>> twins{};  // names `twin:` may take; absent: none here
  std::vector<std::string> apis{};                  // names `api:` may take
  // Adapters whose engines always report counts, and those whose engines do so if profile_args or
  // counted_env ask for it.
  std::vector<std::string> always_reporting{}, reporting_on_request{};
  std::vector<std::string> results{};  // adapters whose engines need no command
  // By api: members of a request that only weir sends ("options.seed"); those in `own` only if
  // sends_extra_fields is true.
  struct Sent {
    std::vector<std::string> always, own;
  };
  std::map<std::string, Sent> sent{};
};

// Fails with Code::config: file:line:column, what is wrong, a suggestion, what is known here.
// Limits on hostile text: 1 MiB, depth 32, no YAML aliases that expand beyond 100 000 nodes.
[[nodiscard]] Result<Settings> parse_settings(std::string_view yaml, std::string_view file_name,
                                              const Supported& supported);

}  // namespace weir::config

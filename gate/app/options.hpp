// Declares the options of verbs; options that several verbs share are written once. Only files of
// verbs include it, because it includes CLI11.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "gate/app/program.hpp"

namespace weir::flow {
struct GithubOptions;
struct MeasureOptions;
struct ReportFiles;
struct StoreOptions;
struct HistoryOptions;
}  // namespace weir::flow

namespace weir::app {

// Groups of options that a verb takes: those of a configuration, also of its cells, also of
// baselines, also of measuring; or those of cells in earlier runs; or only those of the output.
enum class OptionGroup { config, cells, matrix, measuring, runs, output };

// A verb of the command line, or a subcommand of one. Copies are the same verb.
class Verb {
 public:
  Verb(Program& program, CLI::App& app)
      : program_(&program),
        app_(&app),
        job_(std::make_shared<flow::Job>(flow::Job{program.world()})) {}
  [[nodiscard]] Verb subcommand(const char* name, const char* what) const {
    CLI::App* command = app_->add_subcommand(name, what);
    command->group("Subcommands");  // else it inherits the group of this verb
    return {*program_, *command};
  }
  CLI::App* operator->() const { return app_; }
  // The job that shared options fill in.
  [[nodiscard]] flow::Job& job() const { return *job_; }

  // Adds an option with a value. --help shows its type by `type`; "": CLI11's own name.
  template <class Value>
  CLI::Option* option(const char* names, Value& into, const char* type, const std::string& help,
                      bool shows_default = false) const {
    CLI::Option* option = app_->add_option(names, into, help);
    if (*type != '\0') option->type_name(type);
    return shows_default ? option->capture_default_str() : option;
  }
  // Adds an option whose default --help shows.
  template <class Value>
  CLI::Option* option_with_default(const char* names, Value& into, const char* type,
                                   const std::string& help) const {
    return option(names, into, type, help, /*shows_default=*/true);
  }
  template <class Value, class Min, class Max>
  CLI::Option* range(const char* names, Value& into, Min min_value, Max max_value,
                     const std::string& help) const {
    return option_with_default(names, into, "", help)
        ->check(CLI::Range(min_value, static_cast<Min>(max_value)));
  }
  // Adds an option that may be used without a value.
  template <class Value>
  CLI::Option* optional(const char* names, Value& into, const char* type,
                        const std::string& help) const {
    return option(names, into, type, help)->expected(0, 1)->default_str("");
  }
  // Adds an option for a time in seconds, written as "90", "90s" or "2m".
  CLI::Option* seconds(const char* names, double& into, const char* shown_default,
                       const std::string& help) const;
  CLI::Option* list_option(const char* names, std::vector<std::string>& into, const char* type,
                           const std::string& help) const {
    return option(names, into, type, help)->allow_extra_args(false);
  }
  CLI::Option* flag(const char* names, bool& into, const std::string& help) const {
    return app_->add_flag(names, into, help);
  }
  // Refuses an option that other verbs have: using it is a usage error that says why.
  void refuses(const char* names, const char* why) const;

  void add_group(OptionGroup group) const;
  void add_config_option(const char* help = "Configuration file") const;
  void add_cell_option() const;
  void add_baselines_option() const;
  void add_out_option() const;
  void add_json_option(
      const char* help = "Write the result as JSON (default FILE: standard output)") const;
  void add_color_option() const;
  void add_trust_cache_option() const;
  void add_quiet_option(const char* help = "Print the answer only, no progress") const;

  // Sets the flow that runs if this verb is chosen. Words after "--" become
  // options->trailing_arguments; options without `trailing_arguments` make them a usage error.
  template <class Options, class Flow>
  void set_flow(std::shared_ptr<Options> options, Flow flow) const {
    constexpr bool k_takes_trailing_arguments = requires { options->trailing_arguments; };
    app_->callback([program = program_, job = job_, options, flow] {
      const auto action = [=](const Program::Words& words) {
        if constexpr (k_takes_trailing_arguments) options->trailing_arguments = words;
        return flow(*job, *options);
      };
      program->choose(job, action, k_takes_trailing_arguments);
    });
  }
  // Sets the flow and returns the new options that it gets, for the verb to fill in.
  template <class Options>
  using FlowOf = Result<flow::Answer>(const flow::Job&, const Options&);
  template <class Options>
  std::shared_ptr<Options> set_flow_with_new_options(FlowOf<Options>* flow) const {
    auto options = std::make_shared<Options>();
    set_flow(options, flow);
    return options;
  }

  // Returns those of `names` that the command line has.
  [[nodiscard]] std::vector<std::string> used_options(
      std::initializer_list<const char*> names) const;

 private:
  Program* program_;
  CLI::App* app_;
  std::shared_ptr<flow::Job> job_;
};

// Add options that several verbs share.
void add_measure_options(const Verb& verb, flow::MeasureOptions& wanted);
void add_github_options(const Verb& verb, flow::GithubOptions& options);
void add_report_files(const Verb& verb, flow::ReportFiles& files);
void add_store_options(const Verb& verb, flow::StoreOptions& options);
void add_history_options(const Verb& verb, flow::HistoryOptions& options);
void add_repository_option(const Verb& verb, std::string& repository);

using AddVerb = void(const Verb& verb);
// Subcommands of "trend" in files of their own.
AddVerb add_trend_changes, add_trend_ack, add_trend_notify;

}  // namespace weir::app

// weir demo: walks through one regression, from the baseline to its cause, by weir's own verbs.
#include "gate/flow/demo.hpp"

#include "gate/base/text.hpp"
#include "gate/flow/judge.hpp"
#include "gate/flow/newest_run.hpp"
#include "gate/flow/program.hpp"
#include "gate/report/hints.hpp"
#include "gate/report/layout.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr const char* k_variable = "WEIR_ENGINE_PLANT";
constexpr const char* k_on_gpu = "cpu-split";      // the regression on a Vulkan device
constexpr const char* k_on_cpu = "unbatched-qkv";  // the regression without one
constexpr const char* k_needs_fusion = "lost-fusion";

using Words = std::vector<std::string>;

// Returns the demo's weir.yaml, for Vulkan or for the CPU. `fuse_ffn` enables the fused kernel of
// the feed-forward network, which a lost fusion needs.
std::string demo_config(bool vulkan, bool fuse_ffn) {
  std::string args = vulkan ? "--backend, vulkan" : "--backend, cpu";
  if (fuse_ffn) args += ", --fused-ffn";
  const char* probes = vulkan
                           ? "[vulkan, instrument]     # a layer before the driver, its own marks"
                           : "[instrument]             # the engine's own marks";
  return fmt::format(
      "version: 1\n"
      "engines:\n"
      "  mine:\n"
      "    command: [./weir-engine, -m, \"{{model}}\", -p, \"{{prompt_tokens}}\",\n"
      "              -n, \"{{tokens}}\", -r, \"{{repeats}}\", --json, \"{{args}}\"]\n"
      "    output: weir-observed            # how its output is read\n"
      "    probes: {}\n"
      "    cpu_ops_allowed: {{GET_ROWS: \"one row: cheaper than a dispatch\"}}\n"
      "    counted_env: {{LP_NUM_THREADS: \"1\"}}\n"
      "models: {{toy: toy.gguf}}\n"
      "backends: {{{}: {{args: [{}]}}}}\n"
      "prompts: {{decode: {{prompt_tokens: 0, tokens: 16}}}}\n",
      probes, vulkan ? "vulkan" : "cpu", args);
}

// Makes the demo's folder: `keep`, which must be new and stays, or one that is removed at the end.
Result<sys::ScratchFolder> make_demo_folder(const std::string& keep, sys::Files& files) {
  if (keep.empty()) {
    auto folder = sys::ScratchFolder::make_temporary(files, "weir-demo-");
    if (!folder) folder.error().message += "; --keep names another";
    return folder;
  }
  const auto names = files.list(keep);
  if (files.exists(keep) && (!names || !names->empty())) {
    return fail(Code::usage, "{}: is there already; --keep takes a new folder", keep);
  }
  WEIR_CHECK(files.make_dirs(keep));
  return sys::ScratchFolder::kept(files, sys::absolute(keep));
}

// Breaks lines that are too long for the terminal at spaces. Lines with long paths or colour
// escapes stay as they are.
std::string wrap_lines(const std::string& text, std::size_t width) {
  std::string wrapped;
  for (const std::string& line : text::split(text, '\n')) {
    const auto words = text::split(line, ' ');
    const bool has_long_word = std::ranges::any_of(
        words, [&](const std::string& word) { return text::columns(word) + 4 > width; });
    if (has_long_word || text::columns(line) <= width || line.find('\x1B') != std::string::npos) {
      wrapped += line + "\n";
      continue;
    }
    const std::size_t indent = std::min(line.find_first_not_of(' '), width / 2);
    for (const std::string& part :
         report::wrap(line.substr(indent), width, line.substr(0, indent), indent + 2)) {
      wrapped += part + "\n";
    }
  }
  if (wrapped.ends_with("\n\n") || text.empty()) wrapped.pop_back();  // the end is no line
  return wrapped;
}

// Runs the steps of the demo in one folder, and prints each command with its output.
class Demo {
 public:
  Demo(const Job& job, const DemoOptions& options, sys::ScratchFolder folder, const sys::Stop& stop)
      : job_(job), options_(options), folder_(std::move(folder)), stop_(stop) {}

  // Runs all steps. Fails at the first one that does not end as expected.
  Result<Answer> run_all_steps(const std::string& engine_path) {
    sys::Files& files = job_.files();
    const double start = job_.world.clock.steady();
    print_prose(
        "A regression of an inference engine, from the baseline to its cause. Each line behind a $ "
        "is a command that runs now, in");
    print(fmt::format("  {}\n({})\n", folder_.path(),
                      folder_.stays() ? "it stays" : "removed at the end; --keep DIR keeps one"));
    WEIR_CHECK(files.link(engine_path, folder_.at("weir-engine")));

    print_title("An engine and a model");
    print_prose(
        "The engine is weir's own small one; it needs no GPU. The model is tiny, and its weights "
        "are random numbers: speed does not depend on what a model knows.");
    print("\n");
    WEIR_CHECK(run_verb({"model", "make", "toy.gguf", "--layers", "6", "--quantization", "q8_0",
                         "--embedding", "64", "--ff", "64"},
                        0));
    WEIR_CHECK(choose_backend());
    WEIR_TRY(const std::string description, describe_regression(regression_));

    print_title("weir.yaml: what to run, and what counts");
    const std::string config = demo_config(vulkan_, regression_ == k_needs_fusion);
    WEIR_CHECK(files.write_atomic(folder_.at("weir.yaml"), config));
    print("$ cat weir.yaml\n" + config);

    print_title("What it counts today becomes the baseline");
    print_prose(
        "Counts do not vary: three fresh processes agree to the last dispatch. The folder "
        "baselines/ belongs into the engine's repository.");
    print("\n");
    WEIR_CHECK(run_verb({"baseline", "accept", "--counts-only"}, 0));

    print_title("Nothing changed: the gate passes");
    WEIR_CHECK(run_verb({"gate", "--counts-only"}, 0));

    print_title("Somebody changes the engine");
    print_prose(fmt::format(
        "It answers as before. What is new is called {}: {}. Here a variable brings that "
        "in; in a real engine it is a commit.",
        regression_, description));
    print("\n");
    WEIR_CHECK(run_verb({"gate", "--counts-only"}, 1, regression_));
    print("\nExit code 1: that is what stops a build.\n");

    print_title("Why?");
    WEIR_CHECK(run_verb({"explain"}, 0));
    WEIR_CHECK(print_next_steps(job_.world.clock.steady() - start));
    return Answer{};
  }

 private:
  void print(std::string_view text) { job_.answer(text); }
  [[nodiscard]] std::size_t width() const { return static_cast<std::size_t>(job_.width()); }
  // Prints prose, wrapped at the terminal's width.
  void print_prose(std::string_view text) {
    for (const std::string& line : report::wrap(text, width(), "", 0)) print(line + "\n");
  }
  void print_title(std::string_view text) {
    ++step_;
    const std::string title = fmt::format("{}. {}", step_, text);
    print(job_.colored() ? fmt::format("\n\x1B[1m{}\x1B[0m\n\n", title)
                         : fmt::format("\n{}\n\n", title));
  }

  // Runs a program in the demo's folder, with the regression `regression` switched on unless it is
  // "".
  Result<sys::Finished> run(const Words& argv, const std::string& regression) {
    sys::ProcessSpec spec;
    spec.argv = argv;
    spec.folder = folder_.path();
    spec.unset = {k_variable, "GITHUB_ACTIONS"};
    if (!regression.empty()) spec.env.emplace_back(k_variable, regression);
    WEIR_TRY(sys::Finished finished, run_program(job_.world, spec, stop_, /*has_to=*/true));
    if (stop_.requested()) return fail(Code::interrupted, "interrupted");
    return finished;
  }

  // Runs a verb of weir and prints its output. Fails unless the exit code is `expected`.
  Result<void> run_verb(Words arguments, int expected, const std::string& regression = "") {
    std::string line =
        regression.empty() ? "$ weir" : fmt::format("$ {}={} weir", k_variable, regression);
    for (const std::string& word : arguments) line += " " + text::shell_word(word);
    print(line + "\n");
    // Its output goes to a pipe, where it would not be coloured by itself.
    const bool takes_color = arguments.front() == "gate" || arguments.front() == "explain";
    if (takes_color && job_.colored()) {
      arguments.insert(arguments.end(), {"--color", "always"});
    }
    arguments.insert(arguments.begin(), sys::own_program_path());
    WEIR_TRY(const sys::Finished finished, run(arguments, regression));
    print(wrap_lines(finished.out, width()));
    if (finished.ended == sys::HowEnded::exited && finished.exit_code == expected) return {};
    print(finished.err);  // shows how far the verb came; not printed after a success
    if (expected == 1 && finished.exit_code == 0) {
      return fail(
          Code::data,
          "the gate passed: no count of the {} backend shows {}\n  take another --inject, or "
          "--against and times (docs/how-to/against.md)",
          vulkan_ ? "Vulkan" : "CPU", regression);
    }
    return fail(Code::data, "this step should have ended with {}, not {}", expected,
                finished.exit_code);
  }

  Result<sys::Finished> run_engine(const Words& arguments, const std::string& regression = "") {
    Words argv{folder_.at("weir-engine")};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return run(argv, regression);
  }

  // Chooses Vulkan if the engine finds a device (also Mesa's on the CPU), and the regression.
  Result<void> choose_backend() {
    WEIR_TRY(const sys::Finished result,
             run_engine({"-m", "toy.gguf", "--backend", "vulkan", "-n", "2"}));
    vulkan_ = result.exit_code == 0;
    regression_ = vulkan_ ? k_on_gpu : k_on_cpu;
    if (!options_.plant.empty()) regression_ = options_.plant;
    if (vulkan_) return {};
    print(fmt::format("\nNo Vulkan device answers here, so the engine runs on the CPU:\n  {}",
                      result.err));
    if (options_.plant.empty()) {
      print(fmt::format("{} has nothing to spoil there; the regression will be {}.\n", k_on_gpu,
                        k_on_cpu));
    }
    return {};
  }

  // Returns the engine's own description of a regression. Code::usage if the engine cannot inject
  // it here.
  Result<std::string> describe_regression(const std::string& regression) {
    Words arguments{"-m", "toy.gguf", "--backend", vulkan_ ? "vulkan" : "cpu",
                    "-t", "2",        "-n",        "2"};
    if (regression == k_needs_fusion) arguments.emplace_back("--fused-ffn");
    WEIR_TRY(const sys::Finished result, run_engine(arguments, regression));
    if (result.exit_code != 0) {
      return fail(Code::usage, "{}", text::printable(std::string(text::trim(result.err))));
    }
    WEIR_TRY(const sys::Finished list_output, run_engine({"--inject", "list"}));
    for (const std::string& line : text::split(list_output.out, '\n')) {
      const std::string_view entry = text::trim(line);
      if (entry.starts_with(regression + " ")) {
        return std::string(text::trim(entry.substr(regression.size())));
      }
    }
    return std::string("the engine does not say more of it");
  }

  // Prints the commands that the last gate's report offers to accept the change.
  Result<void> print_accept_hints() {
    sys::Files& files = job_.files();
    Job job = job_;
    job.selection.runs_folder = folder_.at("weir-out");
    WEIR_TRY(const std::string run, newest_run(job));
    WEIR_TRY(const std::string file, find_verdict(run, files));
    WEIR_TRY(const verdict::GateVerdict gate, read_verdict(file, files));
    for (const report::Hint& hint : report::hints(gate, {"baseline accept"})) {
      const std::string command = text::join(hint.words, " ");
      if (hint.what == "accept") {
        print_prose(
            "Intended? Store the new counts; reviewers see them in the diff of baselines/:");
        print(fmt::format("  $ {}\n\n", command));
      } else if (hint.what == "allow") {
        print_prose("Intended? Allow these ops on the CPU in weir.yaml, and say why:");
        for (const std::string& line : report::wrap(command, width(), "  ", 4)) print(line + "\n");
        print("\n");
      }
    }
    return {};
  }

  // Prints what to do after the demo, with the commands for one's own engine.
  Result<void> print_next_steps(double seconds) {
    print_title("What next?");
    print(
        "Not intended? Find the commit that brought it in:\n"
        "  $ weir bisect GOOD BAD\n\n");
    WEIR_CHECK(print_accept_hints());
    print(fmt::format(
        "Your own engine:\n"
        "  $ weir init                           write its weir.yaml\n"
        "  $ weir gate --against origin/main     compare with a base build, with times\n\n"
        "Documentation: docs/index.md, and docs/reference/engine.md for this engine.\n\n"
        "The demo went as it should: the gate passed before the change, and failed with\n"
        "it. {:.0f} s.{}\n",
        seconds, folder_.stays() ? " All of it is in " + folder_.path() : ""));
    return {};
  }

  const Job& job_;
  const DemoOptions& options_;
  sys::ScratchFolder folder_;
  const sys::Stop& stop_;
  bool vulkan_ = false;
  std::string regression_;
  int step_ = 0;
};

}  // namespace

Result<Answer> demo(const Job& job, const DemoOptions& options) {
  const sys::Interrupts interrupts;
  WEIR_TRY(const std::string engine_path,
           find_weir_engine(job.files(), options.engine, sys::own_program_path(), "the demo"));
  WEIR_TRY(sys::ScratchFolder folder, make_demo_folder(options.keep, job.files()));
  return Demo(job, options, std::move(folder), interrupts.stop()).run_all_steps(engine_path);
}

}  // namespace weir::flow

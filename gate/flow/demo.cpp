#include "gate/flow/demo.hpp"

#include "gate/base/text.hpp"
#include "gate/flow/judge.hpp"
#include "gate/flow/program.hpp"
#include "gate/report/hints.hpp"
#include "gate/report/layout.hpp"
#include "gate/run/journal.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr const char* k_variable = "WEIR_ENGINE_PLANT";
constexpr const char* k_on_gpu = "cpu-split";      // shown where there is a Vulkan device
constexpr const char* k_on_cpu = "unbatched-qkv";  // and where there is none
constexpr const char* k_needs_fusion = "lost-fusion";

using Words = std::vector<std::string>;

// The demo's weir.yaml. Without `vulkan`, for the CPU backend. `fused`: with the fused kernel of
// the feed-forward network, which a lost fusion needs.
std::string demo_config(bool vulkan, bool fused) {
  std::string args = vulkan ? "--backend, vulkan" : "--backend, cpu";
  if (fused) args += ", --fused-ffn";
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
      vulkan ? "[vulkan, instrument]     # a layer before the driver, its own marks"
             : "[instrument]             # the engine's own marks",
      vulkan ? "vulkan" : "cpu", args);
}

// Where it goes on: a folder to keep, or one that is gone in the end.
Result<sys::ScratchFolder> make_place(const std::string& keep, sys::Files& files) {
  if (keep.empty()) {
    auto made = sys::ScratchFolder::make_temporary(files, "weir-demo-");
    if (!made) made.error().message += "; --keep names another";
    return made;
  }
  const auto names = files.list(keep);
  if (files.exists(keep) && (!names || !names->empty())) {
    return fail(Code::usage, "{}: is there already; --keep takes a new folder", keep);
  }
  WEIR_CHECK(files.make_dirs(keep));
  return sys::ScratchFolder::kept(files, sys::absolute(keep));
}

// Lines that are too long for the terminal, broken at spaces. Paths stay whole, and so do lines
// with escapes for colours: what has them was made for this width.
std::string narrow(const std::string& text, std::size_t width) {
  std::string made;
  for (const std::string& line : text::split(text, '\n')) {
    const auto words = text::split(line, ' ');
    const bool whole = std::ranges::any_of(
        words, [&](const std::string& word) { return text::columns(word) + 4 > width; });
    if (whole || text::columns(line) <= width || line.find('\x1B') != std::string::npos) {
      made += line + "\n";
      continue;
    }
    const std::size_t indent = std::min(line.find_first_not_of(' '), width / 2);
    for (const std::string& part :
         report::wrap(line.substr(indent), width, line.substr(0, indent), indent + 2)) {
      made += part + "\n";
    }
  }
  if (made.ends_with("\n\n") || text.empty()) made.pop_back();  // the end is no line
  return made;
}

class Demo {
 public:
  Demo(const Job& job, const DemoOptions& options, sys::ScratchFolder place, const sys::Stop& stop)
      : job_(job), options_(options), place_(std::move(place)), stop_(stop) {}

  Result<Answer> walk(const std::string& engine) {
    sys::Files& files = job_.files();
    const double start = job_.world.clock.steady();
    tell(
        "A regression of an inference engine, from the baseline to its cause. Each line behind a $ "
        "is a command that runs now, in");
    print(fmt::format("  {}\n({})\n", place_.path(),
                      place_.stays() ? "it stays" : "removed at the end; --keep DIR keeps one"));
    WEIR_CHECK(files.link(engine, place_.at("weir-engine")));

    title("An engine and a model");
    tell(
        "The engine is weir's own small one; it needs no GPU. The model is tiny, and its weights "
        "are random numbers: speed does not depend on what a model knows.");
    print("\n");
    WEIR_CHECK(weir({"model", "make", "toy.gguf", "--layers", "6", "--quantization", "q8_0",
                     "--embedding", "64", "--ff", "64"},
                    0));
    WEIR_CHECK(choose_backend());
    WEIR_TRY(const std::string what, meaning_of(plant_));

    title("weir.yaml: what to run, and what counts");
    const std::string config = demo_config(vulkan_, plant_ == k_needs_fusion);
    WEIR_CHECK(files.write_atomic(place_.at("weir.yaml"), config));
    print("$ cat weir.yaml\n" + config);

    title("What it counts today becomes the baseline");
    tell(
        "Counts do not vary: three fresh processes agree to the last dispatch. The folder "
        "baselines/ belongs into the engine's repository.");
    print("\n");
    WEIR_CHECK(weir({"baseline", "accept", "--counts-only"}, 0));

    title("Nothing changed: the gate passes");
    WEIR_CHECK(weir({"gate", "--counts-only"}, 0));

    title("Somebody changes the engine");
    tell(fmt::format(
        "It answers as before. What is new is called {}: {}. Here a variable brings that "
        "in; in a real engine it is a commit.",
        plant_, what));
    print("\n");
    WEIR_CHECK(weir({"gate", "--counts-only"}, 1, plant_));
    print("\nExit code 1: that is what stops a build.\n");

    title("Why?");
    WEIR_CHECK(weir({"explain"}, 0));
    WEIR_CHECK(whats_next(job_.world.clock.steady() - start));
    return Answer{};
  }

 private:
  void print(std::string_view text) { job_.answer(text); }
  [[nodiscard]] std::size_t width() const { return static_cast<std::size_t>(job_.width()); }
  // Prose, as wide as the terminal.
  void tell(std::string_view words) {
    for (const std::string& line : report::wrap(words, width(), "", 0)) print(line + "\n");
  }
  void title(std::string_view text) {
    const bool bold = job_.colored();
    print(fmt::format("\n{}{}. {}{}\n\n", bold ? "\x1B[1m" : "", ++step_, text,
                      bold ? "\x1B[0m" : ""));
  }

  Result<sys::Finished> run(const Words& argv, const std::string& plant) {
    sys::ProcessSpec spec;
    spec.argv = argv;
    spec.folder = place_.path();
    spec.unset = {k_variable, "GITHUB_ACTIONS"};
    if (!plant.empty()) spec.env.emplace_back(k_variable, plant);
    WEIR_TRY(sys::Finished finished, run_program(job_.world, spec, stop_, true));
    if (stop_.requested()) return fail(Code::interrupted, "interrupted");
    return finished;
  }

  // A verb of weir's, shown with what it prints.
  Result<void> weir(Words words, int expected, const std::string& plant = "") {
    std::string line = plant.empty() ? "$ weir" : fmt::format("$ {}={} weir", k_variable, plant);
    for (const std::string& word : words) line += " " + text::shell_word(word);
    print(line + "\n");
    // Behind a pipe these would not be coloured.
    const bool takes_color = words.front() == "gate" || words.front() == "explain";
    if (takes_color && job_.colored()) {
      words.insert(words.end(), {"--color", "always"});
    }
    words.insert(words.begin(), sys::own_program());
    WEIR_TRY(const sys::Finished finished, run(words, plant));
    print(narrow(finished.out, width()));
    if (finished.ended == sys::HowEnded::exited && finished.exit_code == expected) return {};
    print(finished.err);  // of no interest else: how far the verb was
    if (expected == 1 && finished.exit_code == 0) {
      return fail(
          Code::data,
          "the gate passed: no count of the {} backend shows {}\n  take another --inject, or "
          "--against and times (docs/how-to/against.md)",
          vulkan_ ? "Vulkan" : "CPU", plant);
    }
    return fail(Code::data, "this step should have ended with {}, not {}", expected,
                finished.exit_code);
  }

  Result<sys::Finished> engine(const Words& words, const std::string& plant = "") {
    Words argv{place_.at("weir-engine")};
    argv.insert(argv.end(), words.begin(), words.end());
    return run(argv, plant);
  }

  // Vulkan where the engine finds a device, be it Mesa's on the CPU.
  Result<void> choose_backend() {
    WEIR_TRY(const sys::Finished tried,
             engine({"-m", "toy.gguf", "--backend", "vulkan", "-n", "2"}));
    vulkan_ = tried.exit_code == 0;
    plant_ = !options_.plant.empty() ? options_.plant : vulkan_ ? k_on_gpu : k_on_cpu;
    if (vulkan_) return {};
    print(fmt::format("\nNo Vulkan device answers here, so the engine runs on the CPU:\n  {}",
                      tried.err));
    if (options_.plant.empty()) {
      print(fmt::format("{} has nothing to spoil there; the regression will be {}.\n", k_on_gpu,
                        k_on_cpu));
    }
    return {};
  }

  // What the engine itself says of a regression; Code::usage where it cannot bring that in here.
  Result<std::string> meaning_of(const std::string& plant) {
    Words words{"-m", "toy.gguf", "--backend", vulkan_ ? "vulkan" : "cpu", "-t", "2", "-n", "2"};
    if (plant == k_needs_fusion) words.emplace_back("--fused-ffn");
    WEIR_TRY(const sys::Finished tried, engine(words, plant));
    if (tried.exit_code != 0) {
      return fail(Code::usage, "{}", text::printable(std::string(text::trim(tried.err))));
    }
    WEIR_TRY(const sys::Finished listed, engine({"--inject", "list"}));
    for (const std::string& line : text::split(listed.out, '\n')) {
      const std::string_view told = text::trim(line);
      if (told.starts_with(plant + " ")) {
        return std::string(text::trim(told.substr(plant.size())));
      }
    }
    return std::string("the engine does not say more of it");
  }

  // What the last gate's report offers to take the change in.
  Result<void> offer_to_keep() {
    sys::Files& files = job_.files();
    WEIR_TRY(const std::string run, run::newest_run(files, place_.at("weir-out")));
    WEIR_TRY(const std::string file, find_verdict(run, files));
    WEIR_TRY(const verdict::GateVerdict gate, read_verdict(file, files));
    for (const report::Hint& hint : report::hints(gate, {"baseline accept"})) {
      const std::string words = text::join(hint.words, " ");
      if (hint.what == "accept") {
        tell("Intended? Store the new counts; reviewers see them in the diff of baselines/:");
        print(fmt::format("  $ {}\n\n", words));
      } else if (hint.what == "allow") {
        tell("Intended? Allow these ops on the CPU in weir.yaml, and say why:");
        for (const std::string& line : report::wrap(words, width(), "  ", 4)) print(line + "\n");
        print("\n");
      }
    }
    return {};
  }

  Result<void> whats_next(double seconds) {
    title("What next?");
    print(
        "Not intended? Find the commit that brought it in:\n"
        "  $ weir bisect GOOD BAD\n\n");
    WEIR_CHECK(offer_to_keep());
    print(fmt::format(
        "Your own engine:\n"
        "  $ weir init                           write its weir.yaml\n"
        "  $ weir gate --against origin/main     compare with a base build, with times\n\n"
        "Documentation: docs/index.md, and docs/reference/engine.md for this engine.\n\n"
        "The demo went as it should: the gate passed before the change, and failed with\n"
        "it. {:.0f} s.{}\n",
        seconds, place_.stays() ? " All of it is in " + place_.path() : ""));
    return {};
  }

  const Job& job_;
  const DemoOptions& options_;
  sys::ScratchFolder place_;
  const sys::Stop& stop_;
  bool vulkan_ = false;
  std::string plant_;
  int step_ = 0;
};

}  // namespace

Result<Answer> demo(const Job& job, const DemoOptions& options) {
  const sys::Interrupts interrupts;
  WEIR_TRY(const std::string engine,
           find_weir_engine(job.files(), options.engine, sys::own_program(), "the demo"));
  WEIR_TRY(sys::ScratchFolder place, make_place(options.keep, job.files()));
  return Demo(job, options, std::move(place), interrupts.stop()).walk(engine);
}

}  // namespace weir::flow

// Command lines as they are typed, and the weir.yaml that each comes to.
#include "gate/config/typed_command.hpp"

#include <gmock/gmock.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

#include "tests/config/parse_text.hpp"

namespace weir::config {
namespace typed_command_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TypedCommand make_command(const char* preset, Arguments args) {
  TypedCommand command;
  command.program = "new/program";
  command.args = std::move(args);
  command.preset = find_named(presets(), std::string(preset));
  command.probes = {"vulkan"};
  command.device = "vulkan";
  return command;
}

Result<Settings> parse_typed(const std::string& yaml) {
  Supported context = test_context();
  for (const char* adapter : {"llama-perf", "agave", "google-benchmark", "weir-observed", "mlx-lm"})
    context.adapters.emplace_back(adapter);
  return parse_settings(yaml, "typed", context);
}

std::string words(const Arguments& command) { return text::join(command, " "); }

// Each line: what was typed, the engine's command, and the cells that it makes.
TEST(TypedCommand, PutsPlaceholdersWhereThePresetKnowsWhatStands) {
  const struct {
    const char* preset;
    Arguments args;
    const char* command;
    const char* cells;
  } cases[] = {
      {"llama-bench",
       {"-m", "a/tiny.gguf", "-ngl", "99", "-p", "0", "-n", "16"},
       "new/program -m {model} -ngl 99 -p {prompt_tokens} -n {tokens} -d {depth} -r {repeats} -t "
       "{threads} -o json",
       "tiny/vulkan/decode 0 16"},
      // Long spellings, and what the preset says of its output goes before what was typed.
      {"llama-bench",
       {"--model", "tiny.gguf", "--n-gen=8", "-o", "md", "-r", "2", "-t", "3"},
       "new/program --model {model} --n-gen={tokens} -r {repeats} -t {threads} -p {prompt_tokens} "
       "-d {depth} -o json",
       "tiny/vulkan/decode 0 8"},
      {"llama-bench",
       {"-m", "tiny.gguf", "-p", "64", "-n", "0"},
       nullptr,
       "tiny/vulkan/prefill 64 0"},
      // As llama-bench does: two tests.
      {"llama-bench",
       {"-m", "tiny.gguf", "-p", "64", "-n", "16", "-d", "256"},
       nullptr,
       "tiny/vulkan/prefill 64 0, tiny/vulkan/decode 0 16"},
      // Lengths that nobody typed are the preset's.
      {"llama-bench", {"-m", "tiny.gguf"}, nullptr, "tiny/vulkan/decode 0 32"},
      {"llama-bench", {}, nullptr, "none/vulkan/decode 0 32"},
      {"llama-completion",
       {"-m", "tiny.gguf", "-p", "Hello you", "-n", "8", "--ignore-eos"},
       "new/program -m {model} -p {prompt} -n {tokens} --ignore-eos -no-cnv -s {seed} -t {threads}",
       "tiny/vulkan/text 0 8 Hello you"},
      {"agave",
       {"tiny.gguf", "-n", "8", "Hello {you}"},
       "new/program {model} -n {tokens} Hello {{you}} --seed {seed} --json --repeat-penalty 2",
       "tiny/vulkan/decode 0 8"},
      {"mlx-lm",
       {"--model", "folder", "-g", "8"},
       "new/program --model {model} -g {tokens} -p {prompt_tokens} -n {repeats}",
       "folder/vulkan/both 64 8"},
      {"google-benchmark",
       {"--benchmark_filter=BM_x"},
       "new/program --benchmark_filter={prompt} --benchmark_repetitions={repeats} "
       "--benchmark_format=json",
       "none/vulkan/text 0 0 BM_x"},
      // Nothing is known: totals of a run.
      {"",
       {"--json", "{tokens}", "-o", "x y"},
       "new/program --json {{tokens}} -o x y",
       "none/vulkan/run 0 0 once"},
  };
  for (const auto& c : cases) {
    const auto config = config_of(make_command(c.preset, c.args));
    ASSERT_TRUE(config) << config.error().message;
    if (c.command != nullptr) {
      EXPECT_EQ(words(config->command), c.command);
    }
    const auto settings = parse_typed(config->yaml);
    ASSERT_TRUE(settings) << settings.error().message << "\n" << config->yaml;
    EXPECT_EQ(words(settings->engines[0].command), words(config->command));
    const auto matrix = expand(*settings);
    ASSERT_TRUE(matrix) << matrix.error().message << "\n" << config->yaml;
    std::vector<std::string> cells;
    for (const Cell& cell : matrix->cells) {
      const std::string name = cell.key.str();
      cells.push_back(fmt::format("{} {} {}{}", name.substr(name.find('/') + 1), cell.prompt_tokens,
                                  cell.tokens, cell.text ? " " + *cell.text : ""));
    }
    EXPECT_EQ(text::join(cells), c.cells) << config->yaml;
  }
}

TEST(TypedCommand, IsLeftAsTypedWhereItsOutputAloneNamedThePreset) {
  TypedCommand command = make_command("agave", {"tiny.gguf", "-n", "8", "--kv", "q8"});
  command.is_preset_guessed = true;
  command.output = "agave";
  const auto config = config_of(command);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(words(config->command), "new/program {model} -n {tokens} --kv q8");
  EXPECT_TRUE(parse_typed(config->yaml)) << config->yaml;
  EXPECT_THAT(config->yaml, testing::Not(HasSubstr("output:")));
}

TEST(TypedCommand, KeepsNumbersThatWereTypedAndTheEnvironment) {
  TypedCommand command =
      make_command("llama-bench", {"-m", "m.gguf", "-n", "8", "-r", "2", "-t", "3"});
  command.env = {{"A", "1 {x}"}};
  command.device_env = {{"GGML_VK_VISIBLE_DEVICES", "1"}};
  command.budget = "30s";
  const auto config = config_of(command);
  ASSERT_TRUE(config);
  const auto settings = parse_typed(config->yaml);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->gate.repeats, 2);
  EXPECT_EQ(settings->gate.budget_seconds, 30);
  EXPECT_EQ(settings->engines[0].extra.threads, 3);
  EXPECT_EQ(settings->engines[0].extra.env.at("A"), "1 {{x}}");
  EXPECT_EQ(settings->engines[0].preset, "llama-bench 1");
  const Extra backend = settings->backends[0].extra.for_engine("program");
  EXPECT_TRUE(backend.args.empty()) << "they were typed";
  EXPECT_EQ(backend.env.at("GGML_VK_VISIBLE_DEVICES"), "1");
}

TEST(TypedCommand, SaysWhichNumberIsNone) {
  const auto config = config_of(make_command("llama-bench", {"-m", "m.gguf", "-n", "16,32"}));
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, Code::usage);
  EXPECT_THAT(config.error().message,
              HasSubstr("tokens takes one whole number here, not \"16,32\""));
}

TEST(TypedCommand, KnowsTheDeviceByTheArgumentsThatChooseIt) {
  const Preset& llama = *find_named(presets(), std::string("llama-bench"));
  EXPECT_THAT(typed_devices(llama, {"-m", "x", "--n-gpu-layers", "0"}), ElementsAre("cpu"));
  EXPECT_THAT(typed_devices(llama, {"-ngl", "99"}),
              ElementsAre("vulkan", "cuda", "hip", "metal", "opencl"));
  EXPECT_THAT(typed_devices(llama, {"-m", "x"}), IsEmpty());
  EXPECT_THAT(default_devices(llama), ElementsAre("vulkan", "cuda", "hip", "metal", "opencl"));
  const Preset& engine = *find_named(presets(), std::string("weir-engine"));
  EXPECT_THAT(typed_devices(engine, {"--backend", "vulkan"}), ElementsAre("vulkan"));
  EXPECT_THAT(default_devices(engine), ElementsAre("cpu"));
}

TEST(TypedCommand, OfAnUnknownProgramHasTheTokensOfItsFlag) {
  const struct {
    Arguments args;
    const char* command;
    const char* token_words;
    const char* likely_tokens;
  } cases[] = {
      {{"engine.py", "-n", "24"}, "new/program engine.py -n {tokens}", "-n 24", ""},
      {{"--max_new_tokens=24"}, "new/program --max_new_tokens={tokens}", "--max_new_tokens=24", ""},
      {{"--port", "8000", "--tokens", "8"},
       "new/program --port 8000 --tokens {tokens}",
       "--tokens 8",
       ""},
      {{"engine.py", "24"}, "new/program engine.py 24", "", "24"},
      {{"--port", "8000"}, "new/program --port 8000", "", ""},
      {{"-n", "all", "1"}, "new/program -n all 1", "", ""},
  };
  for (const auto& c : cases) {
    TypedCommand typed;
    typed.program = "new/program";
    typed.args = c.args;
    typed.metrics = {{"decode_tokens_per_second", "([0-9]+)"}};
    typed.has_token_flags = true;
    const auto config = config_of(typed);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(words(config->command), c.command);
    EXPECT_EQ(config->token_words, c.token_words) << c.command;
    EXPECT_EQ(config->likely_tokens, c.likely_tokens) << c.command;
    EXPECT_TRUE(parse_typed(config->yaml)) << config->yaml;
  }
}

}  // namespace typed_command_test
}  // namespace weir::config

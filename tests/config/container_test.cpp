// `container` on an engine: what it becomes, and what is said of one that cannot work.
#include "gate/config/container.hpp"

#include <fstream>
#include <iterator>

#include <gmock/gmock.h>

#include "gate/base/text.hpp"
#include "gate/config/matrix.hpp"
#include "gate/config/redactor.hpp"

#include "tests/config/parse_text.hpp"

namespace weir::config {
namespace container_test {

using testing::HasSubstr;

std::string with_engine(const std::string& engine) {
  return "version: 1\nengines:\n  e: {output: llama-bench, " + engine +
         "}\nmodels: {m: m.gguf}\nbackends: {cpu: {args: [-ngl, 0]}}\nprompts: {p: {tokens: 8}}\n";
}

// The one cell of it: its command, and what its fingerprint is made of.
struct Expanded {
  std::string command, arguments;
};
Expanded expanded(const std::string& engine) {
  const auto settings = parse_text(with_engine(engine));
  if (!settings) return {settings.error().message, ""};
  const auto matrix = expand(*settings);
  if (!matrix) return {matrix.error().message, ""};
  const Cell& cell = matrix->cells.front();
  return {text::join(cell.command, " "), cell.identity.at("arguments")};
}

TEST(Container, PutsTheRuntimeBeforeACommandThatDoesNotBeginWithIt) {
  struct Case {
    const char* engine;
    const char* command;
  };
  const Case cases[] = {
      {"command: [bench, '{args}', -n, '{tokens}'], container: {runtime: docker, image: me/it:1, "
       "args: [--gpus, all]}",
       "docker run --gpus all me/it:1 bench -ngl 0 -n {tokens}"},
      {"command: [bench, -n, '{tokens}'], container: {runtime: podman, image: it}",
       "podman run it bench -n {tokens} -ngl 0"},
      {"command: [bench, -n, '{tokens}'], container: srun", "srun bench -n {tokens} -ngl 0"},
      {"command: [bench, -n, '{tokens}'], container: {runtime: srun, image: me#it, args: [-p, a]}",
       "srun -p a --container-image=me#it bench -n {tokens} -ngl 0"},
      {"command: [docker, run, --gpus, all, it, bench, -n, '{tokens}'], container: docker",
       "docker run --gpus all it bench -n {tokens} -ngl 0"},
      {"command: [/opt/bin/podman, --remote, run, it, bench, -n, '{tokens}'], container: podman",
       "/opt/bin/podman --remote run it bench -n {tokens} -ngl 0"},
  };
  for (const Case& c : cases) EXPECT_EQ(expanded(c.engine).command, c.command);
}

// An image stands for the program, of which a baseline must not depend.
TEST(Container, LeavesTheImageOutOfTheFingerprint) {
  const auto arguments = [](const std::string& engine) { return expanded(engine).arguments; };
  const std::string own = arguments("command: [./bench, -n, '{tokens}']");
  EXPECT_EQ(arguments("command: [bench, -n, '{tokens}'], container: {runtime: docker, image: a}"),
            own)
      << "the same engine as outside";
  EXPECT_NE(arguments("command: [bench, -n, '{tokens}'], container: {runtime: docker, image: a, "
                      "args: [--cpus, 2]}"),
            own)
      << "what is written counts";
  const auto line = [&](const std::string& words) {
    return arguments("container: " + words.substr(0, words.find(',')) + ", command: [" + words +
                     ", bench, -n, '{tokens}']");
  };
  for (const char* options : {"--rm, -it, --gpus, all", "-v, /a:/a, --rm", "--env=A=b, -p8080:80",
                              "--rootfs, -w, /x", "-eA=b, --", "--init"}) {
    for (const char* runtime : {"docker", "podman"}) {
      const std::string begin = std::string(runtime) + ", run, " + options + ", ";
      EXPECT_EQ(line(begin + "image:1"), line(begin + "image:2")) << begin;
      EXPECT_NE(line(begin + "image:1, --x"), line(begin + "image:1, --y")) << begin;
    }
  }
  EXPECT_EQ(line("srun, -p, gpu, --container-image=a"), line("srun, -p, gpu, --container-image=b"));
  EXPECT_EQ(line("srun, --container-image, a"), line("srun, --container-image, b"));
  EXPECT_NE(line("srun, -p, a"), line("srun, -p, b"));
}

TEST(Container, LeavesTheProgramsPlaceOutOfTheFingerprint) {
  const auto arguments = [](const std::string& runtime, const std::string& words) {
    return expanded("container: " + runtime + ", command: [" + words + ", -n, '{tokens}']")
        .arguments;
  };
  for (const char* begin :
       {"docker, run, -v, /a:/a, image:1, ", "podman, run, --rm, --, it, ", "srun, -p, gpu, ",
        "srun, --quiet, -lu, ", "srun, --exclusive, -n, '1', ", "srun, --container-image, it, ",
        "/opt/slurm/bin/srun, --overlap, --no-container-mount-home, "}) {
    const std::string words = begin;
    std::string runtime = "srun";
    if (words.starts_with("docker")) runtime = "docker";
    if (words.starts_with("podman")) runtime = "podman";
    EXPECT_EQ(arguments(runtime, words + "/opt/engine-1.2/bench"),
              arguments(runtime, words + "/opt/engine-1.3/bench"))
        << begin;
    EXPECT_EQ(arguments(runtime, words + "/opt/bench"), arguments(runtime, words + "bench"));
    // If the image has an entry point, this is an argument.
    EXPECT_NE(arguments(runtime, words + "prefill"), arguments(runtime, words + "decode"));
    EXPECT_NE(arguments(runtime, words + "b, --lora=/a/x"),
              arguments(runtime, words + "b, --lora=/b/x"));
  }
}

TEST(Container, IsRefusedWhereProbesOrOutputWouldBeLost) {
  struct Case {
    const char* engine;
    const char* says;
  };
  const Case cases[] = {
      {"command: [docker, run, i, b, -n, '{tokens}'], container: dockr",
       "did you mean \"docker\"?"},
      {"command: [b, -n, '{tokens}'], container: [docker]", "container must be"},
      {"command: [b, -n, '{tokens}'], container: {image: i}", "needs \"runtime\""},
      {"command: [b, -n, '{tokens}'], container: docker",
       "write docker run … IMAGE before it, or\n  container: {runtime: docker, image: IMAGE}"},
      {"command: [docker, run, i, b, -n, '{tokens}'], container: {runtime: docker, image: i}",
       "the command begins with docker: image and args stand there"},
      {"command: [docker, exec, i, b, -n, '{tokens}'], container: docker", "has no \"run\""},
      {"command: [docker, run, -itd, i, b, -n, '{tokens}'], container: docker", "leave -itd out"},
      {"command: [docker, run, --cidfile=x, i, b, -n, '{tokens}'], container: docker",
       "a --cidfile of its own"},
      {"command: [docker, run, -e, LD_PRELOAD=x, i, b, -n, '{tokens}'], container: docker",
       "write it under \"env\""},
      {"command: [b, -n, '{tokens}'], container: {runtime: podman, image: i, args: "
       "[--env=VK_LAYER_PATH]}",
       "VK_LAYER_PATH is what probes come in by"},
      {"command: [srun, --export=NONE, b, -n, '{tokens}'], container: srun",
       "--export must begin with ALL"},
      {"command: [docker, run, -dp8080:80, i, b, -n, '{tokens}'], container: docker",
       "leave -dp8080:80 out"},
      {"command: [docker, run, -ite, WEIR_TWIN=x, i, b, -n, '{tokens}'], container: docker",
       "WEIR_TWIN is what probes come in by"},
      {"command: [podman, run, -eVK_LOADER_DRIVERS_SELECT=x, i, b, -n, '{tokens}'], container: "
       "podman",
       "VK_LOADER_DRIVERS_SELECT is what"},
      {"command: [docker, run, --env, VK_ADD_LAYER_PATH, i, b, -n, '{tokens}'], container: docker",
       "VK_ADD_LAYER_PATH is what"},
      {"command: [srun, '--export=ALL,LD_PRELOAD=x', b, -n, '{tokens}'], container: srun",
       "srun: LD_PRELOAD is what probes come in by"},
      {"command: [srun, --job-name, mine, b, -n, '{tokens}'], container: srun",
       "a --job-name of its own"},
      {"command: [srun, -Jmine, b, -n, '{tokens}'], container: srun", "a --job-name of its own"},
      {"command: [b, -n, '{tokens}'], container: {runtime: srun, args: ['{args}']}",
       "{args} can only stand in an engine's command"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(config_error(with_engine(c.engine)), HasSubstr(c.says)) << c.engine;
  }
  // Words of the engine's are its own affair.
  EXPECT_EQ(config_error(
                with_engine("command: [docker, run, i, b, -d, -n, '{tokens}'], container: docker")),
            "");
}

TEST(Container, LeavesOtherOptionsAlone) {
  for (const char* line : {"docker run -i --env-file d --dns 1.1.1.1 -v /d:/d -p8080:80 i b -d",
                           "podman run -e A=b -eLANG=d --env=LD_LIBRARY_PATH=/x i b --cidfile=x",
                           "docker run -it --name job i b -e LD_PRELOAD=x"}) {
    const Arguments words = text::split(line, ' ');
    const Runtime runtime = words.front() == "docker" ? Runtime::docker : Runtime::podman;
    EXPECT_EQ(check_runtime_line(words, runtime), std::vector<std::string>{}) << line;
  }
  const char* srun = "srun -p gpu --export=ALL,A=b --jobid=7 b --export=none -J x";
  EXPECT_EQ(check_runtime_line(text::split(srun, ' '), Runtime::srun), std::vector<std::string>{});
}

TEST(Container, IsWrittenAsTheDocumentationHasIt) {
  std::ifstream file(WEIR_SOURCE_DIR "/docs/how-to/containers.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = page.find("```yaml\n") + 8;
  const std::string engines = page.substr(begin, page.find("```", begin) - begin);
  Supported context = test_context();
  context.probes.emplace_back("cuda");
  const auto settings = parse_settings(
      "version: 1\nmodels: {m: m.gguf}\nbackends: {cpu: }\n"
      "prompts: {p: {prompt_tokens: 0, tokens: 8}}\n" +
          engines,
      "weir.yaml", context);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->engines.size(), 3U);
}

TEST(Container, HidesThePrivateEnginesImageAndNotDocker) {
  const auto settings = parse_text(with_engine(
      "private: true, command: [secret, -n, '{tokens}'], container: {runtime: docker, image: "
      "reg.example/team/hidden:7}"));
  ASSERT_TRUE(settings) << settings.error().message;
  const Redactor redactor(*settings, "/p");
  const std::string shown =
      redactor.text("docker run reg.example/team/hidden:7 secret: no hidden:7");
  EXPECT_THAT(shown, HasSubstr("docker run engine-"));
  EXPECT_EQ(shown.find("hidden"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("secret"), std::string::npos) << shown;
}

// In each of its forms, wherever it is written; and the paths that its options name.
TEST(Container, HidesThePrivateEnginesImageByEachOfItsNames) {
  struct Case {
    const char* engine;
    std::vector<const char*> hidden, shown;
  };
  const Case cases[] = {
      {"container: {runtime: docker, image: 'reg.example:5000/team/hidden:7@sha256:0f3c', args: "
       "[--gpus, all, -v, '/nfs/classified:/work/in', --device=nvidia.com/gpu=all, -v, "
       "/usr:/usr:ro]}, command: [bench, -n, '{tokens}']",
       {"reg.example:5000/team/hidden:7@sha256:0f3c", "reg.example:5000/team/hidden", "team/hidden",
        "hidden:7", "hidden", "sha256:0f3c", "-v /nfs/classified:/work/in", "/nfs/classified/x"},
       {"--gpus all", "--device=nvidia.com/gpu=all", "/usr/bin/docker", "a GPU, by gpu"}},
      {"container: podman, command: [podman, run, --mount, "
       "'type=bind,source=/nfs/classified,target=/in/here', hidden, bench, -n, '{tokens}']",
       {"podman run hidden", "localhost/hidden:latest", "source=/nfs/classified,target=/in/here"},
       {"podman run", "type=bind"}},
      {"container: docker, command: [docker, run, '{args}', hidden:2, -n, '{tokens}']",
       {"hidden:2", "hidden"},
       {"docker run", "-n"}},
      {"container: srun, command: [srun, --container-image=reg.example#team/hidden:7, --label, "
       "classified, -n, '{tokens}']",
       {"team/hidden:7", "reg.example#team/hidden", "hidden", "classified"},
       {"srun --container-image="}},
  };
  for (const Case& c : cases) {
    const auto settings = parse_text(with_engine(std::string("private: true, ") + c.engine));
    ASSERT_TRUE(settings) << settings.error().message;
    const Redactor redactor(*settings, "/p");
    for (const char* text : c.hidden) {
      const std::string redacted = redactor.text(text);
      EXPECT_THAT(redacted, HasSubstr("engine-")) << text;
      for (const char* word : {"hidden", "classified", "0f3c"}) {
        EXPECT_EQ(redacted.find(word), std::string::npos) << text << ": " << redacted;
      }
    }
    for (const char* text : c.shown) EXPECT_EQ(redactor.text(text), text);
  }
}

}  // namespace container_test
}  // namespace weir::config

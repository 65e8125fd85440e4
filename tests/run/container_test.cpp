// Tests engines in containers: the arguments of docker, podman and srun, and what is ended.
#include "gate/run/container.hpp"

#include <gmock/gmock.h>

#include "gate/base/text.hpp"
#include "gate/run/engine_call.hpp"
#include "gate/run/engine_run.hpp"

#include "tests/run/scene.hpp"

namespace weir::run {
namespace container_test {

using config::Runtime;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

TEST(CarryIn, TellsEachRuntimeWhatToMountAndToSet) {
  const ContainerInputs carried{.env = {{"A", "b,c d"}, {"LD_PRELOAD", "/p/x.so"}},
                                .mounts = {{"/m/x.gguf"}, {"/run/1/out", true}},
                                .id_file = "/run/1/id",
                                .name = "weir-7"};
  const std::string run_words =
      " --rm --cidfile=/run/1/id --label=weir=weir-7 --mount "
      "type=bind,source=/m/x.gguf,target=/m/x.gguf,readonly"
      " --mount type=bind,source=/run/1/out,target=/run/1/out -e A=b,c d -e LD_PRELOAD=/p/x.so";
  struct Case {
    Runtime runtime;
    const char* command;
    std::string argv;
  };
  const Case cases[] = {
      {Runtime::docker, "/bin/docker run --gpus all it bench -e A",
       "/bin/docker run" + run_words + " --gpus all it bench -e A"},
      {Runtime::podman, "podman --remote run it bench",
       "podman --remote run" + run_words + " it bench"},
      // Mounts of the user stay: docker refuses two for one place.
      {Runtime::docker, "docker run -v /m/x.gguf:/m/x.gguf:ro it bench",
       "docker run --rm --cidfile=/run/1/id --label=weir=weir-7 --mount "
       "type=bind,source=/run/1/out,target=/run/1/out -e A=b,c d -e LD_PRELOAD=/p/x.so "
       "-v /m/x.gguf:/m/x.gguf:ro it bench"},
      {Runtime::docker, "docker run --mount=type=bind,src=/else,dst=/m/x.gguf it bench",
       "docker run --rm --cidfile=/run/1/id --label=weir=weir-7 --mount "
       "type=bind,source=/run/1/out,target=/run/1/out -e A=b,c d -e LD_PRELOAD=/p/x.so "
       "--mount=type=bind,src=/else,dst=/m/x.gguf it bench"},
      // All nodes share one file system.
      {Runtime::srun, "srun -p gpu bench --export=x",
       "srun --export=ALL,LD_PRELOAD=/p/x.so --job-name=weir-7 -p gpu bench --export=x"},
      {Runtime::srun, "srun --export=ALL,B=c bench",
       "srun --job-name=weir-7 --export=ALL,B=c,LD_PRELOAD=/p/x.so bench"},
      {Runtime::srun, "srun --container-image=it bench",
       "srun --export=ALL,LD_PRELOAD=/p/x.so "
       "--container-mounts=/m/x.gguf:/m/x.gguf:ro,/run/1/out:/run/1/out --job-name=weir-7 "
       "--container-image=it bench"},
      {Runtime::srun, "srun --container-image=it --container-mounts /a:/a bench",
       "srun --export=ALL,LD_PRELOAD=/p/x.so --job-name=weir-7 --container-image=it "
       "--container-mounts /a:/a,/m/x.gguf:/m/x.gguf:ro,/run/1/out:/run/1/out bench"},
  };
  for (const Case& c : cases) {
    const auto call = container_command(c.runtime, text::split(c.command, ' '), carried);
    ASSERT_TRUE(call) << c.command << ": " << call.error().message;
    EXPECT_EQ(text::join(call->argv, " "), c.argv);
    if (c.runtime == Runtime::srun) {
      // srun passes its environment on unchanged; in --export a comma would end the value.
      EXPECT_THAT(call->env, ElementsAre(Pair("A", "b,c d")));
      EXPECT_THAT(call->unset, ElementsAre("LD_PRELOAD"));
    } else {
      EXPECT_THAT(call->env, IsEmpty()) << "the program's own environment is not the engine's";
    }
  }
}

TEST(CarryIn, PublishesThePortOfAServerUnlessTheCommandSaysHowItIsReached) {
  ContainerInputs carried;
  carried.id_file = "/run/1/id";
  carried.port = "4711";
  const std::string published = "--publish=127.0.0.1:4711:4711";
  const std::pair<const char*, bool> cases[] = {
      {"docker run it serve -p 4711", true},  // an option of the server
      {"docker run --gpus all -it it serve", true},
      {"docker run --pids-limit 5 it serve", true},
      {"docker run --network host it serve", false},
      {"docker run --net=host it serve", false},
      {"podman run -p 4711:8080 it serve", false},
      {"podman run -itp4711:8080 it serve", false},
      {"podman run -P it serve", false},
      {"podman run --publish=4711:80 it serve", false},
      {"podman run --pod mine it serve", false},
  };
  for (const auto& [command, adds] : cases) {
    const auto runtime =
        std::string_view(command).starts_with("docker") ? Runtime::docker : Runtime::podman;
    const auto call = container_command(runtime, text::split(command, ' '), carried);
    ASSERT_TRUE(call) << command;
    EXPECT_EQ(std::count(call->argv.begin(), call->argv.end(), published), adds ? 1 : 0) << command;
  }
  carried.port.clear();
  const auto program =
      container_command(Runtime::docker, {"docker", "run", "it", "bench"}, carried);
  ASSERT_TRUE(program);
  EXPECT_THAT(program->argv, Not(Contains(HasSubstr("--publish"))));
}

TEST(CarryIn, HandsATokenOnByItsNameAlone) {
  ContainerInputs carried;
  carried.id_file = "/run/1/id";
  carried.passed_variables = {"SERVER_TOKEN"};
  const std::pair<const char*, int> cases[] = {
      {"docker run it serve", 1},
      {"docker run -e OTHER=1 it serve", 1},
      {"docker run -e SERVER_TOKEN it serve", 1},  // the one of the user
      {"podman run --env=SERVER_TOKEN=x it serve", 0},
  };
  for (const auto& [command, words] : cases) {
    const auto runtime =
        std::string_view(command).starts_with("docker") ? Runtime::docker : Runtime::podman;
    const auto call = container_command(runtime, text::split(command, ' '), carried);
    ASSERT_TRUE(call) << command;
    EXPECT_EQ(std::count(call->argv.begin(), call->argv.end(), "SERVER_TOKEN"), words) << command;
    EXPECT_THAT(call->passed_variables, Contains("SERVER_TOKEN"))
        << "or docker could not: " << command;
  }
}

TEST(CarryIn, RefusesWhatARuntimeCanNotBeTold) {
  struct Case {
    Runtime runtime;
    const char* command;
    ContainerInputs carried;
    const char* says;
  };
  const Case cases[] = {
      {Runtime::docker, "docker run it", {{}, {{"/a,b"}}, "/i", "n"}, "/a,b"},
      {Runtime::podman, "podman run it", {{}, {{"/a\"b"}}, "/i", "n"}, "cannot be told to mount"},
      {Runtime::srun, "srun --container-image=i b", {{}, {{"/a:b"}}, "/i", "n"}, "/a:b"},
      {Runtime::srun, "srun b", {{{"LD_PRELOAD", "/a,b"}}, {}, "/i", "n"}, "a comma"},
  };
  for (const Case& c : cases) {
    const auto call = container_command(c.runtime, text::split(c.command, ' '), c.carried);
    ASSERT_FALSE(call) << c.command;
    EXPECT_THAT(call.error().message, HasSubstr(c.says));
  }
  // Nodes that share their files need no mounts.
  EXPECT_TRUE(container_command(Runtime::srun, {"srun", "b"}, {{}, {{"/a:b"}}, "/i", "n"}));
}

TEST(MountsOf, BringTheModelWithWhatLiesBesideIt) {
  const std::pair<const char*, const char*> cases[] = {
      {"/m/x.gguf", "/m/x.gguf"},
      {"/m/x-00001-of-00003.gguf", "/m"},
      {"/m/x-of-00003.gguf", "/m/x-of-00003.gguf"},
      {"/m/llama", "/m/llama"},
      {"/c/models--a--b/snapshots/0f/x.gguf", "/c/models--a--b"},
      {"/c/models--a--b/snapshots/0f", "/c/models--a--b"},
      // Other folders of that name are no cache.
      {"/home/snapshots/m.gguf", "/home/snapshots/m.gguf"},
      {"/home/snapshots/x-00001-of-00003.gguf", "/home/snapshots"},
      {"/snapshots/m.gguf", "/snapshots/m.gguf"},
      {"/b/snapshots/models--a--b/snapshots/0f/x.gguf", "/b/snapshots/models--a--b"},
      {"/b/models--a--b/snapshots/0f/snapshots/x.gguf", "/b/models--a--b"},
  };
  for (const auto& [model, place] : cases) {
    PreparedCell cell;
    cell.model = model;
    cell.cell.command = {"docker", "run", "it", "-m", "{model}"};
    EXPECT_EQ(needed_mounts(cell), std::vector<Mount>{{place}}) << model;
    cell.cell.command = {"docker", "run", "it", "-m", "/in/the/image"};
    EXPECT_THAT(needed_mounts(cell), IsEmpty());
  }
}

TEST(StepsNamed, AreThoseOfTheName) {
  EXPECT_THAT(
      parse_step_ids("12.0 weir-a\n12.batch batch\n13.4 weir-ab\n 14.0 weir-a \n", "weir-a"),
      ElementsAre("12.0", "14.0"));
}

const std::string k_docker_yaml = R"(version: 1
engines:
  bench:
    command: [bench, -m, "{model}", -p, "{prompt_tokens}", -n, "{tokens}", -r, "{repeats}"]
    container: {runtime: docker, image: it}
    output: llama-bench
    probes: [vulkan]
    timeout: 5s
    env: {LD_LIBRARY_PATH: /inside}
models: {tiny: tiny.bin}
backends: {vulkan: {}}
prompts: {decode: {prompt_tokens: 0, tokens: 16}}
gate: {runs: 1}
)";

struct InDocker {
  explicit InDocker(FakeProcesses::Engine engine, const std::string& yaml = k_docker_yaml)
      : scene(make_scene(yaml)), processes(std::move(engine)) {
    for (const char* program : {"/usr/bin/docker", "/usr/bin/podman"}) {
      scene->files.put(program, "program");
      scene->files.set_executable(program);
    }
    plan = plan_scene(*scene);
  }
  profile::RunRecord run(const Step& step) {
    const Effects effects{processes, scene->files, clock, locks, load, probing, progress, stop};
    auto record = run_engine(effects, "/out", plan.cell_of(step), step, 1);
    EXPECT_TRUE(record && *record);
    return record && *record ? **record : profile::RunRecord{};
  }
  std::unique_ptr<Scene> scene;
  Plan plan;
  FakeProcesses processes;
  FakeClock clock;
  FakeLocks locks;
  FakeLoad load;
  FakeProbing probing;
  FakeProgress progress;
  sys::Stop stop;
};

TEST(EngineInDocker, GetsItsEnvironmentByWordsAndNothingOfThisMachines) {
  InDocker docker(FakeProcesses::good);
  const profile::RunRecord record = docker.run(docker.plan.steps.front());
  EXPECT_EQ(record.error, std::nullopt);
  EXPECT_THAT(docker.probing.begun_inside,
              testing::Optional(ElementsAre(Pair("LD_LIBRARY_PATH", "/inside"))));
  ASSERT_EQ(docker.processes.started.size(), 1U);
  const sys::ProcessSpec& spec = docker.processes.started.front();
  EXPECT_THAT(spec.env, IsEmpty());
  EXPECT_EQ(spec.argv.front(), "/usr/bin/docker");
  for (const char* word :
       {"LD_LIBRARY_PATH=/inside", "VK_LAYER_PATH=/probe/layers",
        "type=bind,source=/probe,target=/probe,readonly",
        "type=bind,source=/project/tiny.bin,target=/project/tiny.bin,readonly",
        "type=bind,source=/out/tmp/0000000-1/probes,target=/out/tmp/0000000-1/probes",
        "type=bind,source=/out/tmp/0000000-1/out,target=/out/tmp/0000000-1/out"}) {
    EXPECT_THAT(spec.argv, Contains(word));
  }
  // These would be figures of the docker program itself.
  EXPECT_FALSE(record.peak_rss_bytes || record.cpu_seconds || record.machine.major_faults);
}

TEST(EngineInDocker, HasNothingAttachedInATimedPass) {
  InDocker docker(FakeProcesses::good);
  (void)docker.run(docker.plan.steps.back());
  ASSERT_EQ(docker.plan.steps.back().pass, profile::Pass::timed);
  EXPECT_THAT(docker.processes.started.front().argv,
              Not(Contains("type=bind,source=/probe,target=/probe,readonly")));
  EXPECT_THAT(docker.processes.started.front().argv, Not(Contains(HasSubstr("WEIR_PROBE_DIR"))));
}

TEST(EngineInDocker, IsRemovedWhenDockerWasStopped) {
  sys::MemoryFiles* files = nullptr;
  InDocker docker([&](const sys::ProcessSpec& spec) {
    sys::Finished finished;
    if (spec.argv[1] == "run") {
      files->put("/out/tmp/0000000-1/container", "0123456789abcdef\n");
      finished.ended = sys::HowEnded::timed_out;
    }
    return finished;
  });
  files = &docker.scene->files;
  const profile::RunRecord record = docker.run(docker.plan.steps.front());
  EXPECT_EQ(record.ended, profile::Ended::timed_out);
  ASSERT_EQ(docker.processes.started.size(), 2U);
  EXPECT_THAT(docker.processes.started.back().argv,
              ElementsAre("/usr/bin/docker", "rm", "--force", "--volumes", "0123456789abcdef"));
}

// Returns the command without its program: "run", "ps …", "rm …".
std::string command_line(const sys::ProcessSpec& spec) {
  std::vector<std::string> words(spec.argv.begin() + 1, spec.argv.end());
  if (words.front() == "run") words.resize(1);
  return text::join(words, " ");
}

TEST(EngineInDocker, IsFoundByItsLabelWhereDockerWroteNoId) {
  for (const char* id_file : {"", "\n", "no id", static_cast<const char*>(nullptr)}) {
    sys::MemoryFiles* files = nullptr;
    std::string label;
    InDocker docker([&](const sys::ProcessSpec& spec) {
      sys::Finished finished;
      if (spec.argv[1] == "run") {
        if (id_file != nullptr) files->put("/out/tmp/0000000-1/container", id_file);
        finished.ended = sys::HowEnded::timed_out;
        label = spec.argv[4];
      } else if (spec.argv[1] == "ps") {
        finished.out = "0a1b\nwhatever else\n2c3d\n";
      }
      return finished;
    });
    files = &docker.scene->files;
    const profile::RunRecord record = docker.run(docker.plan.steps.front());
    ASSERT_TRUE(label.starts_with("--label=weir=weir-")) << label;
    std::vector<std::string> calls;
    for (const sys::ProcessSpec& spec : docker.processes.started)
      calls.push_back(command_line(spec));
    EXPECT_THAT(calls, ElementsAre("run", "ps --all --quiet --no-trunc --filter=" + label.substr(2),
                                   "rm --force --volumes 0a1b", "rm --force --volumes 2c3d"));
    EXPECT_THAT(record.warnings, IsEmpty());
  }
}

TEST(EngineInDocker, IsAskedForWhereDockerItselfFailed) {
  // The connection to the daemon broke, and the daemon does not answer afterwards either.
  sys::MemoryFiles* files = nullptr;
  for (const char* id : {"0123456789abcdef", ""}) {
    InDocker docker([&](const sys::ProcessSpec& spec) {
      sys::Finished finished;
      finished.exit_code = spec.argv[1] == "run" ? 125 : 1;
      if (spec.argv[1] == "run") files->put("/out/tmp/0000000-1/container", id);
      return finished;
    });
    files = &docker.scene->files;
    const profile::RunRecord record = docker.run(docker.plan.steps.front());
    EXPECT_THAT(record.error.value_or(""), HasSubstr("docker itself failed"));
    const bool has_id = !std::string(id).empty();
    EXPECT_THAT(record.warnings,
                ElementsAre(HasSubstr(has_id ? "the container 0123456789ab could not be removed"
                                             : "could not be asked whether it left a container")));
  }
}

TEST(EngineInPodman, IsRemovedByOldOnesTooWhichCanNotBeToldTheTime) {
  std::string yaml = k_docker_yaml;
  yaml.replace(yaml.find("docker"), 6, "podman");
  sys::MemoryFiles* files = nullptr;
  InDocker podman(
      [&](const sys::ProcessSpec& spec) {
        sys::Finished finished;
        if (spec.argv[1] == "run") {
          files->put("/out/tmp/0000000-1/container", "0a1b");
          finished.ended = sys::HowEnded::timed_out;
        } else if (spec.argv[4] == "--time=0") {
          finished.exit_code = 125;  // podman 3.4: unknown flag: --time
        }
        return finished;
      },
      yaml);
  files = &podman.scene->files;
  const profile::RunRecord record = podman.run(podman.plan.steps.front());
  std::vector<std::string> calls;
  for (const sys::ProcessSpec& spec : podman.processes.started) calls.push_back(command_line(spec));
  EXPECT_THAT(
      calls, ElementsAre("run", "rm --force --volumes --time=0 0a1b", "rm --force --volumes 0a1b"));
  EXPECT_THAT(record.warnings, IsEmpty());
}

TEST(EngineInDocker, SaysWhoseExitCodeItIs) {
  const std::pair<int, const char*> cases[] = {
      {125, "exited with code 125 (docker itself failed, before the engine ran)"},
      {127, "(the image has no such program"},
      {139, "crashed: SIGSEGV"},
      {137, "SIGKILL"},
      {3, "exited with code 3"}};
  for (const auto& [code, says] : cases) {
    InDocker docker([code = code](const sys::ProcessSpec&) {
      sys::Finished finished;
      finished.exit_code = code;
      return finished;
    });
    const auto record = docker.run(docker.plan.steps.front());
    EXPECT_THAT(record.error.value_or(""), HasSubstr(says)) << code;
  }
}

TEST(PreflightOfAContainer, SaysWhatIsMissingHere) {
  const auto problem = [](const std::string& yaml, const std::string& program,
                          const std::string& model) {
    auto scene = make_scene(yaml);
    scene->files.put("/project/" + model, "weights");
    if (!program.empty()) {
      scene->files.put(program, "program");
      scene->files.set_executable(program);
    }
    const auto prepared = preflight(scene->cells, scene->around, scene->files);
    return prepared ? std::string() : prepared.error().message;
  };
  EXPECT_THAT(problem(k_docker_yaml, "", "tiny.bin"),
              HasSubstr("container: docker: no program \"docker\" in PATH; install it"));
  EXPECT_EQ(problem(k_docker_yaml, "/usr/bin/docker", "tiny.bin"), "");
  std::string comma = k_docker_yaml;
  comma.replace(comma.find("tiny.bin"), 8, "'ti,ny.bin'");
  EXPECT_THAT(problem(comma, "/usr/bin/docker", "ti,ny.bin"),
              HasSubstr("/project/ti,ny.bin: docker cannot be told to mount that"));
}

// Options may be set outside of the engine's command in weir.yaml.
TEST(PreflightOfAContainer, LooksAtTheLineThatWillBeRun) {
  struct Case {
    const char* command;
    const char* args;
    const char* says;
  };
  const Case cases[] = {
      {"docker, run, '{args}', it, bench", "-d", "leave -d out"},
      {"docker, run, '{args}', it, bench", "-e, LD_PRELOAD=x", "LD_PRELOAD is what probes"},
      {"docker, run, '{args}', -d, it, bench", "--init", "leave -d out"},
      {"docker, run, '{args}', it, bench", "--init", ""},
      {"docker, run, it, bench, '{args}'", "-d", ""},
  };
  for (const Case& c : cases) {
    auto scene = make_scene(fmt::format(R"(version: 1
engines:
  bench:
    command: [{}, -m, "{{model}}", -p, "{{prompt_tokens}}", -n, "{{tokens}}", -r, "{{repeats}}"]
    container: docker
    output: llama-bench
models: {{tiny: tiny.bin}}
backends: {{cpu: {{args: [{}]}}}}
prompts: {{decode: {{prompt_tokens: 0, tokens: 16}}}}
)",
                                        c.command, c.args));
    scene->files.put("/usr/bin/docker", "program");
    scene->files.set_executable("/usr/bin/docker");
    const auto prepared = preflight(scene->cells, scene->around, scene->files);
    const std::string problem = prepared ? std::string() : prepared.error().message;
    EXPECT_THAT(problem, HasSubstr(c.says)) << c.command;
    EXPECT_EQ(problem.empty(), std::string(c.says).empty()) << c.command << ": " << problem;
  }
}

TEST(PreflightOfAContainer, CountsNoInstructionsOfDockersOwn) {
  std::string yaml = k_docker_yaml;
  yaml.replace(yaml.find("[vulkan]"), 8, "[vulkan, instructions]");
  try {
    (void)make_scene(yaml);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("its counts would be those of docker"));
  }
}

}  // namespace container_test
}  // namespace weir::run

// Tests the text of `weir doctor`.
#include "gate/report/doctor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"

#include "tests/report/support.hpp"

namespace weir::report {
namespace doctor_test {

using support::expect_golden;

Diagnosis laptop() {
  Diagnosis diagnosis;
  diagnosis.weir_version = "1.2.3";
  diagnosis.machine = "AMD Ryzen 7 5800X, 8 cores, 32 GiB, debian 12";
  diagnosis.findings = {
      {"governor", Health::worse,
       "16 of 16 processors change their clock by load (governor schedutil)",
       "sudo cpupower frequency-set -g performance"},
      {"SMT", Health::note, "two threads share each core, so a neighbour takes half of one",
       "Use as many threads as physical cores"}};
  diagnosis.fine = {"load", "disk", "swap"};
  diagnosis.unknown = {"heat"};
  diagnosis.probes = {"ggml", "vulkan"};
  diagnosis.devices = {{"vulkan", "llvmpipe (LLVM 15.0.6, 256 bits)", "cpu", "llvmpipe"},
                       {"opencl", "pthread-cpu", "", ""},
                       {"cuda", "NVIDIA H200", "gpu", ""},
                       {"cuda", "NVIDIA H200", "gpu", ""}};
  diagnosis.always_layers = {"VK_LAYER_MESA_device_select"};
  diagnosis.layers = {"VK_LAYER_KHRONOS_validation"};
  diagnosis.engines = {
      {"llama.cpp",
       "build/bin/llama-bench",
       "",
       {{"ggml", "sees", "preloaded in front of libggml-base.so, called by libllama.so", "", true},
        {"vulkan", "perhaps", "as a layer of the Vulkan loader, if it opens that when it runs", "",
         false},
        {"opencl", "unused", "nothing in it uses OpenCL", "", false},
        {"cuda", "absent", "this weir has no such probe", "The engine's own profiler can be read",
         false}},
       {{"libraries", Health::note, "libx.so: ELF: its segments lie beyond its end",
         "Build it again"}}},
      {"static",
       "bin/static",
       "",
       {{"ggml", "blind", "statically linked: it loads no library, and so no probe",
         "Link it dynamically", true},
        {"vulkan", "blind", "statically linked: it loads no library, and so no probe",
         "Link it dynamically", true}},
       {}},
      {"gone", "", "gone: no such program here or in PATH", {}, {}}};
  diagnosis.commands = {{"static/tiny/vulkan/decode",
                         "GGML_VK_VISIBLE_DEVICES=0 bin/static -m 'tiny llama.gguf' -n 8",
                         "/home/ada/engine",
                         "it exited with code 7",
                         {"load: 1 %"},
                         {"error: no device"},
                         {},
                         false},
                        {"served/tiny/cpu/hello",
                         "bin/served --port '{port}'",
                         "/home/ada/engine",
                         "",
                         {},
                         {},
                         {},
                         true,
                         {"1 of 1 requests have no report of their tokens"}}};
  return diagnosis;
}

Diagnosis bare() {
  Diagnosis diagnosis;
  diagnosis.machine = "Apple M2, 8 cores, 16 GiB, macos 14.5";
  diagnosis.probes_error = "no probes found (looked in /opt/lib/weir/probes)";
  diagnosis.device_errors = {{"vulkan", "no Vulkan loader (libvulkan.so.1)"}};
  return diagnosis;
}

Diagnosis hostile() {
  Diagnosis diagnosis = laptop();
  const std::string evil = "\x1b[2Jevil\r\n::error::x \xe2\x80\xae" + std::string(400, 'x');
  diagnosis.machine = evil;
  for (DoctorEngine& engine : diagnosis.engines) {
    engine.name = evil;
    engine.path = evil;
    for (DoctorFit& fit : engine.fits) fit.how = evil;
  }
  diagnosis.devices[0].name = evil;
  diagnosis.layers[0] = evil;
  diagnosis.fine[0] = evil;
  diagnosis.commands[0] = {evil, evil, evil, evil, {evil}, {evil}, {evil}, false};
  return diagnosis;
}

TEST(Doctor, LooksAsStored) {
  expect_golden("doctor.txt", doctor_text(laptop(), {}));
  expect_golden("doctor-bare.txt", doctor_text(bare(), {}));
  expect_golden("doctor-color.txt", doctor_text(laptop(), {.width = 60, .color = true}));
  expect_golden("doctor.json", doctor_json(laptop()));
}

// One finding makes times worse, weir.yaml attaches two probes in vain, one engine is missing, and
// one command failed.
TEST(Doctor, CountsWhatIsInTheWayAndNothingElse) {
  EXPECT_EQ(count_problems(laptop()), 5U);
  EXPECT_EQ(count_problems(bare()), 1U) << "no probes";
  Diagnosis well = laptop();
  well.findings.clear();
  well.engines.resize(1);
  well.commands[0].outcome.clear();
  EXPECT_EQ(count_problems(well), 0U) << "a note is not in the way, nor a probe nobody attaches";
  EXPECT_THAT(support::first_line(doctor_text(well, {})),
              testing::HasSubstr("nothing is in the way"));
}

TEST(Doctor, TellsNoiseOfTheMachineFromWhatIsInTheWay) {
  Diagnosis noisy;
  noisy.findings = laptop().findings;
  EXPECT_THAT(support::first_line(doctor_text(noisy, {})),
              testing::HasSubstr("nothing is in the way; 1 thing makes times worse"));
}

TEST(Doctor, SaysWhereItStartedNoEngine) {
  const auto line = testing::HasSubstr("\nno engine was started: --cell CELL runs one, and asks");
  Diagnosis diagnosis = laptop();
  EXPECT_THAT(doctor_text(diagnosis, {}), testing::Not(line));
  diagnosis.is_idle = true;
  EXPECT_THAT(doctor_text(diagnosis, {}), line);
}

// A server that a request was sent to needs neither probes nor devices.
TEST(Doctor, LeavesOutWhatWasNotExamined) {
  Diagnosis asked;
  asked.commands = {laptop().commands.back()};
  EXPECT_EQ(count_problems(asked), 0U);
  EXPECT_THAT(doctor_text(asked, {}), testing::Not(testing::HasSubstr("devices")));
}

TEST(Doctor, KeepsToItsWidthAndDisarmsWhatItWasTold) {
  for (const Diagnosis& diagnosis : {laptop(), bare(), hostile()}) {
    for (const int width : {40, 80, 120}) {
      const std::string text = doctor_text(diagnosis, {width, false});
      for (const std::string& line : text::lines(text)) {
        EXPECT_LE(text::columns(line), static_cast<std::size_t>(width)) << line;
        EXPECT_FALSE(line.starts_with("::")) << line;
      }
      EXPECT_EQ(text.find('\x1b'), std::string::npos);
      EXPECT_EQ(text.find('\r'), std::string::npos);
    }
    const auto json = parse_json(doctor_json(diagnosis));
    ASSERT_TRUE(json) << json.error().message;
    EXPECT_EQ((*json)["schema"], "weir.doctor/1");
  }
}

}  // namespace doctor_test
}  // namespace weir::report

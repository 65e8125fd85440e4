// Tests of which probes can see a program.
#include "gate/probes/read/fit.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/probes/elf_bytes.hpp"

namespace weir::probes {
namespace fit_test {

using testing::HasSubstr;
using State = Fit::State;

const std::vector<std::string> k_installed{"ggml", "vulkan", "opencl", "hip"};

ProgramFile read(const ElfBytes& bytes) {
  auto file = read_program_file(bytes_of(bytes.str()));
  EXPECT_TRUE(file) << file.error().message;
  return file ? *file : ProgramFile{};
}

ElfBytes program() {
  return {.machine = own_elf_machine(),
          .loader = "/lib64/ld-linux-x86-64.so.2",
          .needed = {"libc.so.6"}};
}

ElfBytes ggml() {
  return {.machine = own_elf_machine(),
          .needed = {"libc.so.6"},
          .exported = {"ggml_backend_synchronize"}};
}

ProgramFacts only(const std::string& path, ProgramFile file) {
  ProgramFacts facts;
  facts.path = path;
  facts.file = std::move(file);
  return facts;
}

ProgramFile of_kind(FileKind kind, const std::string& script = "") {
  ProgramFile file;
  file.kind = kind;
  file.script = script;
  return file;
}

// An engine that is linked with a dynamic ggml and the Vulkan loader.
ProgramFacts engine() {
  ProgramFacts facts;
  facts.path = "/opt/engine";
  facts.file = read(program());
  facts.libraries.push_back({"libggml-base.so", "/opt/libggml-base.so", "engine", read(ggml())});
  facts.libraries.push_back({"libvulkan.so.1", "/usr/lib/libvulkan.so.1", "libggml-vulkan.so", {}});
  return facts;
}

Fit fit_of(const ProgramFacts& facts, const std::string& probe) {
  for (Fit& fit : judge_fit(facts, k_installed)) {
    if (fit.probe == probe) return fit;
  }
  ADD_FAILURE() << "no answer for " << probe;
  return {};
}

TEST(Fit, SaysWhichProbesSeeAProgramAndHow) {
  const ProgramFacts facts = engine();
  EXPECT_EQ(fit_of(facts, "ggml").state, State::sees);
  EXPECT_THAT(fit_of(facts, "ggml").how, HasSubstr("libggml-base.so"));
  EXPECT_EQ(fit_of(facts, "vulkan").state, State::sees);
  EXPECT_THAT(fit_of(facts, "vulkan").how, HasSubstr("libggml-vulkan.so needs"));
}

void run_by_env(ProgramFacts& facts) {
  facts.libraries.clear();
  facts.path = "/usr/bin/env";
}
void run_by_script(ProgramFacts& facts) {
  facts = only("run.sh", of_kind(FileKind::script, "/bin/sh"));
}

TEST(Fit, SaysWhyAProbeCannotSeeAndWhatToDo) {
  struct Case {
    const char* probe;
    State state;
    const char* how;
    const char* cure;
    std::function<void(ProgramFacts&)> change;
  };
  const std::vector<Case> cases{
      {"ggml", State::cannot_see, "statically linked", "-static",
       [](ProgramFacts& facts) {
         facts =
             only("/opt/engine", read({.type = 2, .machine = own_elf_machine(), .dynamic = false}));
       }},
      {"vulkan", State::cannot_see, "setuid", "cp",
       [](ProgramFacts& facts) { facts.changes_rights = true; }},
      {"ggml", State::cannot_see, "musl", "glibc",
       [](ProgramFacts& facts) { facts.file.loader = "/lib/ld-musl-x86_64.so.1"; }},
      {"ggml", State::cannot_see, "built for RISC-V", "Build weir",
       [](ProgramFacts& facts) { facts.file.machine = 243; }},
      {"ggml", State::cannot_see, "inside the program", "BUILD_SHARED_LIBS",
       [](ProgramFacts& facts) {
         facts.libraries.clear();
         facts.holds_ggml = true;
       }},
      {"ggml", State::may_see, "-Bsymbolic", "Link it without",
       [](ProgramFacts& facts) { facts.libraries[0].file.symbolic = true; }},
      {"ggml", State::unused, "no ggml", "", [](ProgramFacts& facts) { facts.libraries.clear(); }},
      {"vulkan", State::unused, "nothing in it uses Vulkan", "",
       [](ProgramFacts& facts) { facts.libraries.clear(); }},
      {"vulkan", State::may_see, "if it opens that", "",
       [](ProgramFacts& facts) {
         facts.libraries.clear();
         facts.names = {"vulkan"};
       }},
      {"opencl", State::may_see, "if it opens that", "",
       [](ProgramFacts& facts) {
         facts.libraries.clear();
         facts.names = {"opencl"};
       }},
      {"hip", State::may_see, "runs what it is given", "", run_by_env},
      {"hip", State::sees, "libamdhip64-1ce46982.so.6", "",
       [](ProgramFacts& facts) {
         facts.libraries.push_back({"libamdhip64-1ce46982.so.6", "/x", "engine", {}});
       }},
      {"instrument", State::may_see, "seen if that has marks", "", run_by_env},
      {"instrument", State::may_see, "seen if that has marks", "", run_by_script},
      {"vulkan", State::may_see, "a script for /bin/sh", "Name the program", run_by_script},
      {"ggml", State::may_see, "a program of macOS that cannot be read", "",
       [](ProgramFacts& facts) { facts = only("x", of_kind(FileKind::mach_o)); }},
      {"metal", State::unused, "needs macOS", "", [](ProgramFacts&) {}},
      {"cuda", State::absent, "no such probe", "profile_args", [](ProgramFacts& facts) {
         facts.libraries.push_back({"libcudart.so.12", "/x", "engine", {}});
       }}};
  for (const Case& c : cases) {
    ProgramFacts facts = engine();
    c.change(facts);
    const Fit fit = fit_of(facts, c.probe);
    EXPECT_EQ(fit.state, c.state) << c.how << ": " << fit.how;
    EXPECT_THAT(fit.how, HasSubstr(c.how));
    EXPECT_THAT(fit.cure, HasSubstr(c.cure));
  }
}

class Look : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "weir-fit-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string put(const std::string& name, const std::string& bytes) {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  Result<ProgramFacts> look(const std::string& path) {
    return read_program_facts(path, files_,
                              [&](std::string_view name) -> std::optional<std::string> {
                                if (name == "LD_LIBRARY_PATH" && !library_path_.empty())
                                  return library_path_;
                                return std::nullopt;
                              });
  }
  std::filesystem::path folder_;
  std::string library_path_;
  sys::RealFiles files_;
};

TEST_F(Look, FindsLibrariesAsTheLoaderDoes) {
  ElfBytes bytes = program();
  bytes.needed = {"liba.so", "libgone.so"};
  bytes.runpath = "$ORIGIN/lib";
  const std::string path = put("bin/engine", bytes.str());
  // One of another machine lies first and is passed by; runpath does not count for what a library
  // needs.
  put("other/liba.so", ElfBytes{.machine = 8}.str());
  put("bin/lib/liba.so", ElfBytes{.machine = own_elf_machine(), .needed = {"libb.so"}}.str());
  put("bin/lib/libb.so", ggml().str());
  library_path_ = (folder_ / "other").string();
  auto facts = look(path);
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_THAT(facts->missing,
              testing::ElementsAre("libgone.so (needed by engine)", "libb.so (needed by liba.so)"));
  library_path_ += ":" + (folder_ / "bin/lib").string();
  facts = look(path);
  ASSERT_TRUE(facts);
  ASSERT_GE(facts->libraries.size(), 2U);
  EXPECT_EQ(facts->libraries[1].name, "libb.so");
  EXPECT_EQ(facts->libraries[1].needed_by, "liba.so");
  EXPECT_EQ(fit_of(*facts, "ggml").state, State::sees);
}

TEST_F(Look, FindsBackendsBesideTheProgramThroughALink) {
  const std::string path = put("bin/engine", program().str());
  put("bin/libggml-vulkan.so",
      ElfBytes{.machine = own_elf_machine(), .needed = {"libvulkan.so.1"}, .runpath = "$ORIGIN"}
          .str());
  put("bin/libvulkan.so.1", ElfBytes{.machine = own_elf_machine()}.str());
  const std::string link = (folder_ / "link").string();
  std::filesystem::create_symlink(path, link);
  const auto facts = look(link);
  ASSERT_TRUE(facts) << facts.error().message;
  const Fit fit = fit_of(*facts, "vulkan");
  EXPECT_EQ(fit.state, State::sees) << fit.how;
  EXPECT_THAT(fit.how, HasSubstr("libggml-vulkan.so needs, a plug-in"));
}

TEST_F(Look, ReadsWhatAProgramHoldsAndSurvivesCircles) {
  ElfBytes bytes = program();
  bytes.needed = {"liba.so"};
  bytes.runpath = "$ORIGIN";
  const std::string path =
      put("engine", bytes.str() + std::string(3 << 20, '.') +
                        "GGML_ASSERT(%s) failed libvulkan.so.1 libOpenCL.so.1");
  put("liba.so",
      ElfBytes{.machine = own_elf_machine(), .needed = {"liba.so"}, .runpath = "$ORIGIN"}.str());
  const auto facts = look(path);
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_TRUE(facts->holds_ggml);
  EXPECT_THAT(facts->names, testing::ElementsAre("vulkan", "opencl"));
  EXPECT_EQ(facts->libraries.size(), 1U);
  EXPECT_EQ(look((folder_ / "absent").string()).error().code, Code::io);
  EXPECT_EQ(look(folder_.string()).error().code, Code::io);
  EXPECT_EQ(look(put("torn", program().str().substr(0, 100))).error().code, Code::data);
}

// The real loader resolved these when the tests were linked.
TEST_F(Look, SeesGgmlInAProgramLinkedWithIt) {
  const auto facts = look(WEIR_GGML_SCENES);
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_THAT(facts->missing, testing::IsEmpty());
  const Fit fit = fit_of(*facts, "ggml");
  EXPECT_EQ(fit.state, State::sees) << fit.how;
  EXPECT_THAT(fit.how, HasSubstr("libggml_stand_in.so, called by ggml_scenes_program"));
}

TEST(Fit, OfInstructionsDependsOnTheMachineNotOnTheProgram) {
  const std::string no_counters = "no counters\nBuy some";
  struct Case {
    InstructionSupport ways;
    State state;
    const char* how;
    const char* cure;
  };
  for (const Case& entry : std::vector<Case>{
           {{}, State::sees, "by perf events", ""},
           {{.no_perf = no_counters, .has_valgrind = true},
            State::may_see,
            "no counters; by valgrind",
            "Buy some"},
           {{.no_perf = no_counters},
            State::cannot_see,
            "valgrind is not in PATH",
            "apt-get install"},
           {{.no_perf = no_counters, .has_valgrind = true, .wants_perf = true},
            State::cannot_see,
            "not by perf events: no counters",
            "Buy some"},
           {{.has_valgrind = true, .wants_valgrind = true}, State::sees, "by valgrind", ""},
           {{.wants_valgrind = true}, State::cannot_see, "not in PATH", "apt-get install"}}) {
    ProgramFacts facts = only("/opt/engine", read(program()));
    const Fit fit = judge_instructions(facts, entry.ways);
    EXPECT_EQ(fit.probe, "instructions");
    EXPECT_EQ(fit.state, entry.state) << fit.how;
    EXPECT_THAT(fit.how, HasSubstr(entry.how));
    EXPECT_THAT(fit.cure, HasSubstr(entry.cure));
  }
  EXPECT_EQ(judge_instructions(only("/opt/x", of_kind(FileKind::mach_o)), {}).state,
            State::cannot_see);
  EXPECT_EQ(judge_instructions(only("/opt/x", of_kind(FileKind::script, "sh")), {}).state,
            State::sees);
}

TEST(Fit, ThePythonProbeSeesInterpretersAndScriptsOfPythonAlone) {
  const auto of_kind = [](FileKind kind, const std::string& script = "") {
    ProgramFile file;
    file.kind = kind;
    file.script = script;
    return file;
  };
  for (const ProgramFacts& facts :
       {only("/venv/bin/python3.12", of_kind(FileKind::elf)),
        only("/pyenv/shims/python3", of_kind(FileKind::script, "/usr/bin/env bash")),
        only("/opt/bench", of_kind(FileKind::script, "/usr/bin/env python3"))}) {
    const auto fit = judge_python(facts);
    ASSERT_TRUE(fit) << facts.path;
    EXPECT_EQ(fit->probe, "python");
    EXPECT_EQ(fit->state, State::sees);
    EXPECT_THAT(fit->how, HasSubstr("python_lines"));
  }
  EXPECT_FALSE(judge_python(only("/opt/bench", of_kind(FileKind::elf))));
  EXPECT_FALSE(judge_python(only("/opt/bench.sh", of_kind(FileKind::script, "/bin/sh"))));
}

}  // namespace fit_test
}  // namespace weir::probes

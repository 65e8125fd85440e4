// Tests of reading ELF programs.
#include <array>
#include <cstdio>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/probes/read/program_file.hpp"
#include "gate/sys/files.hpp"

#include "tests/probes/elf_bytes.hpp"

namespace weir::probes {
namespace elf_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ElfBytes engine() {
  return {.loader = "/lib64/ld-linux-x86-64.so.2",
          .needed = {"libggml-base.so", "libc.so.6"},
          .runpath = "$ORIGIN:/opt/lib",
          .soname = "",
          .imported = {"ggml_backend_synchronize", "malloc"},
          .exported = {"main_like", "ggml_backend_reg_get"}};
}

TEST(Elf, TellsWhatAProgramNeedsAndTakes) {
  const auto file = read_program_file(bytes_of(engine().str()));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->kind, FileKind::elf);
  EXPECT_EQ(file->machine, 62);
  EXPECT_TRUE(file->is_program);
  EXPECT_FALSE(file->is_static());
  EXPECT_EQ(file->loader, "/lib64/ld-linux-x86-64.so.2");
  EXPECT_THAT(file->needed, ElementsAre("libggml-base.so", "libc.so.6"));
  EXPECT_THAT(file->runpath, ElementsAre("$ORIGIN", "/opt/lib"));
  EXPECT_THAT(file->rpath, IsEmpty());
  EXPECT_TRUE(file->imports("ggml_backend_synchronize"));
  EXPECT_FALSE(file->exports("ggml_backend_synchronize"));
  EXPECT_THAT(file->exported, ElementsAre("ggml_backend_reg_get", "main_like"));

  const std::array<std::string_view, 1> prefixes{"ggml_"};
  const auto filtered = read_program_file(bytes_of(engine().str()), prefixes);
  ASSERT_TRUE(filtered);
  EXPECT_THAT(filtered->imported, ElementsAre("ggml_backend_synchronize"));
}

TEST(Elf, KnowsStaticProgramsFromLibraries) {
  struct Case {
    const char* what;
    ElfBytes bytes;
    bool program, is_static;
  };
  const std::vector<Case> cases{
      {"dynamic", engine(), true, false},
      {"library", {.soname = "libx.so"}, false, false},
      {"library that needs nothing", {}, false, false},
      {"static", {.type = 2, .dynamic = false}, true, true},
      {"static and position independent (DF_1_PIE)", {.flags_1 = 0x08000000}, true, true}};
  for (const Case& c : cases) {
    const auto file = read_program_file(bytes_of(c.bytes.str()));
    ASSERT_TRUE(file) << c.what << ": " << file.error().message;
    EXPECT_EQ(file->is_program, c.program) << c.what;
    EXPECT_EQ(file->is_static(), c.is_static) << c.what;
  }
}

TEST(Elf, RecognisesOtherKindsOfFiles) {
  const auto kind = [](std::string_view bytes) {
    const auto file = read_program_file(bytes_of(bytes));
    return file ? file->kind : FileKind::other;
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(kind("#!/usr/bin/env python3\nimport x"), FileKind::script);
  EXPECT_EQ(kind("\xcf\xfa\xed\xfe\x0c\0\0\1"sv), FileKind::mach_o);
  EXPECT_EQ(kind("\xca\xfe\xba\xbe\0\0\0\2"sv), FileKind::mach_o) << "several architectures";
  EXPECT_EQ(kind("\xca\xfe\xba\xbe\0\0\0\x34"sv), FileKind::other) << "a Java class";
  EXPECT_EQ(kind("MZ\x90"sv), FileKind::windows);
  EXPECT_EQ(kind(""), FileKind::other);
  EXPECT_EQ(read_program_file(bytes_of("#! /bin/sh -e \r\nx"))->script, "/bin/sh -e");
  std::string arm = engine().str();
  arm[4] = 1;    // ELFCLASS32
  arm[18] = 40;  // EM_ARM
  const auto small = read_program_file(bytes_of(arm));
  ASSERT_TRUE(small);
  EXPECT_EQ(small->bits, 32);
  EXPECT_EQ(machine_name(small->machine), "Arm");
}

TEST(Elf, RefusesTablesThatContradictTheFile) {
  struct Case {
    std::size_t at;
    std::uint64_t value;
    int size;
    const char* says;
  };
  const std::vector<Case> cases{
      {32, UINT64_MAX - 8, 8, "segments lies beyond"},  // offset of the segments
      {54, 55, 2, "not one"},                           // size of an entry
      {56, 0xffff, 2, "not one"},                       // how many
      {64 + 56 + 32, 1 << 20, 8, "loader"},             // length of the loader's name
      {64 + 112 + 8, 1 << 30, 8, "dynamic section"},    // offset of the dynamic section
      {64 + 112 + 32, 1 << 30, 8, "larger than any"},   // and its length
      {64 + 16, 1 << 30, 8, "none of its segments"},    // load address of the file
  };
  for (const Case& c : cases) {
    std::string bytes = engine().str();
    for (int i = 0; i < c.size; ++i) {
      bytes[c.at + static_cast<std::size_t>(i)] = static_cast<char>(c.value >> (8 * i) & 0xff);
    }
    const auto file = read_program_file(bytes_of(bytes));
    ASSERT_FALSE(file) << c.says;
    EXPECT_EQ(file.error().code, Code::data);
    EXPECT_THAT(file.error().message, HasSubstr(c.says));
  }
}

TEST(Elf, SurvivesAnyBytesWithoutReadingMoreThanTheFileHolds) {
  const std::string good = engine().str();
  std::mt19937 random(7);
  const auto upto = [&](std::size_t most) { return random() % most; };
  std::size_t read_well = 0;
  for (int round = 0; round < 10'000; ++round) {
    std::string bytes = good;
    if (round % 5 == 0) bytes.resize(upto(bytes.size()));
    for (std::size_t i = 0; i < 1 + upto(6) && !bytes.empty(); ++i) {
      const char values[] = {0, 1, 2, 3, 5, 0x7f, static_cast<char>(0x80), static_cast<char>(0xff)};
      bytes[upto(bytes.size())] = round % 2 == 0 ? static_cast<char>(random()) : values[upto(8)];
    }
    const auto file = read_program_file(bytes_of(bytes));
    if (!file) {
      EXPECT_FALSE(file.error().message.empty());
      continue;
    }
    ++read_well;
    EXPECT_LE(file->imported.size() + file->exported.size(), bytes.size() / 24)
        << "a symbol takes 24 bytes";
  }
  EXPECT_GT(read_well, 1000U) << "most of the inputs never reach the tables";
}

std::string command_output(const std::string& command) {
  std::string out;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return out;
  std::array<char, 4096> part{};
  while (const std::size_t got = fread(part.data(), 1, part.size(), pipe)) {
    out.append(part.data(), got);
  }
  pclose(pipe);
  return out;
}

// binutils' readelf is the oracle, on the library that is preloaded and on a stand-in for ggml's.
TEST(Elf, AgreesWithReadelf) {
  const std::string folder = WEIR_GGML_LIBRARIES;
  for (const std::string& path : {folder + "/libggml_stand_in.so", folder + "/libggml_scenes.so",
                                  std::string(WEIR_GGML_SCENES), std::string("/proc/self/exe")}) {
    const auto reader = sys::FileReader::open(path);
    ASSERT_TRUE(reader) << reader.error().message;
    EXPECT_FALSE(reader->changes_rights());
    const std::array<std::string_view, 1> prefixes{"ggml_"};
    const auto file = read_program_file(
        [&](std::uint64_t at, std::uint64_t size) { return reader->read_at(at, size); }, prefixes);
    ASSERT_TRUE(file) << path << ": " << file.error().message;

    // /proc/self/exe is another program for readelf.
    if (path == "/proc/self/exe") {
      EXPECT_TRUE(file->is_program);
      EXPECT_FALSE(file->is_static());
      EXPECT_THAT(file->needed, testing::Contains("libc.so.6"));
      continue;
    }
    std::vector<std::string> needed;
    std::set<std::string> imported, exported;
    for (const std::string& line : text::lines(command_output("readelf -dW '" + path + "'"))) {
      const std::size_t from = line.find('['), to = line.find(']');
      if (line.find("(NEEDED)") != std::string::npos) {
        needed.push_back(line.substr(from + 1, to - from - 1));
      }
    }
    for (const std::string& line :
         text::lines(command_output("readelf --dyn-syms -W '" + path + "'"))) {
      const std::size_t name = line.find(" ggml_");
      if (name == std::string::npos || line.find(" LOCAL ") != std::string::npos) continue;
      const std::string symbol =
          line.substr(name + 1, line.find_first_of(" @", name + 1) - name - 1);
      if (line.find(" UND ") != std::string::npos) {
        imported.insert(symbol);
      } else {
        exported.insert(symbol);
      }
    }
    EXPECT_FALSE(needed.empty()) << path;
    EXPECT_FALSE(imported.empty() && exported.empty()) << path;
    EXPECT_EQ(file->needed, needed) << path;
    EXPECT_THAT(file->imported, testing::ElementsAreArray(imported)) << path;
    EXPECT_THAT(file->exported, testing::ElementsAreArray(exported)) << path;
  }
}

}  // namespace elf_test
}  // namespace weir::probes

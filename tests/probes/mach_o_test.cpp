// Tests of reading macOS programs, from bytes made here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/probes/read/fit.hpp"

namespace weir::probes {
namespace mach_o_test {

using testing::HasSubstr;
using State = Fit::State;

std::string little(std::uint64_t value, int size = 4) {
  std::string out;
  for (int i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}
std::string big(std::uint64_t value) {
  std::string out;
  for (int i = 3; i >= 0; --i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

constexpr const char* k_metal = "/System/Library/Frameworks/Metal.framework/Versions/A/Metal";
constexpr const char* k_variables = "com.apple.security.cs.allow-dyld-environment-variables";
constexpr const char* k_validation = "com.apple.security.cs.disable-library-validation";

struct Bytes {
  std::uint32_t type = 2;  // a program
  bool dyld = true;
  std::vector<std::string> libraries{"/usr/lib/libSystem.B.dylib"};
  bool restrict_segment = false;
  std::optional<std::uint32_t> signature_flags = {};
  std::vector<std::string> entitlements = {};  // true ones

  [[nodiscard]] std::string str() const {
    std::string commands;
    int count = 0;
    const auto add = [&](std::uint32_t kind, std::string body) {
      body.resize((body.size() + 7) / 8 * 8);
      commands += little(kind) + little(8 + body.size()) + body;
      ++count;
    };
    if (dyld) add(0xe, little(12) + "/usr/lib/dyld");
    for (const std::string& library : libraries)
      add(0xc, little(24) + little(0, 8) + little(0) + library);
    if (restrict_segment) add(0x19, std::string("__RESTRICT").append(54, '\0'));
    std::string signature;
    if (signature_flags) {
      const std::string directory =
          big(0xfade0c02) + big(44) + big(0x20400) + big(*signature_flags) + std::string(28, '\0');
      std::string list = "<plist><dict><key>other</key><false/>";
      for (const std::string& entitlement : entitlements)
        list += "<key>" + entitlement + "</key>\n  <true/>";
      const std::string index =
          big(0) + big(28) + big(5) + big(28 + static_cast<std::uint32_t>(directory.size()));
      signature = big(0xfade0cc0) + big(0) + big(2) + index + directory + big(0xfade7171) +
                  big(8 + list.size()) + list;
      add(0x1d, little(32 + commands.size() + 16) + little(signature.size()));
    }
    return little(0xfeedfacf) + little(0x0100000c) + little(0) + little(type) + little(count) +
           little(commands.size()) + little(0) + little(0) + commands + signature;
  }
};

ProgramFacts read_facts(const std::string& bytes, const std::string& path = "/opt/engine") {
  ProgramFacts facts;
  facts.path = path;
  auto file = read_program_file(bytes_of(bytes));
  EXPECT_TRUE(file) << file.error().message;
  if (file) facts.file = *file;
  return facts;
}

Fit fit_of(const ProgramFacts& facts, const std::string& probe) {
  for (Fit& fit : judge_fit(facts, {"ggml", "metal"})) {
    if (fit.probe == probe) return fit;
  }
  ADD_FAILURE() << "no answer for " << probe;
  return {};
}

TEST(MachO, TellsLibrariesAndRightsAlsoOfAUniversalFile) {
  const Bytes bytes{.libraries = {"@rpath/libggml-base.dylib", k_metal},
                    .signature_flags = 0x10000,
                    .entitlements = {k_variables, k_validation}};
  // Apple's processors second: 64 bytes of another part come first.
  const std::string universal = big(0xcafebabe) + big(2) + big(0x01000007) + big(3) + big(64) +
                                big(64) + big(6) + big(0x0100000c) + big(0) + big(128) +
                                big(bytes.str().size()) + big(7);
  std::string padded = universal;
  padded.resize(128, 'x');
  for (const std::string& text : {bytes.str(), padded + bytes.str()}) {
    const ProgramFacts facts = read_facts(text);
    EXPECT_EQ(facts.file.kind, FileKind::mach_o);
    ASSERT_TRUE(facts.file.mach_o);
    const MachO& file = *facts.file.mach_o;
    EXPECT_TRUE(file.is_program);
    EXPECT_TRUE(file.dynamic);
    EXPECT_TRUE(file.needs("libggml"));
    EXPECT_FALSE(file.needs("libvulkan"));
    EXPECT_TRUE(file.hardened);
    EXPECT_FALSE(file.closed());
  }
}

TEST(MachO, SaysWhichProgramsDyldPutsNothingInto) {
  struct Case {
    Bytes bytes;
    const char* path;
    State state;
    const char* how;
    const char* cure;
  };
  const std::vector<std::string> with_metal{k_metal};
  const Case cases[] = {
      {{.libraries = with_metal}, "/opt/engine", State::may_see, "on macOS, not here", "Mac"},
      {{}, "/opt/engine", State::may_see, "opens uses Metal", ""},
      {{.libraries = with_metal}, "/usr/bin/engine", State::cannot_see, "SIP", "your own"},
      {{.libraries = with_metal}, "/System/Library/x", State::cannot_see, "SIP", "your own"},
      {{.libraries = with_metal}, "/usr/local/bin/x", State::may_see, "dyld", ""},
      {{.type = 6}, "/opt/lib.dylib", State::may_see, "a library", "Name that"},
      {{.dyld = false, .libraries = {}}, "/opt/x", State::cannot_see, "statically", "dynamically"},
      {{.restrict_segment = true}, "/opt/x", State::cannot_see, "restricted", "your own"},
      {{.signature_flags = 0x800}, "/opt/x", State::cannot_see, "restricted", "your own"},
      {{.signature_flags = 0x10000}, "/opt/x", State::cannot_see, k_variables, "codesign"},
      {{.signature_flags = 0x10000, .entitlements = {k_variables}},
       "/opt/x",
       State::cannot_see,
       k_validation,
       "codesign"},
      {{.signature_flags = 0x2}, "/opt/x", State::may_see, "opens uses Metal", ""},  // ad hoc
  };
  for (const Case& c : cases) {
    const Fit fit = fit_of(read_facts(c.bytes.str(), c.path), "metal");
    EXPECT_EQ(fit.state, c.state) << c.path << ": " << fit.how;
    EXPECT_THAT(fit.how, HasSubstr(c.how));
    EXPECT_THAT(fit.cure, HasSubstr(c.cure));
  }
}

TEST(MachO, NamesAnEngineThatHasGgmlInsideIt) {
  ProgramFacts facts = read_facts(Bytes{.libraries = {k_metal}}.str());
  facts.holds_ggml = true;
  EXPECT_EQ(fit_of(facts, "ggml").state, State::cannot_see);
  EXPECT_THAT(fit_of(facts, "ggml").cure, HasSubstr("BUILD_SHARED_LIBS"));
  EXPECT_EQ(fit_of(facts, "metal").state, State::may_see);  // Metal is never inside
}

TEST(MachO, TrustsNoNumber) {
  const std::string good =
      Bytes{.libraries = {k_metal}, .signature_flags = 0x10000, .entitlements = {k_variables}}
          .str();
  for (std::size_t size = 4; size < good.size(); ++size) {
    const ProgramFacts facts = read_facts(good.substr(0, size));
    EXPECT_EQ(facts.file.kind, FileKind::mach_o);
    EXPECT_FALSE(judge_fit(facts, {}).empty());
  }
  for (std::size_t at = 4; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = '\xff';
    EXPECT_FALSE(judge_fit(read_facts(bad), {}).empty());
  }
}

}  // namespace mach_o_test
}  // namespace weir::probes

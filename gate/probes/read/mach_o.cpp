#include "gate/probes/read/mach_o.hpp"

#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/probes/read/elf.hpp"
#include "gate/sys/paths.hpp"

namespace weir::probes {
namespace {

// Far above what real files have.
constexpr std::uint64_t k_most_commands_size = std::uint64_t{1} << 20;
constexpr std::uint64_t k_most_signature = std::uint64_t{4} << 20;
constexpr std::size_t k_most_loaded = 1024;

std::uint64_t little(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) {
    value = value << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
  }
  return value;
}

std::uint64_t big(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value = value << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
  }
  return value;
}

// The key's value in a property list of entitlements is <true/>.
bool entitled(std::string_view list, std::string_view key) {
  const std::size_t at = list.find(fmt::format("<key>{}</key>", key));
  if (at == std::string_view::npos) return false;
  const std::string_view rest = list.substr(at + key.size() + 11);
  const std::size_t value = rest.find_first_not_of(" \t\r\n");
  return value != std::string_view::npos && rest.substr(value).starts_with("<true/>");
}

void read_signature(std::string_view signature, MachO& out) {
  constexpr std::uint64_t k_signature = 0xfade0cc0, k_directory = 0xfade0c02, k_list = 0xfade7171;
  constexpr std::uint64_t k_restrict = 0x800, k_hardened = 0x10000;
  if (signature.size() < 12 || big(signature, 0) != k_signature) return;
  const std::uint64_t count = std::min<std::uint64_t>(big(signature, 8), 64);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = big(signature, static_cast<std::size_t>(12 + 8 * i + 4));
    if (at >= signature.size()) continue;
    const std::string_view blob = signature.substr(static_cast<std::size_t>(at));
    if (big(blob, 0) == k_directory) {
      out.restricted = out.restricted || (big(blob, 12) & k_restrict) != 0;
      out.hardened = out.hardened || (big(blob, 12) & k_hardened) != 0;
    } else if (big(blob, 0) == k_list) {
      const std::string_view list = blob.substr(0, static_cast<std::size_t>(big(blob, 4)));
      out.allows_variables =
          entitled(list, "com.apple.security.cs.allow-dyld-environment-variables");
      out.allows_libraries = entitled(list, "com.apple.security.cs.disable-library-validation");
    }
  }
}

void read_library(std::string_view command, MachO& out) {
  const std::uint64_t at = little(command, 8, 4);
  if (at >= command.size() || out.libraries.size() == k_most_loaded) return;
  const std::string_view name = command.substr(static_cast<std::size_t>(at));
  out.libraries.push_back(text::printable(name.substr(0, name.find('\0'))));
}

// Where the file's 64-bit part for Apple's processors starts, else the first one's.
std::uint64_t start_of(std::string_view head) {
  constexpr std::uint64_t k_universal = 0xcafebabe, k_arm64 = 0x0100000c;
  if (big(head, 0) != k_universal) return 0;
  std::uint64_t start = big(head, 16);
  for (std::size_t i = 0; i < std::min<std::uint64_t>(big(head, 4), 8); ++i) {
    if (big(head, 8 + 20 * i) == k_arm64) start = big(head, 8 + 20 * i + 8);
  }
  return start;
}

}  // namespace

bool MachO::needs(std::string_view prefix) const {
  return std::any_of(libraries.begin(), libraries.end(), [&](const std::string& one) {
    return sys::file_name_of(one).starts_with(prefix);
  });
}

Result<MachO> read_mach_o(const ReadBytes& read) {
  constexpr std::uint64_t k_64_bits = 0xfeedfacf, k_header = 32;
  constexpr std::uint64_t k_segment = 0x19, k_dyld = 0xe, k_signed = 0x1d;
  constexpr std::uint64_t k_libraries[] = {0xc, 0x80000018, 0x8000001f, 0x20};
  WEIR_TRY(const std::string head, read(0, 256));
  const std::uint64_t start = start_of(head);
  WEIR_TRY(const std::string header, read(start, k_header));
  if (header.size() < k_header || little(header, 0, 4) != k_64_bits) {
    return fail(Code::data, "Mach-O: not a 64-bit program");
  }
  const std::uint64_t size = little(header, 20, 4);
  if (size > k_most_commands_size) return fail(Code::data, "Mach-O: absurdly many load commands");
  WEIR_TRY(const std::string all, read(start + k_header, size));
  if (all.size() != size) return fail(Code::data, "Mach-O: cut short in its load commands");
  MachO out;
  out.is_program = little(header, 12, 4) == 2;
  for (std::size_t at = 0; at + 8 <= all.size();) {
    const std::uint64_t kind = little(all, at, 4), length = little(all, at + 4, 4);
    if (length < 8 || length > all.size() - at) {
      return fail(Code::data, "Mach-O: a load command of {} bytes", length);
    }
    const std::string_view command =
        std::string_view(all).substr(at, static_cast<std::size_t>(length));
    at += static_cast<std::size_t>(length);
    if (kind == k_dyld) out.dynamic = true;
    if (kind == k_segment && command.substr(8).starts_with("__RESTRICT")) out.restricted = true;
    if (std::find(std::begin(k_libraries), std::end(k_libraries), kind) != std::end(k_libraries)) {
      read_library(command, out);
    }
    if (kind == k_signed) {
      const std::uint64_t bytes = std::min(little(command, 12, 4), k_most_signature);
      WEIR_TRY(const std::string signature, read(start + little(command, 8, 4), bytes));
      read_signature(signature, out);
    }
  }
  return out;
}

}  // namespace weir::probes

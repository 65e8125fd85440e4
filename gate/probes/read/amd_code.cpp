// Reads the kernels of AMD code objects, and the bundles around them.
#include "gate/probes/read/amd_code.hpp"

#ifdef WEIR_ZSTD
#include <zstd.h>
#endif
#ifdef WEIR_ZLIB
#include <zlib.h>
#endif

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "gate/base/hash.hpp"
#include "gate/base/msgpack.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/amd_target.h"
#include "gate/probes/read/amd_occupancy.hpp"
#include "gate/probes/read/sections.hpp"

namespace weir::probes {
namespace {

using profile::GpuKernel;

constexpr std::uint64_t k_machine = 224;  // EM_AMDGPU
constexpr std::string_view k_target_prefix = "amdgcn-amd-amdhsa-";
constexpr std::size_t k_max_target = 64;

// Returns "gfx90a:xnack-" for "amdgcn-amd-amdhsa--gfx90a:xnack-".
std::string target_of_triple(std::string_view triple) {
  triple = triple.substr(0, k_target_prefix.size() + 1 + k_max_target);
  const std::size_t prefix = triple.find(k_target_prefix);
  if (prefix == std::string_view::npos) return "";
  std::string_view target = triple.substr(prefix + k_target_prefix.size());
  if (target.starts_with('-')) target.remove_prefix(1);
  return text::printable(target);
}

// Returns the name of the GPU that an ELF header's flags hold as a number (EF_AMDGPU_MACH).
std::string target_of_flags(std::uint64_t flags) {
  static constexpr std::pair<std::uint64_t, std::string_view> k_machines[] = {
      {0x02c, "gfx900"},  {0x02d, "gfx902"},  {0x02e, "gfx904"},  {0x02f, "gfx906"},
      {0x030, "gfx908"},  {0x031, "gfx909"},  {0x032, "gfx90c"},  {0x033, "gfx1010"},
      {0x034, "gfx1011"}, {0x035, "gfx1012"}, {0x036, "gfx1030"}, {0x037, "gfx1031"},
      {0x038, "gfx1032"}, {0x039, "gfx1033"}, {0x03d, "gfx1035"}, {0x03e, "gfx1034"},
      {0x03f, "gfx90a"},  {0x040, "gfx940"},  {0x041, "gfx1100"}, {0x042, "gfx1013"},
      {0x043, "gfx1150"}, {0x044, "gfx1103"}, {0x045, "gfx1036"}, {0x046, "gfx1101"},
      {0x047, "gfx1102"}, {0x048, "gfx1200"}, {0x049, "gfx1250"}, {0x04a, "gfx1151"},
      {0x04b, "gfx941"},  {0x04c, "gfx942"},  {0x04e, "gfx1201"}, {0x04f, "gfx950"},
      {0x05a, "gfx1251"}};
  const std::uint64_t machine = flags & 0xff;
  for (const auto& [number, name] : k_machines) {
    if (number == machine) return std::string(name);
  }
  return fmt::format("machine-0x{:x}", machine);
}

// One kernel, as the metadata describes it.
struct KernelNote {
  std::string symbol;
  profile::KernelFigures figures;
  std::uint32_t wave_threads = 64;
};

// Collects the kernels of a code object's metadata: a map whose "amdhsa.kernels" is a list of maps.
class Metadata final : public MsgpackVisitor {
 public:
  std::vector<KernelNote> kernels;
  std::string target;

  void on_begin(std::size_t depth) override {
    if (depth == 1) is_in_kernels_ = key_ == "amdhsa.kernels";
    if (depth == 2) kernel_ = {};
  }
  void on_end(std::size_t depth) override {
    if (depth == 2 && is_in_kernels_ && !kernel_.symbol.empty()) {
      kernels.push_back(std::move(kernel_));
    }
    if (depth == 1) is_in_kernels_ = false;
  }
  void on_key(std::size_t depth, std::string_view key) override {
    if (depth == 1 || depth == 3) key_ = key;
  }
  void on_text(std::size_t depth, std::string_view text) override {
    if (depth == 1 && key_ == "amdhsa.target") target = target_of_triple(text);
    if (depth == 3 && is_in_kernels_ && key_ == ".symbol") kernel_.symbol = text;
  }
  void on_number(std::size_t depth, std::uint64_t number) override {
    if (depth != 3 || !is_in_kernels_) return;
    const auto value = static_cast<std::uint32_t>(std::min<std::uint64_t>(number, UINT32_MAX));
    if (key_ == ".wavefront_size") kernel_.wave_threads = value;
    for (const auto& [key, figure] : k_keys) {
      if (key_ == key) kernel_.figures.*figure = value;
    }
  }

 private:
  using Figures = profile::KernelFigures;
  static constexpr std::pair<std::string_view, Figures::Figure Figures::*> k_keys[] = {
      {".vgpr_count", &Figures::registers},
      {".agpr_count", &Figures::accumulation_registers},
      {".sgpr_count", &Figures::scalar_registers},
      {".vgpr_spill_count", &Figures::spilled_vgprs},
      {".sgpr_spill_count", &Figures::spilled_sgprs},
      {".private_segment_fixed_size", &Figures::scratch_bytes},
      {".group_segment_fixed_size", &Figures::shared_memory_bytes},
      {".max_flat_workgroup_size", &Figures::group_threads}};

  bool is_in_kernels_ = false;
  std::string key_;
  KernelNote kernel_;
};

// Reads the kernels' metadata from a section of notes. False if it has none.
Result<bool> read_notes(std::string_view section, Metadata& metadata) {
  constexpr std::uint64_t k_metadata = 32, k_old_metadata = 10;
  constexpr std::size_t k_max_depth = 16;
  const auto padded = [](std::uint64_t size) { return (size + 3) / 4 * 4; };
  LittleEndianReader at{section};
  while (!at.bad && !at.rest.empty()) {
    const std::uint64_t name_bytes = at.number(4), bytes = at.number(4), type = at.number(4);
    const std::string_view name = at.bytes(padded(name_bytes)).substr(0, name_bytes);
    const std::string_view content =
        at.bytes(std::min<std::uint64_t>(padded(bytes), at.rest.size()));
    if (at.bad || content.size() < bytes) return fail(Code::data, "AMD code: a note is cut short");
    if (type == k_old_metadata && name.starts_with("AMD")) {
      return fail(Code::data, "AMD code: code object version 2, which weir does not read");
    }
    if (type != k_metadata || !name.starts_with("AMDGPU")) continue;
    if (auto visited = visit_msgpack(content.substr(0, bytes), k_max_depth, metadata); !visited) {
      return fail(Code::data, "AMD code: metadata: {}", visited.error().message);
    }
    return true;
  }
  return false;
}

// The symbols of a code object, by name: their bytes in the file.
using Symbols = std::unordered_map<std::string_view, std::string_view>;

// Returns the bytes of each symbol by its name. `symbols` and `names` are an ELF file's symbol and
// string tables.
Symbols read_symbols(const std::vector<Section>& sections, std::string_view symbols,
                     std::string_view names, bool is_relocatable) {
  constexpr std::size_t k_symbol = 24;
  Symbols found_bytes;
  LittleEndianReader at{symbols};
  for (std::size_t i = symbols.size() / k_symbol; i > 0; --i) {
    const std::uint64_t name = at.number(4);
    at.bytes(2);
    const std::uint64_t section = at.number(2), address = at.number(8), bytes = at.number(8);
    if (name >= names.size() || section >= sections.size()) continue;
    const Section& home = sections[section];
    const std::uint64_t offset = address - (is_relocatable ? 0 : home.address);
    if (offset > home.bytes.size() || bytes > home.bytes.size() - offset) continue;
    found_bytes.emplace(LittleEndianReader{names.substr(name)}.text(),
                        home.bytes.substr(offset, bytes));
  }
  return found_bytes;
}

std::uint32_t word_at(std::string_view code, std::size_t at) {
  std::uint32_t word = 0;
  std::memcpy(&word, code.data() + at, sizeof word);
  return word;
}

// Returns the number of the instruction s_getpc_b64.
std::uint32_t getpc_number(std::string_view target) {
  if (target.starts_with("gfx11") || target.starts_with("gfx12")) return 71;
  return target.starts_with("gfx10") ? 31 : 28;
}

// Hashes code wherever it lies. What depends on its place are literals that are added to the
// program counter: s_getpc_b64 sN; s_add_u32 sN, sN, literal; s_addc_u32 sN+1, sN+1, literal. On
// gfx1250 it is s_get_pc_i64 sN; s_add_nc_u64 sN, sN, literal of 64 bits. They are taken for 0.
std::uint64_t digest_of(std::string_view code, std::string_view target) {
  constexpr std::uint32_t k_scalar_mask = 0xff80ff00, k_add_mask = 0xff80ffff;
  constexpr std::uint32_t k_add = 0x8000ff00, k_add_with_carry = 0x8200ff00,
                          k_wide_add = 0xa980fe00;
  constexpr std::size_t k_word = 4, k_window = 8 * k_word;
  const std::uint32_t getpc = 0xbe800000 | getpc_number(target) << 8;
  const bool adds_at_once = target.starts_with("gfx125");
  std::string masked;  // copied at the first literal
  const auto mask_literal = [&](std::size_t at, std::size_t words) {
    if (masked.empty()) masked = code;
    masked.replace(at, words * k_word, words * k_word, '\0');
  };
  for (std::size_t at = 0; at + k_word <= code.size(); at += k_word) {
    const std::uint32_t word = word_at(code, at);
    if ((word & k_scalar_mask) != getpc) continue;
    const std::uint32_t low = word >> 16 & 0x7f;
    std::uint32_t wanted = k_add | low;
    const std::size_t end = std::min(code.size(), at + k_window);
    for (std::size_t add = at + k_word; add + 2 * k_word <= end; add += k_word) {
      const std::uint32_t instruction = word_at(code, add) & k_add_mask;
      if (adds_at_once && instruction == (k_wide_add | low) && add + 3 * k_word <= code.size()) {
        mask_literal(add + k_word, 2);
        break;
      }
      if (instruction != wanted) continue;
      add += k_word;
      mask_literal(add, 1);
      if (wanted == (k_add_with_carry | (low + 1))) break;
      wanted = k_add_with_carry | (low + 1);
    }
  }
  return hash_number(masked.empty() ? code : std::string_view(masked));
}

// Reads a kernel's descriptor: true if its groups run on two compute units.
bool has_processor_pair(std::string_view descriptor) {
  constexpr std::size_t k_resources = 48;
  constexpr std::uint32_t k_pair = 1U << 29;
  if (descriptor.size() < k_resources + sizeof(std::uint32_t)) return false;
  return (word_at(descriptor, k_resources) & k_pair) != 0;
}

}  // namespace

bool is_amd_object(std::string_view elf) {
  return elf.starts_with(k_elf_64_bits) && elf.size() >= 64 &&
         LittleEndianReader{elf.substr(18)}.number(2) == k_machine;
}

Result<std::vector<GpuKernel>> read_amd_object(std::string_view elf) {
  constexpr std::uint64_t k_note = 7, k_relocatable = 1;
  constexpr std::string_view k_descriptor = ".kd";
  if (!is_amd_object(elf)) return fail(Code::data, "AMD code: not a code object");
  std::vector<Section> sections;
  Metadata metadata;
  bool has_metadata = false;
  each_section(
      elf, [&](std::string_view, const Section& section, bool) { sections.push_back(section); });
  for (const Section& section : sections) {
    if (section.type != k_note || has_metadata) continue;
    WEIR_TRY_SET(has_metadata, read_notes(section.bytes, metadata));
  }
  if (!has_metadata) return fail(Code::data, "AMD code: a code object without metadata");
  const Sections by_name = read_sections(elf);
  const bool is_relocatable = LittleEndianReader{elf.substr(16)}.number(2) == k_relocatable;
  const bool is_linked = by_name.contains(".dynsym");
  const auto bytes_of_section = [&](std::string_view name) {
    const auto section = by_name.find(name);
    return section == by_name.end() ? std::string_view() : section->second.bytes;
  };
  const Symbols symbols =
      read_symbols(sections, bytes_of_section(is_linked ? ".dynsym" : ".symtab"),
                   bytes_of_section(is_linked ? ".dynstr" : ".strtab"), is_relocatable);
  const auto bytes_of_symbol = [&](std::string_view name) {
    const auto symbol = symbols.find(name);
    return symbol == symbols.end() ? std::string_view() : symbol->second;
  };
  const std::string target = metadata.target.empty()
                                 ? target_of_flags(LittleEndianReader{elf.substr(48)}.number(4))
                                 : metadata.target;
  std::vector<GpuKernel> kernels;
  std::uint64_t code_bytes = 0;
  for (KernelNote& note : metadata.kernels) {
    std::string_view name = note.symbol;
    if (!name.ends_with(k_descriptor)) continue;
    name.remove_suffix(k_descriptor.size());
    const std::string_view code = bytes_of_symbol(name);
    code_bytes += code.size();
    if (code_bytes > elf.size()) return fail(Code::data, "AMD code: kernels lie in one another");
    GpuKernel kernel{target, std::string(name), digest_of(code, target), note.figures};
    kernel.figures.code_bytes = static_cast<std::uint32_t>(code.size());
    kernel.figures.occupancy =
        amd_occupancy(target, note.figures,
                      {note.wave_threads, has_processor_pair(bytes_of_symbol(note.symbol))});
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

// Reads the list of entries at the beginning of a bundle (code for several GPUs in one file).
// Fails if one lies outside of the `available` bytes, or if all are larger together.
Result<std::vector<BundleEntry>> read_bundle_entries(std::string_view head,
                                                     std::uint64_t available) {
  constexpr std::uint64_t k_max_entries = 256;
  LittleEndianReader at{head};
  at.bytes(k_bundle_magic.size());
  const std::uint64_t count = at.number(8);
  if (count > k_max_entries) return fail(Code::data, "AMD code: a bundle of {} entries", count);
  std::vector<BundleEntry> entries;
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    BundleEntry entry;
    entry.offset = at.number(8);
    entry.bytes = at.number(8);
    entry.target = target_of_triple(at.bytes(at.number(8)));
    sum += std::min(entry.bytes, available);
    if (at.bad || entry.offset > available || entry.bytes > available - entry.offset) {
      return fail(Code::data, "AMD code: a bundle's entry lies outside of it");
    }
    if (sum > available)
      return fail(Code::data, "AMD code: entries of a bundle lie in one another");
    entries.push_back(std::move(entry));
  }
  return entries;
}

bool runs_on(std::string_view code, std::string_view gpu) {
  return weir_probe::runs_on(code.data(), code.size(), gpu.data(), gpu.size());
}

std::uint64_t packed_bundle_bytes(std::string_view head) {
  LittleEndianReader at{head};
  at.bytes(k_packed_bundle_magic.size());
  const std::uint64_t version = at.number(2);
  at.bytes(2);
  return version < 2 ? UINT64_MAX : at.number(version == 2 ? 4 : 8);
}

namespace {

// The plain bytes of a compressed piece, and how many bytes it took. No bytes: it is broken.
struct Unpacked {
  std::string bytes;
  std::uint64_t packed_bytes = 0;
};

#ifdef WEIR_ZSTD
Unpacked unpack_zstd(std::string_view packed, std::uint64_t plain_bytes) {
  const std::size_t frame = ZSTD_findFrameCompressedSize(packed.data(), packed.size());
  // A header may promise more than its frame can hold.
  if (ZSTD_isError(frame) != 0 ||
      ZSTD_getFrameContentSize(packed.data(), packed.size()) != plain_bytes) {
    return {};
  }
  Unpacked result{std::string(plain_bytes, '\0'), frame};
  const std::size_t size = ZSTD_decompress(result.bytes.data(), plain_bytes, packed.data(), frame);
  return ZSTD_isError(size) != 0 || size != plain_bytes ? Unpacked{} : result;
}
#endif

#ifdef WEIR_ZLIB
Unpacked unpack_zlib(std::string_view packed, std::uint64_t plain_bytes) {
  constexpr std::uint64_t k_max_ratio = 1032;  // zlib's technical notes
  if (plain_bytes / k_max_ratio > packed.size()) return {};
  Unpacked result{std::string(plain_bytes, '\0'), 0};
  uLongf size = plain_bytes;
  uLong used = packed.size();
  const int status = uncompress2(reinterpret_cast<Bytef*>(result.bytes.data()), &size,
                                 reinterpret_cast<const Bytef*>(packed.data()), &used);
  result.packed_bytes = used;
  return status != Z_OK || size != plain_bytes ? Unpacked{} : result;
}
#endif

}  // namespace

// Unpacks a compressed bundle of code for several GPUs. Its header has a version, the method,
// sizes and a hash.
Result<PackedBundle> unpack_bundle(std::string_view bytes) {
  constexpr std::uint64_t k_max_bytes = std::uint64_t{512} << 20;
  constexpr std::uint64_t k_zlib = 0, k_zstd = 1;
  LittleEndianReader at{bytes};
  at.bytes(k_packed_bundle_magic.size());
  const std::uint64_t version = at.number(2), method = at.number(2);
  if (version < 1 || version > 3) {
    return fail(Code::data, "AMD code: a compressed bundle of version {}, weir reads 1 to 3",
                version);
  }
  const std::size_t width = version == 3 ? 8 : 4;
  const std::uint64_t file_bytes = version == 1 ? bytes.size() : at.number(width);
  const std::uint64_t plain_bytes = at.number(width);
  at.bytes(8);  // a hash
  const std::uint64_t header = bytes.size() - at.rest.size();
  if (at.bad || file_bytes < header || file_bytes > bytes.size() || plain_bytes > k_max_bytes) {
    return fail(Code::data, "AMD code: the header of a compressed bundle is broken");
  }
  PackedBundle bundle{file_bytes, std::nullopt};
  const std::string_view packed = bytes.substr(header, file_bytes - header);
  std::optional<Unpacked> unpacked;
#ifdef WEIR_ZSTD
  if (method == k_zstd) unpacked = unpack_zstd(packed, plain_bytes);
#endif
#ifdef WEIR_ZLIB
  if (method == k_zlib) unpacked = unpack_zlib(packed, plain_bytes);
#endif
  if (!unpacked) return bundle;
  if (unpacked->bytes.empty()) return fail(Code::data, "AMD code: a compressed bundle is broken");
  if (version == 1) bundle.packed_bytes = header + unpacked->packed_bytes;
  bundle.bytes = std::move(unpacked->bytes);
  return bundle;
}

}  // namespace weir::probes

// Finds GPU code in files, and reads it piece by piece: memory holds one piece at a time.
#include "gate/probes/read/gpu_code.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "gate/base/text.hpp"
#include "gate/probes/read/amd_code.hpp"
#include "gate/probes/read/cuda_images.hpp"
#include "gate/probes/read/cuda_occupancy.hpp"
#include "gate/probes/read/kernel_names.hpp"
#include "gate/probes/read/sections.hpp"

namespace weir::probes {
namespace {

using profile::GpuBuild;
using profile::GpuKernel;

constexpr std::uint64_t k_cuda_machine = 190;  // EM_CUDA
constexpr std::uint64_t k_head = std::uint64_t{64} << 10;

// A part of a file.
struct Range {
  std::uint64_t begin = 0, end = 0;
  [[nodiscard]] std::uint64_t size() const { return end - begin; }
};

constexpr std::uint64_t k_elf_header = 64;
constexpr std::string_view k_archive_magic = "!<arch>\n";

struct FileSection {
  std::string name;
  Range range;
  std::uint64_t address = 0;  // in the loaded file
};

// Lists those sections of a 64-bit ELF file that have bytes in it, by the fields of Elf64_Ehdr and
// Elf64_Shdr. None if the table of sections is broken.
Result<std::vector<FileSection>> list_sections(const PartialFile& file) {
  constexpr std::uint64_t k_section = 64, k_without_bytes = 8, k_max_names = 1 << 20;
  WEIR_TRY(const std::string head, file.read_at(0, k_elf_header));
  std::vector<FileSection> sections;
  if (!head.starts_with(k_elf_64_bits)) return sections;
  LittleEndianReader at{head};
  at.bytes(40);
  const std::uint64_t table_at = at.number(8);
  at.bytes(12);
  const std::uint64_t count = at.number(2), names_index = at.number(2);
  WEIR_TRY(const std::string table, file.read_at(table_at, count * k_section));
  const auto range = [&](std::uint64_t index) {
    LittleEndianReader section{
        std::string_view(table).substr(std::min(index * k_section, table.size()))};
    section.bytes(24);
    const std::uint64_t begin = std::min(section.number(8), file.bytes);
    return Range{begin, begin + std::min(section.number(8), file.bytes - begin)};
  };
  const Range names_range = range(names_index);
  WEIR_TRY(const std::string names,
           file.read_at(names_range.begin, std::min(names_range.size(), k_max_names)));
  for (std::uint64_t index = 0; index < table.size() / k_section; ++index) {
    LittleEndianReader section{std::string_view(table).substr(index * k_section)};
    const std::uint64_t name_at = section.number(4), type = section.number(4);
    section.bytes(8);
    const std::uint64_t address = section.number(8);
    if (name_at >= names.size() || type == k_without_bytes) continue;
    const std::string_view name =
        LittleEndianReader{std::string_view(names).substr(name_at)}.text();
    sections.push_back({std::string(name), range(index), address});
  }
  return sections;
}

// Reads one file's code into a build.
class Reader {
 public:
  Reader(const PartialFile& file, std::span<const std::string> targets, GpuBuild& build)
      : file_(file), targets_(targets), build_(build) {}

  Result<void> read() {
    WEIR_TRY(const std::string magic, file_.read_at(0, k_archive_magic.size()));
    return magic == k_archive_magic ? read_archive() : read_file();
  }

 private:
  Result<void> read_file() {
    const std::size_t kernels = build_.kernels.size(), unread = build_.unread;
    WEIR_TRY(const std::string head, file_.read_at(0, k_elf_header));
    const Range whole{0, file_.bytes};
    if (is_amd_object(head) || is_cubin(head)) {
      WEIR_TRY(const std::string elf, file_.read_at(0, file_.bytes));
      WEIR_CHECK(read_object(elf));
    } else if (head.starts_with(k_elf_64_bits)) {
      WEIR_CHECK(read_host_file());
    } else if (head.starts_with(k_bundle_magic) || head.starts_with(k_packed_bundle_magic)) {
      WEIR_CHECK(read_bundles(whole));
    } else if (LittleEndianReader{head}.number(4) == k_cuda_container_magic) {
      WEIR_CHECK(read_containers(whole));
    }
    const bool has_code = build_.kernels.size() != kernels || build_.unread != unread;
    build_.files += has_code ? 1 : 0;
    return {};
  }

  // Reads the members of a static library (`ar`) as files of their own.
  Result<void> read_archive() {
    constexpr std::uint64_t k_member_header = 60, k_size_at = 48, k_size_digits = 10;
    for (std::uint64_t at = k_archive_magic.size(); at < file_.bytes;) {
      WEIR_TRY(const std::string head, file_.read_at(at, k_member_header));
      const auto bytes =
          head.ends_with("`\n") && head.size() == k_member_header
              ? text::to_int(text::trim(std::string_view(head).substr(k_size_at, k_size_digits)))
              : std::nullopt;
      const std::uint64_t begin = at + k_member_header;
      if (!bytes || *bytes < 0 || static_cast<std::uint64_t>(*bytes) > file_.bytes - begin) {
        return fail(Code::data, "static library: a broken member at byte {}", at);
      }
      const auto size = static_cast<std::uint64_t>(*bytes);
      const PartialFile member{size, [&](std::uint64_t offset, std::uint64_t wanted) {
                                 const std::uint64_t left = size - std::min(offset, size);
                                 return file_.read_at(begin + offset, std::min(wanted, left));
                               }};
      WEIR_CHECK(Reader(member, targets_, build_).read_file());
      at = begin + size + size % 2;
    }
    return {};
  }

  static bool is_cubin(std::string_view head) {
    return head.starts_with(k_elf_64_bits) && head.size() == k_elf_header &&
           LittleEndianReader{head.substr(18)}.number(2) == k_cuda_machine;
  }
  [[nodiscard]] bool wants(std::string_view target) const {
    return profile::is_wanted_target(target, targets_);
  }

  // Returns true for an entry of a bundle with code for a wanted GPU.
  bool is_wanted(const BundleEntry& entry) {
    if (entry.bytes == 0 || entry.target.empty()) return false;
    build_.bundled_targets.insert(entry.target);
    return wants(entry.target);
  }

  // Reads a code object or a cubin.
  Result<void> read_object(std::string_view elf) {
    if (!is_amd_object(elf)) {
      // The low byte of the flags is the architecture; newer toolkits moved it to the second.
      const std::uint64_t flags = LittleEndianReader{elf.substr(48)}.number(4);
      const std::uint64_t old_arch = flags & 0xff, new_arch = flags >> 8 & 0xff;
      add_cubin(elf, static_cast<int>(old_arch >= 50 ? old_arch : new_arch));
      return {};
    }
    WEIR_TRY(std::vector<GpuKernel> kernels, read_amd_object(elf));
    for (GpuKernel& kernel : kernels) {
      if (!wants(kernel.target)) continue;
      kernel.container = container_;
      build_.kernels.push_back(std::move(kernel));
    }
    return {};
  }

  // Returns a symbol that is the same in each build: nvcc's names of static kernels hold a hash.
  static std::string stable_symbol(std::string symbol) {
    const bool has_hash = symbol.find("_INTERNAL_") != std::string::npos;
    return has_hash ? readable_kernel_name(symbol) : std::move(symbol);
  }

  void add_cubin(std::string_view elf, int arch) {
    const std::string target = fmt::format("sm_{}", arch);
    if (!wants(target)) return;
    for (const auto& [symbol, costs] : read_cubin(elf, arch)) {
      GpuKernel kernel{target, stable_symbol(std::string(symbol)), costs.code, {}};
      kernel.figures.registers = costs.registers;
      kernel.figures.scratch_bytes = costs.local_bytes;
      kernel.figures.shared_memory_bytes = costs.shared_bytes;
      kernel.figures.code_bytes = costs.code_bytes;
      if (costs.max_threads != 0) kernel.figures.group_threads = costs.max_threads;
      kernel.figures.occupancy = cuda_occupancy(arch, costs.registers);
      build_.kernels.push_back(std::move(kernel));
    }
  }

  // Reads the sections with GPU code of a program or library.
  Result<void> read_host_file() {
    WEIR_TRY(const std::vector<FileSection> sections, list_sections(file_));
    for (const FileSection& section : sections) {
      if (section.name == ".hip_fatbin") {
        moved_by_ = section.address - section.range.begin;
        WEIR_CHECK(read_bundles(section.range));
      }
      const bool is_cuda = section.name == ".nv_fatbin" || section.name == "__nv_relfatbin";
      if (is_cuda) WEIR_CHECK(read_containers(section.range));
    }
    return {};
  }

  // Skips the zeros between pieces of code. Returns the place of the next byte that is none.
  Result<std::uint64_t> skip_zeros(Range range) const {
    while (range.begin < range.end) {
      WEIR_TRY(const std::string piece, file_.read_at(range.begin, std::min(range.size(), k_head)));
      if (piece.empty()) break;
      const std::size_t at = piece.find_first_not_of('\0');
      if (at != std::string::npos) return range.begin + at;
      range.begin += piece.size();
    }
    return range.end;
  }

  // Reads AMD's bundles, one after another.
  Result<void> read_bundles(Range range) {
    while (true) {
      WEIR_TRY_SET(range.begin, skip_zeros(range));
      if (range.begin == range.end) return {};
      WEIR_TRY(const std::string head, file_.read_at(range.begin, std::min(range.size(), k_head)));
      container_ = moved_by_ ? range.begin + *moved_by_ : 0;
      if (head.starts_with(k_bundle_magic)) {
        WEIR_TRY(const std::uint64_t bytes, read_bundle(head, range));
        range.begin += bytes;
      } else if (head.starts_with(k_packed_bundle_magic)) {
        WEIR_TRY(const std::uint64_t bytes, read_packed_bundle(head, range));
        range.begin += bytes;
      } else {
        return fail(Code::data, "AMD code: neither a bundle nor zeros at byte {}", range.begin);
      }
    }
  }

  // Reads the wanted code objects of a bundle. Returns its size.
  Result<std::uint64_t> read_bundle(std::string_view head, const Range& range) {
    WEIR_TRY(const std::vector<BundleEntry> entries, read_bundle_entries(head, range.size()));
    std::uint64_t end = k_bundle_magic.size();
    for (const BundleEntry& entry : entries) {
      end = std::max(end, entry.offset + entry.bytes);
      if (!is_wanted(entry)) continue;
      WEIR_TRY(const std::string elf, file_.read_at(range.begin + entry.offset, entry.bytes));
      WEIR_CHECK(read_object(elf));
    }
    return end;
  }

  Result<std::uint64_t> read_packed_bundle(std::string_view head, const Range& range) {
    const std::uint64_t bytes = std::min(packed_bundle_bytes(head), range.size());
    WEIR_TRY(const std::string packed, file_.read_at(range.begin, bytes));
    WEIR_TRY(const PackedBundle bundle, unpack_bundle(packed));
    if (!bundle.bytes) {
      ++build_.unread;
      return bundle.packed_bytes;
    }
    unpacked_bytes_ += bundle.bytes->size();
    if (unpacked_bytes_ > k_max_unpacked) {
      return fail(Code::data, "AMD code: more than {} GiB of unpacked bundles",
                  k_max_unpacked >> 30);
    }
    const std::string& plain = *bundle.bytes;
    WEIR_TRY(const auto entries, read_bundle_entries(plain, plain.size()));
    for (const BundleEntry& entry : entries) {
      if (!is_wanted(entry)) continue;
      WEIR_CHECK(read_object(std::string_view(plain).substr(entry.offset, entry.bytes)));
    }
    return bundle.packed_bytes;
  }

  // Reads NVIDIA's containers, one after another.
  Result<void> read_containers(Range range) {
    while (true) {
      WEIR_TRY_SET(range.begin, skip_zeros(range));
      if (range.size() < k_cuda_container_header) return {};
      WEIR_TRY(const std::string head, file_.read_at(range.begin, k_cuda_container_header));
      LittleEndianReader at{head};
      const std::uint64_t magic = at.number(4);
      at.bytes(2);
      const std::uint64_t header = at.number(2), bytes = at.number(8);
      if (magic != k_cuda_container_magic || header < k_cuda_container_header ||
          header > range.size() || bytes > range.size() - header) {
        return fail(Code::data, "CUDA code: a broken container at byte {}", range.begin);
      }
      WEIR_TRY(const std::string container, file_.read_at(range.begin + header, bytes));
      WEIR_TRY(const std::vector<CudaImage> images, read_cuda_images(container));
      for (const CudaImage& image : images) read_image(image);
      range.begin += header + bytes;
    }
  }

  void read_image(const CudaImage& image) {
    if (!image.machine_code || !wants(fmt::format("sm_{}", image.arch))) return;
    const auto cubin = unpack(image);
    if (cubin) {
      add_cubin(*cubin, image.arch);
    } else {
      ++build_.unread;
    }
  }

  static constexpr std::uint64_t k_max_unpacked = std::uint64_t{8} << 30;

  const PartialFile& file_;
  std::span<const std::string> targets_;
  GpuBuild& build_;
  std::uint64_t unpacked_bytes_ = 0;
  // The distance from a place in the file to its address when loaded; absent: it is not loaded.
  std::optional<std::uint64_t> moved_by_;
  std::uint64_t container_ = 0;  // address of the bundle that is being read
};

}  // namespace

Result<bool> has_section(const PartialFile& file, std::string_view name) {
  WEIR_TRY(const std::vector<FileSection> sections, list_sections(file));
  return std::ranges::any_of(sections, [&](const FileSection& section) {
    return section.name == name && section.range.size() > 0;
  });
}

Result<void> read_gpu_code(const PartialFile& file, std::span<const std::string> targets,
                           GpuBuild& build) {
  return Reader(file, targets, build).read();
}

}  // namespace weir::probes

// Reads the machine code of CUDA kernels from a program's files, for a table of their costs.
#include "gate/probes/read/cuda_kernels.hpp"

#ifdef WEIR_ZSTD
#include <zstd.h>
#endif

#include <cstdlib>
#include <map>
#include <optional>
#include <vector>

#include "gate/base/find.hpp"
#include "gate/probes/hash.h"
#include "gate/probes/read/sections.hpp"
#include "gate/probes/twin/cuda/blob.h"

namespace weir::probes {
namespace {

constexpr std::string_view k_code_section = ".nv_fatbin";
constexpr std::uint64_t k_container_magic = 0xba55ed50;
constexpr std::uint64_t k_largest_image = std::uint64_t{256} << 20;

struct Image {
  bool machine_code = false;  // else PTX
  int arch = 0;               // 10 * major + minor
  std::uint64_t flags = 0, unpacked_bytes = 0;
  std::string_view bytes;  // packed if `flags` says so
};
enum Packed : std::uint64_t { k_lz4 = 0x2000, k_zstd = 0x8000 };

// Takes the next image of a container; nothing where it is cut short. An image for no GPU has arch
// 0.
std::optional<Image> read_image(Cursor& from) {
  enum : std::uint64_t { k_ptx = 1, k_machine_code = 2 };
  constexpr std::size_t k_min_header_bytes = 64;
  const std::string_view begin = from.rest;
  const std::uint64_t kind = from.number(2);
  from.bytes(2);
  const std::uint64_t header = from.number(4), bytes = from.number(8), packed = from.number(4);
  from.bytes(8);
  Image image;
  const std::uint64_t arch = from.number(4);
  from.bytes(8);
  image.flags = from.number(8);
  from.bytes(8);
  image.unpacked_bytes = from.number(8);
  if (from.bad || header < k_min_header_bytes || header > begin.size() ||
      bytes > begin.size() - header) {
    return std::nullopt;
  }
  if ((kind == k_ptx || kind == k_machine_code) && arch < 10000) {
    image.arch = static_cast<int>(arch);
    image.machine_code = kind == k_machine_code;
  }
  image.bytes = begin.substr(header, packed == 0 || packed > bytes ? bytes : packed);
  from.rest = begin.substr(header + bytes);
  return image;
}

// Returns the image's code, unpacked; nothing for LZ4, or where weir was built without zstd.
std::optional<std::string> unpack(const Image& image) {
  if ((image.flags & (k_lz4 | k_zstd)) == 0) return std::string(image.bytes);
#ifdef WEIR_ZSTD
  if ((image.flags & k_zstd) != 0 && image.unpacked_bytes <= k_largest_image) {
    std::string out(image.unpacked_bytes, '\0');
    const std::size_t size =
        ZSTD_decompress(out.data(), out.size(), image.bytes.data(), image.bytes.size());
    if (ZSTD_isError(size) == 0 && size == out.size()) return out;
  }
#endif
  return std::nullopt;
}

// An image with machine code, and true if its numbers are only a guess for the GPU.
struct Choice {
  const Image* image = nullptr;
  bool guessed = false;
};
// Chooses the machine code that the driver would load (gate/probes/twin/cuda/kernels.cpp). If the
// driver would compile PTX instead, the nearest machine code is a guess. No image if there is none.
Choice choose_image(const std::vector<Image>& images, int major, int minor) {
  const int arch = 10 * major + minor;
  const auto runs = [&](const Image& image) {
    return image.arch / 10 == major && image.arch <= arch;
  };
  const auto distance = [&](const Image& image) { return std::abs(image.arch - arch); };
  Choice best;
  for (const Image& image : images) {
    if (!image.machine_code || image.arch == 0) continue;
    const bool guessed = !runs(image);
    const bool better = best.image == nullptr || (!guessed && best.guessed) ||
                        (guessed == best.guessed && distance(image) < distance(*best.image));
    if (better) best = {&image, guessed};
  }
  return best;
}

using Kernels = std::map<std::uint64_t, weir_cuda_kernel>;

// Calls `visit` with each attribute of kernels that has a sized value. A ".nv.info" section lists
// attributes as a form, a number, and either a value of two bytes or the size of the value.
template <class Visit>
void each_attribute(std::string_view section, Visit visit) {
  enum : std::uint64_t { k_sized = 4 };
  Cursor at{section};
  while (!at.bad && !at.rest.empty()) {
    const std::uint64_t form = at.number(1), attribute = at.number(1), value = at.number(2);
    if (form == k_sized) visit(attribute, Cursor{at.bytes(value)});
  }
}

// Adds the kernels of a cubin, a 64-bit ELF file, to `out`. ".nv.info" has registers and stack by
// symbol; sections whose names end in the kernel's name have the rest.
void read_cubin(std::string_view elf, int arch, bool guessed, Kernels& out) {
  // The most registers of a thread, and threads of a block, on any GPU.
  constexpr std::uint64_t k_max_registers = 255, k_max_threads_per_block = 1024;
  enum : std::uint64_t { k_max_threads = 0x05, k_frame = 0x11, k_registers = 0x2f };
  constexpr std::size_t k_symbol = 24;
  constexpr std::string_view k_code = ".text.";
  const Sections sections = read_sections(elf);
  const auto find_section = [&](const std::string& name) {
    return look_up(sections, name, Section{});
  };
  const std::string_view symbols = find_section(".symtab").bytes;
  const std::string_view names = find_section(".strtab").bytes;
  std::map<std::string_view, weir_cuda_kernel> kernels;
  for (const auto& [name, section] : sections) {
    if (!name.starts_with(k_code)) continue;
    const std::string_view code = section.bytes;
    weir_cuda_kernel& kernel = kernels[name.substr(k_code.size())];
    kernel.code = weir_probe::hash_bytes(weir_probe::k_hash_seed, code.data(), code.size());
    kernel.code_bytes = static_cast<std::uint32_t>(code.size());
  }
  each_attribute(find_section(".nv.info").bytes, [&](std::uint64_t attribute, Cursor value) {
    const std::uint64_t symbol = value.number(4), number = value.number(4);
    if (value.bad || symbol >= symbols.size() / k_symbol) return;
    const std::uint64_t name = Cursor{symbols.substr(symbol * k_symbol)}.number(4);
    if (name >= names.size()) return;
    const auto kernel = kernels.find(Cursor{names.substr(name)}.text());
    if (kernel == kernels.end()) return;
    if (attribute == k_registers) {
      kernel->second.registers = static_cast<std::uint32_t>(std::min(number, k_max_registers));
    }
    if (attribute == k_frame) kernel->second.local_bytes = static_cast<std::uint32_t>(number);
  });
  for (auto& [name, kernel] : kernels) {
    const std::string kernel_name(name);
    // From compute capability 9.0 the section starts with the system's share of each block.
    const std::uint64_t shared =
        std::min<std::uint64_t>(find_section(".nv.shared." + kernel_name).size, 1 << 20);
    const std::uint64_t reserved = arch >= 90 ? std::min<std::uint64_t>(shared, 1024) : 0;
    kernel.shared_bytes = static_cast<std::uint32_t>(shared - reserved);
    each_attribute(find_section(".nv.info." + kernel_name).bytes,
                   [&, &facts = kernel](std::uint64_t attribute, Cursor value) {
                     if (attribute != k_max_threads) return;
                     const std::uint64_t threads =
                         value.number(4) * value.number(4) * value.number(4);
                     if (!value.bad) {
                       facts.max_threads =
                           static_cast<std::uint32_t>(std::min(threads, k_max_threads_per_block));
                     }
                   });
    kernel.name = weir_probe::hash_bytes(weir_probe::k_hash_seed, name.data(), name.size());
    kernel.flags = guessed ? WEIR_CUDA_KERNEL_NOT_COMPILED : 0;
    out.try_emplace(kernel.name, kernel);
  }
}

// Reads all containers of a file's section of code. Images that cannot be unpacked count in
// `out.unread`.
Result<void> read_code(std::string_view section, int major, int minor, Kernels& kernels,
                       CudaKernels& out) {
  constexpr std::size_t k_header = 16, k_padding = 8;
  Cursor at{section};
  while (at.rest.size() >= k_header) {
    const std::string_view begin = at.rest;
    const std::uint64_t magic = at.number(4);
    at.bytes(2);
    const std::uint64_t header = at.number(2), size = at.number(8);
    if (magic != k_container_magic) {
      at.rest = begin.substr(k_padding);  // between containers
      continue;
    }
    if (header < k_header || header > begin.size() || size > begin.size() - header) {
      return fail(Code::data, "CUDA code: a container ends behind its file");
    }
    Cursor container{begin.substr(header, size)};
    std::vector<Image> images;
    while (!container.rest.empty()) {
      const auto image = read_image(container);
      if (!image) return fail(Code::data, "CUDA code: an image ends behind its container");
      images.push_back(*image);
    }
    if (const Choice choice = choose_image(images, major, minor); choice.image != nullptr) {
      if (const auto cubin = unpack(*choice.image)) {
        read_cubin(*cubin, choice.image->arch, choice.guessed, kernels);
      } else {
        ++out.unread;
      }
    }
    at.rest = begin.substr(header + size);
  }
  return {};
}

std::string_view code_section(std::string_view elf) {
  return look_up(read_sections(elf), k_code_section, Section{}).bytes;
}

}  // namespace

bool holds_cuda_code(std::string_view elf) { return !code_section(elf).empty(); }

// Reads the kernels of all files into one table, sorted by name, for a GPU of this compute
// capability.
Result<CudaKernels> read_cuda_kernels(std::span<const std::string_view> elves, int major,
                                      int minor) {
  CudaKernels out;
  Kernels kernels;
  for (const std::string_view elf : elves) {
    WEIR_CHECK(read_code(code_section(elf), major, minor, kernels, out));
  }
  out.kernels = kernels.size();
  const weir_cuda_kernels head{WEIR_CUDA_KERNELS_MAGIC, static_cast<std::uint32_t>(kernels.size()),
                               sizeof(weir_cuda_kernel)};
  out.table.append(reinterpret_cast<const char*>(&head), sizeof head);
  for (const auto& [name, kernel] : kernels) {
    out.guessed += kernel.flags & WEIR_CUDA_KERNEL_NOT_COMPILED;
    out.table.append(reinterpret_cast<const char*>(&kernel), sizeof kernel);
  }
  return out;
}

}  // namespace weir::probes

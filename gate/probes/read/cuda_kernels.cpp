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
  std::uint64_t flags = 0, whole_bytes = 0;
  std::string_view bytes;  // packed, where a flag says so
};
enum Packed : std::uint64_t { k_lz4 = 0x2000, k_zstd = 0x8000 };

// One image of a container; what is no image of a GPU has arch 0.
std::optional<Image> take_image(Cursor& from) {
  enum : std::uint64_t { k_ptx = 1, k_machine_code = 2 };
  constexpr std::size_t k_least = 64;
  const std::string_view begin = from.left;
  const std::uint64_t kind = from.number(2);
  from.bytes(2);
  const std::uint64_t header = from.number(4), bytes = from.number(8), packed = from.number(4);
  from.bytes(8);
  Image image;
  const std::uint64_t arch = from.number(4);
  from.bytes(8);
  image.flags = from.number(8);
  from.bytes(8);
  image.whole_bytes = from.number(8);
  if (from.bad || header < k_least || header > begin.size() || bytes > begin.size() - header) {
    return std::nullopt;
  }
  if ((kind == k_ptx || kind == k_machine_code) && arch < 10000) {
    image.arch = static_cast<int>(arch);
    image.machine_code = kind == k_machine_code;
  }
  image.bytes = begin.substr(header, packed == 0 || packed > bytes ? bytes : packed);
  from.left = begin.substr(header + bytes);
  return image;
}

std::optional<std::string> unpacked(const Image& image) {
  if ((image.flags & (k_lz4 | k_zstd)) == 0) return std::string(image.bytes);
#ifdef WEIR_ZSTD
  if ((image.flags & k_zstd) != 0 && image.whole_bytes <= k_largest_image) {
    std::string out(image.whole_bytes, '\0');
    const std::size_t got =
        ZSTD_decompress(out.data(), out.size(), image.bytes.data(), image.bytes.size());
    if (ZSTD_isError(got) == 0 && got == out.size()) return out;
  }
#endif
  return std::nullopt;
}

// The image whose numbers are taken, and whether they are a guess: what the driver would take
// (gate/probes/twin/cuda/kernels.cpp), or, where that is PTX, the nearest machine code.
struct Choice {
  const Image* image = nullptr;
  bool guessed = false;
};
Choice choose(const std::vector<Image>& images, int major, int minor) {
  const int here = 10 * major + minor;
  const auto fits = [&](const Image& one) { return one.arch / 10 == major && one.arch <= here; };
  const auto far = [&](const Image& one) { return std::abs(one.arch - here); };
  Choice best;
  for (const Image& one : images) {
    if (!one.machine_code || one.arch == 0) continue;
    const bool exact = fits(one);
    const bool better = best.image == nullptr || (exact && best.guessed) ||
                        (exact != best.guessed && far(one) < far(*best.image));
    if (better) best = {&one, !exact};
  }
  return best;
}

using Kernels = std::map<std::uint64_t, weir_cuda_kernel>;

// Attributes of kernels, as ".nv.info" sections list them: a form, an attribute, and either a
// value of two bytes or the size of what follows.
template <class Found>
void each_attribute(std::string_view section, Found found) {
  enum : std::uint64_t { k_sized = 4 };
  Cursor at{section};
  while (!at.bad && !at.left.empty()) {
    const std::uint64_t form = at.number(1), attribute = at.number(1), value = at.number(2);
    if (form == k_sized) found(attribute, Cursor{at.bytes(value)});
  }
}

// cubin: 64-bit ELF. Registers and stack stand in ".nv.info" by symbol, the rest in sections that
// have the kernel's name behind theirs.
void read_cubin(std::string_view elf, int arch, bool guessed, Kernels& out) {
  // What every GPU allows at most, of a thread and of a block.
  constexpr std::uint64_t k_most_registers = 255, k_most_threads = 1024;
  enum : std::uint64_t { k_max_threads = 0x05, k_frame = 0x11, k_registers = 0x2f };
  constexpr std::size_t k_symbol = 24;
  constexpr std::string_view k_code = ".text.";
  const Sections sections = sections_of(elf);
  const auto section_of = [&](const std::string& name) {
    return look_up(sections, name, Section{});
  };
  const std::string_view symbols = section_of(".symtab").bytes;
  const std::string_view names = section_of(".strtab").bytes;
  std::map<std::string_view, weir_cuda_kernel> kernels;
  for (const auto& [name, section] : sections) {
    if (!name.starts_with(k_code)) continue;
    const std::string_view code = section.bytes;
    weir_cuda_kernel& kernel = kernels[name.substr(k_code.size())];
    kernel.code = weir_probe::hash_bytes(weir_probe::k_hash_seed, code.data(), code.size());
    kernel.code_bytes = static_cast<std::uint32_t>(code.size());
  }
  each_attribute(section_of(".nv.info").bytes, [&](std::uint64_t attribute, Cursor value) {
    const std::uint64_t symbol = value.number(4), number = value.number(4);
    if (value.bad || symbol >= symbols.size() / k_symbol) return;
    const std::uint64_t name = Cursor{symbols.substr(symbol * k_symbol)}.number(4);
    if (name >= names.size()) return;
    const auto kernel = kernels.find(Cursor{names.substr(name)}.text());
    if (kernel == kernels.end()) return;
    if (attribute == k_registers) {
      kernel->second.registers = static_cast<std::uint32_t>(std::min(number, k_most_registers));
    }
    if (attribute == k_frame) kernel->second.local_bytes = static_cast<std::uint32_t>(number);
  });
  for (auto& [name, kernel] : kernels) {
    const std::string plain(name);
    // From compute capability 9.0 the section begins with what the system takes of each block.
    const std::uint64_t shared =
        std::min<std::uint64_t>(section_of(".nv.shared." + plain).size, 1 << 20);
    const std::uint64_t reserved = arch >= 90 ? std::min<std::uint64_t>(shared, 1024) : 0;
    kernel.shared_bytes = static_cast<std::uint32_t>(shared - reserved);
    each_attribute(
        section_of(".nv.info." + plain).bytes,
        [&, &facts = kernel](std::uint64_t attribute, Cursor value) {
          if (attribute != k_max_threads) return;
          const std::uint64_t threads = value.number(4) * value.number(4) * value.number(4);
          if (!value.bad) {
            facts.max_threads = static_cast<std::uint32_t>(std::min(threads, k_most_threads));
          }
        });
    kernel.name = weir_probe::hash_bytes(weir_probe::k_hash_seed, name.data(), name.size());
    kernel.flags = guessed ? WEIR_CUDA_KERNEL_GUESSED : 0;
    out.try_emplace(kernel.name, kernel);
  }
}

// All containers of one file.
Result<void> read_code(std::string_view section, int major, int minor, Kernels& kernels,
                       CudaKernels& out) {
  constexpr std::size_t k_header = 16, k_padding = 8;
  Cursor at{section};
  while (at.left.size() >= k_header) {
    const std::string_view begin = at.left;
    const std::uint64_t magic = at.number(4);
    at.bytes(2);
    const std::uint64_t header = at.number(2), size = at.number(8);
    if (magic != k_container_magic) {
      at.left = begin.substr(k_padding);  // between containers
      continue;
    }
    if (header < k_header || header > begin.size() || size > begin.size() - header) {
      return fail(Code::data, "CUDA code: a container ends behind its file");
    }
    Cursor inside{begin.substr(header, size)};
    std::vector<Image> images;
    while (!inside.left.empty()) {
      const auto image = take_image(inside);
      if (!image) return fail(Code::data, "CUDA code: an image ends behind its container");
      images.push_back(*image);
    }
    if (const Choice choice = choose(images, major, minor); choice.image != nullptr) {
      const auto cubin = unpacked(*choice.image);
      if (cubin) read_cubin(*cubin, choice.image->arch, choice.guessed, kernels);
      if (!cubin) ++out.unread;
    }
    at.left = begin.substr(header + size);
  }
  return {};
}

std::string_view code_of(std::string_view elf) {
  return look_up(sections_of(elf), k_code_section, Section{}).bytes;
}

}  // namespace

bool holds_cuda_code(std::string_view elf) { return !code_of(elf).empty(); }

Result<CudaKernels> read_cuda_kernels(std::span<const std::string_view> elves, int major,
                                      int minor) {
  CudaKernels out;
  Kernels kernels;
  for (const std::string_view elf : elves) {
    WEIR_CHECK(read_code(code_of(elf), major, minor, kernels, out));
  }
  out.kernels = kernels.size();
  const weir_cuda_kernels head{WEIR_CUDA_KERNELS_MAGIC, static_cast<std::uint32_t>(kernels.size()),
                               sizeof(weir_cuda_kernel)};
  out.table.append(reinterpret_cast<const char*>(&head), sizeof head);
  for (const auto& [name, kernel] : kernels) {
    out.guessed += kernel.flags & WEIR_CUDA_KERNEL_GUESSED;
    out.table.append(reinterpret_cast<const char*>(&kernel), sizeof kernel);
  }
  return out;
}

}  // namespace weir::probes

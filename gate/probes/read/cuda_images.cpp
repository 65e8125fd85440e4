// Unpacks the images of CUDA code, and reads the kernels of cubins.
#include "gate/probes/read/cuda_images.hpp"

#ifdef WEIR_ZSTD
#include <zstd.h>
#endif

#include <algorithm>

#include "gate/base/find.hpp"
#include "gate/probes/hash.h"
#include "gate/probes/read/sections.hpp"

namespace weir::probes {
namespace {

constexpr std::uint64_t k_largest_image = std::uint64_t{256} << 20;

enum Packed : std::uint64_t { k_lz4 = 0x2000, k_zstd = 0x8000 };

// Takes the next image (code for one GPU) of a container; nothing if it is cut short. One that is
// neither PTX nor machine code has arch 0. The header is not documented; fields that are skipped
// are not needed.
std::optional<CudaImage> read_image(LittleEndianReader& from) {
  enum : std::uint64_t { k_ptx = 1, k_machine_code = 2 };
  constexpr std::size_t k_min_header_bytes = 64;
  const std::string_view begin = from.rest;
  const std::uint64_t kind = from.number(2);
  from.bytes(2);
  const std::uint64_t header = from.number(4), bytes = from.number(8), packed = from.number(4);
  from.bytes(8);
  CudaImage image;
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

// Calls `visit` with each attribute of kernels that has a sized value. A ".nv.info" section lists
// attributes as a form, a number, and either a value of two bytes or the size of the value.
template <class Visit>
void each_attribute(std::string_view section, Visit visit) {
  enum : std::uint64_t { k_sized = 4 };
  LittleEndianReader at{section};
  while (!at.bad && !at.rest.empty()) {
    const std::uint64_t form = at.number(1), attribute = at.number(1), value = at.number(2);
    if (form == k_sized) visit(attribute, LittleEndianReader{at.bytes(value)});
  }
}

// Reads a length of LZ4: 15 goes on with bytes, which are added up to the first that is not 255.
std::uint64_t read_lz4_length(std::uint64_t length, LittleEndianReader& from) {
  constexpr std::uint64_t k_goes_on = 15, k_full = 255;
  std::uint64_t next = length == k_goes_on ? k_full : 0;
  while (next == k_full && !from.bad) {
    next = from.number(1);
    length += next;
  }
  return length;
}

// Unpacks a block of LZ4 (lz4_Block_format.md): literals and copies of what came before, in turns.
// Nothing if it does not unpack to `size` bytes.
std::optional<std::string> unpack_lz4(std::string_view packed, std::uint64_t size) {
  constexpr std::uint64_t k_min_copy = 4;
  std::string out;
  LittleEndianReader from{packed};
  while (!from.rest.empty()) {
    const std::uint64_t token = from.number(1);
    out += from.bytes(read_lz4_length(token >> 4, from));
    if (from.bad || out.size() > size) return std::nullopt;
    if (from.rest.empty()) break;
    const std::uint64_t distance = from.number(2);
    std::uint64_t length = read_lz4_length(token & 0xf, from) + k_min_copy;
    if (from.bad || distance == 0 || distance > out.size() || length > size - out.size()) {
      return std::nullopt;
    }
    // A copy may reach into itself: it repeats the last `distance` bytes.
    while (length > 0) {
      const std::uint64_t part = std::min(length, distance);
      out.append(out, out.size() - distance, part);
      length -= part;
    }
  }
  if (out.size() != size) return std::nullopt;
  return out;
}

}  // namespace

Result<std::vector<CudaImage>> read_cuda_images(std::string_view container) {
  LittleEndianReader at{container};
  std::vector<CudaImage> images;
  while (!at.rest.empty()) {
    const auto image = read_image(at);
    if (!image) return fail(Code::data, "CUDA code: an image ends behind its container");
    images.push_back(*image);
  }
  return images;
}

// Returns an image's code, unpacked from LZ4 or zstd. Nothing if it is broken, or if this build
// has no zstd.
std::optional<std::string> unpack(const CudaImage& image) {
  if ((image.flags & (k_lz4 | k_zstd)) == 0) return std::string(image.bytes);
  if (image.unpacked_bytes > k_largest_image) return std::nullopt;
  if ((image.flags & k_lz4) != 0) return unpack_lz4(image.bytes, image.unpacked_bytes);
#ifdef WEIR_ZSTD
  std::string out(image.unpacked_bytes, '\0');
  const std::size_t size =
      ZSTD_decompress(out.data(), out.size(), image.bytes.data(), image.bytes.size());
  if (ZSTD_isError(size) == 0 && size == out.size()) return out;
#endif
  return std::nullopt;
}

// Section ".nv.info" has registers and stack by symbol; sections whose names end in the kernel's
// name have the rest.
std::map<std::string_view, weir_runtime_kernel> read_cubin(std::string_view elf, int arch) {
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
  std::map<std::string_view, weir_runtime_kernel> kernels;
  for (const auto& [name, section] : sections) {
    if (!name.starts_with(k_code)) continue;
    const std::string_view code = section.bytes;
    weir_runtime_kernel& kernel = kernels[name.substr(k_code.size())];
    kernel.code = weir_probe::hash_bytes(weir_probe::k_hash_seed, code.data(), code.size());
    kernel.code_bytes = static_cast<std::uint32_t>(code.size());
  }
  each_attribute(
      find_section(".nv.info").bytes, [&](std::uint64_t attribute, LittleEndianReader value) {
        const std::uint64_t symbol = value.number(4), number = value.number(4);
        if (value.bad || symbol >= symbols.size() / k_symbol) return;
        const std::uint64_t name = LittleEndianReader{symbols.substr(symbol * k_symbol)}.number(4);
        if (name >= names.size()) return;
        const auto kernel = kernels.find(LittleEndianReader{names.substr(name)}.text());
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
                   [&, &facts = kernel](std::uint64_t attribute, LittleEndianReader value) {
                     if (attribute != k_max_threads) return;
                     const std::uint64_t threads =
                         value.number(4) * value.number(4) * value.number(4);
                     if (!value.bad) {
                       facts.max_threads =
                           static_cast<std::uint32_t>(std::min(threads, k_max_threads_per_block));
                     }
                   });
  }
  return kernels;
}

}  // namespace weir::probes

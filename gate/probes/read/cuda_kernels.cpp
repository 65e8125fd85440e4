// Reads the machine code of CUDA kernels from a program's files, for a table of their costs.
#include <cstdlib>
#include <map>
#include <optional>
#include <vector>

#include "gate/base/find.hpp"
#include "gate/probes/hash.h"
#include "gate/probes/read/cuda_images.hpp"
#include "gate/probes/read/runtime_kernels.hpp"
#include "gate/probes/read/sections.hpp"
#include "gate/probes/twin/runtime/blob.h"

namespace weir::probes {
namespace {

// An image with machine code, and true if its numbers are only a guess for the GPU.
struct Choice {
  const CudaImage* image = nullptr;
  bool guessed = false;
};
// Chooses the machine code that the driver would load (gate/probes/twin/cuda/images.cpp) for
// compute capability major.minor. If it would compile PTX instead, the nearest machine code is a
// guess. No image if there is none.
Choice choose_image(const std::vector<CudaImage>& images, int major, int minor) {
  const int arch = 10 * major + minor;
  const auto runs = [&](const CudaImage& image) {
    return image.arch / 10 == major && image.arch <= arch;
  };
  const auto distance = [&](const CudaImage& image) { return std::abs(image.arch - arch); };
  Choice best;
  for (const CudaImage& image : images) {
    if (!image.machine_code || image.arch == 0) continue;
    const bool guessed = !runs(image);
    const bool better = best.image == nullptr || (!guessed && best.guessed) ||
                        (guessed == best.guessed && distance(image) < distance(*best.image));
    if (better) best = {&image, guessed};
  }
  return best;
}

// Adds a cubin's kernels under the hashes of their names. Of several the first stays.
void add_kernels(const std::map<std::string_view, weir_runtime_kernel>& cubin, bool guessed,
                 KernelEntries& out) {
  for (const auto& [name, costs] : cubin) {
    weir_runtime_kernel kernel = costs;
    kernel.key = weir_probe::kernel_key(name.data(), name.size(), 0);
    kernel.flags = guessed ? WEIR_RUNTIME_KERNEL_NOT_COMPILED : 0;
    out.try_emplace(kernel.key, kernel);
  }
}

// Adds the kernels of all containers in a file's section of code. Images that cannot be unpacked
// are counted in `out.unread`.
Result<void> read_code(std::string_view section, int major, int minor, KernelEntries& kernels,
                       RuntimeKernels& out) {
  constexpr std::size_t k_header = k_cuda_container_header, k_padding = 8;
  LittleEndianReader at{section};
  while (at.rest.size() >= k_header) {
    const std::string_view begin = at.rest;
    const std::uint64_t magic = at.number(4);
    at.bytes(2);
    const std::uint64_t header = at.number(2), size = at.number(8);
    if (magic != k_cuda_container_magic) {
      at.rest = begin.substr(k_padding);  // between containers
      continue;
    }
    if (header < k_header || header > begin.size() || size > begin.size() - header) {
      return fail(Code::data, "CUDA code: a container ends behind its file");
    }
    WEIR_TRY(const std::vector<CudaImage> images, read_cuda_images(begin.substr(header, size)));
    if (const Choice choice = choose_image(images, major, minor); choice.image != nullptr) {
      if (const auto cubin = unpack(*choice.image)) {
        add_kernels(read_cubin(*cubin, choice.image->arch), choice.guessed, kernels);
      } else {
        ++out.unread;
      }
    }
    at.rest = begin.substr(header + size);
  }
  return {};
}

std::string_view code_section(std::string_view elf) {
  return look_up(read_sections(elf), k_cuda_code_section, Section{}).bytes;
}

}  // namespace

// Reads the kernels of all files into one table, sorted by name, for a GPU of compute capability
// major.minor.
Result<RuntimeKernels> read_cuda_kernels(std::span<const std::string_view> elves, int major,
                                         int minor) {
  RuntimeKernels out;
  KernelEntries kernels;
  for (const std::string_view elf : elves) {
    WEIR_CHECK(read_code(code_section(elf), major, minor, kernels, out));
  }
  out.kernels = kernels.size();
  for (const auto& [name, kernel] : kernels) {
    out.guessed += kernel.flags & WEIR_RUNTIME_KERNEL_NOT_COMPILED;
  }
  out.table = kernel_table(kernels);
  return out;
}

Result<RuntimeKernels> read_cuda_kernels(std::span<const PartialFile> files,
                                         const CodeTarget& target) {
  std::vector<std::string> texts;
  for (const PartialFile& file : files) {
    WEIR_TRY(texts.emplace_back(), file.read_at(0, file.bytes));
  }
  const std::vector<std::string_view> elves(texts.begin(), texts.end());
  return read_cuda_kernels(elves, target.major, target.minor);
}

}  // namespace weir::probes

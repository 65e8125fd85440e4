// Reads AMD's GPU code: what each kernel costs stands in its metadata, beside its machine code.
//
// Formats: LLVM's "User Guide for AMDGPU Backend" (code objects of version 3 to 6: ELF, a note with
// MessagePack, symbols NAME.kd), and clang's ClangOffloadBundler (bundles, also compressed). Bytes
// are hostile. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/profile/gpu_build.hpp"

namespace weir::probes {

inline constexpr std::string_view k_bundle_magic = "__CLANG_OFFLOAD_BUNDLE__";
inline constexpr std::string_view k_packed_bundle_magic = "CCOB";

// One GPU's code in a bundle.
struct BundleEntry {
  std::string target;                   // "gfx90a:xnack-"; "" for the host's
  std::uint64_t offset = 0, bytes = 0;  // from the bundle's begin
};
// Returns the entries that the beginning of a bundle lists. `available`: bytes from its begin to
// the end of all. Fails with Code::data where an entry lies outside, or entries lie in one another.
[[nodiscard]] Result<std::vector<BundleEntry>> read_bundle_entries(std::string_view head,
                                                                   std::uint64_t available);

// Returns true if code for `code` runs on a GPU whose runtime calls it `gpu`: "gfx90a" and
// "gfx90a:xnack-" run on "gfx90a:sramecc+:xnack-", "gfx90a:xnack+" does not. A feature that one of
// them leaves out fits both ways.
[[nodiscard]] bool runs_on(std::string_view code, std::string_view gpu);

// Returns the size of the compressed bundle that `head` begins, with its header; UINT64_MAX where
// the header does not state it.
[[nodiscard]] std::uint64_t packed_bundle_bytes(std::string_view head);

struct PackedBundle {
  std::uint64_t packed_bytes = 0;    // in the file, with its header
  std::optional<std::string> bytes;  // unpacked; absent: by a method that this weir cannot read
};
// Unpacks the compressed bundle that `bytes` begin with.
[[nodiscard]] Result<PackedBundle> unpack_bundle(std::string_view bytes);

// Returns true for an AMD code object.
[[nodiscard]] bool is_amd_object(std::string_view elf);
// Returns the kernels of a code object, by symbol. Fails with Code::data where it contradicts
// itself, or is older than version 3.
[[nodiscard]] Result<std::vector<profile::GpuKernel>> read_amd_object(std::string_view elf);

}  // namespace weir::probes

// Opens the Vulkan loader at run time and finds its functions.
#include "tools/engine/vulkan_loader.hpp"

#include <dlfcn.h>

namespace weir::engine {

#define WEIR_DEFINE(name) PFN_##name name = nullptr;
WEIR_VULKAN_FUNCTIONS(WEIR_DEFINE)

Result<void> open_vulkan_loader() {
  void* const library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);  // stays open
  if (library == nullptr) return fail(Code::io, "vulkan: no loader (libvulkan.so.1) is installed");
#define WEIR_LOOK_UP(name)                                    \
  name = reinterpret_cast<PFN_##name>(dlsym(library, #name)); \
  if (name == nullptr) return fail(Code::io, "vulkan: libvulkan.so.1 has no " #name);
  WEIR_VULKAN_FUNCTIONS(WEIR_LOOK_UP)
  return {};
}

}  // namespace weir::engine

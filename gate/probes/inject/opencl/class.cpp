// Describes an OpenCL device and hashes its features into a device class.
#include "gate/probes/inject/opencl/class.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/writer/file.h"

namespace weir_probe::opencl {
namespace {

constexpr uint64_t k_recipe = 1;

// Reads properties of a device.
class DeviceInfo {
 public:
  DeviceInfo(const ClassFunctions& functions, cl_device_id device)
      : functions_(functions), device_(device) {}

  // 0 where the device does not have the property.
  template <class T>
  [[nodiscard]] T value(cl_device_info what) const {
    T out{};
    if (functions_.device_info(device_, what, sizeof out, &out, nullptr) != CL_SUCCESS) return T{};
    return out;
  }
  // A text for the caller to free; null where the device does not have the property.
  [[nodiscard]] char* text(cl_device_info what) const {
    size_t size = 0;
    if (functions_.device_info(device_, what, 0, nullptr, &size) != CL_SUCCESS) return nullptr;
    if (size > k_max_text) return nullptr;
    auto* out = static_cast<char*>(calloc(1, size + 1));
    if (out == nullptr) return nullptr;
    if (functions_.device_info(device_, what, size, out, nullptr) == CL_SUCCESS) return out;
    free(out);
    return nullptr;
  }
  // Copies as much of a text as fits. False, and "", where the device does not have the property.
  template <size_t size>
  bool copy_text_to(cl_device_info what, char (&to)[size]) const {
    char* value = text(what);
    copy_text(to, size, value);
    const bool has_value = value != nullptr;
    free(value);
    return has_value;
  }

 private:
  static constexpr size_t k_max_text = 1 << 16;
  const ClassFunctions& functions_;
  cl_device_id device_;
};

// Hashes a list separated by blanks. Hashes of the entries are added up, as their order is the
// driver's.
uint64_t hash_words(const char* words) {
  uint64_t sum = 0;
  while (*words != 0) {
    const size_t length = strcspn(words, " ");
    if (length > 0) sum += hash_bytes(k_hash_seed, words, length);
    words += length + (words[length] == ' ' ? 1 : 0);
  }
  return sum;
}

// Returns a hash of the device properties that an engine's choice of kernels may depend on. Cores
// and cache count only for GPUs.
uint64_t hash_features(const DeviceInfo& info, cl_device_type type) {
  constexpr cl_device_info k_texts[] = {CL_DEVICE_VERSION, CL_DEVICE_OPENCL_C_VERSION,
                                        CL_DEVICE_EXTENSIONS, CL_DEVICE_PROFILE};
  constexpr cl_device_info k_sizes[] = {CL_DEVICE_MAX_WORK_GROUP_SIZE, CL_DEVICE_IMAGE2D_MAX_WIDTH};
  constexpr cl_device_info k_numbers[] = {
      CL_DEVICE_ADDRESS_BITS,
      CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS,
      CL_DEVICE_IMAGE_SUPPORT,
      CL_DEVICE_MEM_BASE_ADDR_ALIGN,
      CL_DEVICE_LOCAL_MEM_TYPE,
      CL_DEVICE_HOST_UNIFIED_MEMORY,
      CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT,
      CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT,
      CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF,
      CL_DEVICE_MAX_NUM_SUB_GROUPS,
  };
  constexpr cl_device_info k_64_bit_numbers[] = {
      CL_DEVICE_SINGLE_FP_CONFIG, CL_DEVICE_DOUBLE_FP_CONFIG, CL_DEVICE_HALF_FP_CONFIG,
      CL_DEVICE_SVM_CAPABILITIES, CL_DEVICE_QUEUE_ON_HOST_PROPERTIES};
  Hash hash(k_recipe);
  hash.value(type);
  for (const cl_device_info property : k_texts) {
    char* text = info.text(property);
    hash.value(text == nullptr ? 0 : hash_words(text));
    free(text);
  }
  for (const cl_device_info property : k_sizes) hash.value(info.value<size_t>(property));
  for (const cl_device_info property : k_numbers) hash.value(info.value<cl_uint>(property));
  for (const cl_device_info property : k_64_bit_numbers) hash.value(info.value<cl_ulong>(property));
  struct {
    size_t size[3];
  } groups = info.value<decltype(groups)>(CL_DEVICE_MAX_WORK_ITEM_SIZES);
  for (const size_t size : groups.size) hash.value(size);

  if ((type & CL_DEVICE_TYPE_CPU) == 0) {
    hash.value(info.value<cl_uint>(CL_DEVICE_MAX_COMPUTE_UNITS));
    hash.value(info.value<cl_ulong>(CL_DEVICE_LOCAL_MEM_SIZE));
  }
  return hash.get();
}

const char* type_name(const DeviceInfo& info, cl_device_type type) {
  if ((type & CL_DEVICE_TYPE_CPU) != 0) return "cpu";
  if ((type & CL_DEVICE_TYPE_GPU) == 0) return "other";
  return info.value<cl_bool>(CL_DEVICE_HOST_UNIFIED_MEMORY) != CL_FALSE ? "integrated" : "discrete";
}

}  // namespace

// Fills in a device's names and numbers, and a class made from them and its features. False if the
// device does not give its name.
bool describe_device(const ClassFunctions& functions, cl_device_id device, weir_probe_device* out) {
  memset(out, 0, sizeof *out);
  copy_text(out->api, sizeof out->api, "opencl");
  copy_text(out->type, sizeof out->type, "other");
  if (functions.device_info == nullptr || functions.platform_info == nullptr) return false;
  const DeviceInfo info(functions, device);
  if (!info.copy_text_to(CL_DEVICE_NAME, out->name)) return false;
  const auto type = info.value<cl_device_type>(CL_DEVICE_TYPE);
  char version[128];
  char platform_name[120] = "";
  info.copy_text_to(CL_DRIVER_VERSION, version);
  const auto platform = info.value<cl_platform_id>(CL_DEVICE_PLATFORM);
  if (functions.platform_info(platform, CL_PLATFORM_NAME, sizeof platform_name - 1, platform_name,
                              nullptr) != CL_SUCCESS) {
    platform_name[0] = 0;
  }
  snprintf(out->driver, sizeof out->driver, "%s: %s", platform_name, version);
  copy_text(out->type, sizeof out->type, type_name(info, type));
  out->vendor = info.value<cl_uint>(CL_DEVICE_VENDOR_ID);
  out->device = folded(hash_text(out->name));
  out->driver_id = folded(hash_text(platform_name));
  out->driver_version = folded(hash_text(version));
  out->feature_hash = hash_features(info, type);
  snprintf(out->device_class, sizeof out->device_class, "opencl-%04x-%08x-%08x-%08x-%016llx",
           out->vendor, out->device, out->driver_id, out->driver_version,
           static_cast<unsigned long long>(out->feature_hash));
  return true;
}

}  // namespace weir_probe::opencl

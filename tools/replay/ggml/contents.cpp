#include "tools/replay/ggml/contents.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace weir::replay {
namespace {

using profile::ReplayNode;
using profile::ReplayTensor;

template <class... Args>
auto left_out(fmt::format_string<Args...> format, Args&&... args) {
  return fail(Code::unavailable, format, std::forward<Args>(args)...);
}

// xorshift: the same data in every run.
class Noise {
 public:
  float next() {  // -1 to 1
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<float>(static_cast<double>(state_ >> 11) * 0x1p-52 - 1);
  }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15ULL;
};

bool is_whole(const std::string& type) {
  return type == "i8" || type == "i16" || type == "i32" || type == "i64";
}

// What says which positions an op looks at.
bool is_mask(const ReplayNode& node, std::int64_t slot) {
  return (node.op == "SOFT_MAX" && slot == 2) || (node.op == "FLASH_ATTN_EXT" && slot == 4);
}

// Random weights of a type, quantized by ggml itself, as many as are put one behind the other.
Result<std::vector<char>> pattern_of(const Engine& ggml, int type, const std::string& name) {
  constexpr std::int64_t k_elements = 1 << 14;  // whole blocks of every type
  const std::int64_t block = ggml.blck_size(type);
  if (block < 1 || k_elements % block != 0) return left_out("weir cannot fill tensors of {}", name);
  Noise noise;
  std::vector<float> values(k_elements);
  for (float& value : values) value = noise.next();
  const std::vector<float> importance(k_elements, 1.0F);  // some types insist on being told
  std::vector<char> bytes(static_cast<std::size_t>(k_elements / block) * ggml.type_size(type));
  const std::size_t made =
      ggml.quantize_chunk(type, values.data(), bytes.data(), 0, 1, k_elements, importance.data());
  if (made != bytes.size()) return left_out("weir cannot fill tensors of {}", name);
  return bytes;
}

// Values that an op takes as places: of rows, experts or tokens. How many there are to point at.
std::int64_t places_of(const ReplayNode& node, std::int64_t slot) {
  const auto size = [&](std::size_t tensor_slot, std::size_t dimension) -> std::int64_t {
    for (const ReplayTensor& tensor : node.tensors) {
      if (tensor.slot == static_cast<std::int64_t>(tensor_slot)) return tensor.ne[dimension];
    }
    return 1;
  };
  if (node.op == "GET_ROWS" && slot == 2) return size(1, 1);
  if (node.op == "SET_ROWS" && slot == 2) return size(0, 1);
  if (node.op == "MUL_MAT_ID" && slot == 3) return size(1, 2);
  if (node.op == "ROPE" && slot == 2) return 4096;
  return 1;
}

void fill_indices(const ReplayNode& node, const ReplayTensor& tensor, char* at) {
  const std::int64_t places = std::max<std::int64_t>(places_of(node, tensor.slot), 1);
  const bool apart = node.op == "GET_ROWS";  // look-ups jump; what is written comes in order
  std::int64_t number = 0;
  for (std::int64_t l = 0; l < tensor.ne[3]; ++l) {
    for (std::int64_t k = 0; k < tensor.ne[2]; ++k) {
      for (std::int64_t j = 0; j < tensor.ne[1]; ++j) {
        for (std::int64_t i = 0; i < tensor.ne[0]; ++i, ++number) {
          char* to = at + i * tensor.nb[0] + j * tensor.nb[1] + k * tensor.nb[2] + l * tensor.nb[3];
          const std::int64_t wide = (apart ? number % places * 7919 : number) % places;
          const auto narrow = static_cast<std::int32_t>(wide);
          if (tensor.type == "i64") std::memcpy(to, &wide, sizeof wide);
          if (tensor.type == "i32") std::memcpy(to, &narrow, sizeof narrow);
        }
      }
    }
  }
}

// As many first places of each row are open as there were on average; the others hold minus
// infinity.
void fill_mask(const ReplayTensor& tensor, double mask_open, char* at) {
  constexpr std::uint32_t k_closed_f32 = 0xFF800000U;
  constexpr std::uint16_t k_closed_f16 = 0xFC00U;
  const auto open =
      static_cast<std::int64_t>(std::ceil(mask_open * static_cast<double>(tensor.ne[0])));
  for (std::int64_t l = 0; l < tensor.ne[3]; ++l) {
    for (std::int64_t k = 0; k < tensor.ne[2]; ++k) {
      for (std::int64_t j = 0; j < tensor.ne[1]; ++j) {
        char* row = at + j * tensor.nb[1] + k * tensor.nb[2] + l * tensor.nb[3];
        for (std::int64_t i = std::max<std::int64_t>(open, 1); i < tensor.ne[0]; ++i) {
          char* to = row + i * tensor.nb[0];
          if (tensor.type == "f32") std::memcpy(to, &k_closed_f32, sizeof k_closed_f32);
          if (tensor.type == "f16") std::memcpy(to, &k_closed_f16, sizeof k_closed_f16);
        }
      }
    }
  }
}

}  // namespace

std::string places_problem(const ReplayNode& node, const ReplayTensor& tensor) {
  if (tensor.slot == 0 || (!is_whole(tensor.type) && !is_mask(node, tensor.slot))) return "";
  for (const ReplayTensor& other : node.tensors) {
    if (other.slot != tensor.slot && other.root == tensor.root) {
      return "another tensor looks at the bytes of its places";
    }
  }
  return "";
}

Result<void> fill(const Engine& ggml, const ReplayNode& node, std::size_t root, double mask_open,
                  const RootMemory& memory) {
  // The first source that looks at it says what it holds; what is written only stays 0.
  for (const ReplayTensor& tensor : node.tensors) {
    if (tensor.slot == 0 || static_cast<std::size_t>(tensor.root) != root) continue;
    char* begin = memory.at + (tensor.offset - memory.begin);
    if (is_whole(tensor.type)) {
      fill_indices(node, tensor, begin);
    } else if (is_mask(node, tensor.slot)) {
      fill_mask(tensor, mask_open, begin);
    } else {
      WEIR_TRY(const auto pattern,
               pattern_of(ggml, static_cast<int>(tensor.type_number), tensor.type));
      const auto room = static_cast<std::size_t>(memory.end - tensor.offset);
      for (std::size_t done = 0; done < room; done += pattern.size()) {
        std::memcpy(begin + done, pattern.data(), std::min(pattern.size(), room - done));
      }
    }
    break;
  }
  return {};
}

}  // namespace weir::replay

// A llama model out of a GGUF file: its sizes, and where each matrix lies in the mapped file.
//
// The file is hostile: header limits are those of model::read_gguf; here every tensor that is
// used must be there, have the shape that the sizes ask for, and lie within the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/model/tensor_type.hpp"

#include "tools/engine/mapped_file.hpp"

namespace weir::engine {

// A matrix of `rows` rows of `columns` values each; a vector is one row.
struct Tensor {
  std::string name;  // "blk.0.attn_q.weight"
  model::TensorType type = model::TensorType::f32;
  std::uint32_t columns = 0, rows = 0;
  std::uint64_t row_bytes = 0;
  std::span<const std::byte> bytes;  // rows * row_bytes, in the model's file

  [[nodiscard]] std::span<const std::byte> row(std::uint64_t index) const {
    return bytes.subspan(index * row_bytes, row_bytes);
  }
};

struct Sizes {
  std::uint32_t layers = 0;
  std::uint32_t embedding = 0;
  std::uint32_t feed_forward = 0;
  std::uint32_t heads = 0;     // a multiple of kv_heads
  std::uint32_t kv_heads = 0;  // each serves heads / kv_heads heads
  std::uint32_t head = 0;      // values of one head, even
  std::uint32_t vocabulary = 0;
  std::uint32_t context = 0;  // positions: as trained, at most those that the engine has room for
  float epsilon = 0;          // added by RMS norms

  [[nodiscard]] std::uint32_t queries() const { return heads * head; }
  [[nodiscard]] std::uint32_t keys() const { return kv_heads * head; }  // and values
};

struct Layer {
  Tensor attention_norm, query, key, value, output;
  Tensor ffn_norm, gate, up, down;
};

struct Model {
  MappedFile file;
  std::string description;  // "llama 3410176 F32"
  Sizes sizes;
  std::uint32_t first_token = 0;  // begins each text
  Tensor embedding, output_norm, output;
  std::vector<Layer> layers;
  // Angle of pair i at position 1, in radians (sizes.head / 2 of them): base^(-2i / head), with the
  // model's own scaling. RoFormer, Su et al. 2021, section 3.2.2.
  std::vector<float> frequencies;
};

// Room for at most `context` positions. Code::io or Code::data; Code::unavailable for a model that
// is sound and beyond this engine (missing.hpp).
[[nodiscard]] Result<Model> load_model(const std::string& path, std::uint32_t context);

// Returns true if unpack_row() reads the type.
[[nodiscard]] bool can_unpack(model::TensorType type);
// Writes a row as floats. REQUIRES: can_unpack(tensor.type), and room for tensor.columns values.
void unpack_row(const Tensor& tensor, std::uint64_t row, std::span<float> values);

}  // namespace weir::engine

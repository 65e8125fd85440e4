#include "gate/model/gguf_write.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/model/gguf_encoding.hpp"
#include "gate/model/tensor_type.hpp"

namespace weir::model {
namespace {

Result<std::uint64_t> bytes_of(const GgufTensor& tensor) {
  const TensorTypeInfo* info = find_tensor_type(tensor.type);
  if (info == nullptr) {
    return fail(Code::data, "tensor {}: type {} is not known to weir", text::printable(tensor.name),
                tensor.type);
  }
  return tensor_bytes(*info, tensor.dims).map_error([&](Error error) {
    return with_context("tensor " + text::printable(tensor.name), std::move(error));
  });
}

void encode_value(std::string& out, const GgufValue& value) {
  encode(out, static_cast<std::uint32_t>(value.type()));
  if (value.is_array()) {
    encode(out, static_cast<std::uint32_t>(value.element()));
    encode<std::uint64_t>(out, value.count());
  }
  out += value.bytes();
}

Result<void> write_tensor(const GgufTensor& tensor, std::uint64_t seed, const ByteSink& sink) {
  WEIR_TRY(const std::uint64_t bytes, bytes_of(tensor));
  const TensorTypeInfo& info = *find_tensor_type(tensor.type);
  const std::uint64_t row = tensor.dims.empty() ? 1 : tensor.dims.front();
  const TensorBytes data(seed, tensor.name, info.type, fill_for(tensor.name, tensor.dims), row);
  constexpr std::uint64_t k_chunk_blocks = 4096;
  const std::uint64_t blocks = bytes / info.block_bytes;
  std::vector<unsigned char> chunk;
  for (std::uint64_t block = 0; block < blocks; block += k_chunk_blocks) {
    chunk.resize(std::min(k_chunk_blocks, blocks - block) * info.block_bytes);
    data.write(block, chunk);
    // unsigned char may be looked at as char
    WEIR_CHECK(sink({reinterpret_cast<const char*>(chunk.data()), chunk.size()}));
  }
  return {};
}

}  // namespace

Result<std::string> encode_gguf_header(GgufHeader& header) {
  if (!std::has_single_bit(header.alignment)) {
    return fail(Code::data, "GGUF alignment {} is not a power of two", header.alignment);
  }
  std::string out = "GGUF";
  header.version = 3;
  encode(out, header.version);
  encode<std::uint64_t>(out, header.tensors.size());
  encode<std::uint64_t>(out, header.metadata.size());
  for (const auto& [key, value] : header.metadata) {
    encode_string(out, key);
    encode_value(out, value);
  }
  std::uint64_t offset = 0;
  for (GgufTensor& tensor : header.tensors) {
    WEIR_TRY(const std::uint64_t bytes, bytes_of(tensor));
    tensor.offset = offset;
    offset = align_up(offset + bytes, header.alignment);
    encode_string(out, tensor.name);
    encode(out, static_cast<std::uint32_t>(tensor.dims.size()));
    for (const std::uint64_t dim : tensor.dims) encode(out, dim);
    encode(out, tensor.type);
    encode(out, tensor.offset);
  }
  header.bytes = out.size();
  header.hash = hash_hex(out);
  header.data_start = align_up(header.bytes, header.alignment);
  out.resize(header.data_start, '\0');
  return out;
}

Result<std::uint64_t> gguf_file_bytes(const GgufHeader& header) {
  std::uint64_t end = header.data_start;
  for (const GgufTensor& tensor : header.tensors) {
    WEIR_TRY(const std::uint64_t bytes, bytes_of(tensor));
    end = std::max(end, header.data_start + align_up(tensor.offset + bytes, header.alignment));
  }
  return end;
}

Result<void> write_random_gguf(GgufHeader& header, std::uint64_t seed, const ByteSink& sink) {
  WEIR_TRY(const std::string head, encode_gguf_header(header));
  WEIR_CHECK(sink(head));
  for (const GgufTensor& tensor : header.tensors) {
    WEIR_TRY(const std::uint64_t bytes, bytes_of(tensor));
    WEIR_CHECK(write_tensor(tensor, seed, sink));
    const std::string padding(align_up(bytes, header.alignment) - bytes, '\0');
    if (!padding.empty()) WEIR_CHECK(sink(padding));
  }
  return {};
}

}  // namespace weir::model

// The header of a GGUF model file (versions 2 and 3), read from the beginning of its bytes.
//
// A header says everything about a model but its weights: architecture, sizes, tokenizer, and the
// name, shape, type and place of every tensor. Files come from strangers: counts, lengths, nesting
// and sizes have limits, and nothing is read beyond the bytes given. Metadata values stay in the
// file's own encoding, so that memory never exceeds a small multiple of the header's size and a
// header can be written again byte for byte. Pure: bytes come in as arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gate/base/result.hpp"

namespace weir::model {
// The numbers are the file format's and never change.
enum class GgufType : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

// One metadata value. Numbers are read by meaning, not by storage type: an engine accepts 4096 as
// any integer type, and so do these functions.
class GgufValue {
 public:
  // A value from its encoding; the reader and the functions below make these.
  GgufValue(GgufType type, std::string bytes);
  // An array from the encoding of its elements, one after another.
  GgufValue(GgufType element, std::uint64_t count, std::string bytes);

  [[nodiscard]] static GgufValue u32(std::uint32_t value);
  [[nodiscard]] static GgufValue f32_bits(std::uint32_t ieee754);  // 1.0f is 0x3f800000
  [[nodiscard]] static GgufValue boolean(bool value);
  [[nodiscard]] static GgufValue string(std::string_view value);
  [[nodiscard]] static GgufValue strings(std::span<const std::string> values);
  [[nodiscard]] static GgufValue i32s(std::span<const std::int32_t> values);
  [[nodiscard]] static GgufValue f32s(std::span<const float> values);

  [[nodiscard]] GgufType type() const { return type_; }
  [[nodiscard]] bool is_array() const { return type_ == GgufType::array; }
  [[nodiscard]] GgufType element() const { return element_; }   // an array's element type
  [[nodiscard]] std::uint64_t count() const { return count_; }  // an array's elements; else 1
  // The encoding, without an array's element type and count.
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

  // Nothing when the value is of another kind (or negative, for to_unsigned).
  [[nodiscard]] std::optional<std::uint64_t> to_unsigned() const;
  [[nodiscard]] std::optional<std::string> to_string() const;
  // All elements of an array of integers of one sign or the other, or of strings.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> to_unsigned_list() const;
  [[nodiscard]] std::optional<std::vector<std::string>> to_string_list() const;

  // The same kind of value with other numbers; nothing if they do not fit into its type.
  [[nodiscard]] std::optional<GgufValue> with_unsigned(std::uint64_t value) const;
  [[nodiscard]] std::optional<GgufValue> with_unsigned_list(
      std::span<const std::uint64_t> values) const;
  // The array of the elements at `indices` (those beyond its end are left out); any other value
  // and an array of arrays unchanged.
  [[nodiscard]] GgufValue with_elements_at(std::span<const std::uint64_t> indices) const;

  friend bool operator==(const GgufValue&, const GgufValue&) = default;

 private:
  GgufType type_;
  GgufType element_ = GgufType::u8;
  std::uint64_t count_ = 1;
  std::string bytes_;
};

struct GgufTensor {
  std::string name;
  std::vector<std::uint64_t> dims;  // the first is the row, contiguous in memory
  std::uint32_t type = 0;           // see tensor_type.hpp; may be one that weir does not know
  std::uint64_t offset = 0;         // from GgufHeader::data_start

  friend bool operator==(const GgufTensor&, const GgufTensor&) = default;
};

struct TensorTypeInfo;
// Returns the tensor's type. Fails with Code::data for an unsupported type.
[[nodiscard]] Result<const TensorTypeInfo*> find_type_info(const GgufTensor& tensor);

struct GgufHeader {
  std::uint32_t version = 3;
  std::vector<std::pair<std::string, GgufValue>> metadata;  // in the file's order; keys are unique
  std::vector<GgufTensor> tensors;                          // names are unique
  std::uint64_t alignment = 32;                             // a power of two
  std::uint64_t bytes = 0;       // up to the end of the last tensor's entry
  std::uint64_t data_start = 0;  // `bytes` rounded up to `alignment`
  std::string hash;              // hash_hex of the first `bytes` bytes: the model header hash

  [[nodiscard]] const GgufValue* find(std::string_view key) const;
  // The value of "ARCHITECTURE.key", as most sizes are named: get("embedding_length").
  [[nodiscard]] const GgufValue* find_own(std::string_view key) const;
  // The same as an integer; nothing if it is none.
  [[nodiscard]] std::optional<std::uint64_t> own_number(std::string_view key) const;
  [[nodiscard]] std::string architecture() const;  // "" when there is none
};

struct GgufLimits {
  std::uint64_t header_bytes = std::uint64_t{256} << 20;
  std::uint64_t metadata = 65536;
  std::uint64_t tensors = 262144;
  std::uint64_t string_bytes = std::uint64_t{16} << 20;
  unsigned array_depth = 4;
};

// Result of reading a prefix of a file: the header, or the number of bytes needed for it.
struct GgufRead {
  std::optional<GgufHeader> header;
  // Without a header: the bytes to read next time, at least twice as many as now, so that growing
  // is cheap. A shorter file gives all it has.
  std::uint64_t needed = 0;
};

// Fails with Code::data, naming the byte, where the bytes cannot be the beginning of a GGUF file
// within the limits, however they go on.
[[nodiscard]] Result<GgufRead> read_gguf(std::string_view prefix, const GgufLimits& limits = {});

// Returns the file's first `bytes` bytes, or all of them when there are fewer.
using ReadPrefix = std::function<Result<std::string>(std::uint64_t bytes)>;
// Reads growing prefixes until the header is complete. A file that ends before is Code::data.
[[nodiscard]] Result<GgufHeader> load_gguf(const ReadPrefix& read, const GgufLimits& limits = {});

// Writes GGUF files (version 3): the header as text, tensor data streamed through a sink, so that a
// model of any size needs no more memory than its header. Pure: where the bytes go is the sink's.

// Takes the file's bytes in order; a failure ends the writing and is handed on.
using ByteSink = std::function<Result<void>(std::string_view)>;

// Lays the tensors out one after another (offset), fills in `bytes`, `data_start` and `hash`, and
// returns the header's encoding, padded to data_start. Fails with Code::data when a tensor's type
// is unknown, its rows are not whole blocks, or the alignment is not a power of two.
[[nodiscard]] Result<std::string> encode_gguf_header(GgufHeader& header);

// Bytes of the whole file. REQUIRES: the header was laid out by encode_gguf_header.
[[nodiscard]] Result<std::uint64_t> gguf_file_bytes(const GgufHeader& header);

// Writes a tensor's random data (tensor_type.hpp), without padding. REQUIRES: its type is known.
[[nodiscard]] Result<void> write_random_tensor(const GgufTensor& tensor, std::uint64_t seed,
                                               const ByteSink& sink);

// Writes the header and random data for every tensor (tensor_type.hpp). The same header and seed
// give the same bytes on every machine.
[[nodiscard]] Result<void> write_random_gguf(GgufHeader& header, std::uint64_t seed,
                                             const ByteSink& sink);

}  // namespace weir::model

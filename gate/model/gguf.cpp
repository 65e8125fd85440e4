// Reads and writes the headers of GGUF model files.
#include "gate/model/gguf.hpp"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/model/gguf_encoding.hpp"
#include "gate/model/tensor_type.hpp"

namespace weir::model {
namespace {

constexpr std::size_t k_max_dims = 4;
constexpr std::uint64_t k_max_name = 1024;
constexpr std::uint64_t k_max_key = 65535;  // the format's own limit
constexpr std::uint64_t k_max_alignment = 1U << 20;

// Reads the bytes in order. After an error or at the end of the bytes, every further step does
// nothing, so callers need not check each one.
class HeaderReader {
 public:
  HeaderReader(std::string_view bytes, const GgufLimits& limits) : bytes_(bytes), limits_(limits) {}

  [[nodiscard]] bool ok() const { return needed_ == 0 && !error_; }
  [[nodiscard]] std::uint64_t at() const { return at_; }
  [[nodiscard]] std::uint64_t needed() const { return needed_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

  // Keeps the first error, with the byte at which it occurred.
  template <class... Args>
  void set_error(fmt::format_string<Args...> format, Args&&... args) {
    if (!ok()) return;
    const std::string what = fmt::format(format, std::forward<Args>(args)...);
    error_ = Error{Code::data, fmt::format("GGUF header, byte {}: {}", at_, what)};
  }

  std::string_view read_bytes(std::uint64_t count) {
    if (!ok()) return {};
    if (count > limits_.header_bytes || at_ > limits_.header_bytes - count) {
      set_error("the header is larger than {} bytes", limits_.header_bytes);
      return {};
    }
    if (count > bytes_.size() - at_) {
      needed_ = at_ + count;
      return {};
    }
    const std::string_view bytes = bytes_.substr(at_, count);
    at_ += count;
    return bytes;
  }

  template <class Word>
  Word read_word() {
    const std::string_view bytes = read_bytes(sizeof(Word));
    return ok() ? decode<Word>(bytes) : Word{0};
  }

  // Reads a value type; u8 if it is unknown.
  GgufType read_type() {
    const auto number = read_word<std::uint32_t>();
    if (ok() && !known_type(number)) set_error("unknown value type {}", number);
    return ok() ? static_cast<GgufType>(number) : GgufType::u8;
  }

  std::string_view read_text(std::uint64_t max_bytes, std::string_view what) {
    const auto length = read_word<std::uint64_t>();
    if (ok() && length > max_bytes) {
      set_error("a {} of {} bytes (at most {} are allowed)", what, length, max_bytes);
    }
    return read_bytes(length);
  }

 private:
  std::string_view bytes_;
  const GgufLimits& limits_;
  std::uint64_t at_ = 0;
  std::uint64_t needed_ = 0;
  std::optional<Error> error_;
};

// Skips the elements of an array and checks them; errors go into the cursor. `depth` is the nesting
// so far.
void skip_elements(HeaderReader& cursor, GgufType element, std::uint64_t count, unsigned depth,
                   const GgufLimits& limits) {
  if (const auto size = fixed_size(element)) {
    if (count > limits.header_bytes / *size) {
      return cursor.set_error("an array of {} elements", count);
    }
    cursor.read_bytes(count * *size);
    return;
  }
  for (std::uint64_t i = 0; i < count && cursor.ok(); ++i) {
    if (element == GgufType::string) {
      cursor.read_text(limits.string_bytes, "string");
      continue;
    }
    const GgufType inner = cursor.read_type();
    const auto length = cursor.read_word<std::uint64_t>();
    if (!cursor.ok()) return;
    if (depth + 1 >= limits.array_depth) {
      return cursor.set_error("arrays nested deeper than {}", limits.array_depth);
    }
    skip_elements(cursor, inner, length, depth + 1, limits);
  }
}

// Reads one metadata value with its type. After an error, which the cursor has, returns a
// meaningless value.
GgufValue read_value(HeaderReader& cursor, std::string_view bytes, const GgufLimits& limits) {
  GgufValue nothing(GgufType::u8, std::string(1, '\0'));
  const GgufType type = cursor.read_type();
  if (!cursor.ok()) return nothing;
  if (const auto size = fixed_size(type)) return {type, std::string(cursor.read_bytes(*size))};
  if (type == GgufType::string) {
    const std::string_view value = cursor.read_text(limits.string_bytes, "string");
    return cursor.ok() ? GgufValue::string(value) : nothing;
  }
  const GgufType element = cursor.read_type();
  const auto count = cursor.read_word<std::uint64_t>();
  const std::uint64_t start = cursor.at();
  skip_elements(cursor, element, count, 0, limits);
  if (!cursor.ok()) return nothing;
  return {element, count, std::string(bytes.substr(start, cursor.at() - start))};
}

// Reads `count` metadata entries into the header, and its alignment. Errors, such as a key that
// comes twice, go into the cursor.
void read_metadata(HeaderReader& cursor, std::string_view bytes, std::uint64_t count,
                   const GgufLimits& limits, GgufHeader& header) {
  std::unordered_set<std::string> keys;
  for (std::uint64_t i = 0; i < count && cursor.ok(); ++i) {
    std::string key(cursor.read_text(k_max_key, "key"));
    GgufValue value = read_value(cursor, bytes, limits);
    if (!cursor.ok()) return;
    if (!keys.insert(key).second) {
      return cursor.set_error("the key \"{}\" occurs twice", text::printable(key));
    }
    header.metadata.emplace_back(std::move(key), std::move(value));
  }
  if (const GgufValue* alignment = header.find("general.alignment")) {
    const auto value = alignment->to_unsigned();
    if (!value || !std::has_single_bit(*value) || *value > k_max_alignment) {
      return cursor.set_error("general.alignment is not a power of two within 1 MiB");
    }
    header.alignment = *value;
  }
}

// Reads the entries (name, dimensions, type, offset) of `count` tensors into the header. Errors go
// into the cursor.
void read_tensors(HeaderReader& cursor, std::uint64_t count, GgufHeader& header) {
  std::unordered_set<std::string> names;
  for (std::uint64_t i = 0; i < count && cursor.ok(); ++i) {
    GgufTensor tensor;
    tensor.name = cursor.read_text(k_max_name, "tensor name");
    const auto dim_count = cursor.read_word<std::uint32_t>();
    if (cursor.ok() && dim_count > k_max_dims) {
      return cursor.set_error("a tensor of {} dimensions", dim_count);
    }
    std::uint64_t values = 1;  // at most 2^62
    for (std::uint32_t d = 0; d < dim_count && cursor.ok(); ++d) {
      const auto dim = cursor.read_word<std::uint64_t>();
      if (dim != 0 && values > (std::uint64_t{1} << 62) / dim) {
        return cursor.set_error("a tensor of more than 2^62 values");
      }
      values *= dim;
      tensor.dims.push_back(dim);
    }
    tensor.type = cursor.read_word<std::uint32_t>();
    tensor.offset = cursor.read_word<std::uint64_t>();
    if (!cursor.ok()) return;
    if (tensor.offset % header.alignment != 0 || tensor.offset > (std::uint64_t{1} << 62)) {
      return cursor.set_error("tensor offset {} is not aligned", tensor.offset);
    }
    if (!names.insert(tensor.name).second) {
      return cursor.set_error("the tensor \"{}\" occurs twice", text::printable(tensor.name));
    }
    header.tensors.push_back(std::move(tensor));
  }
}

}  // namespace

const GgufValue* GgufHeader::find(std::string_view key) const {
  const auto* match = find_first(metadata, [&](const auto& entry) { return entry.first == key; });
  return match == nullptr ? nullptr : &match->second;
}

const GgufValue* GgufHeader::find_own(std::string_view key) const {
  return find(fmt::format("{}.{}", architecture(), key));
}

std::optional<std::uint64_t> GgufHeader::own_number(std::string_view key) const {
  const GgufValue* value = find_own(key);
  return value == nullptr ? std::nullopt : value->to_unsigned();
}

std::string GgufHeader::architecture() const {
  const GgufValue* value = find("general.architecture");
  return value == nullptr ? "" : value->to_string().value_or("");
}

// Reads a GGUF header from the beginning of a file. If the beginning is too short, returns how many
// bytes are needed.
Result<GgufRead> read_gguf(std::string_view prefix, const GgufLimits& limits) {
  HeaderReader cursor(prefix, limits);
  GgufHeader header;
  const std::string_view magic = prefix.substr(0, 4);
  if (magic != std::string_view("GGUF").substr(0, magic.size())) {
    return fail(Code::data, "not a GGUF file: it does not begin with \"GGUF\"");
  }
  cursor.read_bytes(4);
  header.version = cursor.read_word<std::uint32_t>();
  if (cursor.ok() && header.version != 2 && header.version != 3) {
    const bool is_big_endian = header.version == 0x02000000U || header.version == 0x03000000U;
    if (is_big_endian) cursor.set_error("a big-endian file: convert it for this machine");
    cursor.set_error("GGUF version {}: weir reads 2 and 3", header.version);
  }
  const auto tensor_count = cursor.read_word<std::uint64_t>();
  const auto metadata_count = cursor.read_word<std::uint64_t>();
  if (cursor.ok() && metadata_count > limits.metadata) {
    cursor.set_error("{} metadata keys (at most {})", metadata_count, limits.metadata);
  }
  if (cursor.ok() && tensor_count > limits.tensors) {
    cursor.set_error("{} tensors (at most {})", tensor_count, limits.tensors);
  }
  read_metadata(cursor, prefix, metadata_count, limits, header);
  read_tensors(cursor, tensor_count, header);
  if (cursor.error()) return tl::unexpected(*cursor.error());
  if (!cursor.ok()) {
    return GgufRead{.header = std::nullopt,
                    .needed = std::max<std::uint64_t>(cursor.needed(), 2 * prefix.size())};
  }
  header.bytes = cursor.at();
  header.data_start = align_up(header.bytes, header.alignment);
  header.hash = hash_hex(prefix.substr(0, header.bytes));
  return GgufRead{.header = std::move(header), .needed = 0};
}

// Reads a GGUF header by reading longer and longer prefixes of the file until it is complete.
Result<GgufHeader> load_gguf(const ReadPrefix& read, const GgufLimits& limits) {
  std::uint64_t prefix_bytes = std::uint64_t{64} << 10;
  while (true) {
    WEIR_TRY(const std::string prefix, read(prefix_bytes));
    WEIR_TRY(GgufRead result, read_gguf(prefix, limits));
    if (result.header) return std::move(*result.header);
    if (prefix.size() < prefix_bytes) {
      return fail(Code::data, "the GGUF header is cut off: the file ends after {} bytes",
                  prefix.size());
    }
    prefix_bytes = result.needed;
  }
}

Result<const TensorTypeInfo*> find_type_info(const GgufTensor& tensor) {
  if (const TensorTypeInfo* info = find_tensor_type(tensor.type)) return info;
  return fail(Code::data, "tensor {}: type {} is not known to weir", text::printable(tensor.name),
              tensor.type);
}

namespace {

Result<std::uint64_t> data_bytes(const GgufTensor& tensor) {
  WEIR_TRY(const TensorTypeInfo* info, find_type_info(tensor));
  return tensor_bytes(*info, tensor.dims)
      .map_error(with_prefix("tensor " + text::printable(tensor.name)));
}

}  // namespace

// Returns the bytes of the header, padded to where the data begins. Sets its version, the tensors'
// offsets, `bytes`, `hash` and `data_start`.
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
    encode(out, static_cast<std::uint32_t>(value.type()));
    if (value.is_array()) {
      encode(out, static_cast<std::uint32_t>(value.element()));
      encode<std::uint64_t>(out, value.count());
    }
    out += value.bytes();
  }
  std::uint64_t offset = 0;
  for (GgufTensor& tensor : header.tensors) {
    WEIR_TRY(const std::uint64_t bytes, data_bytes(tensor));
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
    WEIR_TRY(const std::uint64_t bytes, data_bytes(tensor));
    end = std::max(end, header.data_start + align_up(tensor.offset + bytes, header.alignment));
  }
  return end;
}

Result<void> write_random_tensor(const GgufTensor& tensor, std::uint64_t seed,
                                 const ByteSink& sink) {
  constexpr std::uint64_t k_chunk_blocks = 4096;
  WEIR_TRY(const std::uint64_t bytes, data_bytes(tensor));
  const TensorTypeInfo& info = *find_tensor_type(tensor.type);
  const std::uint64_t row = tensor.dims.empty() ? 1 : tensor.dims.front();
  const TensorBytes data(seed, tensor.name, info.type, fill_for(tensor.name, tensor.dims), row);
  const std::uint64_t blocks = bytes / info.block_bytes;
  std::vector<unsigned char> chunk;
  for (std::uint64_t block = 0; block < blocks; block += k_chunk_blocks) {
    chunk.resize(std::min(k_chunk_blocks, blocks - block) * info.block_bytes);
    data.write(block, chunk);
    // unsigned char may be read as char
    WEIR_CHECK(sink({reinterpret_cast<const char*>(chunk.data()), chunk.size()}));
  }
  return {};
}

// Writes the header and random data for every tensor to `sink`. The same seed gives the same bytes
// on every machine.
Result<void> write_random_gguf(GgufHeader& header, std::uint64_t seed, const ByteSink& sink) {
  WEIR_TRY(const std::string head, encode_gguf_header(header));
  WEIR_CHECK(sink(head));
  for (const GgufTensor& tensor : header.tensors) {
    WEIR_CHECK(write_random_tensor(tensor, seed, sink));
    WEIR_TRY(const std::uint64_t bytes, data_bytes(tensor));
    const std::string padding(align_up(bytes, header.alignment) - bytes, '\0');
    if (!padding.empty()) WEIR_CHECK(sink(padding));
  }
  return {};
}

}  // namespace weir::model

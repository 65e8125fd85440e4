// Fuzz target: any bytes as the beginning of a model file, and, where they are a header, as the
// source of a twin and through the writer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gate/model/gguf.hpp"
#include "gate/model/twin.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::model;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto read = read_gguf(bytes);
  if (!read) return 0;
  if (!read->header) {
    if (read->needed <= size) std::abort();  // a reader that grows prefixes would never end
    return 0;
  }
  GgufHeader& header = *read->header;
  if (header.bytes > size || header.data_start % header.alignment != 0) std::abort();
  auto twin = shrink_model(header, {});
  (void)twin;
  (void)encode_gguf_header(header);
  return 0;
}

// Writes GGUF files (version 3): the header as text, tensor data streamed through a sink, so that a
// model of any size needs no more memory than its header. Pure: where the bytes go is the sink's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "gate/base/result.hpp"
#include "gate/model/gguf.hpp"

namespace weir::model {

// Takes the file's bytes in order; a failure ends the writing and is handed on.
using ByteSink = std::function<Result<void>(std::string_view)>;

// Lays the tensors out one after another (offset), fills in `bytes`, `data_start` and `hash`, and
// answers the header's encoding, padded to data_start. Fails with Code::data when a tensor's type
// is unknown, its rows are not whole blocks, or the alignment is not a power of two.
[[nodiscard]] Result<std::string> encode_gguf_header(GgufHeader& header);

// Bytes of the whole file. REQUIRES: the header was laid out by encode_gguf_header.
[[nodiscard]] Result<std::uint64_t> gguf_file_bytes(const GgufHeader& header);

// Writes the header and random data for every tensor (tensor_type.hpp). The same header and seed
// give the same bytes on every machine.
[[nodiscard]] Result<void> write_random_gguf(GgufHeader& header, std::uint64_t seed,
                                             const ByteSink& sink);

}  // namespace weir::model

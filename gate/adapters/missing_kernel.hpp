// Messages by which an engine says that its backend has no kernel for what a model needs.
//
// An engine that stops in such a case does the right thing: the cell's error is then what it said,
// not only that it exited with some code. Known forms are those of weir-engine, Agave, ggml's
// backends, PyTorch and CUDA (missing_kernel.cpp). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::adapters {

// The last such message in what a failed program wrote to standard error, without what stands
// before it ("thread 1 panic: "); cut in length and fit to show. Nothing when there is none. Looks
// at the last 64 KiB.
[[nodiscard]] std::optional<std::string> missing_kernel(std::string_view err);

}  // namespace weir::adapters

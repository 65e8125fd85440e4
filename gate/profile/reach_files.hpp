// What a path alone says of a file: its kind, and the kernels a shader's source is named after.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir::profile {

[[nodiscard]] std::string_view file_name_in(std::string_view path);
// "shaders/mul_mat_vec.comp" -> "mul_mat_vec"
[[nodiscard]] std::string_view shader_stem(std::string_view path);
// A shader's language belongs to one device or some: CUDA's to hip as well.
[[nodiscard]] bool shader_runs_on(std::string_view path, std::string_view device);
// How many names at the end of both paths are the same: 2 of "x/src/a.cpp" and "y/src/a.cpp".
[[nodiscard]] std::size_t common_end(std::string_view one, std::string_view other);

}  // namespace weir::profile

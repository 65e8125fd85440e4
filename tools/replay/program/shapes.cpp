// Checks that a recorded node's shapes fit its op, by one rule for each op.
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

#include "tools/replay/program/program.hpp"

namespace weir::replay {
namespace {

using profile::ReplayNode;
using profile::ReplayTensor;
using Sizes = std::array<std::int64_t, 4>;

// A node's tensors by slot.
struct Operands {
  const ReplayNode& node;
  const ReplayTensor* slots[profile::k_replay_sources + 1] = {};

  explicit Operands(const ReplayNode& from) : node(from) {
    for (const ReplayTensor& tensor : from.tensors) {
      slots[static_cast<std::size_t>(tensor.slot)] = &tensor;
    }
  }
  [[nodiscard]] const ReplayTensor* at(std::size_t slot) const { return slots[slot]; }
  // Returns true if all slots up to `needed` are there, and none after `most`.
  [[nodiscard]] bool has(std::size_t needed, std::size_t allowed) const {
    for (std::size_t i = 0; i <= static_cast<std::size_t>(profile::k_replay_sources); ++i) {
      if ((i <= needed && slots[i] == nullptr) || (i > allowed && slots[i] != nullptr))
        return false;
    }
    return true;
  }
};

// The sizes of the result, and of source `i`.
const Sizes& r(const Operands& o) { return o.at(0)->ne; }
const Sizes& s(const Operands& o, std::size_t i) { return o.at(i)->ne; }
bool is(const ReplayTensor* tensor, const char* type) { return tensor->type == type; }

// Returns true if `small`, repeated along each dimension, gives `big`.
bool repeats(const Sizes& small, const Sizes& big, std::size_t from = 0) {
  for (std::size_t i = from; i < 4; ++i) {
    if (small[i] < 1 || big[i] % small[i] != 0) return false;
  }
  return true;
}

bool elementwise(const Operands& o) {
  return o.has(1, 1) && r(o) == s(o, 1) && o.at(0)->type == o.at(1)->type;
}
bool with_repeated(const Operands& o) {
  return o.has(2, 2) && r(o) == s(o, 1) && o.at(0)->type == o.at(1)->type && repeats(s(o, 2), r(o));
}
bool copied(const Operands& o) {
  if (!o.has(1, 2)) return false;
  __int128 from = 1, to = 1;
  for (std::size_t i = 0; i < 4; ++i) {
    from *= s(o, 1)[i];
    to *= r(o)[i];
    if (from > INT64_MAX || to > INT64_MAX) return false;
  }
  return from == to && (o.at(2) == nullptr || s(o, 2) == r(o));
}
bool product(const Operands& o) {
  return o.has(2, 2) && s(o, 1)[0] == s(o, 2)[0] && repeats(s(o, 1), s(o, 2), 2) &&
         r(o) == Sizes{s(o, 1)[1], s(o, 2)[1], s(o, 2)[2], s(o, 2)[3]} && is(o.at(0), "f32");
}
bool product_of_experts(const Operands& o) {
  return o.has(3, 3) && is(o.at(0), "f32") && is(o.at(2), "f32") && is(o.at(3), "i32") &&
         s(o, 1)[0] == s(o, 2)[0] && s(o, 1)[3] == 1 && s(o, 2)[3] == 1 && s(o, 2)[1] >= 1 &&
         s(o, 3)[0] % s(o, 2)[1] == 0 && s(o, 3)[0] <= s(o, 1)[2] &&
         s(o, 3) == Sizes{s(o, 3)[0], s(o, 2)[2], 1, 1} &&
         r(o) == Sizes{s(o, 1)[1], s(o, 3)[0], s(o, 2)[2], 1};
}
bool rows_taken(const Operands& o) {
  return o.has(2, 2) && (is(o.at(0), "f32") || (is(o.at(0), "i32") && is(o.at(1), "i32"))) &&
         is(o.at(2), "i32") && s(o, 1)[2] == s(o, 2)[1] && s(o, 1)[3] == s(o, 2)[2] &&
         s(o, 2)[3] == 1 && r(o) == Sizes{s(o, 1)[0], s(o, 2)[0], s(o, 2)[1], s(o, 2)[2]};
}
bool rows_put(const Operands& o) {
  return o.has(2, 3) && is(o.at(1), "f32") && (is(o.at(2), "i64") || is(o.at(2), "i32")) &&
         r(o)[0] == s(o, 1)[0] && r(o)[2] == s(o, 1)[2] && r(o)[3] == s(o, 1)[3] &&
         s(o, 2)[0] == s(o, 1)[1] && s(o, 2)[1] >= 1 && s(o, 1)[2] % s(o, 2)[1] == 0 &&
         s(o, 2)[2] >= 1 && s(o, 1)[3] % s(o, 2)[2] == 0 && s(o, 2)[3] == 1 &&
         (o.at(3) == nullptr || s(o, 3) == r(o));
}
bool mask_fits(const ReplayTensor* mask, std::int64_t columns, std::int64_t rows,
               std::int64_t heads, std::int64_t streams) {
  return mask == nullptr ||
         (mask->ne[0] == columns && mask->ne[1] >= rows && mask->ne[2] >= 1 && mask->ne[3] >= 1 &&
          heads % mask->ne[2] == 0 && streams % mask->ne[3] == 0);
}
bool soft_max(const Operands& o) {
  if (!o.has(1, 3) || r(o) != s(o, 1) || !is(o.at(0), "f32") || !is(o.at(1), "f32")) return false;
  const Sizes& a = s(o, 1);
  return (o.at(2) == nullptr || is(o.at(2), "f16") || is(o.at(2), "f32")) &&
         mask_fits(o.at(2), a[0], a[1], a[2], a[3]) &&
         (o.at(3) == nullptr || (is(o.at(3), "f32") && s(o, 3)[0] == a[2]));
}
bool attention(const Operands& o) {
  if (!o.has(3, 5) || !is(o.at(0), "f32") || !is(o.at(1), "f32")) return false;
  const Sizes &q = s(o, 1), &k = s(o, 2), &v = s(o, 3);
  return q[0] == k[0] && k[1] == v[1] && k[2] == v[2] && k[3] == v[3] && k[2] >= 1 &&
         q[2] % k[2] == 0 && k[3] >= 1 && q[3] % k[3] == 0 &&
         r(o) == Sizes{v[0], q[2], q[1], q[3]} && mask_fits(o.at(4), k[1], q[1], q[2], q[3]) &&
         (o.at(4) == nullptr || is(o.at(4), "f16")) &&
         (o.at(5) == nullptr || (is(o.at(5), "f32") && s(o, 5)[0] == q[2]));
}
// Parameters: 1 the dimensions that turn, 2 the mode, whose bit 8 asks for four positions a token.
bool rope(const Operands& o) {
  constexpr std::int32_t k_sections = 8;
  if (!o.has(2, 3) || !is(o.at(2), "i32")) return false;
  if (r(o) != s(o, 1) || o.at(0)->type != o.at(1)->type) return false;
  const std::int64_t turning = o.node.params[1];
  return turning >= 0 && turning % 2 == 0 && turning <= r(o)[0] &&
         (o.node.params[2] & k_sections) == 0 && s(o, 2)[0] >= r(o)[2] &&
         (o.at(3) == nullptr || (is(o.at(3), "f32") && s(o, 3)[0] >= turning / 2));
}
bool gated(const Operands& o) {
  if (!o.has(1, 2) || o.at(0)->type != o.at(1)->type) return false;
  if (o.at(2) != nullptr) {
    return r(o) == s(o, 1) && r(o) == s(o, 2) && o.at(0)->type == o.at(2)->type;
  }
  return s(o, 1) == Sizes{r(o)[0] * 2, r(o)[1], r(o)[2], r(o)[3]};
}
bool summed_rows(const Operands& o) {
  return o.has(1, 1) && r(o) == Sizes{1, s(o, 1)[1], s(o, 1)[2], s(o, 1)[3]} &&
         o.at(0)->type == o.at(1)->type;
}
bool sorted(const Operands& o) {
  return o.has(1, 1) && r(o) == s(o, 1) && is(o.at(0), "i32") && is(o.at(1), "f32");
}
bool repeated(const Operands& o) {
  return o.has(1, 1) && repeats(s(o, 1), r(o)) && o.at(0)->type == o.at(1)->type;
}

using Rule = bool (*)(const Operands&);
constexpr std::pair<Rule, std::string_view> k_rules[] = {
    {with_repeated, "ADD SUB MUL DIV"},
    {product, "MUL_MAT"},
    {product_of_experts, "MUL_MAT_ID"},
    {elementwise, "RMS_NORM NORM L2_NORM SCALE UNARY SQR SQRT LOG SIN COS CLAMP"},
    {soft_max, "SOFT_MAX"},
    {rope, "ROPE"},
    {gated, "GLU"},
    {copied, "CPY DUP CONT"},
    {rows_taken, "GET_ROWS"},
    {rows_put, "SET_ROWS"},
    {attention, "FLASH_ATTN_EXT"},
    {summed_rows, "SUM_ROWS"},
    {sorted, "ARGSORT"},
    {repeated, "REPEAT"},
};

// Null where there is none.
Rule find_rule(const std::string& op) {
  for (const auto& [rule, ops] : k_rules) {
    if (holds(text::split(ops, ' '), op)) return rule;
  }
  return nullptr;
}

}  // namespace

// Returns where a tensor ends, in bytes from the beginning of its root. Nullopt for shapes that are
// empty, overflow, or repeat bytes too often.
std::optional<std::int64_t> end_of(const ReplayTensor& tensor, const TypeSize& type) {
  if (type.bytes < 1 || type.elements < 1 || tensor.ne[0] < 1 ||
      tensor.ne[0] % type.elements != 0) {
    return std::nullopt;
  }
  // Strides of 0 make a few bytes many: what computes must not go on for ever.
  constexpr std::int64_t k_max_tensor_reads = 16;
  // Numbers of a recording are below 2^43: products of two fit, and sums of those.
  __int128 bytes = static_cast<__int128>(tensor.ne[0] / type.elements) * type.bytes;
  __int128 end = static_cast<__int128>(tensor.offset) + type.bytes +
                 static_cast<__int128>(tensor.ne[0] / type.elements - 1) * tensor.nb[0];
  for (std::size_t i = 1; i < 4; ++i) {
    if (tensor.ne[i] < 1) return std::nullopt;
    end += static_cast<__int128>(tensor.ne[i] - 1) * tensor.nb[i];
    if (bytes > INT64_MAX / 2) return std::nullopt;
    bytes *= tensor.ne[i];
  }
  if (bytes > (end - tensor.offset) * k_max_tensor_reads) return std::nullopt;
  constexpr std::int64_t k_max_bytes = std::int64_t{1} << 43;
  return end <= k_max_bytes ? std::optional(static_cast<std::int64_t>(end)) : std::nullopt;
}

// Returns why kernels of the op may not trust a tensor's strides: numbers overlap, or rows of a
// result do. "" if they may.
std::string layout_problem(const std::string& op, const ReplayTensor& tensor,
                           const TypeSize& type) {
  if (tensor.ne[0] > type.elements && tensor.nb[0] < type.bytes) {
    return "numbers of a tensor lie on top of each other";
  }
  if (tensor.slot != 0 || op == "CPY") return "";  // CPY goes by all strides
  if (tensor.nb[0] != type.bytes) return "the numbers of its result do not lie side by side";
  __int128 min_stride = static_cast<__int128>(tensor.ne[0] / type.elements) * type.bytes;
  for (std::size_t i = 1; i < 4; ++i) {
    const bool may_overlap =
        tensor.ne[i] == 1 || (op == "SET_ROWS" && i > 1);  // rows go by strides there
    if (!may_overlap && tensor.nb[i] < min_stride)
      return "rows of its result lie on top of each other";
    min_stride = tensor.ne[i] == 1 ? min_stride * tensor.ne[i]
                                   : static_cast<__int128>(tensor.nb[i]) * tensor.ne[i];
  }
  return "";
}

bool has_rule(const std::string& op) { return find_rule(op) != nullptr; }

std::string shape_problem(const ReplayNode& node) {
  const Rule rule = find_rule(node.op);
  if (rule == nullptr) return "weir has no rule for the shapes of " + node.op;
  if (node.tensors.empty()) return "its tensors were not recorded";
  return rule(Operands(node)) ? "" : "its shapes do not fit " + node.op;
}

}  // namespace weir::replay

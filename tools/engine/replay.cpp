// weir-engine --replay: runs recorded ops of another engine, each alone, on this engine's CPU
// kernels.
#include "tools/engine/replay.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>

#include "tools/engine/backend.hpp"
#include "tools/engine/cpu_kernels.hpp"
#include "tools/engine/version.hpp"
#include "tools/replay/program/program.hpp"

namespace weir::engine {
namespace {

using profile::ReplayNode;
using profile::ReplayTensor;
using replay::left_out_error;
using replay::ReplayLimits;

constexpr float k_value = 0.01F;                  // each element of a slot
constexpr std::uint32_t k_max_values = 1U << 30;  // limit of one tensor

// A backend for one op, with a model that has the sizes of this op and nothing else.
class OpWork final : public replay::Work {
 public:
  explicit OpWork(std::int64_t copies) : copies_(copies) {}

  // Adds a matrix of made-up weights; each copy of the op has its own.
  const Tensor& add_matrix(const model::TensorTypeInfo& info, std::uint32_t columns,
                           std::uint32_t rows) {
    const std::uint64_t row = std::uint64_t{columns} / info.block_values * info.block_bytes;
    auto& bytes = bytes_.emplace_back(std::make_unique<std::vector<unsigned char>>(row * rows));
    const std::string name = fmt::format("replayed.{}.weight", bytes_.size());
    model::TensorBytes(1, name, info.type, model::Fill::weights, columns).write(0, *bytes);
    matrices_.push_back(std::make_unique<Tensor>(
        Tensor{name, info.type, columns, rows, row, std::as_bytes(std::span(*bytes))}));
    return *matrices_.back();
  }
  // Makes the backend. REQUIRES: the public members below are set.
  Result<void> open(unsigned threads) {
    model.frequencies.assign(model.sizes.head / 2, k_value);
    WEIR_TRY(backend_, make_cpu_backend(model, threads, counts_));
    for (std::size_t i = 0; i < k_slots; ++i) {
      const auto slot = static_cast<Slot>(i);
      backend_->write(slot, std::vector<float>(slot_size(slot, model.sizes), k_value));
    }
    if (before) before(*backend_);
    return {};
  }

  Model model;
  std::function<void(Backend&, std::size_t i)> op;  // computes copy `i`
  std::function<void(Backend&)> before;             // runs once before all copies
  [[nodiscard]] const Tensor& matrix(std::size_t i) const { return *matrices_[i]; }

  [[nodiscard]] std::int64_t copies() const override { return copies_; }
  [[nodiscard]] bool compute() override {
    for (std::int64_t i = 0; i < copies_; ++i) op(*backend_, static_cast<std::size_t>(i));
    return static_cast<bool>(backend_->finish());
  }

 private:
  std::int64_t copies_;
  std::vector<std::unique_ptr<std::vector<unsigned char>>> bytes_;
  std::vector<std::unique_ptr<Tensor>> matrices_;
  Counts counts_;
  std::unique_ptr<Backend> backend_;
};
using OpResult = Result<std::unique_ptr<OpWork>>;

// A node to compute, with its tensors by slot.
struct OpRequest {
  const ReplayNode& node;
  const ReplayLimits& limits;
  std::array<const ReplayTensor*, profile::k_replay_sources + 1> slots{};

  OpRequest(const ReplayNode& from, const ReplayLimits& wished) : node(from), limits(wished) {
    for (const ReplayTensor& tensor : from.tensors) {
      slots[static_cast<std::size_t>(tensor.slot)] = &tensor;
    }
  }
  // REQUIRES: the slot is one that the rule of the op demands.
  [[nodiscard]] const ReplayTensor& at(std::size_t slot) const { return *slots[slot]; }
  [[nodiscard]] std::uint32_t size(std::size_t slot, std::size_t dimension) const {
    return static_cast<std::uint32_t>(at(slot).ne[dimension]);
  }
  [[nodiscard]] bool all_f32(std::initializer_list<std::size_t> which) const {
    return std::all_of(which.begin(), which.end(),
                       [&](std::size_t slot) { return at(slot).type == "f32"; });
  }
  // Bytes of a tensor's values as 32-bit floats.
  [[nodiscard]] std::int64_t float_bytes(std::size_t slot) const {
    std::int64_t bytes = 4;
    for (const std::int64_t size : at(slot).ne) bytes *= size;
    return bytes;
  }
};

bool is_vector(const ReplayTensor& tensor) {
  return tensor.ne[1] == 1 && tensor.ne[2] == 1 && tensor.ne[3] == 1;
}
bool is_matrix(const ReplayTensor& tensor) { return tensor.ne[2] == 1 && tensor.ne[3] == 1; }

// Makes work of as many copies as replay::copies_needed() asks for.
OpResult make_copies(const OpRequest& request, std::int64_t each, std::int64_t shared) {
  WEIR_TRY(const std::int64_t copies,
           replay::copies_needed(request.node.count, each, shared, request.limits));
  return std::make_unique<OpWork>(copies);
}

// Makes copies of an op's work that each have a matrix like that in `slot`. `shared` is the bytes
// that all copies share.
OpResult make_copies_with_matrix(const OpRequest& request, std::size_t slot, std::int64_t shared) {
  const ReplayTensor& weights = request.at(slot);
  const auto* info = model::find_tensor_type(std::string_view(weights.type));
  if (info == nullptr || weights.ne[0] % info->block_values != 0) {
    return left_out_error("weir-engine knows no rows of {} in {}", weights.ne[0], weights.type);
  }
  const std::int64_t matrix_bytes =
      weights.ne[0] / info->block_values * info->block_bytes * weights.ne[1];
  WEIR_TRY(auto work, make_copies(request, matrix_bytes, shared));
  for (std::int64_t i = 0; i < work->copies(); ++i) {
    work->add_matrix(*info, request.size(slot, 0), request.size(slot, 1));
  }
  return work;
}

// Makes a replay of MUL_MAT: a matrix times one vector. Each copy has a matrix of its own.
OpResult make_multiply(const OpRequest& request) {
  const auto* info = model::find_tensor_type(std::string_view(request.at(1).type));
  if (info == nullptr || !cpu_multiplies(info->type)) {
    return left_out_error("weir-engine multiplies no matrices of {}", request.at(1).type);
  }
  if (!request.all_f32({2}) || !is_vector(request.at(2)) || !is_matrix(request.at(1))) {
    return left_out_error("weir-engine multiplies a matrix with one vector of floats");
  }
  WEIR_TRY(auto work,
           make_copies_with_matrix(request, 1, request.float_bytes(0) + request.float_bytes(2)));
  Sizes& sizes = work->model.sizes;
  sizes.embedding = request.size(1, 0);
  sizes.vocabulary = request.size(1, 1);
  auto* const copies = work.get();
  work->op = [copies](Backend& backend, std::size_t i) {
    const std::array products{Product{copies->matrix(i), Slot::logits}};
    backend.multiply(Slot::normed, products, Output::overwrite);
  };
  return work;
}

// Makes a replay of GET_ROWS: looks up one row of a matrix, another one each time.
OpResult make_embed(const OpRequest& request) {
  const auto* info = model::find_tensor_type(std::string_view(request.at(1).type));
  if (info == nullptr || !can_unpack(info->type)) {
    return left_out_error("weir-engine looks up no rows of {}", request.at(1).type);
  }
  if (!is_matrix(request.at(1)) || request.at(2).ne[0] != 1) {
    return left_out_error("weir-engine looks up one row of a matrix");
  }
  WEIR_TRY(auto work, make_copies_with_matrix(request, 1, request.float_bytes(0)));
  Sizes& sizes = work->model.sizes;
  sizes.embedding = request.size(1, 0);
  auto* const copies = work.get();
  work->op = [copies](Backend& backend, std::size_t i) {
    copies->model.embedding = copies->matrix(i);
    backend.embed(static_cast<std::uint32_t>(
        replay::spread_index(static_cast<std::int64_t>(i), copies->matrix(i).rows)));
  };
  return work;
}

// Makes a replay of RMS_NORM over one vector.
OpResult make_norm(const OpRequest& request) {
  if (!request.all_f32({0, 1}) || !is_vector(request.at(1))) {
    return left_out_error("weir-engine normalizes one vector of floats");
  }
  WEIR_TRY(auto work, make_copies(request, 0, 2 * request.float_bytes(0)));
  Sizes& sizes = work->model.sizes;
  sizes.embedding = request.size(1, 0);
  std::memcpy(&sizes.epsilon, request.node.params.data(), sizeof sizes.epsilon);
  const auto* f32 = model::find_tensor_type("F32");
  const Tensor& weights = work->add_matrix(*f32, sizes.embedding, 1);
  work->op = [&weights](Backend& backend, std::size_t) {
    backend.rms_norm(Slot::state, weights, Slot::normed);
  };
  return work;
}

OpResult make_activate(const OpRequest& request) {
  if (request.node.description != "SWIGLU" || request.slots[2] == nullptr ||
      !request.all_f32({0, 1, 2})) {
    return left_out_error("weir-engine has SWIGLU of two vectors of floats alone");
  }
  WEIR_TRY(auto work, make_copies(request, 0, 2 * request.float_bytes(0)));
  Sizes& sizes = work->model.sizes;
  sizes.feed_forward = static_cast<std::uint32_t>(request.float_bytes(0) / 4);
  work->op = [](Backend& backend, std::size_t) { backend.activate(); };
  return work;
}

// Makes a replay of ROPE. Its parameter 1 is the number of rotated dimensions, 2 the mode (0: pairs
// of neighbours).
OpResult make_rotate(const OpRequest& request) {
  const ReplayTensor& heads = request.at(1);
  if (!request.all_f32({1}) || heads.ne[2] != 1 || heads.ne[3] != 1 ||
      request.node.params[1] != heads.ne[0] || request.node.params[2] != 0) {
    return left_out_error("weir-engine turns whole heads of one token, neighbour with neighbour");
  }
  WEIR_TRY(auto work, make_copies(request, 0, request.float_bytes(1)));
  Sizes& sizes = work->model.sizes;
  sizes.layers = 1;
  sizes.context = 1;
  sizes.head = request.size(1, 0);
  sizes.heads = request.size(1, 1);  // query heads; without keys nothing is stored
  work->op = [](Backend& backend, std::size_t) { backend.rotate_and_store(0, 0); };
  return work;
}

// Makes a replay of FLASH_ATTN_EXT. Its parameters, as floats: 0 is the scale, 1 the largest bias,
// 2 the softcap.
OpResult make_attend(const OpRequest& request) {
  std::array<float, 3> float_parameters{};
  std::memcpy(float_parameters.data(), request.node.params.data(), sizeof float_parameters);
  const ReplayTensor &query = request.at(1), &keys = request.at(2), &values = request.at(3);
  if (!request.all_f32({2, 3})) {
    return left_out_error("weir-engine keeps keys and values as floats, not {}", keys.type);
  }
  if (query.ne[1] != 1 || query.ne[3] != 1 || query.ne[0] % 2 != 0 || keys.ne != values.ne ||
      float_parameters[1] != 0 || float_parameters[2] != 0 || request.slots[5] != nullptr) {
    return left_out_error("weir-engine attends for one token, without biases, caps and sinks");
  }
  const auto visible_positions = static_cast<std::int64_t>(
      std::ceil(request.limits.visible_mask_share * static_cast<double>(keys.ne[1])));
  const std::int64_t cache_bytes = request.float_bytes(2) + request.float_bytes(3);
  const std::int64_t shared =
      request.float_bytes(0) + request.float_bytes(1) + query.ne[2] * keys.ne[1] * 4;
  WEIR_TRY(auto work, make_copies(request, cache_bytes, shared));
  Sizes& sizes = work->model.sizes;
  sizes.layers = static_cast<std::uint32_t>(work->copies());  // each with a cache of its own
  sizes.context = request.size(2, 1);
  sizes.head = request.size(1, 0);
  sizes.heads = request.size(1, 2);
  sizes.kv_heads = request.size(2, 2);
  const auto last_position =
      static_cast<std::uint32_t>(std::max<std::int64_t>(visible_positions, 1) - 1);
  work->op = [last_position](Backend& backend, std::size_t i) {
    backend.attend(static_cast<std::uint32_t>(i), last_position);
  };
  work->before = [layers = sizes.layers, last_position](Backend& backend) {
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      for (std::uint32_t position = 0; position <= last_position; ++position)
        backend.rotate_and_store(layer, position);
    }
  };
  return work;
}

// Prepares a recorded op to be run alone. Fails with the reason if this engine cannot run it.
Result<std::unique_ptr<replay::Work>> make(const ReplayNode& node, const ReplayLimits& limits,
                                           unsigned threads) {
  static const std::map<std::string, OpResult (*)(const OpRequest&)> k_ops{
      {"MUL_MAT", make_multiply}, {"GET_ROWS", make_embed}, {"RMS_NORM", make_norm},
      {"GLU", make_activate},     {"ROPE", make_rotate},    {"FLASH_ATTN_EXT", make_attend},
  };
  const auto op = k_ops.find(node.op);
  if (op == k_ops.end()) return left_out_error("weir-engine has no kernel for it alone");
  if (const std::string problem = replay::shape_problem(node); !problem.empty()) {
    return left_out_error("{}", problem);
  }
  // Sizes of this engine are 32 bits wide, and no tensor of it is empty.
  for (const ReplayTensor& tensor : node.tensors) {
    __int128 values = 1;
    for (const std::int64_t size : tensor.ne) {
      values *= size;
      if (size < 1 || values > k_max_values) {
        return left_out_error("its tensors are too large or empty");
      }
    }
  }
  WEIR_TRY(auto work, op->second(OpRequest(node, limits)));
  WEIR_CHECK(work->open(threads));
  return work;
}

Result<replay::OpenedDevice> open(const replay::ProgramOptions& options, const profile::Replay&) {
  replay::OpenedDevice out;
  out.identity = {{"engine", "weir-engine"},
                  {"version", k_version},
                  {"library", "its kernels for " + instruction_set()}};
  out.make = [threads = static_cast<unsigned>(options.threads)](const ReplayNode& node,
                                                                const ReplayLimits& limits) {
    return make(node, limits, threads);
  };
  return out;
}

}  // namespace

int run_replay(int argc, char** argv) { return replay::run_program(argc, argv, open); }

}  // namespace weir::engine

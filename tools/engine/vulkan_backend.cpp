// The Vulkan backend: each op is one dispatch and one barrier, recorded; a token is one submit.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>

#include "tools/engine/backend.hpp"
#include "tools/engine/cpu_kernels.hpp"
#include "tools/engine/missing.hpp"
#include "tools/engine/pack.hpp"
#include "tools/engine/types.hpp"
#include "tools/engine/vulkan_kernels.hpp"
#include "tools/engine/vulkan_stream.hpp"

namespace weir::engine {
namespace {

constexpr std::uint64_t k_staging_bytes = std::uint64_t{16} << 20;
constexpr std::uint32_t k_max_groups = 65535;  // every device takes so many
constexpr std::size_t k_batch = 3;             // matrices of one multiply.comp

struct Chosen {  // as in choose.comp
  std::uint32_t token;
  float share;
};

std::uint32_t divide_up(std::uint32_t count, std::uint32_t size) {
  return (count + size - 1) / size;
}

class VulkanBackend final : public Backend {
 public:
  VulkanBackend(const Model& model, std::unique_ptr<VulkanDevice> device, Counts& counts)
      : model_(model),
        sizes_(model.sizes),
        counts_(counts),
        device_(std::move(device)),
        stream_(*device_, counts),
        row_(model.sizes.embedding) {}

  // Makes buffers and kernels, and uploads the weights; the first call.
  Result<void> prepare() {
    WEIR_TRY(kernels_, make_vulkan_kernels(*device_));
    for (std::size_t i = 0; i < k_slots; ++i) {
      const std::uint32_t size = slot_size(static_cast<Slot>(i), sizes_);
      WEIR_TRY(slots_[i], make_floats(size, Memory::device));
      WEIR_TRY(copies_[i], make_floats(size, Memory::host));
    }
    const std::uint64_t cached = std::uint64_t{sizes_.context} * sizes_.keys();
    keys_.resize(sizes_.layers);
    values_.resize(sizes_.layers);
    for (std::uint32_t i = 0; i < sizes_.layers; ++i) {
      WEIR_TRY(keys_[i], make_floats(cached, Memory::device));
      WEIR_TRY(values_[i], make_floats(cached, Memory::device));
    }
    WEIR_TRY(scores_, make_floats(std::uint64_t{sizes_.heads} * sizes_.context, Memory::device));
    WEIR_TRY(angles_, make_floats(std::uint64_t{sizes_.context} * sizes_.head, Memory::device));
    WEIR_TRY(chosen_, device_->make_buffer(sizeof(Chosen), Memory::host));
    WEIR_TRY(staging_, device_->make_buffer(k_staging_bytes, Memory::host));
    WEIR_CHECK(upload_all());
    stream_.label("tokens");
    return {};
  }

  std::string name() const override { return "Vulkan"; }
  std::string device() const override { return device_->name(); }

  // The CPU looks up the one row, as a dispatch takes longer. It counts as an op on the CPU and is
  // allowed by name (missing.hpp).
  void embed(std::uint32_t token) override {
    const Op op(counts_, "GET_ROWS", Where::cpu);
    unpack_row(model_.embedding, token, row_);
    write(Slot::state, row_);
  }

  void rms_norm(Slot in, const Tensor& weights, Slot out) override {
    const Op op(counts_, "RMS_NORM");
    run(kernels_.rms_norm, {slot(in), find_weights(weights), slot(out)},
        {sizes_.embedding, std::bit_cast<std::uint32_t>(sizes_.epsilon)}, 1);
  }

  void multiply(Slot in, std::span<const Product> products, Output into) override {
    const Op op(counts_, "MUL_MAT");
    const auto type = products.front().weights.type;
    const bool same_type =
        products.size() <= k_batch && std::ranges::all_of(products, [&](const Product& product) {
          return product.weights.type == type;
        });
    if (same_type) {
      multiply_together(in, products, into);
    } else {
      for (const Product& product : products) multiply_together(in, {&product, 1}, into);
    }
    stream_.barrier();
  }

  void rotate_and_store(std::uint32_t layer, std::uint32_t position) override {
    const Op op(counts_, "ROPE");
    const std::uint32_t pairs = sizes_.queries() / 2;
    run(kernels_.rotate,
        {slot(Slot::query), slot(Slot::key), slot(Slot::value), keys_[layer], values_[layer],
         angles_},
        {pairs, sizes_.keys() / 2, sizes_.head / 2, position}, divide_up(pairs, 64));
  }

  void attend(std::uint32_t layer, std::uint32_t position) override {
    const Op op(counts_, "ATTENTION");
    run(kernels_.attend,
        {slot(Slot::query), keys_[layer], values_[layer], scores_, slot(Slot::attended)},
        {sizes_.head, sizes_.keys(), sizes_.heads / sizes_.kv_heads, position + 1, sizes_.context},
        sizes_.heads);
  }

  void activate() override {
    const Op op(counts_, "SWIGLU");
    run(kernels_.activate, {slot(Slot::gate), slot(Slot::up)}, {sizes_.feed_forward},
        divide_up(sizes_.feed_forward, 64));
  }

  void gate_and_up(Slot in, const Tensor& gate, const Tensor& up) override {
    if (gate.type != up.type) {  // no kernel reads both: nothing to fuse
      const std::array products{Product{gate, Slot::gate}, Product{up, Slot::up}};
      multiply(in, products, Output::overwrite);
      activate();
      return;
    }
    const Op op(counts_, "GATE_UP_SWIGLU");
    run(kernels_.for_type(gate.type).gate_up,
        {slot(in), find_weights(gate), find_weights(up), slot(Slot::gate)},
        {gate.columns, gate.rows}, std::min(gate.rows, k_max_groups));
  }

  void select_token(bool share) override {
    run_on_logits("ARGMAX", kernels_.choose);
    share_ = Share::none;
    if (share) share_ = sizes_.vocabulary < k_softmax_on_gpu_from ? Share::on_cpu : Share::on_gpu;
    if (share_ == Share::on_gpu) {
      run_on_logits("SOFT_MAX", kernels_.share);
    } else if (share_ == Share::on_cpu) {
      copy_out(Slot::logits);
    }
  }

  Result<void> finish() override {
    WEIR_CHECK(stream_.finish());
    Chosen chosen{};
    std::memcpy(&chosen, chosen_.mapped, sizeof chosen);
    // On a device twin nothing was computed.
    token_ = std::min(chosen.token, sizes_.vocabulary - 1);
    share_of_token_.reset();
    if (share_ == Share::on_gpu) share_of_token_ = chosen.share;
    if (share_ == Share::on_cpu) share_of_token_ = small_softmax();
    share_ = Share::none;
    return {};
  }

  std::uint32_t selected_token() const override { return token_; }
  std::optional<float> chosen_share() const override { return share_of_token_; }

  void copy_out(Slot which) override {
    const Buffer& to = copies_[static_cast<std::size_t>(which)];
    stream_.copy(slot(which), to, Copy::to_host, to.bytes);
    stream_.barrier();
  }
  Result<void> wait() override { return stream_.finish(); }
  std::vector<float> copied(Slot which) const override {
    std::vector<float> values(slot_size(which, sizes_));
    std::memcpy(values.data(), copies_[static_cast<std::size_t>(which)].mapped,
                values.size() * sizeof(float));
    return values;
  }
  void write(Slot which, std::span<const float> values) override {
    stream_.update(slot(which), std::as_bytes(values));
    stream_.barrier();
  }
  void barrier() override { stream_.barrier(); }
  Result<void> use_worse_kernels() override { return use_serial_kernels(*device_, kernels_); }

 private:
  enum class Share { none, on_gpu, on_cpu };
  // The place and size of weights in the file: matrices of a hostile file may overlap.
  using Place = std::pair<const std::byte*, std::size_t>;
  static Place place(const Tensor& tensor) { return {tensor.bytes.data(), tensor.bytes.size()}; }

  Buffer& slot(Slot which) { return slots_[static_cast<std::size_t>(which)]; }
  const Buffer& find_weights(const Tensor& tensor) const { return weights_.at(place(tensor)); }

  Result<Buffer> make_floats(std::uint64_t count, Memory where) {
    if (count * sizeof(float) > device_->max_buffer_bytes()) {
      return missing_kernel("vulkan", fmt::format("buffer of {} MiB", count * 4 >> 20),
                            "use --backend cpu", "ask for a shorter context");
    }
    return device_->make_buffer(count * sizeof(float), where);
  }

  void run(const Kernel& kernel, std::initializer_list<Buffer> buffers,
           std::initializer_list<std::uint32_t> push, std::uint32_t groups) {
    std::array<VkBuffer, k_bindings> handles{};
    std::ranges::transform(buffers, handles.begin(), &Buffer::handle);
    stream_.dispatch(kernel, {handles.data(), buffers.size()}, {push.begin(), push.size()}, groups);
    stream_.barrier();
  }

  // Runs a kernel of one workgroup over the logits.
  void run_on_logits(const char* name, const Kernel& kernel) {
    const Op op(counts_, name);
    run(kernel, {slot(Slot::logits), chosen_}, {sizes_.vocabulary}, 1);
  }

  void multiply_together(Slot in, std::span<const Product> products, Output into) {
    // multiply.comp takes three matrices: the first, with no rows, fills places that are left.
    std::array<VkBuffer, 1 + 2 * k_batch> buffers{slot(in).handle};
    std::array<std::uint32_t, 5> push{products[0].weights.columns, 0, 0, 0,
                                      into == Output::add ? 1U : 0U};
    std::uint32_t rows = 0;
    for (std::size_t i = 0; i < k_batch; ++i) {
      const Product& product = products[i < products.size() ? i : 0];
      buffers[1 + i] = find_weights(product.weights).handle;
      buffers[1 + k_batch + i] = slot(product.out).handle;
      push[1 + i] = i < products.size() ? product.weights.rows : 0;
      rows += push[1 + i];
    }
    stream_.dispatch(kernels_.for_type(products[0].weights.type).multiply, buffers, push,
                     std::min(rows, k_max_groups));
  }

  // The second and last kind of op that the CPU does here: see missing.hpp.
  float small_softmax() {
    const Op op(counts_, "SOFT_MAX", Where::cpu);
    std::vector<float> all = copied(Slot::logits);
    const float sum = exponentials(all);
    return all[token_] / sum;
  }

  Result<void> upload_all() {
    WEIR_CHECK(upload_norm(model_.output_norm));
    WEIR_CHECK(upload_matrix(model_.output));
    for (const Layer& layer : model_.layers) {
      WEIR_CHECK(upload_norm(layer.attention_norm));
      WEIR_CHECK(upload_norm(layer.ffn_norm));
      for (const Tensor* matrix : {&layer.query, &layer.key, &layer.value, &layer.output,
                                   &layer.gate, &layer.up, &layer.down}) {
        WEIR_CHECK(upload_matrix(*matrix));
      }
    }
    std::vector<float> angles(std::size_t{sizes_.context} * sizes_.head);
    for (std::uint32_t position = 0; position < sizes_.context; ++position) {
      angles_at(model_, position,
                std::span(angles).subspan(std::size_t{position} * sizes_.head, sizes_.head));
    }
    return upload(std::as_bytes(std::span(angles)), angles_);
  }

  Result<void> upload_norm(const Tensor& tensor) {
    std::vector<float> values(tensor.columns);
    unpack_row(tensor, 0, values);
    return upload_new(tensor, std::as_bytes(std::span(values)));
  }

  Result<void> upload_matrix(const Tensor& tensor) {
    if (tensor.columns % 2 != 0) {
      return missing_kernel("vulkan", fmt::format("odd row length of {}", tensor.name),
                            "use --backend cpu", "take a model with even sizes");
    }
    const std::vector<std::uint32_t> words = pack(tensor);
    return upload_new(tensor, std::as_bytes(std::span(words)));
  }

  Result<void> upload_new(const Tensor& tensor, std::span<const std::byte> bytes) {
    if (bytes.size() > device_->max_buffer_bytes()) {
      return missing_kernel("vulkan", fmt::format("matrix of {} MiB", bytes.size() >> 20),
                            "use --backend cpu", "take a smaller model");
    }
    WEIR_TRY(const Buffer buffer, device_->make_buffer(bytes.size(), Memory::device));
    weights_[place(tensor)] = buffer;
    return upload(bytes, buffer);
  }

  Result<void> upload(std::span<const std::byte> bytes, const Buffer& to) {
    for (std::uint64_t at = 0; at < bytes.size(); at += k_staging_bytes) {
      const auto part =
          bytes.subspan(at, std::min<std::uint64_t>(k_staging_bytes, bytes.size() - at));
      std::memcpy(staging_.mapped, part.data(), part.size());
      stream_.copy(staging_, to, Copy::to_device, part.size(), at);
      stream_.barrier();
      WEIR_CHECK(stream_.finish());
    }
    return {};
  }

  const Model& model_;
  const Sizes& sizes_;
  Counts& counts_;
  std::unique_ptr<VulkanDevice> device_;
  VulkanStream stream_;
  VulkanKernels kernels_;
  std::array<Buffer, k_slots> slots_, copies_;  // copies: what the host sees of them
  std::vector<Buffer> keys_, values_;           // one a layer
  Buffer scores_, angles_, chosen_, staging_;
  std::map<Place, Buffer> weights_;
  std::vector<float> row_;
  Share share_ = Share::none;
  std::uint32_t token_ = 0;
  std::optional<float> share_of_token_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_vulkan_backend(const Model& model, unsigned device,
                                                     Counts& counts) {
  WEIR_CHECK(check_types(model, "vulkan", vulkan_multiplies));
  WEIR_TRY(auto opened, VulkanDevice::open(device));
  counts.works_on("vulkan", opened->type(), opened->name());
  auto backend = std::make_unique<VulkanBackend>(model, std::move(opened), counts);
  WEIR_CHECK(backend->prepare());
  return backend;
}

}  // namespace weir::engine

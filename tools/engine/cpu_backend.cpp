// The CPU backend: each op runs on the threads of Workers, by the kernels of cpu_kernels.hpp.
#include <algorithm>
#include <array>
#include <cmath>

#include "tools/engine/backend.hpp"
#include "tools/engine/cpu_kernels.hpp"
#include "tools/engine/types.hpp"
#include "tools/engine/workers.hpp"

namespace weir::engine {
namespace {

// A thread takes at least so many rows: fewer are done before a second thread would wake up.
constexpr std::uint32_t k_min_rows = 32;

class CpuBackend final : public Backend {
 public:
  CpuBackend(const Model& model, unsigned threads, Counts& counts)
      : model_(model), sizes_(model.sizes), counts_(counts), threads_(threads), workers_(threads) {
    for (std::size_t i = 0; i < k_slots; ++i) {
      slots_[i].resize(slot_size(static_cast<Slot>(i), sizes_));
    }
    const std::size_t cached = std::size_t{sizes_.layers} * sizes_.context * sizes_.keys();
    keys_.resize(cached);
    values_.resize(cached);
    scores_.resize(std::size_t{sizes_.heads} * sizes_.context);
    norm_.resize(sizes_.embedding);
    angles_.resize(sizes_.head);
  }

  std::string name() const override { return "CPU"; }
  std::string device() const override { return instruction_set(); }

  void embed(std::uint32_t token) override {
    const Op op(counts_, "GET_ROWS");
    unpack_row(model_.embedding, token, slot(Slot::state));
  }

  void rms_norm(Slot in, const Tensor& weights, Slot out) override {
    const Op op(counts_, "RMS_NORM");
    const std::span<const float> x = slot(in);
    unpack_row(weights, 0, norm_);
    const float scale = 1 / std::sqrt(dot(x, x) / static_cast<float>(x.size()) + sizes_.epsilon);
    const std::span<float> y = slot(out);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * norm_[i];
  }

  void multiply(Slot in, std::span<const Product> products, Output into) override {
    const Op op(counts_, "MUL_MAT");
    const Operand x = operand(in, products);
    std::uint32_t rows = 0;
    for (const Product& product : products) rows += product.weights.rows;
    // The rows of all products, one after the other, are cut into parts of the same length.
    workers_.share(rows, k_min_rows, [&](std::uint32_t first, std::uint32_t last) {
      std::uint32_t start = 0;
      for (const Product& product : products) {
        const std::uint32_t end = start + product.weights.rows;
        const std::uint32_t from = std::max(first, start), to = std::min(last, end);
        if (from < to) {
          multiply_some_rows(product, from - start, to - start, x, into);
        }
        start = end;
      }
    });
  }

  void rotate_and_store(std::uint32_t layer, std::uint32_t position) override {
    const Op op(counts_, "ROPE");
    angles_at(model_, position, angles_);
    rotate(slot(Slot::query));
    rotate(slot(Slot::key));
    std::ranges::copy(slot(Slot::key), cached(keys_, layer, position).begin());
    std::ranges::copy(slot(Slot::value), cached(values_, layer, position).begin());
  }

  void attend(std::uint32_t layer, std::uint32_t position) override {
    const Op op(counts_, "ATTENTION");
    workers_.share(sizes_.heads, 1, [&](std::uint32_t first, std::uint32_t last) {
      for (std::uint32_t head = first; head < last; ++head) attend_head(layer, position, head);
    });
  }

  void activate() override {
    const Op op(counts_, "SWIGLU");
    silu_times(slot(Slot::gate), slot(Slot::up));
  }

  void gate_and_up(Slot in, const Tensor& gate, const Tensor& up) override {
    const Op op(counts_, "GATE_UP_SWIGLU");
    const std::array products{Product{gate, Slot::gate}, Product{up, Slot::up}};
    const Operand x = operand(in, products);
    workers_.share(gate.rows, k_min_rows, [&](std::uint32_t first, std::uint32_t last) {
      for (const Product& product : products) {
        multiply_some_rows(product, first, last, x, Output::overwrite);
      }
      silu_times(slot(Slot::gate).subspan(first, last - first),
                 slot(Slot::up).subspan(first, last - first));
    });
  }

  void select_token(bool share) override {
    find_largest();
    share_.reset();
    if (share) share_ = softmax_of_chosen();
  }

  Result<void> finish() override { return {}; }
  std::uint32_t selected_token() const override { return chosen_; }
  std::optional<float> chosen_share() const override { return share_; }

  void copy_out(Slot) override {}
  Result<void> wait() override { return {}; }
  std::vector<float> copied(Slot which) const override {
    return slots_[static_cast<std::size_t>(which)];
  }
  void write(Slot which, std::span<const float> values) override {
    std::ranges::copy(values, slot(which).begin());
  }
  void barrier() override {
    workers_.share(threads_, 1, [](std::uint32_t, std::uint32_t) {});
  }
  Result<void> use_worse_kernels() override {
    use_simplest_kernels();
    return {};
  }

 private:
  std::span<float> slot(Slot which) { return slots_[static_cast<std::size_t>(which)]; }

  // Returns the keys or values of one position in one layer's cache.
  std::span<float> cached(std::vector<float>& cache, std::uint32_t layer, std::uint32_t position) {
    const std::size_t at = std::size_t{layer} * sizes_.context + position;
    return std::span(cache).subspan(at * sizes_.keys(), sizes_.keys());
  }

  void find_largest() {
    const Op op(counts_, "ARGMAX");
    const std::span<float> logits = slot(Slot::logits);
    chosen_ = static_cast<std::uint32_t>(std::ranges::max_element(logits) - logits.begin());
  }

  float softmax_of_chosen() {
    const Op op(counts_, "SOFT_MAX");
    std::vector<float> all = slots_[static_cast<std::size_t>(Slot::logits)];
    const float sum = exponentials(all);
    return all[chosen_] / sum;
  }

  Operand operand(Slot in, std::span<const Product> products) {
    const bool quantized = std::ranges::any_of(
        products, [](const Product& product) { return needs_quantized(product.weights.type); });
    if (quantized) quantize(slot(in), quantized_);
    return {slot(in).data(), &quantized_};
  }

  void multiply_some_rows(const Product& product, std::uint32_t first, std::uint32_t last,
                          const Operand& x, Output into) {
    const Tensor& w = product.weights;
    multiply_rows(w.type, w.bytes.data() + first * w.row_bytes, w.row_bytes, w.columns,
                  last - first, x, into == Output::add, slot(product.out).data() + first);
  }

  // Rotates pairs of neighbours, as llama's own weights need it.
  void rotate(std::span<float> heads) {
    for (std::size_t i = 0; i + 1 < heads.size(); i += 2) {
      const float cosine = angles_[i % angles_.size()], sine = angles_[i % angles_.size() + 1];
      const float a = heads[i], b = heads[i + 1];
      heads[i] = a * cosine - b * sine;
      heads[i + 1] = a * sine + b * cosine;
    }
  }

  void attend_head(std::uint32_t layer, std::uint32_t position, std::uint32_t head) {
    const std::size_t size = sizes_.head;
    const std::size_t kv = head / (sizes_.heads / sizes_.kv_heads) * size;
    const auto query = slot(Slot::query).subspan(head * size, size);
    const auto out = slot(Slot::attended).subspan(head * size, size);
    const auto scores =
        std::span(scores_).subspan(std::size_t{head} * sizes_.context, position + 1);
    const float scale = 1 / std::sqrt(static_cast<float>(size));
    for (std::uint32_t at = 0; at <= position; ++at) {
      scores[at] = scale * dot(query, cached(keys_, layer, at).subspan(kv, size));
    }
    const float sum = exponentials(scores);
    std::ranges::fill(out, 0.0F);
    for (std::uint32_t at = 0; at <= position; ++at) {
      add_scaled(scores[at] / sum, cached(values_, layer, at).subspan(kv, size), out);
    }
  }

  const Model& model_;
  const Sizes& sizes_;
  Counts& counts_;
  unsigned threads_;
  Workers workers_;
  std::array<std::vector<float>, k_slots> slots_;
  std::vector<float> keys_, values_, scores_, norm_, angles_;
  Quantized quantized_;
  std::uint32_t chosen_ = 0;
  std::optional<float> share_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_cpu_backend(const Model& model, unsigned threads,
                                                  Counts& counts) {
  WEIR_CHECK(check_types(model, "cpu", cpu_multiplies));
  counts.works_on("cpu", "cpu", instruction_set());
  return std::make_unique<CpuBackend>(model, threads, counts);
}

}  // namespace weir::engine

// Measures the reference engine's ops of one token, at the sizes of real models, on one thread of
// the CPU and on Vulkan: bytes and floating-point operations a second (README.md).
//
//   micro --benchmark_filter='multiply.*Q4_0.*/cpu'
#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "benchmarks/micro/shapes.hpp"
#include "tools/engine/backend.hpp"

namespace {

using namespace weir;
using engine::Backend;
using engine::Layer;
using engine::Product;
using engine::Slot;
using engine::Tensor;
using micro::Shape;

enum class Device { cpu, vulkan };

// A backend with its model.
class Bench {
 public:
  Bench(const Shape& shape, model::TensorType type, Device device)
      : model_(micro::make_model(shape, type)) {
    auto backend = device == Device::cpu ? engine::make_cpu_backend(model_.model, 1, counts_)
                                         : engine::make_vulkan_backend(model_.model, 0, counts_);
    if (backend) {
      backend_ = std::move(*backend);
      warm_up();
    } else {
      error_ = backend.error().message;
    }
  }
  [[nodiscard]] Backend& backend() { return *backend_; }
  [[nodiscard]] const Layer& layer() const { return model_.model.layers.front(); }
  [[nodiscard]] const engine::Sizes& sizes() const { return model_.model.sizes; }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  // Fills every slot, and the cache at every position.
  void warm_up() {
    for (std::size_t i = 0; i < engine::k_slots; ++i) {
      const auto slot = static_cast<Slot>(i);
      backend_->write(slot, std::vector<float>(engine::slot_size(slot, sizes()), 0.01F));
    }
    for (std::uint32_t at = 0; at < micro::k_context; ++at) backend_->rotate_and_store(0, at);
    if (auto result = backend_->finish(); !result) error_ = result.error().message;
  }

  micro::MadeModel model_;
  engine::Counts counts_;
  std::unique_ptr<Backend> backend_;
  std::string error_;
};

// Returns the bench (model and backend) of these arguments. Only the last one is kept: large models
// take hundreds of MiB.
Bench& get_bench(const Shape& shape, model::TensorType type, Device device) {
  struct Current {
    const Shape* shape;
    model::TensorType type;
    Device device;
    std::unique_ptr<Bench> bench;
  };
  static Current current{nullptr, model::TensorType::f32, Device::cpu, nullptr};
  if (current.shape != &shape || current.type != type || current.device != device) {
    current.bench.reset();  // frees its memory first
    current = {&shape, type, device, std::make_unique<Bench>(shape, type, device)};
  }
  return *current.bench;
}

// The work of one op, computed from the model's sizes. Weights, cache and vectors count as read and
// written once.
struct Cost {
  double flops = 0, bytes = 0;
};
// Cost of multiplying one vector by each of the matrices.
Cost multiply_cost(std::initializer_list<const Tensor*> matrices) {
  Cost cost;
  for (const Tensor* matrix : matrices) {
    cost.flops += 2.0 * matrix->rows * matrix->columns;
    cost.bytes += static_cast<double>(matrix->bytes.size()) + 4.0 * matrix->rows;
  }
  cost.bytes += 4.0 * (*matrices.begin())->columns;  // the vector
  return cost;
}

struct Op {
  std::string name;
  bool depends_on_type;  // the type of the weights
  std::function<void(Bench&)> run;
  std::function<Cost(const Bench&)> cost;
};

// Attention over `length` positions of the cache.
Op attention(std::uint32_t length) {
  return {fmt::format("attend/{}", length), false,
          [length](Bench& bench) { bench.backend().attend(0, length - 1); },
          [length](const Bench& bench) {
            const auto& sizes = bench.sizes();
            return Cost{4.0 * sizes.queries() * length,
                        4.0 * (2.0 * sizes.keys() * length + 2.0 * sizes.queries())};
          }};
}

// The ops that are measured.
std::vector<Op> make_ops() {
  using engine::Output;
  std::vector<Op> ops = {
      {"multiply/qkv", true,
       [](Bench& bench) {
         const Layer& layer = bench.layer();
         const std::array products{Product{layer.query, Slot::query}, Product{layer.key, Slot::key},
                                   Product{layer.value, Slot::value}};
         bench.backend().multiply(Slot::normed, products, Output::overwrite);
       },
       [](const Bench& bench) {
         const Layer& layer = bench.layer();
         return multiply_cost({&layer.query, &layer.key, &layer.value});
       }},
      {"multiply/down", true,
       [](Bench& bench) {
         const std::array products{Product{bench.layer().down, Slot::state}};
         bench.backend().multiply(Slot::gate, products, Output::overwrite);
       },
       [](const Bench& bench) { return multiply_cost({&bench.layer().down}); }},
      {"gate_up", true,
       [](Bench& bench) {
         bench.backend().gate_and_up(Slot::normed, bench.layer().gate, bench.layer().up);
       },
       [](const Bench& bench) {
         return multiply_cost({&bench.layer().gate, &bench.layer().up});
       }},
      {"rms_norm", false,
       [](Bench& bench) {
         bench.backend().rms_norm(Slot::state, bench.layer().ffn_norm, Slot::normed);
       },
       [](const Bench& bench) {
         const double width = bench.sizes().embedding;
         return Cost{4 * width, 4 * 3 * width};
       }},
      {"rotate", false, [](Bench& bench) { bench.backend().rotate_and_store(0, 0); },
       [](const Bench& bench) {
         const double rotated = bench.sizes().queries() + bench.sizes().keys();
         return Cost{3 * rotated, 4 * (2 * rotated + 3.0 * bench.sizes().keys())};
       }},
      {"silu_times", false, [](Bench& bench) { bench.backend().activate(); },
       [](const Bench& bench) {
         const double width = bench.sizes().feed_forward;
         return Cost{5 * width, 4 * 3 * width};
       }},
  };
  for (const std::uint32_t length : {128U, 1024U, 4096U}) ops.push_back(attention(length));
  return ops;
}

// Runs one op repeatedly and reports its bytes and floating-point operations a second.
void measure(benchmark::State& state, const Shape& shape, model::TensorType type, Device device,
             const Op& op) {
  Bench& bench = get_bench(shape, type, device);
  if (!bench.error().empty()) {
    state.SkipWithError(bench.error().c_str());
    return;
  }
  // On Vulkan one submission has several ops, so that they share its cost.
  const int at_once = device == Device::cpu ? 1 : 16;
  for ([[maybe_unused]] auto step : state) {
    for (int i = 0; i < at_once; ++i) op.run(bench);
    if (auto result = bench.backend().finish(); !result) {
      state.SkipWithError(result.error().message.c_str());
      return;
    }
  }
  const Cost cost = op.cost(bench);
  const double times = static_cast<double>(state.iterations()) * at_once;
  using benchmark::Counter;
  state.counters["B/s"] = Counter(cost.bytes * times, Counter::kIsRate, Counter::kIs1024);
  state.counters["FLOP/s"] = Counter(cost.flops * times, Counter::kIsRate);
  state.counters["each"] = Counter(times, Counter::kIsRate | Counter::kInvert);
}

// Registers a benchmark of each op on each device, at each size and type of weights. An op that
// does not depend on the type is measured once.
void register_benchmarks() {
  using model::TensorType;
  for (const Device device : {Device::cpu, Device::vulkan}) {
    for (const Shape& shape : micro::k_shapes) {
      for (const TensorType type :
           {TensorType::q4_0, TensorType::q8_0, TensorType::f16, TensorType::f32}) {
        for (const Op& op : make_ops()) {
          if (!op.depends_on_type && type != TensorType::f32) continue;
          std::string name = fmt::format("{}/{}", op.name, shape.name);
          if (op.depends_on_type) name += fmt::format("/{}", model::tensor_type_info(type).name);
          name += device == Device::cpu ? "/cpu" : "/vulkan";
          auto* registered = benchmark::RegisterBenchmark(
              name.c_str(), [&shape, type, device, op](benchmark::State& state) {
                measure(state, shape, type, device, op);
              });
          // On the CPU the thread's processor time counts: other programs disturb it less.
          if (device == Device::vulkan) registered->UseRealTime();
        }
      }
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  register_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

// The reference engine's ops of one token, at the shapes of real models, on one thread of the CPU
// and on Vulkan: bytes and floating-point operations a second (README.md).
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

enum class On { cpu, vulkan };

// A backend with its model. One at a time: the larger ones are hundreds of MiB.
class Bench {
 public:
  Bench(const Shape& shape, model::TensorType type, On on) : made_(micro::make_model(shape, type)) {
    auto opened = on == On::cpu ? engine::make_cpu_backend(made_.model, 1, counts_)
                                : engine::make_vulkan_backend(made_.model, 0, counts_);
    if (opened) {
      backend_ = std::move(*opened);
      warm_up();
    } else {
      error_ = opened.error().message;
    }
  }
  [[nodiscard]] Backend& backend() { return *backend_; }
  [[nodiscard]] const Layer& layer() const { return made_.model.layers.front(); }
  [[nodiscard]] const engine::Sizes& sizes() const { return made_.model.sizes; }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  // Numbers in every slot, and in the cache of every position.
  void warm_up() {
    for (std::size_t i = 0; i < engine::k_slots; ++i) {
      const auto slot = static_cast<Slot>(i);
      backend_->write(slot, std::vector<float>(engine::slot_size(slot, sizes()), 0.01F));
    }
    for (std::uint32_t at = 0; at < micro::k_context; ++at) backend_->rotate_and_store(0, at);
    if (auto done = backend_->finish(); !done) error_ = done.error().message;
  }

  micro::MadeModel made_;
  engine::Counts counts_;
  std::unique_ptr<Backend> backend_;
  std::string error_;
};

Bench& bench_of(const Shape& shape, model::TensorType type, On on) {
  struct Open {
    const Shape* shape;
    model::TensorType type;
    On on;
    std::unique_ptr<Bench> bench;
  };
  static Open open{nullptr, model::TensorType::f32, On::cpu, nullptr};
  if (open.shape != &shape || open.type != type || open.on != on) {
    open.bench.reset();
    open = {&shape, type, on, std::make_unique<Bench>(shape, type, on)};
  }
  return *open.bench;
}

// What one op does, as the model's sizes say: weights, cache and vectors read and written once.
struct Cost {
  double flops = 0, bytes = 0;
};
Cost product(std::initializer_list<const Tensor*> all) {
  Cost out;
  for (const Tensor* one : all) {
    out.flops += 2.0 * one->rows * one->columns;
    out.bytes += static_cast<double>(one->bytes.size()) + 4.0 * one->rows;
  }
  out.bytes += 4.0 * (*all.begin())->columns;
  return out;
}

struct Work {
  std::string name;
  bool typed;  // differs by the type of the weights
  std::function<void(Bench&)> run;
  std::function<Cost(const Bench&)> cost;
};

Work attention(std::uint32_t length) {
  return {fmt::format("attend/{}", length), false,
          [length](Bench& bench) { bench.backend().attend(0, length - 1); },
          [length](const Bench& bench) {
            const auto& sizes = bench.sizes();
            return Cost{4.0 * sizes.queries() * length,
                        4.0 * (2.0 * sizes.keys() * length + 2.0 * sizes.queries())};
          }};
}

std::vector<Work> works() {
  using engine::Into;
  std::vector<Work> out = {
      {"multiply/qkv", true,
       [](Bench& bench) {
         const Layer& layer = bench.layer();
         const std::array products{Product{layer.query, Slot::query}, Product{layer.key, Slot::key},
                                   Product{layer.value, Slot::value}};
         bench.backend().multiply(Slot::normed, products, Into::replace);
       },
       [](const Bench& bench) {
         const Layer& layer = bench.layer();
         return product({&layer.query, &layer.key, &layer.value});
       }},
      {"multiply/down", true,
       [](Bench& bench) {
         const std::array products{Product{bench.layer().down, Slot::state}};
         bench.backend().multiply(Slot::gate, products, Into::replace);
       },
       [](const Bench& bench) { return product({&bench.layer().down}); }},
      {"gate_up", true,
       [](Bench& bench) {
         bench.backend().gate_and_up(Slot::normed, bench.layer().gate, bench.layer().up);
       },
       [](const Bench& bench) {
         return product({&bench.layer().gate, &bench.layer().up});
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
         const double turned = bench.sizes().queries() + bench.sizes().keys();
         return Cost{3 * turned, 4 * (2 * turned + 3.0 * bench.sizes().keys())};
       }},
      {"silu_times", false, [](Bench& bench) { bench.backend().activate(); },
       [](const Bench& bench) {
         const double width = bench.sizes().feed_forward;
         return Cost{5 * width, 4 * 3 * width};
       }},
  };
  for (const std::uint32_t length : {128U, 1024U, 4096U}) out.push_back(attention(length));
  return out;
}

void measure(benchmark::State& state, const Shape& shape, model::TensorType type, On on,
             const Work& work) {
  Bench& bench = bench_of(shape, type, on);
  if (!bench.error().empty()) {
    state.SkipWithError(bench.error().c_str());
    return;
  }
  // On a device several in one submission, so that its cost is not taken for the kernel's.
  const int at_once = on == On::cpu ? 1 : 16;
  for ([[maybe_unused]] auto step : state) {
    for (int i = 0; i < at_once; ++i) work.run(bench);
    if (auto done = bench.backend().finish(); !done) {
      state.SkipWithError(done.error().message.c_str());
      return;
    }
  }
  const Cost cost = work.cost(bench);
  const double times = static_cast<double>(state.iterations()) * at_once;
  using benchmark::Counter;
  state.counters["B/s"] = Counter(cost.bytes * times, Counter::kIsRate, Counter::kIs1024);
  state.counters["FLOP/s"] = Counter(cost.flops * times, Counter::kIsRate);
  state.counters["each"] = Counter(times, Counter::kIsRate | Counter::kInvert);
}

void add_all() {
  using model::TensorType;
  for (const On on : {On::cpu, On::vulkan}) {
    for (const Shape& shape : micro::k_shapes) {
      for (const TensorType type :
           {TensorType::q4_0, TensorType::q8_0, TensorType::f16, TensorType::f32}) {
        for (const Work& work : works()) {
          if (!work.typed && type != TensorType::f32) continue;
          const std::string name = fmt::format(
              "{}/{}{}/{}", work.name, shape.name,
              work.typed ? fmt::format("/{}", model::tensor_type_info(type).name) : std::string(),
              on == On::cpu ? "cpu" : "vulkan");
          auto* one = benchmark::RegisterBenchmark(
              name.c_str(), [&shape, type, on, work](benchmark::State& state) {
                measure(state, shape, type, on, work);
              });
          // On the CPU the thread's own time: others on the machine disturb that less.
          if (on == On::vulkan) one->UseRealTime();
        }
      }
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  add_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

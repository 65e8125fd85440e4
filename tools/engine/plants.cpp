#include "tools/engine/plants.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "tools/engine/cpu_kernels.hpp"

namespace weir::engine {
namespace {

struct Known {
  Plant plant;
  const char *name, *what;
  bool on_cpu;           // the CPU backend has something to spoil, too
  const char* cpu_does;  // there; "": the same
};
constexpr std::array k_known = {
    Known{Plant::cpu_split, "cpu-split",
          "the query is read back, split into heads by memcpy, and sent again, in each layer",
          false, ""},
    Known{Plant::op_on_cpu, "op-on-cpu", "SWIGLU is done by the CPU, in each layer", false, ""},
    Known{Plant::unbatched_qkv, "unbatched-qkv",
          "query, key and value are three dispatches in place of one", true,
          "three ops in place of one"},
    Known{Plant::lost_fusion, "lost-fusion", "with --fused-ffn: gate, up and activation run apart",
          true, ""},
    Known{Plant::extra_barriers, "extra-barriers", "a second barrier behind each op", true,
          "all threads meet behind each op"},
    Known{Plant::extra_copy, "extra-copy", "the logits are copied to the host, for nobody", false,
          ""},
    Known{Plant::slow_kernel, "slow-kernel", "products by one thread a row: multiply_*_serial",
          true, "the kernels of the oldest instruction set"},
};

const Known& known(Plant plant) { return *std::ranges::find(k_known, plant, &Known::plant); }

std::string names(bool only_on_cpu) {
  std::string all;
  for (const Known& one : k_known) {
    if (only_on_cpu && !one.on_cpu) continue;
    all += (all.empty() ? "" : ", ") + std::string(one.name);
  }
  return all;
}

// A backend as it is: what the faults below are made of.
class AsItIs : public Backend {
 public:
  explicit AsItIs(std::unique_ptr<Backend> below) : below_(std::move(below)) {}

  std::string name() const override { return below_->name(); }
  std::string device() const override { return below_->device(); }
  void embed(std::uint32_t token) override { below_->embed(token); }
  void rms_norm(Slot in, const Tensor& weights, Slot out) override {
    below_->rms_norm(in, weights, out);
  }
  void multiply(Slot in, std::span<const Product> products, Into into) override {
    below_->multiply(in, products, into);
  }
  void rotate_and_store(std::uint32_t layer, std::uint32_t position) override {
    below_->rotate_and_store(layer, position);
  }
  void attend(std::uint32_t layer, std::uint32_t position) override {
    below_->attend(layer, position);
  }
  void activate() override { below_->activate(); }
  void gate_and_up(Slot in, const Tensor& gate, const Tensor& up) override {
    below_->gate_and_up(in, gate, up);
  }
  void choose(bool share) override { below_->choose(share); }
  // What went wrong in an op comes out here, as in any backend.
  Result<void> finish() override {
    Result<void> ended = below_->finish();
    Result<void> before = std::exchange(so_far_, {});
    return before ? ended : before;
  }
  std::uint32_t chosen() const override { return below_->chosen(); }
  std::optional<float> chosen_share() const override { return below_->chosen_share(); }
  void copy_out(Slot slot) override { below_->copy_out(slot); }
  Result<void> wait() override { return below_->wait(); }
  std::vector<float> copied(Slot slot) const override { return below_->copied(slot); }
  void write(Slot slot, std::span<const float> values) override { below_->write(slot, values); }
  void barrier() override { below_->barrier(); }
  Result<void> take_worse_kernels() override { return below_->take_worse_kernels(); }

 protected:
  Backend& below() { return *below_; }
  // Brings slots to the host and waits for them. false: it failed, and finish() will say so.
  bool bring(std::initializer_list<Slot> slots) {
    for (const Slot slot : slots) below_->copy_out(slot);
    Result<void> ended = below_->wait();
    if (so_far_) so_far_ = std::move(ended);
    return so_far_.has_value();
  }

 private:
  std::unique_ptr<Backend> below_;
  Result<void> so_far_;  // the first failure since finish()
};

// As the split of query and gate of a hybrid model was done once. A memcpy is no op of the model's,
// and so no profiler of ops sees it: the device does, which is waited for in each layer.
class CpuSplit final : public AsItIs {
 public:
  CpuSplit(std::unique_ptr<Backend> below, const Sizes& sizes)
      : AsItIs(std::move(below)), head_(sizes.head) {}

  void rotate_and_store(std::uint32_t layer, std::uint32_t position) override {
    if (bring({Slot::query})) {
      const std::vector<float> whole = below().copied(Slot::query);
      std::vector<float> heads(whole.size());
      for (std::size_t at = 0; at < whole.size(); at += head_) {
        std::memcpy(heads.data() + at, whole.data() + at, head_ * sizeof(float));
      }
      below().write(Slot::query, heads);
    }
    below().rotate_and_store(layer, position);
  }

 private:
  std::size_t head_;
};

// As where a backend lacks a kernel and the engine falls back in silence. It is an op on the CPU
// that cpu_ops_allowed does not name.
class OpOnCpu final : public AsItIs {
 public:
  OpOnCpu(std::unique_ptr<Backend> below, Counts& counts)
      : AsItIs(std::move(below)), counts_(counts) {}

  void activate() override {
    const Op op(counts_, "SWIGLU", Where::cpu);
    if (!bring({Slot::gate, Slot::up})) return;
    std::vector<float> gate = below().copied(Slot::gate);
    silu_times(gate, below().copied(Slot::up));
    below().write(Slot::gate, gate);
  }

 private:
  Counts& counts_;
};

class UnbatchedQkv final : public AsItIs {
 public:
  using AsItIs::AsItIs;
  void multiply(Slot in, std::span<const Product> products, Into into) override {
    if (products.front().out != Slot::query) return below().multiply(in, products, into);
    for (const Product& product : products) below().multiply(in, {&product, 1}, into);
  }
};

class LostFusion final : public AsItIs {
 public:
  using AsItIs::AsItIs;
  void gate_and_up(Slot in, const Tensor& gate, const Tensor& up) override {
    const std::array products{Product{gate, Slot::gate}, Product{up, Slot::up}};
    below().multiply(in, products, Into::replace);
    below().activate();
  }
};

class ExtraBarriers final : public AsItIs {
 public:
  using AsItIs::AsItIs;
  void embed(std::uint32_t token) override {
    below().embed(token);
    below().barrier();
  }
  void rms_norm(Slot in, const Tensor& weights, Slot out) override {
    below().rms_norm(in, weights, out);
    below().barrier();
  }
  void multiply(Slot in, std::span<const Product> products, Into into) override {
    below().multiply(in, products, into);
    below().barrier();
  }
  void rotate_and_store(std::uint32_t layer, std::uint32_t position) override {
    below().rotate_and_store(layer, position);
    below().barrier();
  }
  void attend(std::uint32_t layer, std::uint32_t position) override {
    below().attend(layer, position);
    below().barrier();
  }
  void activate() override {
    below().activate();
    below().barrier();
  }
  void gate_and_up(Slot in, const Tensor& gate, const Tensor& up) override {
    below().gate_and_up(in, gate, up);
    below().barrier();
  }
  void choose(bool share) override {
    below().choose(share);
    below().barrier();
  }
};

// A left-over of a debugging session: the device finds the largest by itself.
class ExtraCopy final : public AsItIs {
 public:
  using AsItIs::AsItIs;
  void choose(bool share) override {
    below().copy_out(Slot::logits);
    below().choose(share);
  }
};

}  // namespace

Result<Plant> parse_plant(const std::string& name) {
  const auto* const found =
      std::ranges::find_if(k_known, [&](const Known& one) { return one.name == name; });
  if (found != k_known.end()) return found->plant;
  return fail(Code::usage, "--inject {}: no such regression\n  known here: {}", name, names(false));
}

std::string plants_text() {
  std::string text = "Regressions that --inject brings in:\n";
  for (const Known& one : k_known) {
    text += fmt::format("  {:<15} {}\n", one.name, one.what);
    text += one.on_cpu ? fmt::format("  {:<15} (CPU: {})\n", "",
                                     *one.cpu_does == '\0' ? "the same" : one.cpu_does)
                       : fmt::format("  {:<15} (not on the CPU backend)\n", "");
  }
  return text;
}

Result<void> check_plants(std::span<const Plant> plants, const Ground& ground) {
  const Switches& switches = ground.switches;
  for (const Plant plant : plants) {
    const Known& one = known(plant);
    if (!ground.vulkan && !one.on_cpu) {
      return fail(Code::usage,
                  "--inject {}: --backend cpu has no other memory and no queue to spoil\n"
                  "  take --backend vulkan, or one of: {}",
                  one.name, names(true));
    }
    const char* why = nullptr;
    if (plant == Plant::lost_fusion && !switches.fused_ffn)
      why = "there is none without --fused-ffn";
    if (plant == Plant::op_on_cpu && switches.fused_ffn) why = "--fused-ffn leaves no op SWIGLU";
    if (plant == Plant::unbatched_qkv && !switches.batch) why = "--no-batch does that already";
    if (plant == Plant::extra_barriers && !ground.vulkan && ground.threads == 1) {
      why = "one thread has nobody to wait for; take -t 2 or more";
    }
    if (why != nullptr) return fail(Code::usage, "--inject {}: {}", one.name, why);
  }
  return {};
}

Result<std::unique_ptr<Backend>> planted(std::unique_ptr<Backend> backend,
                                         std::span<const Plant> plants, const Model& model,
                                         Counts& counts) {
  const auto wanted = [&](Plant plant) { return std::ranges::find(plants, plant) != plants.end(); };
  if (wanted(Plant::slow_kernel)) WEIR_CHECK(backend->take_worse_kernels());
  if (wanted(Plant::cpu_split))
    backend = std::make_unique<CpuSplit>(std::move(backend), model.sizes);
  if (wanted(Plant::op_on_cpu)) backend = std::make_unique<OpOnCpu>(std::move(backend), counts);
  if (wanted(Plant::unbatched_qkv)) backend = std::make_unique<UnbatchedQkv>(std::move(backend));
  if (wanted(Plant::lost_fusion)) backend = std::make_unique<LostFusion>(std::move(backend));
  if (wanted(Plant::extra_copy)) backend = std::make_unique<ExtraCopy>(std::move(backend));
  if (wanted(Plant::extra_barriers)) backend = std::make_unique<ExtraBarriers>(std::move(backend));
  return backend;
}

}  // namespace weir::engine

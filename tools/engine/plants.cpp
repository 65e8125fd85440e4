#include "tools/engine/plants.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "gate/base/find.hpp"

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

// A backend with faults in it. Each op says which of them spoil it.
class Spoilt final : public Backend {
 public:
  Spoilt(std::unique_ptr<Backend> below, std::span<const Plant> plants, const Sizes& sizes,
         Counts& counts)
      : below_(std::move(below)),
        plants_(plants.begin(), plants.end()),
        head_(sizes.head),
        counts_(counts) {}

  std::string name() const override { return below_->name(); }
  std::string device() const override { return below_->device(); }
  void embed(std::uint32_t token) override {
    below_->embed(token);
    op_ended();
  }
  void rms_norm(Slot in, const Tensor& weights, Slot out) override {
    below_->rms_norm(in, weights, out);
    op_ended();
  }
  void multiply(Slot in, std::span<const Product> products, Into into) override {
    const bool apart = has(Plant::unbatched_qkv) && products.front().out == Slot::query;
    for (std::size_t i = 0; apart && i < products.size(); ++i) {
      below_->multiply(in, products.subspan(i, 1), into);
    }
    if (!apart) below_->multiply(in, products, into);
    op_ended();
  }
  void rotate_and_store(std::uint32_t layer, std::uint32_t position) override {
    if (has(Plant::cpu_split)) split_on_cpu();
    below_->rotate_and_store(layer, position);
    op_ended();
  }
  void attend(std::uint32_t layer, std::uint32_t position) override {
    below_->attend(layer, position);
    op_ended();
  }
  void activate() override {
    activate_somewhere();
    op_ended();
  }
  void gate_and_up(Slot in, const Tensor& gate, const Tensor& up) override {
    if (has(Plant::lost_fusion)) {
      const std::array products{Product{gate, Slot::gate}, Product{up, Slot::up}};
      below_->multiply(in, products, Into::replace);
      activate_somewhere();
    } else {
      below_->gate_and_up(in, gate, up);
    }
    op_ended();
  }
  void choose(bool share) override {
    // A left-over of a debugging session: the device finds the largest by itself.
    if (has(Plant::extra_copy)) below_->copy_out(Slot::logits);
    below_->choose(share);
    op_ended();
  }
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

 private:
  [[nodiscard]] bool has(Plant plant) const { return holds(plants_, plant); }

  void op_ended() {
    if (has(Plant::extra_barriers)) below_->barrier();
  }

  // Brings slots to the host and waits for them. false: it failed, and finish() will say so.
  bool bring(std::initializer_list<Slot> slots) {
    for (const Slot slot : slots) below_->copy_out(slot);
    Result<void> ended = below_->wait();
    if (so_far_) so_far_ = std::move(ended);
    return so_far_.has_value();
  }

  // As the split of query and gate of a hybrid model was done once. A memcpy is no op of the
  // model's, and so no profiler of ops sees it: the device does, which is waited for in each layer.
  void split_on_cpu() {
    if (!bring({Slot::query})) return;
    const std::vector<float> whole = below_->copied(Slot::query);
    std::vector<float> heads(whole.size());
    for (std::size_t at = 0; at < whole.size(); at += head_) {
      std::memcpy(heads.data() + at, whole.data() + at, head_ * sizeof(float));
    }
    below_->write(Slot::query, heads);
  }

  // As where a backend lacks a kernel and the engine falls back in silence. It is an op on the CPU
  // that cpu_ops_allowed does not name.
  void activate_somewhere() {
    if (!has(Plant::op_on_cpu)) return below_->activate();
    if (!bring({Slot::gate, Slot::up})) return;
    const Op op(counts_, "SWIGLU", Where::cpu);  // without the wait for what it reads
    std::vector<float> gate = below_->copied(Slot::gate);
    silu_times(gate, below_->copied(Slot::up));
    below_->write(Slot::gate, gate);
  }

  std::unique_ptr<Backend> below_;
  std::vector<Plant> plants_;
  std::size_t head_;
  Counts& counts_;
  Result<void> so_far_;  // the first failure since finish()
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
  if (holds(plants, Plant::slow_kernel)) WEIR_CHECK(backend->take_worse_kernels());
  if (plants.empty()) return backend;
  return std::make_unique<Spoilt>(std::move(backend), plants, model.sizes, counts);
}

}  // namespace weir::engine

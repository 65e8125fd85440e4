// The faults that --inject names, and the backend that has them.
#include "tools/engine/faults.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

#include "tools/engine/cpu_kernels.hpp"

namespace weir::engine {
namespace {

struct FaultInfo {
  Fault fault;
  const char *name, *effect;
  bool on_cpu;             // changes something on the CPU backend, too
  const char* cpu_effect;  // "": the same as `effect`
};
constexpr std::array k_faults = {
    FaultInfo{Fault::cpu_split, "cpu-split",
              "the query is read back, split into heads by memcpy, and sent again, in each layer",
              false, ""},
    FaultInfo{Fault::op_on_cpu, "op-on-cpu", "SWIGLU is done by the CPU, in each layer", false, ""},
    FaultInfo{Fault::unbatched_qkv, "unbatched-qkv",
              "query, key and value are three dispatches in place of one", true,
              "three ops in place of one"},
    FaultInfo{Fault::lost_fusion, "lost-fusion",
              "with --fused-ffn: gate, up and activation run apart", true, ""},
    FaultInfo{Fault::extra_barriers, "extra-barriers", "a second barrier behind each op", true,
              "all threads meet behind each op"},
    FaultInfo{Fault::extra_copy, "extra-copy", "the logits are copied to the host, for nobody",
              false, ""},
    FaultInfo{Fault::slow_kernel, "slow-kernel", "products by one thread a row: multiply_*_serial",
              true, "the kernels of the oldest instruction set"},
};

const FaultInfo& fault_info(Fault fault) {
  return *std::ranges::find(k_faults, fault, &FaultInfo::fault);
}

std::string names(bool only_on_cpu) {
  std::string all;
  for (const FaultInfo& info : k_faults) {
    if (only_on_cpu && !info.on_cpu) continue;
    text::append_item(all, ", ", info.name);
  }
  return all;
}

// A backend that runs each op on `below` and adds the faults that change it.
class FaultyBackend final : public Backend {
 public:
  FaultyBackend(std::unique_ptr<Backend> below, std::span<const Fault> faults, const Sizes& sizes,
                Counts& counts)
      : below_(std::move(below)),
        faults_(faults.begin(), faults.end()),
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
  void multiply(Slot in, std::span<const Product> products, Output into) override {
    if (has(Fault::unbatched_qkv) && products.front().out == Slot::query) {
      for (std::size_t i = 0; i < products.size(); ++i) {
        below_->multiply(in, products.subspan(i, 1), into);
      }
    } else {
      below_->multiply(in, products, into);
    }
    op_ended();
  }
  void rotate_and_store(std::uint32_t layer, std::uint32_t position) override {
    if (has(Fault::cpu_split)) split_on_cpu();
    below_->rotate_and_store(layer, position);
    op_ended();
  }
  void attend(std::uint32_t layer, std::uint32_t position) override {
    below_->attend(layer, position);
    op_ended();
  }
  void activate() override {
    activate_here_or_on_cpu();
    op_ended();
  }
  void gate_and_up(Slot in, const Tensor& gate, const Tensor& up) override {
    if (has(Fault::lost_fusion)) {
      const std::array products{Product{gate, Slot::gate}, Product{up, Slot::up}};
      below_->multiply(in, products, Output::overwrite);
      activate_here_or_on_cpu();
    } else {
      below_->gate_and_up(in, gate, up);
    }
    op_ended();
  }
  void select_token(bool share) override {
    // Nobody reads the copy: the device finds the largest logit by itself.
    if (has(Fault::extra_copy)) below_->copy_out(Slot::logits);
    below_->select_token(share);
    op_ended();
  }
  // Returns the first error of the ops since the last call, as any backend does.
  Result<void> finish() override {
    Result<void> finished = below_->finish();
    Result<void> earlier = std::exchange(first_error_, {});
    return earlier ? finished : earlier;
  }
  std::uint32_t selected_token() const override { return below_->selected_token(); }
  std::optional<float> chosen_share() const override { return below_->chosen_share(); }
  void copy_out(Slot slot) override { below_->copy_out(slot); }
  Result<void> wait() override { return below_->wait(); }
  std::vector<float> copied(Slot slot) const override { return below_->copied(slot); }
  void write(Slot slot, std::span<const float> values) override { below_->write(slot, values); }
  void barrier() override { below_->barrier(); }
  Result<void> use_worse_kernels() override { return below_->use_worse_kernels(); }

 private:
  [[nodiscard]] bool has(Fault fault) const { return holds(faults_, fault); }

  void op_ended() {
    if (has(Fault::extra_barriers)) below_->barrier();
  }

  // Copies slots to the host and waits for them. Returns false after an error, which finish()
  // reports.
  bool copy_to_host(std::initializer_list<Slot> slots) {
    for (const Slot slot : slots) below_->copy_out(slot);
    Result<void> waited = below_->wait();
    if (first_error_) first_error_ = std::move(waited);
    return first_error_.has_value();
  }

  // Splits the query on the CPU, as an engine once did for hybrid models. The memcpy is no op of
  // the model, so a profiler of ops misses it; the device shows one more wait in each layer.
  void split_on_cpu() {
    if (!copy_to_host({Slot::query})) return;
    const std::vector<float> query = below_->copied(Slot::query);
    std::vector<float> heads(query.size());
    for (std::size_t at = 0; at < query.size(); at += head_) {
      std::memcpy(heads.data() + at, query.data() + at, head_ * sizeof(float));
    }
    below_->write(Slot::query, heads);
  }

  // Runs SWIGLU on the CPU if that fault is injected, as an engine falls back in silence when its
  // backend lacks a kernel. cpu_ops_allowed does not name this op.
  void activate_here_or_on_cpu() {
    if (!has(Fault::op_on_cpu)) return below_->activate();
    if (!copy_to_host({Slot::gate, Slot::up})) return;
    const Op op(counts_, "SWIGLU", Where::cpu);  // begins after the wait for its input
    std::vector<float> gate = below_->copied(Slot::gate);
    silu_times(gate, below_->copied(Slot::up));
    below_->write(Slot::gate, gate);
  }

  std::unique_ptr<Backend> below_;
  std::vector<Fault> faults_;
  std::size_t head_;
  Counts& counts_;
  Result<void> first_error_;  // since finish()
};

}  // namespace

Result<Fault> parse_fault(const std::string& name) {
  const auto* const info =
      std::ranges::find_if(k_faults, [&](const FaultInfo& each) { return each.name == name; });
  if (info != k_faults.end()) return info->fault;
  return fail(Code::usage, "--inject {}: no such regression\n  known here: {}", name, names(false));
}

std::string list_faults() {
  std::string text = "Regressions that --inject brings in:\n";
  for (const FaultInfo& info : k_faults) {
    text += fmt::format("  {:<15} {}\n", info.name, info.effect);
    text += info.on_cpu ? fmt::format("  {:<15} (CPU: {})\n", "",
                                      *info.cpu_effect == '\0' ? "the same" : info.cpu_effect)
                        : fmt::format("  {:<15} (not on the CPU backend)\n", "");
  }
  return text;
}

// Fails if an injected fault (a deliberate slowdown) would change nothing with these switches and
// this backend.
Result<void> check_faults(std::span<const Fault> faults, const Target& target) {
  const Switches& switches = target.switches;
  for (const Fault fault : faults) {
    const FaultInfo& info = fault_info(fault);
    if (!target.vulkan && !info.on_cpu) {
      return fail(Code::usage,
                  "--inject {}: --backend cpu has no other memory and no queue to spoil\n"
                  "  take --backend vulkan, or one of: {}",
                  info.name, names(true));
    }
    const char* why = nullptr;
    if (fault == Fault::lost_fusion && !switches.fused_ffn)
      why = "there is none without --fused-ffn";
    if (fault == Fault::op_on_cpu && switches.fused_ffn) why = "--fused-ffn leaves no op SWIGLU";
    if (fault == Fault::unbatched_qkv && !switches.batch) why = "--no-batch does that already";
    if (fault == Fault::extra_barriers && !target.vulkan && target.threads == 1) {
      why = "one thread has nobody to wait for; take -t 2 or more";
    }
    if (why != nullptr) return fail(Code::usage, "--inject {}: {}", info.name, why);
  }
  return {};
}

Result<std::unique_ptr<Backend>> add_faults(std::unique_ptr<Backend> backend,
                                            std::span<const Fault> faults, const Model& model,
                                            Counts& counts) {
  if (holds(faults, Fault::slow_kernel)) WEIR_CHECK(backend->use_worse_kernels());
  if (faults.empty()) return backend;
  return std::make_unique<FaultyBackend>(std::move(backend), faults, model.sizes, counts);
}

}  // namespace weir::engine

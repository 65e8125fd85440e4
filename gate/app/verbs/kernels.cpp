// weir kernels: shows what kernels cost by the card's own compiler, without the card; or compares
// the GPU code of two builds.
#include "gate/flow/kernels.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

// Adds `weir kernels`, which shows the cost of GPU kernels, of a run or of two builds.
void add_kernels(const Verb& verb) {
  const auto options = verb.set_flow_with_new_options(flow::kernels);
  verb.option(
      "WHAT", options->what, "",
      "A run, or a profile that weir wrote (default: the newest run); with NEW the old build");
  verb.option("NEW", options->now, "",
              "Compare the GPU code of two builds: programs, libraries, code objects, cubins or "
              "folders of them");
  verb.list_option("--target", options->targets, "NAME",
                   "Compile for this GPU: radv-navi31, radv-navi21, radv-polaris10; repeatable "
                   "(default: as the run did). Of two builds: gfx942, 'sm_*' (default: all)");
  auto* const diff = verb.option(
      "--diff", options->diff, "KERNEL",
      "What the code of this kernel (or glob) differs in from the base of the newest gate");
  verb.flag("--assembly", options->assembly, "With --diff: compare the machine code, too")
      ->needs(diff);
  verb.list_option("--max-increase", options->max_increase, "FIGURE=AMOUNT",
                   "Of two builds: fail if a figure of a kernel grew by more (spilled_registers=0, "
                   "registers=10%); repeatable");
  verb.list_option("--max-decrease", options->max_decrease, "FIGURE=AMOUNT",
                   "Of two builds: fail if a figure of a kernel fell by more (occupancy=0); "
                   "repeatable");
  verb.range("--top", options->top, 1, 100'000, "Rows of each table");
  verb.seconds("--timeout", options->timeout, "10m", "Time until the program after -- is stopped");
  verb.add_group(OptionGroup::runs);
  verb->footer(
      "An estimate is no time: docs/explanation/kernel-costs.md has what it can "
      "tell.\n"
      "Of two builds docs/how-to/kernel-costs-of-builds.md.\n\n"
      "Examples:\n"
      "  weir kernels                                    kernels of the newest run\n"
      "  weir kernels --target radv-navi21 --target radv-navi31\n"
      "  weir kernels --diff 'flash_attn*'               what changed since the base\n"
      "  weir kernels --diff 'mul_mat_vec_q4_k*' --assembly\n"
      "  weir kernels --target radv-navi31 -- llama-bench -m model.gguf -ngl 99\n"
      "  weir kernels old/libggml-hip.so new/libggml-hip.so --target gfx942 \\\n"
      "      --max-increase spilled_registers=0           two builds of one library");
}

}  // namespace weir::app

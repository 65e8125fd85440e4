// weir kernels: shows what kernels cost by the card's own compiler, without the card. Judges
// nothing.
#include "gate/flow/kernels.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

void add_kernels(const Verb& verb) {
  const auto options = verb.set_flow(flow::kernels);
  verb.option("WHAT", options->what, "",
              "A run, or a profile that weir wrote (default: the newest run)");
  verb.list_option("--target", options->targets, "NAME",
                   "Compile for this GPU: radv-navi31, radv-navi21, radv-polaris10; repeatable "
                   "(default: as the run did)");
  auto* const diff = verb.option(
      "--diff", options->diff, "KERNEL",
      "What the code of this kernel (or glob) differs in from the base of the newest gate");
  verb.flag("--assembly", options->assembly, "With --diff: compare the machine code, too")
      ->needs(diff);
  verb.range("--top", options->top, 1, 100'000, "Rows of each table");
  verb.seconds("--timeout", options->timeout, "10m", "Time until the program after -- is stopped");
  verb.add_group(OptionGroup::runs);
  verb->footer(
      "An estimate is no time: docs/explanation/kernel-costs.md has what it can "
      "tell.\n\n"
      "Examples:\n"
      "  weir kernels                                    kernels of the newest run\n"
      "  weir kernels --target radv-navi21 --target radv-navi31\n"
      "  weir kernels --diff 'flash_attn*'               what changed since the base\n"
      "  weir kernels --diff 'mul_mat_vec_q4_k*' --assembly\n"
      "  weir kernels --target radv-navi31 -- llama-bench -m model.gguf -ngl 99");
}

}  // namespace weir::app

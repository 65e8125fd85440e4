// Finds changes by the names of PyTorch's and vLLM's kernels: attention, norms and convolutions
// that ran as one kernel, masks, conversions, and wider types.
#include "gate/explain/kernel_moves.hpp"

namespace weir::explain {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::array<std::string_view, 4> k_fused_attention{
    "flash_fwd", "fmha_", "unified_attention", "cudnnBackendExecute"};
constexpr std::array<std::string_view, 2> k_softmax{"softmax", "SoftMax"};
constexpr std::array<std::string_view, 3> k_fused_norm{"rms_norm", "layer_norm", "layernorm"};
constexpr std::array<std::string_view, 1> k_norm_parts{"rsqrt"};
constexpr std::array<std::string_view, 3> k_convolution{"cudnnBackendExecute", "cudnnConvolution",
                                                        "conv_depthwise"};
constexpr std::array<std::string_view, 2> k_unrolled_images{"vol2col", "im2col"};
constexpr std::array<std::string_view, 8> k_mask{
    "where",    "masked_fill",        "triu_tril", "<Compare", "elementwise_kernel_with_index",
    "<Bitwise", "scan_innermost_dim", "<logical"};
constexpr std::array<std::string_view, 4> k_conversions{"converting_copy", "bfloat16_copy",
                                                        "float16_copy", "float8_copy"};
constexpr std::array<std::string_view, 1> k_plain_copies{"direct_copy"};
// Kernels that compute a tensor's elements in one step of a formula.
constexpr std::array<std::string_view, 9> k_steps{
    "elementwise_kernel", "reduce_kernel",      "softmax", "SoftMax", "CatArrayBatchedCopy",
    "triu_tril",          "scan_innermost_dim", "vol2col", "im2col"};

bool names_any(const WorkChange* change, Words words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return change->name.find(word) != std::string::npos; });
}
bool is_step(const WorkChange* change) {
  return names_any(change, k_steps) || is_library_call(change->name);
}
WorkChanges select(const WorkChanges& changes, Words words) {
  return filter(changes, [&](const WorkChange* change) { return names_any(change, words); });
}

void add_tensor_finding(ExplainState& state, Finding finding, const WorkChanges& kernels,
                        const char* cause, const char* look_at) {
  finding.lines.push_back(changes_text(kernels, 6));
  finding.cause = cause;
  finding.look_at = look_at;
  add_dispatched(state, std::move(finding), kernels, dispatch_change(kernels));
}

// A kernel that did all of some work, and the steps that do it now.
struct Unfused {
  const char* kind;
  std::string_view headline;  // with the kernel that is gone, and how often it ran
  Words fused, sign;          // one of the steps that came has to be named so
  const char *cause, *look_at;
};
constexpr std::array k_unfused{
    Unfused{kind::convolution_unfused,
            "A convolution is no longer one call: it is unrolled and multiplied, where {} ran {}.",
            k_convolution, k_unrolled_images,
            "the library's convolution is not used for this type, size or version.",
            "the type of the input, the versions of cuDNN and of the framework, and if a matrix "
            "multiplication could replace it."},
    Unfused{kind::attention_unfused,
            "Math fallback: attention runs without a fused kernel, where {} ran {}.",
            k_fused_attention, k_softmax,
            "another implementation was chosen, or a mask, a type or a size of heads that no fused "
            "kernel takes.",
            "attn_implementation, the attention backend, and what is passed as a mask."},
    Unfused{kind::norm_unfused, "A norm is no longer fused: its steps run apart, where {} ran {}.",
            k_fused_norm, k_norm_parts, "the norm is computed by formula and not by one kernel.",
            "which class or custom op computes the norm."},
};

// Finds a fused kernel that is gone while kernels for its single steps are new or run more often.
// Copies and submissions between the steps follow from them.
void add_unfused(ExplainState& state, const Unfused& unfused) {
  const UnexplainedChanges changed(state);
  const WorkChanges gone = select(changed.decreased, unfused.fused);
  const WorkChanges steps = filter(changed.increased, is_step);
  if (gone.empty() || select(steps, unfused.sign).empty()) return;
  const WorkChange& first = *gone.front();
  Finding finding = state.finding_about(unfused.kind, "dispatches");
  finding.headline = fmt::format(fmt::runtime(unfused.headline), safe_name(first.work()),
                                 frequency_text(magnitude(first.delta()), state.evidence.scope));
  state.mark_explained("moves");
  if (unfused.kind == std::string_view(kind::convolution_unfused)) {
    state.mark_all_explained({"copies", "submits", "cublas_calls"});
  }
  add_tensor_finding(state, std::move(finding), concatenated(gone, steps), unfused.cause,
                     unfused.look_at);
}

// Returns the name with f32 for each half type; "" if it has none.
std::string widened_name(std::string name) {
  bool has_half = false;
  for (const std::string_view type : {"bf16", "f16"}) {
    for (std::size_t at = 0; (at = name.find(type, at)) != std::string::npos; at += type.size()) {
      const bool is_word = at == 0 || std::isalnum(static_cast<unsigned char>(name[at - 1])) == 0;
      if (!is_word) continue;
      name.replace(at, type.size(), "f32");
      has_half = true;
    }
  }
  return has_half ? name : "";
}

// Finds kernels that ran in a half type and run as often in f32, at least two kinds. Conversions
// around them follow.
void add_wider_types(ExplainState& state) {
  const UnexplainedChanges changed(state);
  if (too_many_names(changed)) return;
  WorkChanges kernels;
  for (const WorkChange* half : changed.decreased) {
    const std::string name = widened_name(half->name);
    for (const WorkChange* wide : changed.increased) {
      if (wide->name != name || magnitude(wide->delta()) != magnitude(half->delta())) continue;
      kernels.push_back(half);
      kernels.push_back(wide);
    }
  }
  if (kernels.size() < 4) return;
  Finding finding = state.finding_about(kind::wider_type, "dispatches");
  finding.headline = fmt::format("Work is computed in a wider type: {} where it was {}.",
                                 safe_name(kernels[1]->name), safe_name(kernels[0]->name));
  const WorkChanges steps = filter(changed.increased, is_step);
  for (const WorkChange* step : steps) {
    const bool is_conversion = names_any(step, k_conversions) || names_any(step, k_plain_copies);
    if (is_conversion && !holds(kernels, step)) kernels.push_back(step);
  }
  state.mark_explained("moves");
  add_tensor_finding(state, std::move(finding), kernels,
                     "half types are converted to float32 before and after the work.",
                     "the math settings of the framework, autocast, and types of weights.");
}

// Adds a finding if kernels that build an attention mask are new: at least two kinds of steps.
void add_mask(ExplainState& state) {
  const WorkChanges all = filter(UnexplainedChanges(state).increased, is_step);
  const auto kinds = std::ranges::count_if(
      k_mask, [&](std::string_view word) { return !select(all, std::array{word}).empty(); });
  if (kinds < 2) return;
  WorkChanges steps = select(all, k_mask);
  sort_by_size(steps);
  Finding finding = state.finding_about(kind::mask_built, "dispatches");
  finding.headline = fmt::format(
      "A mask is built{}: {}.", state.evidence.scope == unit::Scope::per_token ? " each token" : "",
      safe_name(steps.front()->name));
  add_tensor_finding(state, std::move(finding), steps,
                     "a mask of attention is computed where none was needed, or one was kept.",
                     "how the mask is made, and if attention could take is_causal instead.");
}

// Adds a finding if the only new kernels convert values to another type.
void add_conversions(ExplainState& state) {
  const WorkChanges all = UnexplainedChanges(state).increased;
  const WorkChanges conversions = select(filter(all, is_step), k_conversions);
  if (conversions.empty() || conversions.size() != all.size()) return;
  Finding finding = state.finding_about(kind::conversion_added, "dispatches");
  finding.headline = fmt::format("Values are converted to another type, {} more: {}.",
                                 frequency_text(total_delta(conversions), state.evidence.scope),
                                 safe_name(conversions.front()->name));
  add_tensor_finding(state, std::move(finding), conversions,
                     "a tensor is converted, or made in another type than what uses it.",
                     "to(), float(), autocast, and the types of weights and caches.");
}

}  // namespace

// Claims the kernels of attention, a norm or a convolution that ran as one. It comes before moves
// to and from the CPU: steps that are new are no work that the CPU did.
void find_unfused(ExplainState& state) {
  for (const Unfused& unfused : k_unfused) add_unfused(state, unfused);
  add_wider_types(state);
}

// Claims the kernels of masks and of conversions.
void find_tensor_kernels(ExplainState& state) {
  add_mask(state);
  add_conversions(state);
}

}  // namespace weir::explain

#include "gate/adapters/format.hpp"
#include "gate/base/text.hpp"

namespace weir::adapters {
namespace {

constexpr std::size_t k_looked_at = 65536;
// What a program ends on, with a trace of its calls behind.
constexpr std::size_t k_last_lines = 60;
constexpr std::size_t k_longest = 300;

// A form: the words that a line holds, and those of which one must be there beside them, if any.
// All in lower case. "not implemented" alone may be a warning of a program that goes on.
struct Form {
  std::string_view words;
  std::vector<std::string_view> beside{};
};
const std::vector<Form> k_forms{
    // weir-engine, and Agave's policy: what is missing — workaround or alternative.
    {"not implemented", {" \xE2\x80\x94 ", " -- ", "panic", "abort"}},
    {"not implemented", {"fatal", "error:", "notimplementederror", "error -"}},
    {"not currently implemented for", {"notimplementederror", "device"}},  // PyTorch
    {"panic: ", {"unsupported", "not supported"}},                         // Agave
    {"that cannot run the operation"},                                     // ggml_backend_sched
    {"error: missing op:"},                                                // ggml-vulkan
    {": op not supported "},                                               // ggml-cuda
    {"error: unsupported op"},                                             // ggml-metal
    {"no kernel image is available"},                                      // CUDA
};

bool says_so(std::string_view line) {
  const std::string low = text::lower(line);
  if (low.find("warn") != std::string::npos) return false;  // it went on
  const auto has = [&](std::string_view word) { return low.find(word) != std::string::npos; };
  return std::ranges::any_of(k_forms, [&](const Form& form) {
    return has(form.words) && (form.beside.empty() || std::ranges::any_of(form.beside, has));
  });
}

}  // namespace

std::optional<std::string> missing_kernel(std::string_view err) {
  if (err.size() > k_looked_at) err.remove_prefix(err.size() - k_looked_at);
  const Printed printed({"", err});
  const auto& lines = printed.err();
  const auto first = lines.size() > k_last_lines ? lines.rbegin() + k_last_lines : lines.rend();
  const auto found = std::find_if(lines.rbegin(), first, says_so);
  if (found == first) return std::nullopt;
  Scan scan(*found);
  scan.until("panic: ");  // "thread 1 panic: Metal …" begins with the message
  return text::shortened(text::printable(scan.rest()), k_longest);
}

}  // namespace weir::adapters

// Finds the message by which an engine says that it lacks a kernel.
#include "gate/adapters/format.hpp"
#include "gate/base/text.hpp"

namespace weir::adapters {
namespace {

constexpr std::size_t k_searched_bytes = 65536;
// Lines at the end of the output that are searched: the message and a stack trace after it.
constexpr std::size_t k_last_lines = 60;
constexpr std::size_t k_longest = 300;

// A form of message: text that a line contains, and a list of which one must be there too, if any.
// All in lower case. "not implemented" alone may be a warning of a program that goes on.
struct Form {
  std::string_view words;
  std::vector<std::string_view> beside{};
};
const std::vector<Form> k_forms{
    // weir-engine, and Agave's policy: the missing kernel — workaround or alternative.
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

// Returns true if a line has one of the forms and is no warning.
bool has_message(std::string_view line) {
  const std::string low = text::lower(line);
  if (low.find("warn") != std::string::npos) return false;  // it went on
  const auto has = [&](std::string_view word) { return low.find(word) != std::string::npos; };
  return std::ranges::any_of(k_forms, [&](const Form& form) {
    return has(form.words) && (form.beside.empty() || std::ranges::any_of(form.beside, has));
  });
}

}  // namespace

std::optional<std::string> missing_kernel(std::string_view err) {
  if (err.size() > k_searched_bytes) err.remove_prefix(err.size() - k_searched_bytes);
  const Printed printed({"", err});
  const auto& lines = printed.err();
  const auto first = lines.size() > k_last_lines ? lines.rbegin() + k_last_lines : lines.rend();
  const auto match = std::find_if(lines.rbegin(), first, has_message);
  if (match == first) return std::nullopt;
  LineScanner scan(*match);
  scan.read_until("panic: ");  // "thread 1 panic: Metal …" begins with the message
  return text::shortened(text::printable(scan.rest()), k_longest);
}

}  // namespace weir::adapters

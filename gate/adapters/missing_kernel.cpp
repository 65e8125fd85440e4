#include <algorithm>
#include <array>

#include "gate/adapters/format.hpp"
#include "gate/base/text.hpp"

namespace weir::adapters {
namespace {

constexpr std::size_t k_looked_at = 65536;
// What a program ends on, with a trace of its calls behind.
constexpr std::size_t k_last_lines = 60;
constexpr std::size_t k_longest = 300;

// A form: the words that a line holds, and one of those that must be there beside them ("" for
// none). All in lower case. "not implemented" alone may be a warning of a program that goes on.
struct Form {
  std::string_view words;
  std::array<std::string_view, 4> beside;
};
constexpr std::array k_forms{
    // weir-engine, and Agave's policy: what is missing — workaround or alternative.
    Form{"not implemented", {" \xE2\x80\x94 ", " -- ", "panic", "abort"}},
    Form{"not implemented", {"fatal", "error:", "notimplementederror", "error -"}},
    Form{"not currently implemented for", {"notimplementederror", "device", "", ""}},  // PyTorch
    Form{"panic: ", {"unsupported", "not supported", "", ""}},                         // Agave
    Form{"that cannot run the operation", {""}},  // ggml_backend_sched
    Form{"error: missing op:", {""}},             // ggml-vulkan
    Form{": op not supported ", {""}},            // ggml-cuda
    Form{"error: unsupported op", {""}},          // ggml-metal
    Form{"no kernel image is available", {""}},   // CUDA
};

bool says_so(std::string_view line) {
  const std::string low = text::lower(line);
  if (low.find("warn") != std::string::npos) return false;  // it went on
  return std::any_of(k_forms.begin(), k_forms.end(), [&](const Form& form) {
    if (low.find(form.words) == std::string::npos) return false;
    if (form.beside[0].empty()) return true;
    return std::any_of(form.beside.begin(), form.beside.end(), [&](std::string_view word) {
      return !word.empty() && low.find(word) != std::string::npos;
    });
  });
}

// "thread 1 panic: Metal …" begins with the message.
std::string_view without_thread(std::string_view line) {
  constexpr std::string_view k_panic = "panic: ";
  const std::size_t at = line.find(k_panic);
  return text::trim(at == std::string_view::npos ? line : line.substr(at + k_panic.size()));
}

}  // namespace

std::optional<std::string> missing_kernel(std::string_view err) {
  if (err.size() > k_looked_at) err.remove_prefix(err.size() - k_looked_at);
  const Printed printed({"", err});
  const auto& lines = printed.err();
  const auto first = lines.size() > k_last_lines ? lines.rbegin() + k_last_lines : lines.rend();
  const auto found = std::find_if(lines.rbegin(), first, says_so);
  if (found == first) return std::nullopt;
  std::string message = text::printable(without_thread(*found));
  if (message.size() > k_longest) {
    std::size_t cut = k_longest;  // not within a character
    while (cut > 0 && (static_cast<unsigned char>(message[cut]) & 0xC0U) == 0x80U) --cut;
    message.resize(cut);
    message += "…";
  }
  return message;
}

}  // namespace weir::adapters

#include "gate/base/secret.hpp"

#include "gate/base/encode.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"

namespace weir {
namespace {

// A part of a longer base64 text can begin and end amid a group; what is left of it is shorter.
constexpr std::size_t k_shortest_base64 = 6;

// The digits of base64 that depend on the secret alone when it stands `before` (0, 1 or 2) bytes
// behind the beginning of a group.
std::string base64_core(const std::string& secret, std::size_t before) {
  const std::string whole = base64(std::string(before, '\0') + secret);
  const std::size_t skip = before == 0 ? 0 : before + 1;  // digits that hold bits of what is before
  // Of 3 bytes behind, the last group is whole; else its last digit mixes with what follows.
  const std::size_t bits = (before + secret.size()) * 8;
  return whole.substr(skip, bits / 6 - skip);
}

}  // namespace

void Masker::add(const Secret& secret) {
  const std::string& plain = secret.reveal();
  if (plain.size() < k_shortest) return;
  const auto take = [&](std::string form, std::size_t shortest) {
    if (form.size() >= shortest && std::ranges::find(forms_, form) == forms_.end()) {
      forms_.push_back(std::move(form));
    }
  };
  take(plain, k_shortest);
  const std::string percent = percent_encoded(plain);
  take(percent, k_shortest);
  std::string lowered = percent;
  for (std::size_t i = 0; i + 2 < lowered.size(); ++i) {
    if (lowered[i] == '%') lowered.replace(i + 1, 2, text::lower(lowered.substr(i + 1, 2)));
  }
  take(lowered, k_shortest);
  const std::string quoted = dump_json(Json(plain));
  take(quoted.substr(1, quoted.size() - 2), k_shortest);
  for (std::size_t before = 0; before < 3; ++before) {
    std::string core = base64_core(plain, before);
    take(core, k_shortest_base64);
    std::ranges::replace(core, '+', '-');  // the alphabet of URLs
    std::ranges::replace(core, '/', '_');
    take(core, k_shortest_base64);
    take(percent_encoded(base64_core(plain, before)), k_shortest_base64);
  }
  std::ranges::stable_sort(forms_,
                           [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

std::string Masker::mask(std::string_view text) const {
  std::string out(text);
  for (const std::string& form : forms_) {
    for (std::size_t at = out.find(form); at != std::string::npos; at = out.find(form, at + 3)) {
      out.replace(at, form.size(), "***");
    }
  }
  return out;
}

std::string Masker::mask_with_parts(std::string_view text) const {
  std::string out = mask(text);
  for (const std::string& form : forms_) {
    const std::string head = form.substr(0, k_shortest);
    for (std::size_t at = out.find(head); at != std::string::npos; at = out.find(head, at + 3)) {
      std::size_t length = head.size();
      while (length < form.size() && at + length < out.size() && out[at + length] == form[length]) {
        ++length;
      }
      out.replace(at, length, "***");
    }
    const std::string tail = form.substr(form.size() - std::min(form.size(), k_shortest));
    for (std::size_t at = out.find(tail); at != std::string::npos; at = out.find(tail, at + 1)) {
      std::size_t length = tail.size();
      while (length < form.size() && at > 0 && out[at - 1] == form[form.size() - length - 1]) {
        --at;
        ++length;
      }
      out.replace(at, length, "***");
    }
  }
  return out;
}

}  // namespace weir

// Masks secrets in text, in all forms in which they may appear.
#include "gate/base/secret.hpp"

#include "gate/base/encode.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"

namespace weir {
namespace {

// Least length of a base64 form. Inside a longer base64 text, part of the first and last group is
// mixed with other bytes, so a form is shorter than the whole encoding.
constexpr std::size_t k_shortest_base64 = 6;

constexpr std::string_view k_mask = "***";

// Returns the base64 digits that depend on the secret alone if it begins at this offset (0, 1 or 2)
// of a group.
std::string base64_core(const std::string& secret, std::size_t offset) {
  const std::string encoded = base64(std::string(offset, '\0') + secret);
  const std::size_t skip = offset == 0 ? 0 : offset + 1;  // digits that contain bits of other bytes
  // If the end is not on a group's border, the last digit depends on what follows.
  const std::size_t bits = (offset + secret.size()) * 8;
  return encoded.substr(skip, bits / 6 - skip);
}

}  // namespace

// Adds all forms of a secret: plain, percent-encoded, JSON-escaped, and base64 at each of three
// offsets. Secrets that are too short are not masked.
void Masker::add(const Secret& secret) {
  const std::string& plain = secret.reveal();
  if (plain.size() < k_min_secret_bytes) return;
  const auto add_form = [&](std::string form, std::size_t min_bytes) {
    if (form.size() >= min_bytes && std::ranges::find(forms_, form) == forms_.end()) {
      forms_.push_back(std::move(form));
    }
  };
  add_form(plain, k_min_secret_bytes);
  const std::string percent = percent_encode(plain);
  add_form(percent, k_min_secret_bytes);
  std::string lower_percent = percent;
  for (std::size_t i = 0; i + 2 < lower_percent.size(); ++i) {
    if (lower_percent[i] == '%')
      lower_percent.replace(i + 1, 2, text::lower(lower_percent.substr(i + 1, 2)));
  }
  add_form(lower_percent, k_min_secret_bytes);
  const std::string quoted = dump_json(Json(plain));
  add_form(quoted.substr(1, quoted.size() - 2), k_min_secret_bytes);
  for (std::size_t offset = 0; offset < 3; ++offset) {
    std::string base64_form = base64_core(plain, offset);
    add_form(base64_form, k_shortest_base64);
    std::ranges::replace(base64_form, '+', '-');  // base64url
    std::ranges::replace(base64_form, '/', '_');
    add_form(base64_form, k_shortest_base64);
    add_form(percent_encode(base64_core(plain, offset)), k_shortest_base64);
  }
  // The longest first, so that no form masks a part of a longer one.
  std::ranges::stable_sort(forms_,
                           [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

std::string Masker::mask(std::string_view text) const {
  std::string masked(text);
  for (const std::string& form : forms_) {
    for (std::size_t at = masked.find(form); at != std::string::npos;
         at = masked.find(form, at + k_mask.size())) {
      masked.replace(at, form.size(), k_mask);
    }
  }
  return masked;
}

// Masks the longest beginnings of `form` that are in `text`, of k_min_secret_bytes at least.
static void mask_beginnings(std::string_view form, std::string& text) {
  const std::string_view shortest = form.substr(0, Masker::k_min_secret_bytes);
  for (std::size_t at = text.find(shortest); at != std::string::npos;
       at = text.find(shortest, at + k_mask.size())) {
    std::size_t length = shortest.size();
    while (length < form.size() && at + length < text.size() && text[at + length] == form[length]) {
      ++length;
    }
    text.replace(at, length, k_mask);
  }
}

// Masks the longest ends of `form` (one form of a secret) that are in `text`. Ends shorter than
// k_min_secret_bytes stay.
static void mask_ends(std::string_view form, std::string& text) {
  const std::string_view shortest_end =
      form.substr(form.size() - std::min(form.size(), Masker::k_min_secret_bytes));
  for (std::size_t begin = text.find(shortest_end); begin != std::string::npos;
       begin = text.find(shortest_end, begin + 1)) {
    std::size_t length = shortest_end.size();
    while (length < form.size() && begin > 0 && text[begin - 1] == form[form.size() - length - 1]) {
      --begin;
      ++length;
    }
    text.replace(begin, length, k_mask);
  }
}

// Masks complete forms, then beginnings and ends of them, as left by a text that was cut.
std::string Masker::mask_with_parts(std::string_view text) const {
  std::string masked = mask(text);
  for (const std::string& form : forms_) {
    mask_beginnings(form, masked);
    mask_ends(form, masked);
  }
  return masked;
}

}  // namespace weir

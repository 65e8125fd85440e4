// Reads structs and text from hostile bytes; for the readers of this folder. Pure.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/base/text.hpp"

namespace weir::probes {

// The field's text up to the first 0, made printable.
[[nodiscard]] inline std::string printable_text(std::string_view field) {
  return text::printable(field.substr(0, field.find('\0')));
}
template <std::size_t size>
[[nodiscard]] std::string printable_text(const char (&field)[size]) {
  return printable_text(std::string_view(field, size));
}

// Reads the header of a probe's file. Fails with Code::data on another kind or version, or on less
// than `least` bytes. `what` names the kind in errors: "event file".
template <class Header>
[[nodiscard]] Result<Header> read_header(std::string_view bytes, std::size_t min_bytes,
                                         std::string_view magic, std::uint32_t version,
                                         std::string_view what) {
  Header header;
  if (bytes.size() < min_bytes)
    return fail(Code::data, "{}: {} bytes are too few", what, bytes.size());
  std::memcpy(&header, bytes.data(), sizeof header);
  if (printable_text(header.magic) != magic) {
    return fail(Code::data, "{}: not one, or its process ended while it was made", what);
  }
  if (header.version == version) return header;
  return fail(Code::data,
              "{}: version {}, this weir reads {} (probe and weir must be of one build)", what,
              header.version, version);
}

// Reads structs from the front of bytes; false where they are too short.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  [[nodiscard]] bool read(T* out) {
    if (rest_.size() < sizeof *out) return false;
    std::memcpy(out, rest_.data(), sizeof *out);
    rest_.remove_prefix(sizeof *out);
    return true;
  }
  // A vector or a text.
  template <class List>
  [[nodiscard]] bool read(List* out, std::uint64_t count) {
    constexpr std::size_t k_each = sizeof(typename List::value_type);
    if (rest_.size() / k_each < count) return false;
    out->resize(count);
    if (count != 0) std::memcpy(out->data(), rest_.data(), count * k_each);
    rest_.remove_prefix(count * k_each);
    return true;
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace weir::probes

// Values of JSON -> the fields of a struct in memory.
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/probes/read/twin_values.hpp"

namespace weir::probes {
namespace {

std::optional<std::uint64_t> number_from_text(std::string_view text) {
  const bool hex = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  const std::string_view digits = hex ? text.substr(2) : text;
  if (digits.empty() || digits.size() > 20) return std::nullopt;
  std::uint64_t value = 0;
  const std::uint64_t base = hex ? 16 : 10;
  for (const char c : digits) {
    std::uint64_t digit = base;
    if (c >= '0' && c <= '9') digit = static_cast<std::uint64_t>(c - '0');
    if (c >= 'a' && c <= 'f') digit = static_cast<std::uint64_t>(c - 'a') + 10;
    if (c >= 'A' && c <= 'F') digit = static_cast<std::uint64_t>(c - 'A') + 10;
    if (digit >= base) return std::nullopt;
    if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / base) return std::nullopt;
    value = value * base + digit;
  }
  return value;
}

std::optional<std::uint64_t> to_unsigned(const Json& value, std::uint64_t most) {
  std::optional<std::uint64_t> out;
  if (value.is_number_unsigned()) {
    out = value.get<std::uint64_t>();
  } else if (value.is_number_integer()) {
    if (value.get<std::int64_t>() >= 0) out = static_cast<std::uint64_t>(value.get<std::int64_t>());
  } else if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number >= 0 && number < 18446744073709551616.0 && std::floor(number) == number)
      out = static_cast<std::uint64_t>(number);
  } else if (value.is_string()) {
    out = number_from_text(value.get_ref<const std::string&>());
  }
  if (out && *out > most) return std::nullopt;
  return out;
}

std::optional<std::int32_t> to_signed(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  if (!(number >= -2147483648.0 && number <= 2147483647.0) || std::floor(number) != number)
    return std::nullopt;
  return static_cast<std::int32_t>(number);
}

std::optional<bool> to_bool(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>() != 0;
  if (value.is_string()) {
    const std::string& word = value.get_ref<const std::string&>();
    if (word == "VK_TRUE" || word == "true") return true;
    if (word == "VK_FALSE" || word == "false") return false;
  }
  return std::nullopt;
}

std::string shown(const Json& value) {
  std::string text = text::printable(dump_json(value));
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

class Filler {
 public:
  explicit Filler(Warnings& warnings) : warnings_(warnings) {}

  void fill(const weir_struct& as, const Json& values, std::span<std::byte> out,
            const std::string& path) {
    if (!values.is_object()) {
      warnings_.add(fmt::format("{}: no object: {}", path, shown(values)));
      return;
    }
    for (const auto& [key, value] : values.items()) {
      if (key == "sType" || key == "pNext") continue;
      const weir_field* field = find_field(as, key);
      const std::string place = path + "." + text::printable(key);
      if (field == nullptr) {
        warnings_.add(place + ": unknown");
      } else if (!is_identity_field(key)) {
        fill_field(*field, value, out, place);
      }
    }
  }

 private:
  void fill_field(const weir_field& field, const Json& value, std::span<std::byte> out,
                  const std::string& path) {
    if (field.kind == WEIR_FIELD_TEXT) return put_text(field, value, out, path);
    if (!field.array) return put(field, value, out.subspan(field.offset), path);
    if (!value.is_array()) return doubt(path, value);
    if (value.size() > field.count)
      warnings_.add(fmt::format("{}: {} values where {} fit", path, value.size(), field.count));
    for (std::size_t i = 0; i < value.size() && i < field.count; ++i) {
      put(field, value[i], out.subspan(field.offset + i * field.element_size),
          fmt::format("{}[{}]", path, i));
    }
  }

  void put_text(const weir_field& field, const Json& value, std::span<std::byte> out,
                const std::string& path) {
    if (!value.is_string()) return doubt(path, value);
    const std::string& text = value.get_ref<const std::string&>();
    if (text.size() >= field.count || text.find('\0') != std::string::npos)
      return doubt(path, value);
    std::memcpy(out.data() + field.offset, text.data(), text.size());
  }

  // One value, at the start of `out`.
  void put(const weir_field& field, const Json& value, std::span<std::byte> out,
           const std::string& path) {
    switch (field.kind) {
      case WEIR_FIELD_STRUCT:
        return fill(weir_structs[field.of], value, out.first(field.element_size), path);
      case WEIR_FIELD_BOOL:
        if (const auto yes = to_bool(value)) return store(std::uint32_t{*yes}, out);
        return doubt(path, value);
      case WEIR_FIELD_SIGNED:
        if (const auto number = to_signed(value)) return store(*number, out);
        return doubt(path, value);
      case WEIR_FIELD_FLOAT:
        if (value.is_number()) return store(static_cast<float>(value.get<double>()), out);
        return doubt(path, value);
      case WEIR_FIELD_ENUM:
        return put_enum(field, value, out, path);
      case WEIR_FIELD_FLAGS:
        return put_flags(field, value, out, path);
      default:
        break;
    }
    const std::uint64_t most = field.element_size == 8 ? ~std::uint64_t{0}
                               : field.element_size == 4
                                   ? std::uint64_t{std::numeric_limits<std::uint32_t>::max()}
                                   : 255;
    const auto number = to_unsigned(value, most);
    if (!number) return doubt(path, value);
    store_sized(*number, field.element_size, out);
  }

  void put_enum(const weir_field& field, const Json& value, std::span<std::byte> out,
                const std::string& path) {
    if (value.is_string()) {
      const auto known = value_named(field.of, value.get_ref<const std::string&>());
      if (known) return store(static_cast<std::int32_t>(*known), out);
    } else if (const auto number = to_signed(value)) {
      return store(*number, out);
    }
    doubt(path, value);
  }

  void put_flags(const weir_field& field, const Json& value, std::span<std::byte> out,
                 const std::string& path) {
    const std::uint64_t most =
        field.element_size == 8 ? ~std::uint64_t{0} : std::numeric_limits<std::uint32_t>::max();
    std::uint64_t bits = 0;
    const auto add = [&](const Json& one) {
      if (one.is_string()) {
        if (const auto known = value_named(field.of, one.get_ref<const std::string&>())) {
          bits |= static_cast<std::uint64_t>(*known) & most;
          return;
        }
      }
      if (const auto number = to_unsigned(one, most)) {
        bits |= *number;
      } else {
        doubt(path, one);
      }
    };
    if (value.is_array()) {
      for (const Json& one : value) add(one);
    } else {
      add(value);
    }
    store_sized(bits, field.element_size, out);
  }

  void doubt(const std::string& path, const Json& value) {
    warnings_.add(fmt::format("{}: left out, since weir cannot read {}", path, shown(value)));
  }

  template <class T>
  static void store(T value, std::span<std::byte> out) {
    std::memcpy(out.data(), &value, sizeof value);
  }
  static void store_sized(std::uint64_t value, std::uint16_t size, std::span<std::byte> out) {
    if (size == 8) {
      store(value, out);
    } else if (size == 4) {
      store(static_cast<std::uint32_t>(value), out);
    } else {
      store(static_cast<std::uint8_t>(value), out);
    }
  }

  Warnings& warnings_;
};

}  // namespace

void fill_struct(const weir_struct& as, const Json& values, std::span<std::byte> out,
                 const std::string& path, Warnings& warnings) {
  Filler(warnings).fill(as, values, out, path);
}

}  // namespace weir::probes

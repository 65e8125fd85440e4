// Reads and writes the fields of a struct as JSON.
#include "gate/base/fields.hpp"

#include <cmath>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"

namespace weir {
namespace {

// JSON has no NaN or infinity: these become null.
Json short_json(double value) { return std::isfinite(value) ? number_to_json(value) : Json(); }
Json short_json(const std::optional<double>& value) { return value ? short_json(*value) : Json(); }
template <class T>
Json short_json(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(short_json(value));
  return list;
}

// Returns the path of a field or list item for messages, like "cells[2].name". `place`, if not
// null, replaces the key; "=" is the outer path itself.
std::string field_path(const char* key, const char* place, const Fields& outer,
                       std::optional<std::size_t> number) {
  std::string_view label = place != nullptr ? place : key;
  if (label == "=") return outer.path();
  const bool is_numbered = place == nullptr || label.ends_with("[]");
  if (label.ends_with("[]")) label.remove_suffix(2);
  std::string path;
  if (label.starts_with('.') || label.starts_with(' ')) path = outer.path();
  path += label;
  if (number && is_numbered) path += fmt::format("[{}]", *number);
  return path;
}

}  // namespace

Fields::Fields(const Json& json, std::string path)
    : in_(&json), reads_object_(json.is_object()), path_(std::move(path)) {
  if (!reads_object_) complain("should be an object");
}

Fields::Fields(Json& json) : out_(&json) {}

Fields::Fields(const Json& json, std::string path, Fields& outer)
    : in_(&json),
      reads_object_(json.is_object()),
      path_(std::move(path)),
      problem_(outer.problem_) {}

Fields::Fields(const Json& json, const char* key, const char* place, Fields& outer,
               std::optional<std::size_t> number)
    : Fields(json, field_path(key, place, outer, number), outer) {
  if (reads_object_) return;
  // Messages name a list item by its own path, a field by its key.
  if (number) {
    complain("should be an object");
  } else {
    outer.complain_about(key, "should be an object");
  }
}

void Fields::complain(std::string_view message) {
  if (!*problem_) *problem_ = Error{Code::data, fmt::format("{} {}", path_, message)};
}

void Fields::complain_about(const char* key, std::string_view message) {
  complain(fmt::format("\"{}\" {}", key, message));
}

void Fields::complain_missing(const char* key) { complain(fmt::format("lacks \"{}\"", key)); }

void Fields::refuse(Error error) {
  if (!*problem_) *problem_ = std::move(error);
}

void Fields::schema(std::string_view name, std::string_view complaint) {
  if (!is_reading()) return put(slot("schema"), name);
  std::string value;
  (*this)("schema", value);
  if (value != name) complain(complaint);
}

void Fields::schema_of_document(std::string_view name, std::string_view before) {
  if (!is_reading()) return put(slot("schema"), name);
  const Json* json = find("schema");
  const std::string value = json != nullptr && json->is_string() ? json->get<std::string>() : "";
  if (value == name) return;
  refuse({Code::data, fmt::format("{}schema is \"{}\", should be \"{}\"", before,
                                  text::printable(value.substr(0, 60)), name)});
}

void Fields::limit_items(const char* key, std::size_t max_items, std::string_view complaint) {
  const Json* field = is_reading() ? find(key) : nullptr;
  if (field == nullptr || field->size() <= max_items) return;
  complain(complaint);
  reads_object_ = false;
}

const Json* Fields::find(const char* key) const {
  if (!reads_object_) return nullptr;
  const auto field = in_->find(key);
  return field == in_->end() || field->is_null() ? nullptr : &*field;
}

bool Fields::has(const char* key) const { return find(key) != nullptr; }

Json& Fields::slot(const char* key) { return (*out_)[key]; }

Json& Fields::member(Json& object, const std::string& name) { return object[name]; }

Json& Fields::append(Json& list) { return list.emplace_back(); }

void Fields::make_object(Json& slot) { slot = Json::object(); }

void Fields::make_list(Json& slot) { slot = Json::array(); }

std::vector<const Json*> Fields::items(const Json& json, const char* key) {
  std::vector<const Json*> list;
  if (!json.is_array()) {
    complain_about(key, "should be a list");
    return list;
  }
  list.reserve(json.size());
  for (const Json& item : json) list.push_back(&item);
  return list;
}

std::vector<std::pair<std::string, const Json*>> Fields::members() const {
  std::vector<std::pair<std::string, const Json*>> list;
  if (!reads_object_) return list;
  for (const auto& [name, item] : in_->items()) list.emplace_back(name, &item);
  return list;
}

void Fields::put(Json& slot, bool value) { slot = value; }
void Fields::put_whole(Json& slot, std::int64_t value) { slot = value; }
void Fields::put(Json& slot, double value) { slot = value; }
void Fields::put(Json& slot, std::string_view value) { slot = value; }
void Fields::put(Json& slot, const Json& value) { slot = value; }
void Fields::put(Json& slot, const Rational& value) { slot = rational_to_json(value); }

void Fields::take(const Json& json, const char* key, bool& value, const char*) {
  if (!json.is_boolean()) return complain_about(key, "should be true or false");
  value = json.get<bool>();
}

const Fields::Misfit* Fields::read(const Json& json, double& value) {
  static constexpr Misfit k_misfit{"should be a finite number", "should hold finite numbers only"};
  if (!json.is_number() || !std::isfinite(json.get<double>())) return &k_misfit;
  value = json.get<double>();
  return nullptr;
}

const Fields::Misfit* Fields::read(const Json& json, std::int64_t& value) {
  static constexpr Misfit k_misfit{"should be a whole number", "should hold whole numbers only"};
  if (!json.is_number() || !rational_from_json(json)) return &k_misfit;
  value = json.get<std::int64_t>();
  return nullptr;
}

const Fields::Misfit* Fields::read(const Json& json, std::string& value) {
  static constexpr Misfit k_misfit{"should be a string", "should hold strings only"};
  if (!json.is_string()) return &k_misfit;
  value = json.get<std::string>();
  return nullptr;
}

const Fields::Misfit* Fields::read(const Json& json, Rational& value) {
  static constexpr Misfit k_misfit{"should be a whole number or \"133/2\"",
                                   "should hold whole numbers, or fractions as \"133/2\""};
  const auto number = rational_from_json(json);
  if (!number) return &k_misfit;
  value = *number;
  return nullptr;
}

void Fields::take(const Json& json, const char* key, Json& object, const char*) {
  if (!json.is_object()) return complain_about(key, "should be an object");
  object = json;
}

void Fields::take(const Json& json, const char* key, std::set<std::string>& values, const char*) {
  std::vector<std::string> list;
  take(json, key, list);
  values.insert(std::make_move_iterator(list.begin()), std::make_move_iterator(list.end()));
}

template <class T>
void RoundedNumber<T>::put(Json& slot) const {
  slot = short_json(value);
}
// Reads numbers; in a list of optional ones, anything else becomes nothing.
template <class T>
void RoundedNumber<T>::take(const Json& json, Fields& io, const char* key) const {
  if constexpr (std::is_same_v<T, std::vector<std::optional<double>>>) {
    if (!json.is_array()) return io.complain_about(key, "should be a list");
    for (const Json& entry : json) {
      value.push_back(entry.is_number() ? std::optional(entry.get<double>()) : std::nullopt);
    }
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    io.take(json, key, value.emplace());
  } else {
    io.take(json, key, value);
  }
}
template struct RoundedNumber<double>;
template struct RoundedNumber<std::optional<double>>;
template struct RoundedNumber<std::vector<double>>;
template struct RoundedNumber<std::vector<std::optional<double>>>;

void NullIfEmpty::put(Json& slot) const { slot = value.empty() ? Json() : Json(value); }

template <class T>
void Within<T>::put(Json& slot) const {
  Fields(slot).put(slot, value);
}
// Reads a whole number and complains if it is out of range.
template <class T>
void Within<T>::take(const Json& json, Fields& io, const char* key) const {
  std::int64_t number = min_value;
  io.take(json, key, number);
  if (number < min_value || number > max_value) {
    return io.complain_about(
        key, complaint.empty() ? fmt::format("is {}, not {} to {}", number, min_value, max_value)
                               : std::string(complaint));
  }
  if constexpr (requires { value.has_value(); }) {
    value = static_cast<typename T::value_type>(number);
  } else {
    value = static_cast<T>(number);
  }
}
template struct Within<std::int64_t>;
template struct Within<std::optional<std::int64_t>>;
template struct Within<std::size_t>;
template struct Within<std::optional<std::size_t>>;

}  // namespace weir

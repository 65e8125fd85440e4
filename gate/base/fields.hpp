// One list of a struct's fields writes it as JSON and reads it back:
//
//   void fields(Fields& io, Step& step) {
//     io("cell", step.cell);           // written always; an object without it is refused
//     io.always("note", step.note);    // written always, null when absent; may be missing
//     io.optional("pair", step.pair);  // written unless empty or at its default; may be missing
//     io.check(step.cell >= 0, "names no cell");
//   }
//   Json json = write_fields(step);
//   Result<Step> step = read_fields<Step>(json, "steps[3]");
//
// fields() is field by its argument: it stands in the struct's namespace, not in an unnamed one.
// Everything read is hostile: what has another type than it should is refused, null counts as
// missing, keys that are not listed are passed over. The first complaint is kept, after the path of
// its object: `steps[3] lacks "cell"`. What could not be read is at its default.
#pragma once

#include <concepts>
#include <map>
#include <set>
#include <type_traits>
#include <vector>

#include "gate/base/json_fwd.hpp"
#include "gate/base/names.hpp"
#include "gate/base/rational.hpp"
#include "gate/base/result.hpp"

namespace weir {

class Fields;

// Types that lists and maps can hold directly.
template <class T>
concept PlainField = std::same_as<T, double> || std::same_as<T, std::int64_t> ||
    std::same_as<T, std::string> || std::same_as<T, Rational>;

// A field that is written in a way of its own: put() and take() in place of those of its type.
template <class T>
concept FieldForm = requires(const T& form, Json& slot, const Json& json, Fields& io) {
  form.put(slot);
  form.take(json, io, "key");
};

class Fields {
 public:
  // Reads the object `json`, which has to outlive this.
  Fields(const Json& json, std::string path);
  // Writes into `json`.
  explicit Fields(Json& json);
  // An object within that of `outer`, which gets its complaints.
  Fields(const Json& json, std::string path, Fields& outer);
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;

  [[nodiscard]] bool is_reading() const { return in_ != nullptr; }

  // `place` is the path of objects in this field; by default its key, and in lists "key[3]". It may
  // begin with "." or " " (it goes on from this path) and end in "[]" (the item's number); "=" is
  // this path.
  template <class T>
  void operator()(const char* key, T&& value, const char* place = nullptr) {
    if (!is_reading()) return put(slot(key), value);
    const Json* field = find(key);
    if (field != nullptr) return take(*field, key, value, place);
    if constexpr (requires { value.complaint_when_missing; }) {
      if (value.complaint_when_missing) return complain(value.complaint);
    }
    complain_missing(key);
  }
  template <class T>
  void always(const char* key, T&& value, const char* place = nullptr) {
    if (!is_reading()) return put(slot(key), value);
    if (const Json* field = find(key)) take(*field, key, value, place);
  }
  template <class T>
  void optional(const char* key, T&& value, const char* place = nullptr) {
    if (is_reading() || !is_default(value)) always(key, value, place);
  }
  // Another default than that of its type.
  template <class T, class Default>
  void unless(const char* key, T&& value, const Default& at_default) {
    if constexpr (FieldForm<std::remove_cvref_t<T>>) {
      if (is_reading() || value.value != at_default) always(key, value);
    } else {
      if (is_reading() || value != at_default) always(key, value);
    }
  }
  // Some fields of this struct in an object of their own: inner(Fields&).
  template <class Inner>
  void object(const char* key, Inner inner, const char* place = nullptr) {
    if (!is_reading()) {
      make_object(slot(key));
      Fields into(slot(key));
      return inner(into);
    }
    const Json* field = find(key);
    if (field == nullptr) return complain_missing(key);
    Fields from(*field, key, place, *this);
    if (from.reads_object_) inner(from);
  }
  // Written and never read: it is made from other fields.
  template <class T>
  void write_only(const char* key, const T& value) {
    if (!is_reading()) put(slot(key), value);
  }
  void schema(std::string_view name, std::string_view complaint);
  // Refuses any other with "BEFOREschema is "x", should be "name"", without the path.
  void schema_of_document(std::string_view name, std::string_view before);
  // Refuses a list with more items before it is read, and reads no more of this object.
  void limit_items(const char* key, std::size_t items, std::string_view complaint);

  // `ok` is what should hold of that which was read.
  void check(bool ok, std::string_view complaint) {
    if (is_reading() && !ok) complain(complaint);
  }
  void complain(std::string_view message);  // "PATH message"; keeps the first
  void complain_about(const char* key, std::string_view message);  // "PATH \"KEY\" message"
  void refuse(Error error);                                        // as it is
  void set_path(std::string path) { path_ = std::move(path); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::optional<Error>& problem() const { return *problem_; }
  [[nodiscard]] bool has(const char* key) const;  // reading: present and not null

  // ---- what a single value is in JSON
  void put(Json& slot, bool value);
  template <std::integral Whole>
  void put(Json& slot, const Whole& value) {
    put_whole(slot, static_cast<std::int64_t>(value));
  }
  void put(Json& slot, double value);  // 65.0; RoundedNumber writes 65
  void put(Json& slot, const char* value) { put(slot, std::string_view(value)); }
  void put(Json& slot, std::string_view value);
  void put(Json& slot, const std::string& value) { put(slot, std::string_view(value)); }
  void put(Json& slot, const Rational& value);  // 65, or "133/2"
  void put(Json& slot, const Json& value);
  template <class T>
  void put(Json& slot, const std::optional<T>& value) {
    if (value) put(slot, *value);
  }
  template <class T>
  void put(Json& slot, const std::map<std::string, T>& values) {
    make_object(slot);
    for (const auto& [name, value] : values) put(member(slot, name), value);
  }
  template <class List>
  requires requires(const List& list) { list.begin() != list.end(); }
  void put(Json& slot, const List& values) {
    make_list(slot);
    for (const auto& value : values) put(append(slot), value);
  }
  template <class T>
  void put(Json& slot, const T& value) {
    if constexpr (FieldForm<T>) {
      value.put(slot);
    } else if constexpr (requires { T::parse(value.str()); }) {
      put(slot, value.str());
    } else {
      make_object(slot);
      Fields into(slot);
      fields(into, const_cast<T&>(value));  // which is only looked at
    }
  }

  void take(const Json& json, const char* key, bool& value, const char* = nullptr);
  template <std::integral Whole>
  void take(const Json& json, const char* key, Whole& value, const char* = nullptr) {
    std::int64_t number = 0;
    if (const Misfit* misfit = read(json, number)) return complain_about(key, misfit->alone);
    if (!std::in_range<Whole>(number)) return complain_about(key, "is out of range");
    value = static_cast<Whole>(number);
  }
  template <PlainField T>
  requires(!std::integral<T>) void take(const Json& json, const char* key, T& value,
                                        const char* = nullptr) {
    if (const Misfit* misfit = read(json, value)) complain_about(key, misfit->alone);
  }
  void take(const Json& json, const char* key, Json& object, const char* = nullptr);
  template <PlainField T>
  void take(const Json& json, const char* key, std::vector<T>& values, const char* = nullptr) {
    for (const Json* item : items(json, key)) {
      const Misfit* misfit = read(*item, values.emplace_back());
      if (misfit != nullptr) return complain_about(key, misfit->among);
    }
  }
  template <PlainField T>
  void take(const Json& json, const char* key, std::map<std::string, T>& values,
            const char* = nullptr) {
    for (const auto& [name, item] : Fields(json, key, nullptr, *this).members()) {
      const Misfit* misfit = read(*item, values[name]);
      if (misfit != nullptr) return complain_about(key, misfit->among);
    }
  }
  void take(const Json& json, const char* key, std::set<std::string>& values,
            const char* = nullptr);
  template <class T>
  void take(const Json& json, const char* key, std::optional<T>& value, const char* place) {
    take(json, key, value.emplace(), place);
  }
  template <class T>
  void take(const Json& json, const char* key, std::map<std::string, T>& values,
            const char* place) {
    Fields of(json, key, place, *this);
    for (const auto& [name, item] : of.members()) {
      of.take(*item, name.c_str(), values[name], place);
    }
  }
  template <class T>
  void take(const Json& json, const char* key, std::vector<T>& values, const char* place) {
    for (const Json* item : items(json, key)) {
      Fields of(*item, key, place, *this, values.size());
      fields(of, values.emplace_back());
      if (problem()) return;
    }
  }
  template <class T>
  void take(const Json& json, const char* key, T& value, const char* place) {
    if constexpr (FieldForm<std::remove_const_t<T>>) {
      value.take(json, *this, key);
    } else if constexpr (requires { T::parse(value.str()); }) {
      std::string text;
      take(json, key, text);
      auto parsed = T::parse(text);
      if (!parsed) return refuse(std::move(parsed).error());
      value = *std::move(parsed);
    } else {
      Fields of(json, key, place, *this);
      fields(of, value);
    }
  }

 protected:
  [[nodiscard]] const Json* find(const char* key) const;  // not null
  void complain_missing(const char* key);

 private:
  Fields(const Json& json, const char* key, const char* place, Fields& outer,
         std::optional<std::size_t> number = std::nullopt);

  template <class T>
  static bool is_default(const T& value) {
    if constexpr (FieldForm<T>) {
      return is_default(value.value);
    } else if constexpr (requires { value.has_value(); }) {
      return !value.has_value();
    } else if constexpr (requires { value.empty(); }) {
      return value.empty();
    } else {
      return value == T{};
    }
  }

  // The complaint about a value, alone and in a list or map; null if it could be read.
  struct Misfit {
    const char* alone;
    const char* among;
  };
  static const Misfit* read(const Json& json, double& value);  // finite
  static const Misfit* read(const Json& json, std::int64_t& value);
  static const Misfit* read(const Json& json, std::string& value);
  static const Misfit* read(const Json& json, Rational& value);

  static void put_whole(Json& slot, std::int64_t value);
  Json& slot(const char* key);
  static Json& member(Json& object, const std::string& name);
  static Json& append(Json& list);
  static void make_object(Json& slot);
  static void make_list(Json& slot);
  // Empty, with a complaint, where `json` is no list.
  std::vector<const Json*> items(const Json& json, const char* key);
  [[nodiscard]] std::vector<std::pair<std::string, const Json*>> members() const;

  const Json* in_ = nullptr;
  Json* out_ = nullptr;
  bool reads_object_ = false;
  std::string path_;
  std::optional<Error> own_problem_;
  std::optional<Error>* problem_ = &own_problem_;
};

// A number as people write it: 65, not 65.0. Whole ones up to 2^53; what is not finite is null.
template <class T>  // double, std::optional of it, or a list of these
struct RoundedNumber {
  T& value;
  void put(Json& slot) const;
  void take(const Json& json, Fields& io, const char* key) const;
};
template <class T>
RoundedNumber(T&) -> RoundedNumber<T>;

// "" is null.
struct NullIfEmpty {
  std::string& value;
  void put(Json& slot) const;
  void take(const Json& json, Fields& io, const char* key) const { io.take(json, key, value); }
};

// A value of an enum by its name.
template <class E>
struct Named {
  E& value;
  std::span<const Name<E>> names;
  std::string complaint;  // used for an unknown name
  void put(Json& slot) const {
    for (const auto& [candidate, name] : names) {
      if (candidate == value) return Fields(slot).put(slot, name);
    }
  }
  void take(const Json& json, Fields& io, const char* key) const {
    std::string name;
    io.take(json, key, name);
    const auto named_value = value_of(names, name);
    if (!named_value) return io.complain(complaint);
    value = *named_value;
  }
};
template <class E, std::size_t N>
Named(E&, const std::array<Name<E>, N>&, std::string) -> Named<E>;

// A whole number within bounds, both included.
template <class T>  // std::int64_t, std::size_t, or std::optional of it
struct Within {
  T& value;
  std::int64_t min_value = 0, max_value = INT64_MAX;
  std::string_view complaint{};  // behind the key; default: "is 12, not 0 to 10"
  void put(Json& slot) const;
  void take(const Json& json, Fields& io, const char* key) const;
};
template <class T>
Within(T&, std::int64_t, std::int64_t) -> Within<T>;
template <class T>
Within(T&, std::int64_t, std::int64_t, std::string_view) -> Within<T>;

template <class T, class J = Json>  // J: complete only where this is called
[[nodiscard]] J write_fields(const T& value) {
  J json;
  Fields io(json);
  io.put(json, value);
  return json;
}

template <class T>
[[nodiscard]] Result<T> read_fields(const Json& json, std::string path) {
  T value{};
  Fields io(json, std::move(path));
  fields(io, value);
  if (io.problem()) return tl::unexpected(*io.problem());
  return value;
}

// The same for parse_json(text).and_then(…).
template <class T>
[[nodiscard]] auto reading(const char* path) {
  return [path](const auto& json) { return read_fields<T>(json, path); };
}

}  // namespace weir

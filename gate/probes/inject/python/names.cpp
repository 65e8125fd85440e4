// Makes the names of functions from what Python says of them.
#include "gate/probes/inject/python/names.h"

#include <string.h>

namespace weir_probe::python {
namespace {

// Holds an object of its own, or null.
class Owned {
 public:
  Owned(const Api& api, Object* object) : api_(api), object_(object) {}
  ~Owned() {
    if (object_ != nullptr) api_.drop_reference(object_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  [[nodiscard]] Object* get() const { return object_; }

 private:
  const Api& api_;
  Object* object_;
};

// Sets aside an error of the program for the time of its block.
class KeepError {
 public:
  explicit KeepError(const Api& api) : api_(api) { api.fetch_error(&type_, &value_, &trace_); }
  ~KeepError() { api_.restore_error(type_, value_, trace_); }
  KeepError(const KeepError&) = delete;
  KeepError& operator=(const KeepError&) = delete;

 private:
  const Api& api_;
  Object *type_ = nullptr, *value_ = nullptr, *trace_ = nullptr;
};

// Returns the attribute; null, without an error, where there is none.
Object* attribute_or_null(const Api& api, Object* object, const char* name) {
  Object* value = object == nullptr ? nullptr : api.attribute(object, name);
  if (value == nullptr) api.clear_error();
  return value;
}

// Appends `part` after a dot; what does not fit is cut off.
void append(const char* part, Name* out) {
  if (part == nullptr || *part == '\0') return;
  const size_t room = sizeof out->text - 1;
  if (out->length != 0 && out->length < room) out->text[out->length++] = '.';
  const size_t length = strnlen(part, room - out->length);
  memcpy(out->text + out->length, part, length);
  out->length += length;
  out->text[out->length] = '\0';
}

// Appends a string; false where the object is none.
bool append(const Api& api, Object* string, Name* out) {
  const char* text = string == nullptr ? nullptr : api.text(string, nullptr);
  if (text == nullptr) {
    api.clear_error();
    return false;
  }
  if (strcmp(text, "builtins") != 0) append(text, out);
  return true;
}
bool append_attribute(const Api& api, Object* object, const char* name, Name* out) {
  const Owned value(api, attribute_or_null(api, object, name));
  return append(api, value.get(), out);
}

// Returns true if the type's name begins with `name`.
bool has_name(const Api& api, Object* type, const char* name) {
  const Owned value(api, attribute_or_null(api, type, "__name__"));
  const char* text = value.get() == nullptr ? nullptr : api.text(value.get(), nullptr);
  if (text == nullptr) api.clear_error();
  return text != nullptr && strncmp(text, name, strlen(name)) == 0;
}

// Appends the type that has the method: the last one in the order of look-up, so that the name does
// not depend on which subclass calls it first.
void append_owner(const Api& api, Object* type, const char* method, Name* out) {
  const Owned order(api, attribute_or_null(api, type, "__mro__"));
  Object* owner = type;
  const ptrdiff_t size = order.get() == nullptr ? 0 : api.size(order.get());
  for (ptrdiff_t i = 0; i < size; ++i) {
    Object* each = api.element(order.get(), i);
    const Owned members(api, attribute_or_null(api, each, "__dict__"));
    if (members.get() != nullptr && api.has_key(members.get(), method) == 1) owner = each;
  }
  append_attribute(api, owner, "__module__", out);
  append_attribute(api, owner, "__qualname__", out);
}

}  // namespace

void name_frame(const Api& api, Frame* frame, Object* code, Name* out) {
  const KeepError keep(api);
  out->length = 0;
  out->text[0] = '\0';
  const Owned globals(api, attribute_or_null(api, reinterpret_cast<Object*>(frame), "f_globals"));
  if (globals.get() != nullptr) append(api, api.item(globals.get(), "__name__"), out);
  if (!append_attribute(api, code, "co_qualname", out)) append_attribute(api, code, "co_name", out);
}

// Writes the full name of a function in C: "len", "time.sleep", "torch._C.TensorBase.item".
void name_function(const Api& api, Object* function, const char* short_name, Name* out) {
  const KeepError keep(api);
  out->length = 0;
  out->text[0] = '\0';
  Object* self = api.function_self(function);
  // Not by attributes of `self`, which may run code of the program.
  const Owned type(api, self == nullptr ? nullptr : api.type_of(self));
  // The latter two hold functions of pybind11.
  const bool is_free = self == nullptr || has_name(api, type.get(), "module") ||
                       has_name(api, type.get(), "PyCapsule") ||
                       has_name(api, type.get(), "pybind11_detail_function_record");
  if (is_free) {
    append_attribute(api, function, "__module__", out);
  } else {
    const bool is_type = api.is_subtype(type.get(), api.type_type) != 0;
    append_owner(api, is_type ? self : type.get(), short_name, out);
  }
  append(short_name, out);
}

}  // namespace weir_probe::python

#include "gate/app/profile_files.hpp"

#include "gate/adapters/reading.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"

namespace weir::app {
namespace {

// What a document of weir says it is; "" where it says nothing, or is something else.
std::string schema_of(const Json& json) {
  if (!json.is_object()) return "";
  const auto schema = json.find("schema");
  return schema != json.end() && schema->is_string() ? schema->get<std::string>() : "";
}

Result<ProfileFile> profiles_in(const Json& json, const std::string& schema) {
  ProfileFile read;
  const Json* list = &json;
  if (schema == "weir.profiles/1") {
    const auto found = json.find("profiles");
    if (found == json.end() || !found->is_array()) return fail(Code::data, "it has no profiles");
    list = &*found;
  }
  const std::size_t count = list == &json ? 1 : list->size();
  for (std::size_t i = 0; i < count; ++i) {
    WEIR_TRY(profile::Profile one, profile::profile_from_json(list == &json ? json : (*list)[i]));
    read.profiles.push_back(std::move(one));
  }
  return read;
}

// Everything else: a profiler's words, among them weir.observed/1.
Result<ProfileFile> observed_in(const std::string& path, const std::string& text) {
  WEIR_TRY(profile::Observed observed, adapters::read_any({text, {}, path}));
  // Where the model lay is nobody's business.
  if (auto& model = observed.context.model) {
    while (model->size() > 1 && model->ends_with('/')) model->pop_back();
    model = model->substr(model->find_last_of("/\\") + 1);
  }
  ProfileFile read;
  read.observed = std::move(observed);
  return read;
}

Result<ProfileFile> read_text(const std::string& path, const std::string& text) {
  const auto json = text::trim(text).starts_with('{') ? parse_json(text) : Json();
  const std::string schema = json ? schema_of(*json) : "";
  if (schema == "weir.profile/1" || schema == "weir.profiles/1") return profiles_in(*json, schema);
  if (schema.starts_with("weir.") && schema != "weir.observed/1") {
    return fail(Code::data,
                "it is {}, not a profile\n"
                "  Profiles are what weir run --json writes, and what engines and profilers do.",
                text::printable(schema.substr(0, 64)));
  }
  return observed_in(path, text);
}

}  // namespace

Result<ProfileFile> read_profile_file(const std::string& path, const sys::Files& files) {
  WEIR_TRY(const std::string text, files.read(path, adapters::k_most_read));
  return read_text(path, text).map_error([&](Error error) {
    return with_context(path, std::move(error));
  });
}

}  // namespace weir::app

// A cache of compiled kernels' figures, by compiler and identity.
#include "gate/run/code_cache.hpp"

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/sys/paths.hpp"

namespace weir::run {
namespace {

// Raise this if the same compiler's figures are read in another way.
constexpr int k_version = 1;
constexpr std::size_t k_max_codes = 20'000;  // some 6 MB
constexpr std::uint64_t k_max_cache_bytes = std::uint64_t{32} << 20;

struct Document {
  std::map<std::string, CodesByIdentity> compilers;
};
void fields(Fields& io, Document& document) { io("compilers", document.compilers); }

}  // namespace

CodeCache::CodeCache(sys::Files& files, std::string folder, std::string compiler)
    : files_(files),
      folder_(std::move(folder)),
      compiler_(std::move(compiler)),
      path_(sys::join_path(folder_, fmt::format("codes-{}.json", k_version))) {
  stored_codes_ = look_up(read(), compiler_, CodesByIdentity());
}

std::map<std::string, CodesByIdentity> CodeCache::read() const {
  if (folder_.empty()) return {};
  auto document = files_.read(path_, k_max_cache_bytes)
                      .and_then([](const std::string& text) { return parse_json(text); })
                      .and_then(reading<Document>("compiled kernels"));
  return document ? std::move(document->compilers) : decltype(document->compilers)();
}

// Returns the cached facts, or null. Facts that were found stay if the cache has to be cleared.
const profile::CodeFacts* CodeCache::find(const std::string& identity) {
  const auto* facts = look_up(stored_codes_, identity);
  if (facts != nullptr) used_codes_[identity] = *facts;
  return facts;
}

void CodeCache::put(const std::string& identity, const profile::CodeFacts& facts) {
  used_codes_[identity] = facts;
  is_new_ = true;
}

// Writes new facts to the file. A cache that is full starts again with the facts used in this run.
Result<void> CodeCache::save() {
  if (folder_.empty() || !is_new_) return {};
  WEIR_CHECK(files_.make_dirs(folder_));
  Document document{read()};  // read again: others may have written meanwhile
  std::size_t codes = used_codes_.size();
  for (const auto& [compiler, stored] : document.compilers) codes += stored.size();
  if (codes > k_max_codes) document.compilers.clear();
  document.compilers[compiler_].merge(used_codes_);
  return files_.write_unsynced(path_, dump_json(write_fields(document)));
}

}  // namespace weir::run

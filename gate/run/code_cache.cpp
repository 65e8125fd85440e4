#include "gate/run/code_cache.hpp"

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/sys/paths.hpp"

namespace weir::run {
namespace {

// Raise it where the same compiler's figures come to be read in another way.
constexpr int k_version = 1;
constexpr std::size_t k_most_codes = 20'000;  // some 6 MB
constexpr std::uint64_t k_most_cache_bytes = std::uint64_t{32} << 20;

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
  known_ = look_up(read(), compiler_, CodesByIdentity());
}

std::map<std::string, CodesByIdentity> CodeCache::read() const {
  if (folder_.empty()) return {};
  auto document = files_.read(path_, k_most_cache_bytes)
                      .and_then([](const std::string& text) { return parse_json(text); })
                      .and_then(reading<Document>("compiled kernels"));
  return document ? std::move(document->compilers) : decltype(document->compilers)();
}

const profile::CodeFacts* CodeCache::find(const std::string& identity) {
  const auto* found = look_up(known_, identity);
  if (found != nullptr) asked_[identity] = *found;
  return found;
}

void CodeCache::put(const std::string& identity, const profile::CodeFacts& facts) {
  asked_[identity] = facts;
  is_new_ = true;
}

Result<void> CodeCache::save() {
  if (folder_.empty() || !is_new_) return {};
  WEIR_CHECK(files_.make_dirs(folder_));
  Document document{read()};  // as others may have written since
  std::size_t codes = asked_.size();
  for (const auto& [compiler, known] : document.compilers) codes += known.size();
  if (codes > k_most_codes) document.compilers.clear();
  document.compilers[compiler_].merge(asked_);
  return files_.write_unsynced(path_, dump_json(write_fields(document)));
}

}  // namespace weir::run

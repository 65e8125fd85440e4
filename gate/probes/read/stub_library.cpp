// Makes a shared library with functions that a twin lacks. The format is that of the "System V
// Application Binary Interface" and its supplement for AMD64.
#include "gate/probes/read/stub_library.hpp"

#if __has_include(<elf.h>)
#include <elf.h>
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "gate/probes/read/program_file.hpp"

namespace weir::probes {

#if __has_include(<elf.h>)
namespace {

constexpr std::uint64_t k_page = 4096, k_stub_bytes = 20, k_flag_bytes = 4;

std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

template <class Record>
void append(std::string& to, const Record& record) {
  to.append(reinterpret_cast<const char*>(&record), sizeof record);
}

// Appends an instruction whose last four bytes are the distance from its end to `target`. The text
// begins at address 0.
void append_relative(std::string& text, std::initializer_list<unsigned char> code,
                     std::uint64_t target) {
  for (const unsigned char byte : code) text += static_cast<char>(byte);
  append(text, static_cast<std::int32_t>(target - (text.size() + sizeof(std::int32_t))));
}

// The hash of "Hash Table" in the ABI.
std::uint32_t hash_name(const char* name) {
  constexpr std::uint32_t k_top_bits = 0xf0000000;
  std::uint32_t hash = 0;
  for (; *name != '\0'; ++name) {
    hash = (hash << 4) + static_cast<unsigned char>(*name);
    const std::uint32_t top = hash & k_top_bits;
    hash = (hash ^ top >> 24) & ~top;
  }
  return hash;
}

// The file: headers, tables and code in a first segment; what the loader and the code write in a
// second one. Addresses are offsets in the file.
class StubLibrary {
 public:
  explicit StubLibrary(const std::set<std::string>& functions) {
    for (const std::string& function : functions) add_name(function);
  }

  std::string build() {
    place();
    std::string file;
    append_headers(file);
    append_symbols(file);
    append_hash(file);
    file += names_;
    file.resize(relocation_);
    append(file, Elf64_Rela{slot_, ELF64_R_INFO(k_handler, R_X86_64_GLOB_DAT), 0});
    for (std::size_t i = 0; i < name_offsets_.size(); ++i) append_stub(file, i);
    file.resize(data_);
    append_dynamic(file);
    file.resize(end_);
    return file;
  }

 private:
  static constexpr std::size_t k_handler = 1;  // the symbol of the function that stubs call
  static constexpr std::array k_segments = {PT_LOAD, PT_LOAD, PT_DYNAMIC, PT_GNU_STACK};
  static constexpr std::size_t k_first = 2;  // the symbol of the first function
  static constexpr std::size_t k_dynamic_entries = 10;

  std::uint32_t add_string(const std::string& name) {
    const auto offset = static_cast<std::uint32_t>(names_.size());
    names_ += name;
    names_ += '\0';
    return offset;
  }
  void add_name(const std::string& name) { name_offsets_.push_back(add_string(name)); }

  void place() {
    const std::size_t symbols = k_first + name_offsets_.size();
    symbols_ = sizeof(Elf64_Ehdr) + k_segments.size() * sizeof(Elf64_Phdr);
    hash_ = symbols_ + symbols * sizeof(Elf64_Sym);
    names_at_ = hash_ + (2 + name_offsets_.size() + symbols) * sizeof(std::uint32_t);
    relocation_ = round_up(names_at_ + names_.size(), alignof(Elf64_Rela));
    code_ = relocation_ + sizeof(Elf64_Rela);
    code_end_ = code_ + name_offsets_.size() * k_stub_bytes;
    data_ = round_up(code_end_, k_page);
    slot_ = data_ + k_dynamic_entries * sizeof(Elf64_Dyn);
    flags_ = slot_ + sizeof(std::uint64_t);
    end_ = flags_ + name_offsets_.size() * k_flag_bytes;
  }

  void append_headers(std::string& file) const {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = EM_X86_64;
    header.e_version = EV_CURRENT;
    header.e_phoff = sizeof header;
    header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = k_segments.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    append(file, header);
    append(file, segment(PT_LOAD, PF_R | PF_X, 0, code_end_));
    append(file, segment(PT_LOAD, PF_R | PF_W, data_, end_));
    append(file, segment(PT_DYNAMIC, PF_R | PF_W, data_, slot_));
    append(file, segment(PT_GNU_STACK, PF_R | PF_W, 0, 0));
  }
  static Elf64_Phdr segment(std::uint32_t type, std::uint32_t rights, std::uint64_t begin,
                            std::uint64_t end) {
    return {type, rights, begin, begin, begin, end - begin, end - begin, k_page};
  }

  void append_symbols(std::string& file) {
    const auto type = static_cast<unsigned char>(ELF64_ST_INFO(STB_GLOBAL, STT_FUNC));
    append(file, Elf64_Sym{});
    append(file, Elf64_Sym{handler_name_, type, STV_DEFAULT, SHN_UNDEF, 0, 0});
    // The loader asks only whether the section is a defined one.
    constexpr std::uint16_t k_some_section = 1;
    for (std::size_t i = 0; i < name_offsets_.size(); ++i) {
      append(file, Elf64_Sym{name_offsets_[i], type, STV_DEFAULT, k_some_section,
                             code_ + i * k_stub_bytes, k_stub_bytes});
    }
  }

  // As many buckets as functions; each is a chain of symbols.
  void append_hash(std::string& file) const {
    const std::size_t symbols = k_first + name_offsets_.size();
    std::vector<std::uint32_t> buckets(name_offsets_.size()), chains(symbols);
    for (std::size_t symbol = k_first; symbol < symbols; ++symbol) {
      const char* name = names_.c_str() + name_offsets_[symbol - k_first];
      std::uint32_t& bucket = buckets[hash_name(name) % buckets.size()];
      chains[symbol] = bucket;
      bucket = static_cast<std::uint32_t>(symbol);
    }
    append(file, static_cast<std::uint32_t>(buckets.size()));
    append(file, static_cast<std::uint32_t>(chains.size()));
    for (const auto* table : {&buckets, &chains}) {
      for (const std::uint32_t symbol : *table) append(file, symbol);
    }
  }

  // weir_twin_missing(name, flag)
  void append_stub(std::string& file, std::size_t index) const {
    append_relative(file, {0x48, 0x8d, 0x3d}, names_at_ + name_offsets_[index]);  // lea rdi
    append_relative(file, {0x48, 0x8d, 0x35}, flags_ + index * k_flag_bytes);     // lea rsi
    append_relative(file, {0xff, 0x25}, slot_);                                   // jmp
  }

  void append_dynamic(std::string& file) const {
    const auto entry = [&](std::int64_t tag, std::uint64_t value) {
      append(file, Elf64_Dyn{tag, {value}});
    };
    entry(DT_SONAME, soname_);
    entry(DT_HASH, hash_);
    entry(DT_STRTAB, names_at_);
    entry(DT_STRSZ, names_.size());
    entry(DT_SYMTAB, symbols_);
    entry(DT_SYMENT, sizeof(Elf64_Sym));
    entry(DT_RELA, relocation_);
    entry(DT_RELASZ, sizeof(Elf64_Rela));
    entry(DT_RELAENT, sizeof(Elf64_Rela));
    entry(DT_NULL, 0);
  }

  std::string names_ = std::string(1, '\0');
  std::uint32_t handler_name_ = add_string("weir_twin_missing");
  std::uint32_t soname_ = add_string("libweir_stubs.so");
  std::vector<std::uint32_t> name_offsets_;
  std::uint64_t symbols_ = 0, hash_ = 0, names_at_ = 0, relocation_ = 0, code_ = 0, code_end_ = 0,
                data_ = 0, slot_ = 0, flags_ = 0, end_ = 0;
};

}  // namespace

Result<std::string> make_stub_library(const std::set<std::string>& functions) {
  constexpr std::uint16_t k_x86_64 = 62;
  if (own_elf_machine() == k_x86_64) return StubLibrary(functions).build();
  return fail(Code::unavailable, "functions that a twin lacks are stood in for on x86-64 alone");
}
#else
Result<std::string> make_stub_library(const std::set<std::string>&) {
  return fail(Code::unavailable, "functions that a twin lacks are stood in for on Linux alone");
}
#endif

}  // namespace weir::probes

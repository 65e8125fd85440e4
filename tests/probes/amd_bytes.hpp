// Small AMD code objects and bundles made to order, as compilers lay them out.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace weir::probes {

inline std::string little_endian(std::uint64_t value, std::size_t size) {
  std::string out;
  for (std::size_t i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

// One kernel: its name, its code, and what the metadata says of it.
struct AmdKernelBytes {
  std::string name;
  std::string code;
  nlohmann::json facts = nlohmann::json::object();
};

struct SectionBytes {
  std::string name;
  std::uint64_t type, address;
  std::string content;
};

// A shared library with these sections, for the machine of that number.
inline std::string library_bytes(std::vector<SectionBytes> sections, std::uint64_t machine) {
  std::string names(1, '\0'), bytes(64, '\0'), table(64, '\0');
  sections.push_back({".shstrtab", 3, 0, ""});
  for (const SectionBytes& section : sections) names += section.name + '\0';
  sections.back().content = names;
  std::size_t name = 1;
  for (const SectionBytes& section : sections) {
    table += little_endian(name, 4) + little_endian(section.type, 4) + std::string(8, '\0') +
             little_endian(section.address, 8) + little_endian(bytes.size(), 8) +
             little_endian(section.content.size(), 8) + std::string(24, '\0');
    name += section.name.size() + 1;
    bytes += section.content;
  }
  bytes.replace(0, 6, "\x7F\x45LF\x02\x01");
  bytes.replace(16, 4, little_endian(3, 2) + little_endian(machine, 2));
  bytes.replace(40, 8, little_endian(bytes.size(), 8));
  bytes.replace(48, 4, little_endian(0x4c, 4));  // gfx942
  bytes.replace(60, 4, little_endian(sections.size() + 1, 2) + little_endian(sections.size(), 2));
  return bytes + table;
}

struct AmdObjectBytes {
  std::string target = "gfx942";
  std::vector<AmdKernelBytes> kernels{};
  std::uint64_t note_type = 32;
  std::string metadata{};       // in place of what `kernels` give
  std::string before_code{};    // moves all code
  std::uint32_t resources = 0;  // of each kernel's descriptor

  [[nodiscard]] std::string str() const {
    constexpr std::uint64_t k_text_address = 0x2000;
    std::string text = before_code, descriptors, names(1, '\0'), symbols(24, '\0');
    const auto symbol = [&](const std::string& name, std::uint64_t section, std::uint64_t address,
                            std::uint64_t size) {
      symbols += little_endian(names.size(), 4) + little_endian(0x12, 2) +
                 little_endian(section, 2) + little_endian(address, 8) + little_endian(size, 8);
      names += name + '\0';
    };
    nlohmann::json notes = nlohmann::json::array();
    for (const AmdKernelBytes& kernel : kernels) {
      symbol(kernel.name, 1, k_text_address + text.size(), kernel.code.size());
      symbol(kernel.name + ".kd", 2, descriptors.size(), 64);
      text += kernel.code;
      descriptors += std::string(48, '\0') + little_endian(resources, 4) + std::string(12, '\0');
      nlohmann::json facts = kernel.facts;
      facts[".name"] = kernel.name;
      facts[".symbol"] = kernel.name + ".kd";
      facts[".args"] = {{{".size", 8}, {".vgpr_count", 999}}};  // of an argument: says nothing
      notes.push_back(std::move(facts));
    }
    nlohmann::json root{{"amdhsa.kernels", std::move(notes)}, {"amdhsa.version", {1, 2}}};
    if (!target.empty()) root["amdhsa.target"] = "amdgcn-amd-amdhsa--" + target;
    const std::vector<std::uint8_t> packed = nlohmann::json::to_msgpack(root);
    const std::string map = metadata.empty() ? std::string(packed.begin(), packed.end()) : metadata;
    std::string note = little_endian(7, 4) + little_endian(map.size(), 4) +
                       little_endian(note_type, 4) + std::string("AMDGPU\0\0", 8) + map;
    note.resize((note.size() + 3) / 4 * 4);
    constexpr std::uint64_t k_machine = 224;
    return library_bytes({{".text", 1, k_text_address, text},
                          {".rodata", 1, 0, descriptors},
                          {".note", 7, 0, note},
                          {".dynsym", 11, 0, symbols},
                          {".dynstr", 3, 0, names}},
                         k_machine);
  }
};

// A bundle of objects by target, each at a multiple of 4096.
inline std::string bundle_bytes(const std::vector<std::pair<std::string, std::string>>& objects) {
  constexpr std::size_t k_page = 4096;
  std::string head = "__CLANG_OFFLOAD_BUNDLE__" + little_endian(objects.size() + 1, 8);
  std::string host = "host-x86_64-unknown-linux--";
  head += little_endian(k_page, 8) + little_endian(0, 8) + little_endian(host.size(), 8) + host;
  std::string content;
  for (const auto& [target, object] : objects) {
    const std::string triple = "hipv4-amdgcn-amd-amdhsa--" + target;
    head += little_endian(k_page + content.size(), 8) + little_endian(object.size(), 8) +
            little_endian(triple.size(), 8) + triple;
    content += object;
    content.resize((content.size() + k_page - 1) / k_page * k_page);
  }
  head.resize(k_page);
  return head + content;
}

}  // namespace weir::probes

// Redacts names of entries with `private: true` in outputs, by aliases. Pure.
//
// An alias is the kind and a short hash of the name ("model-1a2b"). So it is the same on every
// machine and in every run, and stays when entries of the config are reordered. Four hexadecimal
// digits hold far less than a name does, so a name cannot be recovered from them. Who already knows
// the name can check it, as with every stable alias.
#pragma once

#include "gate/config/settings.hpp"

namespace weir::config {

class Redactor {
 public:
  Redactor() = default;  // hides nothing
  // `folder` is the absolute folder of the config, from which its paths count.
  Redactor(const Settings& settings, std::string_view folder);

  // Hides the names of `other` too. A name that both hide keeps the alias it has here.
  void join(const Redactor& other);

  [[nodiscard]] bool hides() const { return !private_words_.empty(); }
  [[nodiscard]] profile::CellKey cell(profile::CellKey key) const;
  // A cell's name; any other text as text() does.
  [[nodiscard]] std::string cell_name(const std::string& name) const;
  // Redacts private names, paths, file names and prompts in free text, as whole words, in upper or
  // lower case, also where they are percent-encoded or escaped as in JSON. May redact too much (a
  // prompt named like an English word), never too little. Redacted text may be passed in again.
  [[nodiscard]] std::string text(std::string_view text) const;

 private:
  using Aliases = std::map<std::string, std::string>;  // name -> alias
  void drop_repeated();
  void add(const std::string& word, const std::string& alias);
  void add_path(const std::string& path, const std::string& alias);
  // Adds the image and the paths among the runtime's options. Returns the engine's own part of the
  // command.
  Arguments add_container(const EngineSettings& engine, const std::string& alias);
  void add_image(const std::string& image, const std::string& alias);
  // Adds the absolute paths in an option, which may hold several ("/a:/b", "source=/a,target=/b").
  void add_places(std::string word, const std::string& alias);
  // Replaces the private words of `original` at which `spelling` has them: the same text in another
  // form, each byte of which begins at its place.
  [[nodiscard]] std::string replace_private(std::string_view original, std::string_view spelling,
                                            std::span<const std::size_t> places) const;

  std::string folder_;
  Aliases engines_, models_, prompts_;
  using Word = std::pair<std::string, std::string>;  // in lower case -> alias
  [[nodiscard]] const Word* find_word_at(std::string_view text, std::size_t at) const;
  std::vector<Word> private_words_;  // by text, each once
};

}  // namespace weir::config

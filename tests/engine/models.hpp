// Small llama models, written to a folder: the same bytes each time.
#pragma once

#include <fstream>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "gate/model/gguf.hpp"
#include "gate/model/make.hpp"

#include "tests/probes/support.hpp"

namespace weir::engine {

// Unlike in every size; heads share keys by two and by three.
inline model::ModelOptions first_model() { return {}; }
inline model::ModelOptions second_model() {
  model::ModelOptions options;
  options.layers = 3;
  options.embedding = 192;
  options.feed_forward = 544;
  options.heads = 6;
  options.head_dim = 32;
  options.vocab = 700;
  options.seed = 7;
  return options;
}

inline model::ModelOptions of_type(model::ModelOptions options, const char* quantization) {
  const auto parsed = model::parse_quantization(quantization);
  EXPECT_TRUE(parsed) << quantization;
  if (parsed) options.quantization = *parsed;
  return options;
}

using Change = std::function<void(model::GgufHeader& header)>;

// The path of the model in `folder`, after `change` to its header.
inline std::string write_model(const probes::Folder& folder, const std::string& name,
                               const model::ModelOptions& options, const Change& change = {}) {
  const std::string path = folder.path() + "/" + name + ".gguf";
  auto header = model::make_model(options);
  EXPECT_TRUE(header) << name;
  if (!header) return path;
  if (change) change(*header);
  std::ofstream out(path, std::ios::binary);
  const auto written =
      model::write_random_gguf(*header, options.seed, [&](std::string_view bytes) -> Result<void> {
        out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        return {};
      });
  EXPECT_TRUE(written) << name;
  return path;
}

}  // namespace weir::engine

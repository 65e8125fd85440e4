// weir model make|twin|hollow: writes small models for engines to run, or shrinks real ones.
#include "gate/app/options.hpp"
#include "gate/base/text.hpp"
#include "gate/model/hugging_face.hpp"
#include "gate/model/make.hpp"
#include "gate/model/twin.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/holes.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/metric.hpp"

namespace weir::app {
namespace {

using model::ByteSink;
using model::ModelSummary;

struct MakeOptions {
  std::string file, architecture = "llama";
  std::optional<std::string> like, quantization;
  bool hollow = false;
  bool folder = false;                                        // Hugging Face's form
  bool weights = false;                                       // in a folder: model.safetensors, too
  std::map<std::string, std::optional<std::uint32_t>> sizes;  // by option
  std::uint64_t seed = 1;
};

constexpr struct {
  const char* option;
  std::uint32_t model::ModelOptions::*field;
  const char* help;
} k_sizes[] = {
    {"--layers", &model::ModelOptions::layers, "Layers"},
    {"--embedding", &model::ModelOptions::embedding, "Embedding length"},
    {"--ff", &model::ModelOptions::feed_forward, "Feed-forward length"},
    {"--heads", &model::ModelOptions::heads, "Attention heads"},
    {"--kv-heads", &model::ModelOptions::kv_heads, "Key and value heads"},
    {"--head-dim", &model::ModelOptions::head_dim, "Head dimension"},
    {"--vocab", &model::ModelOptions::vocab, "Tokens, at least 320"},
    {"--context", &model::ModelOptions::context, "Context length in the header"},
    {"--experts", &model::ModelOptions::experts, "Experts of a mixture (llama)"},
    {"--experts-used", &model::ModelOptions::experts_used, "Experts used per token"},
};

struct TwinVerbOptions {
  std::string source, file, target = "16MiB";
  model::TwinOptions twin;
};

// Returns the line that describes a written model.
flow::Answer describe_model(const std::string& path, const ModelSummary& summary) {
  return {text::printable(fmt::format(
      "{}: {}, {} layers, {} tensors, {} weights, {:.1f} MiB, header {}\n", path,
      summary.architecture, summary.layers, summary.tensors, summary.parameters,
      static_cast<double>(summary.bytes) / (1 << 20), summary.header_hash.substr(0, 12)))};
}

Result<model::GgufHeader> load_header(const flow::Job& job, const std::string& path) {
  const auto read = [&](std::uint64_t bytes) { return job.files().read_prefix(path, bytes); };
  return model::load_gguf(read).map_error(with_prefix(path));
}

// Writes the header of a model, and a hole (no disk blocks) in place of the weights. Warns if the
// file system keeps no holes. Returns the answer that describes the file.
Result<flow::Answer> write_hollow(const flow::Job& job, const std::string& path,
                                  model::GgufHeader& header) {
  WEIR_CHECK(job.files().make_dirs(sys::folder_of(path)));
  WEIR_TRY(const std::string head, model::encode_gguf_header(header));
  WEIR_TRY(const ModelSummary summary, model::summarize(header));
  WEIR_TRY(const std::uint64_t disk_bytes, sys::write_with_hole(path, head, summary.bytes));
  if (disk_bytes > summary.bytes / 2 && disk_bytes > 2 * head.size()) {
    job.world.terminal.write(
        2, text::printable(fmt::format("  {}: this file system keeps no holes: it takes {} bytes\n",
                                       path, disk_bytes)));
  }
  return describe_model(path, summary);
}

// Writes a model under a temporary name first, so that no incomplete file has the final name.
// Prints its warnings and returns the answer that describes the file.
Result<flow::Answer> write_file(const flow::Job& job, const std::string& path,
                                const std::function<Result<ModelSummary>(const ByteSink&)>& write) {
  WEIR_CHECK(job.files().make_dirs(sys::folder_of(path)));
  WEIR_TRY(sys::FileWriter writer, sys::FileWriter::create(path));
  WEIR_TRY(const ModelSummary summary,
           write([&](std::string_view bytes) { return writer.write(bytes); }));
  WEIR_CHECK(writer.finish());
  for (const std::string& warning : summary.warnings) {
    job.world.terminal.write(
        2, fmt::format("  {}\n", text::neutralize_ci_commands(text::printable(warning))));
  }
  return describe_model(path, summary);
}

// Vocabulary of a folder whose sizes nobody asked for: vLLM's benchmark draws prompts from the
// first 10 000 tokens.
constexpr std::uint32_t k_folder_vocab = 16384;

// Writes a model's folder, the weights first: config.json is what says that a model is there.
Result<flow::Answer> write_folder(const flow::Job& job, const MakeOptions& options,
                                  const model::ModelOptions& model) {
  WEIR_TRY(const auto files, model::make_model_folder(model));
  WEIR_CHECK(job.files().make_dirs(options.file));
  if (options.weights) {
    WEIR_TRY(sys::FileWriter writer,
             sys::FileWriter::create(sys::join_path(options.file, "model.safetensors")));
    WEIR_CHECK(model::write_safetensors(
        model, [&](std::string_view bytes) { return writer.write(bytes); }));
    WEIR_CHECK(writer.finish());
  }
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    WEIR_CHECK(job.files().write_atomic(sys::join_path(options.file, file->name), file->text));
  }
  const std::string shown =
      fmt::format("{}: {}, {} layers, vocabulary {}, {} weights\n", options.file,
                  model.architecture, model.layers, model.vocab, options.weights ? "random" : "no");
  return flow::Answer{text::printable(shown)};
}

// Makes a model with random weights from the options and writes it.
Result<flow::Answer> make(const flow::Job& job, const MakeOptions& options) {
  WEIR_TRY(model::ModelOptions model_options, options.like
                                                  ? model::model_like(*options.like)
                                                  : model::default_model(options.architecture));
  if (options.quantization)
    WEIR_TRY_SET(model_options.quantization, model::parse_quantization(*options.quantization));
  for (const auto& [option, field, help] : k_sizes) {
    if (const auto& value = options.sizes.at(option)) model_options.*field = *value;
  }
  model_options.seed = options.seed;
  if (options.folder) {
    if (!options.like && !options.sizes.at("--vocab")) model_options.vocab = k_folder_vocab;
    return write_folder(job, options, model_options);
  }
  if (options.hollow) {
    WEIR_TRY(model::GgufHeader header, model::make_model(model_options));
    return write_hollow(job, options.file, header);
  }
  return write_file(job, options.file,
                    [&](const ByteSink& sink) { return model::write_model(model_options, sink); });
}

Result<flow::Answer> twin(const flow::Job& job, const TwinVerbOptions& options) {
  WEIR_TRY(const std::int64_t target, unit::parse_bytes(options.target));
  model::TwinOptions twin = options.twin;
  twin.target_bytes = static_cast<std::uint64_t>(target);
  WEIR_TRY(const model::GgufHeader header, load_header(job, options.source));
  return write_file(job, options.file,
                    [&](const ByteSink& sink) { return model::write_twin(header, twin, sink); });
}

// Adds `weir model make`, which writes a model with reproducible random weights.
void add_make(const Verb& model) {
  const Verb verb = model.subcommand("make", "Write a model with reproducible random weights");
  const auto options = verb.set_flow_with_new_options(make);
  verb.option("FILE", options->file, "", "GGUF file to write; with --hf a folder")->required();
  verb.option_with_default("--arch", options->architecture, "", "Architecture")
      ->check(CLI::IsMember(model::model_architectures()));
  verb.option("--like", options->like, "", "Sizes of a published model")
      ->check(CLI::IsMember(model::published_models()));
  auto* const hollow =
      verb.flag("--hollow", options->hollow, "Header and sizes alone: a hole for weights");
  auto* const folder = verb.flag("--hf", options->folder,
                                 "A folder of Hugging Face's form: config.json and a tokenizer");
  verb.flag("--weights", options->weights, "With --hf: model.safetensors (bfloat16), too")
      ->needs(folder);
  auto* const quantization =
      verb.option("--quantization", options->quantization, "",
                  "f32, f16 (default), q8_0, q4_0, q4_k, …, or a mix: q3_k_m, q4_k_m (default with "
                  "--like), q5_k_m");
  folder->excludes(hollow)->excludes(quantization);
  for (const auto& [option, field, help] : k_sizes) {
    verb.option(option, options->sizes[option], "", help);
  }
  verb.option_with_default("--seed", options->seed, "", "Seed of the weights");
  verb->footer(
      "Sizes default to those of the reference model of that architecture. The same\n"
      "options give the same bytes on every machine.\n\n"
      "A hollow model takes no room on the disk. It is for device twins, which read\n"
      "no weights; any other device computes with zeros. So is a folder of --hf\n"
      "without weights: transformers and vLLM make them up.\n\n"
      "Examples:\n"
      "  weir model make models/tiny-llama.gguf --arch llama --quantization f16\n"
      "  weir model make models/70b.gguf --like llama-3.3-70b --hollow\n"
      "  weir model make models/llama --hf --like llama-3.1-8b --layers 2");
}

Result<flow::Answer> hollow(const flow::Job& job, const TwinVerbOptions& options) {
  WEIR_TRY(model::GgufHeader header, load_header(job, options.source));
  return write_hollow(job, options.file, header);
}

void add_files(const Verb& verb, TwinVerbOptions& options) {
  verb.option("SRC", options.source, "", "Real model, of which weir reads the header")->required();
  verb.option("FILE", options.file, "", "GGUF file to write")->required();
}

void add_hollow(const Verb& model) {
  const Verb verb =
      model.subcommand("hollow", "Leave the weights of a model out: header and sizes alone");
  const auto options = verb.set_flow_with_new_options(hollow);
  add_files(verb, *options);
  verb->footer(
      "For device twins, which read no weights.\n\n"
      "Example:\n  weir model hollow llama-70b-q4_k_m.gguf models/llama-70b.gguf");
}

// Adds `weir model twin`, which writes a shrunken model that takes the same code path.
void add_twin(const Verb& model) {
  const Verb verb =
      model.subcommand("twin", "Shrink a model: a small one that takes the same code path");
  const auto options = verb.set_flow_with_new_options(twin);
  add_files(verb, *options);
  verb.option("--layers", options->twin.layers, "", "Layers to keep (default: all)");
  verb.option_with_default("--vocab", options->twin.vocab, "",
                           "Most tokens of the vocabulary; 0 keeps all");
  verb.option_with_default("--target", options->target, "", "Size to stay below, where possible");
  verb.option_with_default("--seed", options->twin.seed, "", "Seed of the weights");
  verb->footer("Example:\n  weir model twin llama-70b-q4_k_m.gguf models/llama-70b-twin.gguf");
}

}  // namespace

void add_model(const Verb& model) {
  model->require_subcommand(1);
  add_make(model);
  add_twin(model);
  add_hollow(model);
  model->footer(
      "Examples:\n"
      "  weir model make models/tiny-llama.gguf\n"
      "  weir model twin llama-70b-q4_k_m.gguf models/llama-70b-twin.gguf");
}

}  // namespace weir::app

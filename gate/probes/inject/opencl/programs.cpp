// Hashes the code of programs: source, IL or binary, and the options of the build.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {
namespace {

// Records a new program with the hash of its source (0: unknown) and returns it. Overwrites the
// record of an earlier program with the same handle.
cl_program set_source_hash(cl_program program, uint64_t source) {
  auto* record =
      program == nullptr ? nullptr : get_or_create<Program>(&g.programs, handle_key(program));
  if (record != nullptr) *record = {source, source};
  return program;
}

// Notes a build, before the driver does it: kernels may be created in its callback. `headers`: hash
// of the headers; 0 if they are unknown.
void note_build(cl_program program, const char* options, uint64_t headers = k_hash_seed) {
  auto* record = g.programs.get<Program>(handle_key(program));
  if (record == nullptr || record->source == 0) return;
  const char* words = options == nullptr ? "" : options;
  record->build_hash =
      headers == 0 ? 0 : hash_bytes(record->source ^ headers, words, strlen(words));
}

uint64_t hash_with(uint64_t hash, uint64_t value) { return hash_bytes(hash, &value, sizeof value); }

uint64_t find_build_hash(cl_program program) {
  const auto* record = g.programs.get<Program>(handle_key(program));
  return record == nullptr ? 0 : record->build_hash;
}

// Hashes the builds of programs that another one is made from; 0 if one of them is unknown.
uint64_t hash_programs(cl_uint count, const cl_program* programs) {
  uint64_t hash = k_hash_seed;
  for (cl_uint i = 0; programs != nullptr && i < count; ++i) {
    const uint64_t build = find_build_hash(programs[i]);
    if (build == 0) return 0;
    hash = hash_with(hash, build);
  }
  return hash;
}

// Creates a program and records a hash of its source, which does not depend on how the source is
// split into strings.
cl_program create_with_source(cl_context context, cl_uint count, const char** strings,
                              const size_t* lengths, cl_int* error) {
  cl_program program = g.driver.clCreateProgramWithSource(context, count, strings, lengths, error);
  if (program == nullptr) return program;
  const auto length_of = [&](cl_uint i) {
    return lengths != nullptr && lengths[i] != 0 ? lengths[i] : strlen(strings[i]);
  };
  size_t size = 0;
  for (cl_uint i = 0; i < count; ++i) size += length_of(i);
  auto* source = static_cast<char*>(malloc(size + 1));
  size_t copied = 0;
  for (cl_uint i = 0; source != nullptr && i < count; ++i) {
    memcpy(source + copied, strings[i], length_of(i));
    copied += length_of(i);
  }
  set_source_hash(program, source == nullptr ? 0 : hash_bytes(k_hash_seed, source, size));
  free(source);
  return program;
}

cl_program create_with_il(cl_context context, const void* il, size_t size, cl_int* error) {
  cl_program program = g.driver.clCreateProgramWithIL(context, il, size, error);
  return set_source_hash(program, program == nullptr ? 0 : hash_bytes(k_hash_seed, il, size));
}

// Creates a program from a binary for each device. A kernel's code is all of them.
cl_program create_with_binary(cl_context context, cl_uint count, const cl_device_id* devices,
                              const size_t* sizes, const unsigned char** binaries, cl_int* status,
                              cl_int* error) {
  cl_program program =
      g.driver.clCreateProgramWithBinary(context, count, devices, sizes, binaries, status, error);
  uint64_t hash = k_hash_seed;
  for (cl_uint i = 0; program != nullptr && i < count; ++i) {
    hash = hash_bytes(hash, binaries[i], sizes[i]);
  }
  return set_source_hash(program, hash);
}

// Creates a program of the device's built-in kernels, whose code is unknown.
cl_program create_with_built_in(cl_context context, cl_uint count, const cl_device_id* devices,
                                const char* names, cl_int* error) {
  return set_source_hash(
      g.driver.clCreateProgramWithBuiltInKernels(context, count, devices, names, error), 0);
}

// Sets a specialization constant, which becomes part of the source's hash.
cl_int specialize(cl_program program, cl_uint id, size_t size, const void* value) {
  const cl_int result = g.driver.clSetProgramSpecializationConstant(program, id, size, value);
  auto* record = g.programs.get<Program>(handle_key(program));
  if (result == CL_SUCCESS && record != nullptr && record->source != 0) {
    record->source = hash_bytes(hash_with(record->source, id), value, size);
  }
  return result;
}

using BuildCallback = void(CL_CALLBACK*)(cl_program, void*);

cl_int build(cl_program program, cl_uint count, const cl_device_id* devices, const char* options,
             BuildCallback notify, void* data) {
  note_build(program, options);
  return g.driver.clBuildProgram(program, count, devices, options, notify, data);
}

cl_int compile(cl_program program, cl_uint count, const cl_device_id* devices, const char* options,
               cl_uint header_count, const cl_program* headers, const char** names,
               BuildCallback notify, void* data) {
  uint64_t hash = hash_programs(header_count, headers);
  for (cl_uint i = 0; names != nullptr && i < header_count && hash != 0; ++i) {
    hash = names[i] == nullptr ? 0 : hash_with(hash, hash_text(names[i]));
  }
  note_build(program, options, hash);
  return g.driver.clCompileProgram(program, count, devices, options, header_count, headers, names,
                                   notify, data);
}

cl_program link(cl_context context, cl_uint count, const cl_device_id* devices, const char* options,
                cl_uint input_count, const cl_program* inputs, BuildCallback notify, void* data,
                cl_int* error) {
  const uint64_t source = hash_programs(input_count, inputs);
  cl_program program =
      set_source_hash(g.driver.clLinkProgram(context, count, devices, options, input_count, inputs,
                                             notify, data, error),
                      source);
  if (program != nullptr) note_build(program, options);
  return program;
}

}  // namespace

uint64_t kernel_code_hash(cl_program program, uint64_t kernel_name) {
  const uint64_t build = program == nullptr ? 0 : find_build_hash(program);
  return build == 0 ? 0 : hash_with(build, kernel_name);
}

void intercept_programs(cl_icd_dispatch* table) {
  WEIR_INTERCEPT(table, clCreateProgramWithSource, create_with_source);
  WEIR_INTERCEPT(table, clCreateProgramWithIL, create_with_il);
  WEIR_INTERCEPT(table, clCreateProgramWithBinary, create_with_binary);
  WEIR_INTERCEPT(table, clCreateProgramWithBuiltInKernels, create_with_built_in);
  WEIR_INTERCEPT(table, clSetProgramSpecializationConstant, specialize);
  WEIR_INTERCEPT(table, clBuildProgram, build);
  WEIR_INTERCEPT(table, clCompileProgram, compile);
  WEIR_INTERCEPT(table, clLinkProgram, link);
}

}  // namespace weir_probe::opencl

// What a program's kernels are made of: source, IL or binary, and the options of its build.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {
namespace {

// The handle may have been another program's: nothing of that is kept. `source` 0: unknown.
cl_program made(cl_program program, uint64_t source) {
  auto* record =
      program == nullptr ? nullptr : known_or_fresh<Program>(&g.programs, number(program));
  if (record != nullptr) *record = {source, source};
  return program;
}

// Before the driver does it: kernels may be made in its callback.
// `headers`: 0 where they are not known.
void built(cl_program program, const char* options, uint64_t headers = k_hash_seed) {
  auto* record = g.programs.get<Program>(number(program));
  if (record == nullptr || record->source == 0) return;
  const char* words = options == nullptr ? "" : options;
  record->built = headers == 0 ? 0 : hash_bytes(record->source ^ headers, words, strlen(words));
}

uint64_t hash_with(uint64_t hash, uint64_t more) { return hash_bytes(hash, &more, sizeof more); }

uint64_t built_of(cl_program program) {
  const auto* record = g.programs.get<Program>(number(program));
  return record == nullptr ? 0 : record->built;
}

// Of programs that another one is made from; 0 where one of them is not known.
uint64_t hash_programs(cl_uint count, const cl_program* programs) {
  uint64_t hash = k_hash_seed;
  for (cl_uint i = 0; programs != nullptr && i < count; ++i) {
    const uint64_t one = built_of(programs[i]);
    if (one == 0) return 0;
    hash = hash_with(hash, one);
  }
  return hash;
}

// How the source is cut into strings is no part of it.
cl_program create_with_source(cl_context context, cl_uint count, const char** strings,
                              const size_t* lengths, cl_int* error) {
  cl_program program = g.next.clCreateProgramWithSource(context, count, strings, lengths, error);
  if (program == nullptr) return program;
  const auto length_of = [&](cl_uint i) {
    return lengths != nullptr && lengths[i] != 0 ? lengths[i] : strlen(strings[i]);
  };
  size_t size = 0, at = 0;
  for (cl_uint i = 0; i < count; ++i) size += length_of(i);
  auto* whole = static_cast<char*>(malloc(size + 1));
  for (cl_uint i = 0; whole != nullptr && i < count; at += length_of(i++)) {
    memcpy(whole + at, strings[i], length_of(i));
  }
  made(program, whole == nullptr ? 0 : hash_bytes(k_hash_seed, whole, size));
  free(whole);
  return program;
}

cl_program create_with_il(cl_context context, const void* il, size_t size, cl_int* error) {
  cl_program program = g.next.clCreateProgramWithIL(context, il, size, error);
  return made(program, program == nullptr ? 0 : hash_bytes(k_hash_seed, il, size));
}

// Each device has a binary of its own: a kernel's code is all of them.
cl_program create_with_binary(cl_context context, cl_uint count, const cl_device_id* devices,
                              const size_t* sizes, const unsigned char** binaries, cl_int* status,
                              cl_int* error) {
  cl_program program =
      g.next.clCreateProgramWithBinary(context, count, devices, sizes, binaries, status, error);
  uint64_t hash = k_hash_seed;
  for (cl_uint i = 0; program != nullptr && i < count; ++i) {
    hash = hash_bytes(hash, binaries[i], sizes[i]);
  }
  return made(program, hash);
}

// The device's own kernels: nothing is known of their code.
cl_program create_with_built_in(cl_context context, cl_uint count, const cl_device_id* devices,
                                const char* names, cl_int* error) {
  return made(g.next.clCreateProgramWithBuiltInKernels(context, count, devices, names, error), 0);
}

cl_int specialize(cl_program program, cl_uint id, size_t size, const void* value) {
  const cl_int result = g.next.clSetProgramSpecializationConstant(program, id, size, value);
  auto* record = g.programs.get<Program>(number(program));
  if (result == CL_SUCCESS && record != nullptr && record->source != 0) {
    record->source = hash_bytes(hash_with(record->source, id), value, size);
  }
  return result;
}

using Built = void(CL_CALLBACK*)(cl_program, void*);

cl_int build(cl_program program, cl_uint count, const cl_device_id* devices, const char* options,
             Built notify, void* data) {
  built(program, options);
  return g.next.clBuildProgram(program, count, devices, options, notify, data);
}

cl_int compile(cl_program program, cl_uint count, const cl_device_id* devices, const char* options,
               cl_uint header_count, const cl_program* headers, const char** names, Built notify,
               void* data) {
  uint64_t hash = hash_programs(header_count, headers);
  for (cl_uint i = 0; names != nullptr && i < header_count && hash != 0; ++i) {
    hash = names[i] == nullptr ? 0 : hash_with(hash, hash_text(names[i]));
  }
  built(program, options, hash);
  return g.next.clCompileProgram(program, count, devices, options, header_count, headers, names,
                                 notify, data);
}

cl_program link(cl_context context, cl_uint count, const cl_device_id* devices, const char* options,
                cl_uint input_count, const cl_program* inputs, Built notify, void* data,
                cl_int* error) {
  const uint64_t source = hash_programs(input_count, inputs);
  cl_program program = made(g.next.clLinkProgram(context, count, devices, options, input_count,
                                                 inputs, notify, data, error),
                            source);
  if (program != nullptr) built(program, options);
  return program;
}

}  // namespace

uint64_t code_of(cl_program program, uint64_t kernel_name) {
  const uint64_t made_of = program == nullptr ? 0 : built_of(program);
  return made_of == 0 ? 0 : hash_with(made_of, kernel_name);
}

void put_programs(cl_icd_dispatch* table) {
  WEIR_PUT(table, clCreateProgramWithSource, create_with_source);
  WEIR_PUT(table, clCreateProgramWithIL, create_with_il);
  WEIR_PUT(table, clCreateProgramWithBinary, create_with_binary);
  WEIR_PUT(table, clCreateProgramWithBuiltInKernels, create_with_built_in);
  WEIR_PUT(table, clSetProgramSpecializationConstant, specialize);
  WEIR_PUT(table, clBuildProgram, build);
  WEIR_PUT(table, clCompileProgram, compile);
  WEIR_PUT(table, clLinkProgram, link);
}

}  // namespace weir_probe::opencl

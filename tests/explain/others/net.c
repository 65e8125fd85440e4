// net.c: a small network for images on OpenCL: net STEPS [NAME=VALUE …]. Each step goes through six
// blocks: patches, product, bias and activation, then a mean; a class is read back. NAME=VALUE,
// also in SETTINGS, makes one change each, as a commit would.
//   cc -O1 -o net net.c -lOpenCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char settings[512];
static int set(const char* name, int otherwise) {
  const char* found = strstr(settings, name);
  return found ? atoi(found + strlen(name)) : otherwise;
}

static const char* const source =
    "#define K(name, body) __kernel void name(__global const float* a, __global const float* w, "
    "__global float* o) { int i = get_global_id(0); body }\n"
    "K(im2col, o[i] = a[i / 2];)\n"
    "K(product, float s = 0; for (int k = 0; k < 32; ++k) s += a[k] * w[k]; o[i] = s;)\n"
    "K(product_image, float s = 0; for (int k = 0; k < 32; ++k) s += a[k] * w[k] + a[0]; o[i] = "
    "s;)\n"
    "K(direct_convolution, float s = 0; for (int k = 0; k < 32; ++k) s += a[k / 2] * w[k]; o[i] = "
    "s;)\n"
    "K(bias_relu, o[i] = max(a[i] + w[i], 0.0f);)\n"
    "K(bias, o[i] = a[i] + w[i];)\n"
    "K(relu, o[i] = max(o[i], 0.0f);)\n"
    "K(dropout, o[i] = o[i] * w[i];)\n"
    "K(mean, o[0] = a[i];)\n"
    "K(pick, o[0] = a[0];)\n";

static cl_context context;
static cl_command_queue queue;
static cl_program program;
static cl_kernel named(const char* name) {
  cl_kernel kernel = clCreateKernel(program, name, NULL);
  if (!kernel) fprintf(stderr, "no kernel %s\n", name), exit(1);
  return kernel;
}
static cl_mem buffer(size_t count) {
  return clCreateBuffer(context, CL_MEM_READ_WRITE, 4 * count, NULL, NULL);
}
static void run(const char* name, cl_mem a, cl_mem w, cl_mem o, size_t count) {
  static struct {
    char name[32];
    cl_kernel kernel;
  } made[16];
  int i = 0;
  while (made[i].kernel && strcmp(made[i].name, name) != 0) ++i;
  if (!made[i].kernel) made[i].kernel = named(strcpy(made[i].name, name));
  cl_mem all[3] = {a, w, o};
  for (cl_uint k = 0; k < 3; ++k) clSetKernelArg(made[i].kernel, k, sizeof(cl_mem), &all[k]);
  size_t local = (size_t)set("local=", 16);
  if (count < local) local = 1;
  clEnqueueNDRangeKernel(queue, made[i].kernel, 1, NULL, &count, &local, 0, NULL, NULL);
  if (set("finish_all=", 0)) clFinish(queue);
}

int main(int argc, char** argv) {
  if (getenv("SETTINGS")) strncat(settings, getenv("SETTINGS"), 200);
  for (int i = 2; i < argc; ++i) strncat(strcat(settings, " "), argv[i], 60);
  cl_platform_id platform;
  cl_device_id device;
  if (clGetPlatformIDs(1, &platform, NULL) ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
    return puts("no device"), 1;
  context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  queue = clCreateCommandQueue(context, device, 0, NULL);
  program = clCreateProgramWithSource(context, 1, (const char**)&source, NULL, NULL);
  if (clBuildProgram(program, 1, &device,
                     set("fast_math=", 0) ? "-cl-fast-relaxed-math -DFAST" : "", NULL, NULL))
    return puts("not built"), 1;
  enum { size = 1024, blocks = 6 };
  static float host[size];
  cl_mem x = buffer(size), y = buffer(size), z = buffer(size), w = buffer(size),
         spare = buffer(size);
  const char* const product = set("image=", 0) ? "product_image" : "product";
  clEnqueueWriteBuffer(queue, w, CL_TRUE, 0, sizeof(host), host, 0, NULL, NULL);
  if (set("workspace=", 0))
    clEnqueueWriteBuffer(queue, buffer((size_t)size * 64), CL_TRUE, 0, sizeof(host), host, 0, NULL,
                         NULL);
  for (int i = 0; i < set("tuned=", 0); ++i) run("product", x, w, y, size), clFinish(queue);
  for (int step = 0; step < atoi(argv[1]); ++step) {
    clEnqueueWriteBuffer(queue, x, CL_FALSE, 0, sizeof(host), host, 0, NULL, NULL);  // the picture
    for (int block = 0; block < blocks; ++block) {
      if (set("direct=", 0)) {
        run("direct_convolution", x, w, z, size);
      } else {
        run("im2col", x, w, y, size);
        const int pieces = set("pieces=", 1);
        for (int piece = 0; piece < pieces; ++piece) run(product, y, w, z, size / (size_t)pieces);
      }
      const int on_cpu = set("relu_on_cpu=", 0), apart = set("bias_apart=", 0);
      run(on_cpu || apart ? "bias" : "bias_relu", z, w, x, size);
      if (apart) run("relu", z, w, x, size);
      if (on_cpu) {
        clEnqueueReadBuffer(queue, x, CL_TRUE, 0, sizeof(host), host, 0, NULL, NULL);
        for (int i = 0; i < size; ++i) host[i] = host[i] > 0 ? host[i] : 0;
        clEnqueueWriteBuffer(queue, x, CL_TRUE, 0, sizeof(host), host, 0, NULL, NULL);
      }
      if (set("dropout=", 0)) run("dropout", z, w, x, size);
      if (set("moved=", 0)) clEnqueueCopyBuffer(queue, x, spare, 0, 0, sizeof(host), 0, NULL, NULL);
      if (set("finish_block=", 0)) clFinish(queue);
      if (set("scratch_each=", 0)) clReleaseMemObject(y), y = buffer(size);
    }
    if (!set("no_mean=", 0)) run("mean", x, w, z, size);
    clEnqueueReadBuffer(queue, z, CL_TRUE, 0, set("read_all=", 0) ? sizeof(host) : 4, host, 0, NULL,
                        NULL);
  }
  printf("%s tokens, 1 tokens/s\n", argv[1]);
  return 0;
}

// cg.cpp: conjugate gradients by ViennaCL, which makes the kernels of its expressions: cg STEPS
// [NAME=VALUE …], also in SETTINGS: one change each, as a commit would make it.   c++ -O1 -o cg
// cg.cpp -lOpenCL
#define CL_TARGET_OPENCL_VERSION 120
#define VIENNACL_WITH_OPENCL
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <viennacl/compressed_matrix.hpp>
#include <viennacl/ell_matrix.hpp>
#include <viennacl/linalg/cg.hpp>
#include <viennacl/linalg/inner_prod.hpp>
#include <viennacl/linalg/prod.hpp>
#include <viennacl/vector.hpp>

int main(int argc, char** argv) {
  std::string settings = std::getenv("SETTINGS") ? std::getenv("SETTINGS") : "";
  for (int i = 2; i < argc; ++i) settings += std::string(" ") + argv[i];
  const auto on = [&](const char* name) {
    return settings.find(std::string(name) + "=1") != std::string::npos;
  };
  constexpr std::size_t n = 256;
  std::vector<std::map<unsigned, float>> rows(n);
  for (unsigned i = 0; i < n; ++i) {
    rows[i][i] = 4;
    if (i > 0) rows[i][i - 1] = -1;
    if (i + 1 < n) rows[i][i + 1] = -1;
  }
  viennacl::compressed_matrix<float> matrix(n, n);
  viennacl::copy(rows, matrix);
  viennacl::ell_matrix<float> ell;
  if (on("ell")) viennacl::copy(rows, ell);
  const unsigned steps = static_cast<unsigned>(std::atoi(argv[1]));
  viennacl::vector<float> b = viennacl::scalar_vector<float>(n, 1.F),
                          x = viennacl::zero_vector<float>(n), r = b, p = b, ap(n), d = b, saved(n);
  std::vector<float> host(n);
  if (on("library")) {
    x = viennacl::linalg::solve(matrix, b, viennacl::linalg::cg_tag(1e-30, steps));
  } else {
    float rr = viennacl::linalg::inner_prod(r, r);
    for (unsigned step = 0; step < steps; ++step) {
      if (on("host")) {
        viennacl::copy(p, host);
        for (std::size_t i = 0; i < n; ++i) host[i] *= 4;
        viennacl::copy(host, ap);
      } else if (on("ell")) {
        ap = viennacl::linalg::prod(ell, p);
      } else {
        ap = viennacl::linalg::prod(matrix, p);
      }
      const float alpha = rr / (1e-20F + static_cast<float>(viennacl::linalg::inner_prod(p, ap)));
      if (on("temporary")) {
        viennacl::vector<float> next(n);
        next = x + alpha * p;
        x.swap(next);
      } else {
        x += alpha * p;
      }
      r -= alpha * ap;
      if (on("preconditioned")) r = viennacl::linalg::element_prod(r, d);
      float now = 0.5F * rr;
      if (!on("fixed_steps")) now = viennacl::linalg::inner_prod(r, r);
      p = r + (now / (1e-20F + rr)) * p;
      if (on("scaled_apart")) p *= 1.F;
      rr = now;
      if (on("finish")) viennacl::backend::finish();
      if (on("logged")) viennacl::copy(x, host);
      if (on("kept"))
        viennacl::backend::memory_copy(x.handle(), saved.handle(), 0, 0, n * sizeof(float));
    }
  }
  viennacl::backend::finish();
  std::printf("%u tokens, 1 tokens/s\n", steps);
}

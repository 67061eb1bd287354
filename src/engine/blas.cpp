// OpenBLAS is loaded at first use rather than linked: which kernels it takes is decided when it is loaded, and releases
// that are older than the CPU (0.3.21 of Debian 12 on a Xeon of 2023) fall back to those of 2004, ten times slower. So
// the choice is made here, from what the CPU can do, unless the user has made one.
#include "engine/blas.hpp"

#include <cblas.h>
#include <dlfcn.h>

#include <cstdlib>

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

void choose_kernels() {
#if defined(__x86_64__)
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx512 || avx2) setenv("OPENBLAS_CORETYPE", avx512 ? "SkylakeX" : "Haswell", /*replace=*/0);
#endif
}

struct OpenBlas {
  OpenBlas() {
    choose_kernels();
    void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library)
      throw ResourceError("the dense mode needs OpenBLAS (libopenblas.so.0), which can't be loaded: " +
                          std::string(dlerror()));
    const auto find = [&](const char* name) {
      void* symbol = dlsym(library, name);
      if (!symbol) throw ResourceError("libopenblas.so.0 has no " + std::string(name));
      return symbol;
    };
    sgemm = reinterpret_cast<decltype(&cblas_sgemm)>(find("cblas_sgemm"));
    config = reinterpret_cast<decltype(&openblas_get_config)>(find("openblas_get_config"));
    core = reinterpret_cast<decltype(&openblas_get_corename)>(find("openblas_get_corename"));
    reinterpret_cast<decltype(&openblas_set_num_threads)>(find("openblas_set_num_threads"))(1);
  }

  decltype(&cblas_sgemm) sgemm;
  decltype(&openblas_get_config) config;
  decltype(&openblas_get_corename) core;
};

const OpenBlas& open_blas() {
  static const OpenBlas library;
  return library;
}

}  // namespace

void matrix_product(bool transpose_a, bool transpose_b, int m, int n, int k, const float* a, int lda, const float* b,
                    int ldb, float beta, float* c, int ldc) {
  open_blas().sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans, m,
                    n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
}

std::string matrix_product_library() { return std::string(open_blas().config()) + ", kernels " + open_blas().core(); }

}  // namespace spikeloom

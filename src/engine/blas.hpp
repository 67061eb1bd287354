// Single-precision matrix products for the dense path, by OpenBLAS, one thread a call.
#pragma once

#include <string>

namespace spikeloom {

/// C (m, n) = A B + beta C, row-major with leading dimensions lda, ldb, ldc; A is (m, k), or (k, m) if transposed; B is
/// (k, n), or (n, k) if transposed. Callable from several threads at once. Throws ResourceError if OpenBLAS can't be
/// loaded.
void matrix_product(bool transpose_a, bool transpose_b, int m, int n, int k, const float* a, int lda, const float* b,
                    int ldb, float beta, float* c, int ldc);

/// OpenBLAS's version and the kernels it chose, for the record of a run.
std::string matrix_product_library();

}  // namespace spikeloom

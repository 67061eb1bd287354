// A linear layer on dense inputs: the readout of networks whose last hidden layer does not spike. Small, so plain
// row-adds with a factor.
#include "kernels/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linear.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lanes.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace spikeloom::kernels::HWY_NAMESPACE {
namespace {

template <int kWidth>
void forward(const float* x, std::ptrdiff_t x_stride, int inputs, const float* weights, const float* bias,
             std::size_t rows, float* out, std::ptrdiff_t out_stride) {
  constexpr int kVectors = kWidth / kLanes;
  for (std::size_t r = 0; r < rows; ++r) {
    Lanes sum[kVectors];
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) sum[i] = load(bias + i * kLanes);
    const float* value = x + static_cast<std::ptrdiff_t>(r) * x_stride;
    for (int input = 0; input < inputs; ++input) {
      const Lanes factor = lanes(value[input]);
      SPIKELOOM_UNROLL
      for (int i = 0; i < kVectors; ++i) sum[i] = mul_add(factor, load(weights + input * kWidth + i * kLanes), sum[i]);
    }
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i)
      store_unaligned(sum[i], out + static_cast<std::ptrdiff_t>(r) * out_stride + i * kLanes);
  }
}

template <int kWidth>
void gradient_of_weights(const float* x, std::ptrdiff_t x_stride, int inputs, const float* rows, std::ptrdiff_t stride,
                         std::size_t row_count, float* gradient) {
  constexpr int kVectors = kWidth / kLanes;
  for (int input = 0; input < inputs; ++input) {
    float* out = gradient + input * kWidth;
    Lanes sum[kVectors];
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) sum[i] = load(out + i * kLanes);
    for (std::size_t r = 0; r < row_count; ++r) {
      const Lanes factor = lanes(x[static_cast<std::ptrdiff_t>(r) * x_stride + input]);
      const float* row = rows + static_cast<std::ptrdiff_t>(r) * stride;
      SPIKELOOM_UNROLL
      for (int i = 0; i < kVectors; ++i) sum[i] = mul_add(factor, load_unaligned(row + i * kLanes), sum[i]);
    }
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) store(sum[i], out + i * kLanes);
  }
}

void LinearRows(int width, const float* x, std::ptrdiff_t x_stride, int inputs, const float* weights, const float* bias,
                std::size_t rows, float* out, std::ptrdiff_t out_stride) {
  if (width == 64) return forward<64>(x, x_stride, inputs, weights, bias, rows, out, out_stride);
  if (width == 32) return forward<32>(x, x_stride, inputs, weights, bias, rows, out, out_stride);
  forward<16>(x, x_stride, inputs, weights, bias, rows, out, out_stride);
}

void LinearWeightGradient(int width, const float* x, std::ptrdiff_t x_stride, int inputs, const float* rows,
                          std::ptrdiff_t stride, std::size_t row_count, float* gradient) {
  if (width == 64) return gradient_of_weights<64>(x, x_stride, inputs, rows, stride, row_count, gradient);
  if (width == 32) return gradient_of_weights<32>(x, x_stride, inputs, rows, stride, row_count, gradient);
  gradient_of_weights<16>(x, x_stride, inputs, rows, stride, row_count, gradient);
}

}  // namespace
}  // namespace spikeloom::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spikeloom::kernels {

HWY_EXPORT(LinearRows);
HWY_EXPORT(LinearWeightGradient);

void linear_rows(int width, const float* x, std::ptrdiff_t x_stride, int inputs, const float* weights,
                 const float* bias, std::size_t rows, float* out, std::ptrdiff_t out_stride) {
  HWY_DYNAMIC_DISPATCH(LinearRows)(width, x, x_stride, inputs, weights, bias, rows, out, out_stride);
}

void linear_weight_gradient(int width, const float* x, std::ptrdiff_t x_stride, int inputs, const float* rows,
                            std::ptrdiff_t stride, std::size_t row_count, float* gradient) {
  HWY_DYNAMIC_DISPATCH(LinearWeightGradient)(width, x, x_stride, inputs, rows, stride, row_count, gradient);
}

}  // namespace spikeloom::kernels
#endif

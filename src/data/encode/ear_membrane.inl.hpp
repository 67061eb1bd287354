// The basilar membrane's motion, compiled per instruction set: stimulus times transfer function, inverse transform,
// interpolation. Rows are one complex number per lane: N real parts, then N imaginary parts.
#if defined(SPIKELOOM_EAR_MEMBRANE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SPIKELOOM_EAR_MEMBRANE_INL
#undef SPIKELOOM_EAR_MEMBRANE_INL
#else
#define SPIKELOOM_EAR_MEMBRANE_INL
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "data/encode/inner_ear_kernel.hpp"

HWY_BEFORE_NAMESPACE();
namespace spikeloom {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Steps that are handled at a time: two refractory periods, and a multiple of every decimation.
constexpr int kEarChunk = 48;

template <class V>
struct ComplexV {
  V re;
  V im;
};

template <class V>
HWY_INLINE ComplexV<V> add(ComplexV<V> a, ComplexV<V> b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
template <class V>
HWY_INLINE ComplexV<V> subtract(ComplexV<V> a, ComplexV<V> b) {
  return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}
template <class V>
HWY_INLINE ComplexV<V> scale(ComplexV<V> a, V factor) {
  return {hn::Mul(a.re, factor), hn::Mul(a.im, factor)};
}
/// a + i b, a - i b
template <class V>
HWY_INLINE ComplexV<V> add_rotated(ComplexV<V> a, ComplexV<V> b) {
  return {hn::Sub(a.re, b.im), hn::Add(a.im, b.re)};
}
template <class V>
HWY_INLINE ComplexV<V> subtract_rotated(ComplexV<V> a, ComplexV<V> b) {
  return {hn::Add(a.re, b.im), hn::Sub(a.im, b.re)};
}
template <class V>
HWY_INLINE ComplexV<V> multiply(ComplexV<V> a, V re, V im) {
  return {hn::Sub(hn::Mul(a.re, re), hn::Mul(a.im, im)), hn::Add(hn::Mul(a.re, im), hn::Mul(a.im, re))};
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE ComplexV<V> load_row(D d, const float* row) {
  return {hn::Load(d, row), hn::Load(d, row + hn::Lanes(d))};
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE void store_row(D d, ComplexV<V> value, float* row) {
  hn::Store(value.re, d, row);
  hn::Store(value.im, d, row + hn::Lanes(d));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE void store_turned(D d, ComplexV<V> value, const float* twiddle, float* row) {
  store_row(d, multiply(value, hn::Set(d, twiddle[0]), hn::Set(d, twiddle[1])), row);
}

/// The spectrum of the motion of lanes `channel` .. of the group at bin k; zero beyond the table or the stimulus' band.
template <class D, class V = hn::Vec<D>>
HWY_INLINE ComplexV<V> motion(D d, const EarJob& job, int k, int last, int channel) {
  if (k > last) return {hn::Zero(d), hn::Zero(d)};
  const float position = static_cast<float>(k) * job.hz_per_bin / job.table->spacing_hz;
  const int bin = static_cast<int>(position);
  const V fraction = hn::Set(d, position - static_cast<float>(bin));
  const float* low = job.table->values.data() + static_cast<std::size_t>(bin) * 2 * kEarGroup + channel;
  const float* high = low + 2 * kEarGroup;
  const V low_re = hn::Load(d, low);
  const V low_im = hn::Load(d, low + kEarGroup);
  const V re = hn::Add(low_re, hn::Mul(fraction, hn::Sub(hn::Load(d, high), low_re)));
  const V im = hn::Add(low_im, hn::Mul(fraction, hn::Sub(hn::Load(d, high + kEarGroup), low_im)));
  return multiply(ComplexV<V>{re, im}, hn::Set(d, job.spectrum[2 * k]), hn::Set(d, job.spectrum[2 * k + 1]));
}

/// Rows k and length - k hold x + i y, where x and y are the spectra, folded to those of real signals, of N channels
/// from `block` and N channels from `block` + kEarPair. What lies above the Nyquist frequency folds down, as it does in
/// SHD's encoder.
template <class D, class V = hn::Vec<D>>
void fill_spectrum(D d, const EarJob& job, int block) {
  const int lanes = static_cast<int>(hn::Lanes(d));
  const int length = job.transform->length;
  const auto reach = static_cast<int>(static_cast<float>(job.table->bins - 2) * job.table->spacing_hz / job.hz_per_bin);
  const int last = HWY_MIN(HWY_MIN(reach, job.spectrum_bins - 1), length - 1);
  for (int k = 0; k <= length / 2; ++k) {
    const int mirrored = k == 0 ? 0 : length - k;
    float* row = job.rows + static_cast<std::size_t>(k) * 2 * lanes;
    float* mirror = job.rows + static_cast<std::size_t>(mirrored) * 2 * lanes;
    if (k > last && mirrored > last) {
      store_row(d, ComplexV<V>{hn::Zero(d), hn::Zero(d)}, row);
      store_row(d, ComplexV<V>{hn::Zero(d), hn::Zero(d)}, mirror);
      continue;
    }
    const ComplexV<V> a = motion(d, job, k, last, block);
    const ComplexV<V> b = motion(d, job, mirrored, last, block);
    const ComplexV<V> p = motion(d, job, k, last, block + kEarPair);
    const ComplexV<V> q = motion(d, job, mirrored, last, block + kEarPair);
    const ComplexV<V> x{hn::Add(a.re, b.re), hn::Sub(a.im, b.im)};
    const ComplexV<V> y{hn::Add(p.re, q.re), hn::Sub(p.im, q.im)};
    store_row(d, ComplexV<V>{hn::Add(x.re, y.im), hn::Sub(y.re, x.im)}, mirror);
    store_row(d, add_rotated(x, y), row);
  }
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void butterfly4(D d, float* row, std::size_t stride, const float* w) {
  const ComplexV<V> a = load_row(d, row);
  const ComplexV<V> b = load_row(d, row + stride);
  const ComplexV<V> c = load_row(d, row + 2 * stride);
  const ComplexV<V> e = load_row(d, row + 3 * stride);
  const ComplexV<V> even = add(a, c);
  const ComplexV<V> odd = add(b, e);
  const ComplexV<V> even_difference = subtract(a, c);
  const ComplexV<V> odd_difference = subtract(b, e);
  store_row(d, add(even, odd), row);
  store_turned(d, add_rotated(even_difference, odd_difference), w, row + stride);
  store_turned(d, subtract(even, odd), w + 2, row + 2 * stride);
  store_turned(d, subtract_rotated(even_difference, odd_difference), w + 4, row + 3 * stride);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void butterfly2(D d, float* row, std::size_t stride, const float* w) {
  const ComplexV<V> a = load_row(d, row);
  const ComplexV<V> b = load_row(d, row + stride);
  store_row(d, add(a, b), row);
  store_turned(d, subtract(a, b), w, row + stride);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void butterfly3(D d, float* row, std::size_t stride, const float* w) {
  const ComplexV<V> a = load_row(d, row);
  const ComplexV<V> b = load_row(d, row + stride);
  const ComplexV<V> c = load_row(d, row + 2 * stride);
  const ComplexV<V> sum = add(b, c);
  const ComplexV<V> middle = subtract(a, scale(sum, hn::Set(d, 0.5F)));
  const ComplexV<V> turn = scale(subtract(b, c), hn::Set(d, 0.866025404F));  // sin 120 degrees
  store_row(d, add(a, sum), row);
  store_turned(d, add_rotated(middle, turn), w, row + stride);
  store_turned(d, subtract_rotated(middle, turn), w + 2, row + 2 * stride);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void butterfly5(D d, float* row, std::size_t stride, const float* w) {
  // Cosines and sines of 72 and 144 degrees.
  const V c1 = hn::Set(d, 0.309016994F), c2 = hn::Set(d, -0.809016994F);
  const V s1 = hn::Set(d, 0.951056516F), s2 = hn::Set(d, 0.587785252F);
  const ComplexV<V> x0 = load_row(d, row);
  const ComplexV<V> x1 = load_row(d, row + stride);
  const ComplexV<V> x2 = load_row(d, row + 2 * stride);
  const ComplexV<V> x3 = load_row(d, row + 3 * stride);
  const ComplexV<V> x4 = load_row(d, row + 4 * stride);
  const ComplexV<V> outer = add(x1, x4), inner = add(x2, x3);
  const ComplexV<V> outer_difference = subtract(x1, x4), inner_difference = subtract(x2, x3);
  const ComplexV<V> middle1 = add(x0, add(scale(outer, c1), scale(inner, c2)));
  const ComplexV<V> middle2 = add(x0, add(scale(outer, c2), scale(inner, c1)));
  const ComplexV<V> turn1 = add(scale(outer_difference, s1), scale(inner_difference, s2));
  const ComplexV<V> turn2 = subtract(scale(outer_difference, s2), scale(inner_difference, s1));
  store_row(d, add(x0, add(outer, inner)), row);
  store_turned(d, add_rotated(middle1, turn1), w, row + stride);
  store_turned(d, add_rotated(middle2, turn2), w + 2, row + 2 * stride);
  store_turned(d, subtract_rotated(middle2, turn2), w + 4, row + 3 * stride);
  store_turned(d, subtract_rotated(middle1, turn1), w + 6, row + 4 * stride);
}

template <class D>
void run_pass(D d, const EarTransform& transform, const EarTransform::Pass& pass, float* rows) {
  const std::size_t row = 2 * hn::Lanes(d);
  const auto quarter = static_cast<std::size_t>(pass.length / pass.radix);
  const float* w = transform.twiddles.data() + pass.twiddles;
  const std::size_t step = 2 * static_cast<std::size_t>(pass.radix - 1);
  const std::size_t stride = quarter * row;
  switch (pass.radix) {
    case 2:
      for (std::size_t j = 0; j < quarter; ++j) butterfly2(d, rows + j * row, stride, w + j * step);
      break;
    case 3:
      for (std::size_t j = 0; j < quarter; ++j) butterfly3(d, rows + j * row, stride, w + j * step);
      break;
    case 4:
      for (std::size_t j = 0; j < quarter; ++j) butterfly4(d, rows + j * row, stride, w + j * step);
      break;
    default:
      for (std::size_t j = 0; j < quarter; ++j) butterfly5(d, rows + j * row, stride, w + j * step);
      break;
  }
}

/// All passes from `first` on over the block at `rows`. Large blocks are finished one part after the other, so that all
/// but the first few passes run in the L1 cache.
template <class D>
void transform_rows(D d, const EarTransform& transform, float* rows, std::size_t first) {
  constexpr std::size_t kCacheBytes = 32 * 1024;
  if (first == transform.passes.size()) return;
  const std::size_t row = 2 * hn::Lanes(d);
  const EarTransform::Pass& pass = transform.passes[first];
  const auto length = static_cast<std::size_t>(pass.length);
  if (length * row * sizeof(float) <= kCacheBytes) {
    for (std::size_t p = first; p < transform.passes.size(); ++p) {
      const auto part = static_cast<std::size_t>(transform.passes[p].length);
      for (std::size_t at = 0; at < length; at += part) run_pass(d, transform, transform.passes[p], rows + at * row);
    }
    return;
  }
  run_pass(d, transform, pass, rows);
  const std::size_t part = length / static_cast<std::size_t>(pass.radix);
  for (std::size_t at = 0; at < length; at += part) transform_rows(d, transform, rows + at * row, first + 1);
}

/// The motion of a block's channels at kEarRate, steps `first` .. `first` + kEarChunk: velocity[step][2 N lanes].
template <class D, class V = hn::Vec<D>>
void fetch_velocity(D d, const EarJob& job, int first, float* HWY_RESTRICT velocity) {
  const std::size_t lanes = hn::Lanes(d);
  const EarTransform& transform = *job.transform;
  const int decimation = job.table->decimation;
  // Indices are periodic, as the transform is; the last chunk may end beyond the utterance.
  const auto row_at = [&](int sample) {
    const int wrapped = sample < 0                  ? sample + transform.length
                        : sample < transform.length ? sample
                                                    : sample - transform.length;
    return job.rows + transform.row_of[static_cast<std::size_t>(wrapped)] * 2 * lanes;
  };
  if (decimation == 1) {
    for (int i = 0; i < kEarChunk; ++i) {
      const float* row = row_at(first + i);
      store_row(d, load_row(d, row), velocity + static_cast<std::size_t>(i) * 2 * lanes);
      // The rows of neighbouring times lie far apart: no hardware foresees the next chunk's.
      const float* ahead = row_at(first + i + kEarChunk);
      hwy::Prefetch(ahead);
      hwy::Prefetch(ahead + lanes);
    }
    return;
  }
  for (int i = 0; i < kEarChunk / decimation; ++i) {
    const float* taps[kEarTaps];
    for (int j = 0; j < kEarTaps; ++j) taps[j] = row_at(first / decimation + i + j - (kEarTaps / 2 - 1));
    for (int phase = 0; phase < decimation; ++phase) {
      const float* weight = job.interpolation + phase * kEarTaps;
      ComplexV<V> sum = scale(load_row(d, taps[0]), hn::Set(d, weight[0]));
      for (int j = 1; j < kEarTaps; ++j) sum = add(sum, scale(load_row(d, taps[j]), hn::Set(d, weight[j])));
      store_row(d, sum, velocity + static_cast<std::size_t>(i * decimation + phase) * 2 * lanes);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spikeloom
HWY_AFTER_NAMESPACE();

#endif  // include guard per target

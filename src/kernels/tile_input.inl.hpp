// The input current of a tile's neurons at a step. Included by kernels once per instruction set, after rows.inl.hpp:
// hence no include guard.

/// I[t] without the gain: bias plus the rows of the step's spikes in ascending id, or bias plus a row made by a matrix
/// product.
template <int kVectors, class Rows>
HWY_INLINE void input_of_step(const TileInput& input, const typename Rows::Element* weights, int step,
                              Lanes (&sum)[kVectors]) {
  const bool scaled = input.spike_value != 1.0f;
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) sum[i] = scaled ? lanes(0.0f) : load(input.bias + i * kLanes);
  if (input.currents) {
    const float* row = input.currents + step * input.current_stride;
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) sum[i] = sum[i] + load_unaligned(row + i * kLanes);
    return;
  }
  const std::uint32_t* end = input.ids + input.offsets[step + 1];
  for (const std::uint32_t* id = input.ids + input.offsets[step]; id != end; ++id)
    Rows::add(weights + std::size_t{*id} * (kVectors * kLanes / Rows::kColumnsPerElement), sum);
  if (!scaled) return;
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) sum[i] = mul_add(sum[i], lanes(input.spike_value), load(input.bias + i * kLanes));
}

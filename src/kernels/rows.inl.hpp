// How a kernel reads a row of weights or deltas: as float32, or as the bf16 copy of it. Included by the kernels once
// per instruction set, after lanes.inl.hpp, in their namespace: hence no include guard.
//
// Each format says how a row is added to the sums of its columns, and how the products of two rows fall into 16 virtual
// lanes. The two bf16 formats read the same memory and give the same bits.

struct FullRows {
  using Element = float;
  using Register = Lanes;
  static constexpr int kColumnsPerElement = 1;

  static HWY_INLINE Register load_register(const Element* from) { return load(from); }

  template <int kVectors>
  static HWY_INLINE void add(const Element* row, Lanes (&sum)[kVectors]) {
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) sum[i] = sum[i] + load(row + i * kLanes);
  }

  /// Lane l sums columns l, l + 16, l + 32, ...
  template <int kRegisters>
  static HWY_INLINE void multiply(const Element* row, const Register (&other)[kRegisters], Lanes (&lane)[kSixteen]) {
    SPIKELOOM_UNROLL
    for (int part = 0; part < kSixteen; ++part) {
      lane[part] = load(row + part * kLanes) * other[part];
      SPIKELOOM_UNROLL
      for (int i = part + kSixteen; i < kRegisters; i += kSixteen)
        lane[part] = mul_add(load(row + i * kLanes), other[i], lane[part]);
    }
  }
};

using PairVector = hn::Vec<hn::ScalableTag<Bf16Pair>>;
HWY_INLINE PairVector load_pairs(const Bf16Pair* from) { return hn::Load(hn::ScalableTag<Bf16Pair>(), from); }
HWY_INLINE Lanes low_half(PairVector pairs) { return {hn::BitCast(Floats(), hn::ShiftLeft<16>(pairs))}; }
HWY_INLINE Lanes high_half(PairVector pairs) {
  return {hn::BitCast(Floats(), hn::And(pairs, hn::Set(hn::ScalableTag<Bf16Pair>(), 0xFFFF0000u)))};
}

/// bf16 unpacked by a shift and a mask.
struct ShiftedRows {
  using Element = Bf16Pair;
  using Register = PairVector;
  static constexpr int kColumnsPerElement = 2;

  static HWY_INLINE Register load_register(const Element* from) { return load_pairs(from); }

  template <int kVectors>
  static HWY_INLINE void add(const Element* row, Lanes (&sum)[kVectors]) {
    SPIKELOOM_UNROLL
    for (int block = 0; block < kVectors; block += 2 * kSixteen) {
      SPIKELOOM_UNROLL
      for (int part = 0; part < kSixteen; ++part) {
        const PairVector pairs = load_pairs(row + (block / 2 + part) * kLanes);
        sum[block + part] = sum[block + part] + low_half(pairs);
        sum[block + kSixteen + part] = sum[block + kSixteen + part] + high_half(pairs);
      }
    }
  }

  /// Lane l sums columns l + 16, l, l + 48, l + 32: the order of the dot-product instruction.
  template <int kRegisters>
  static HWY_INLINE void multiply(const Element* row, const Register (&other)[kRegisters], Lanes (&lane)[kSixteen]) {
    SPIKELOOM_UNROLL
    for (int part = 0; part < kSixteen; ++part) {
      lane[part] = lanes(0.0f);
      SPIKELOOM_UNROLL
      for (int i = part; i < kRegisters; i += kSixteen) {
        const PairVector pairs = load_pairs(row + i * kLanes);
        lane[part] = mul_add(high_half(pairs), high_half(other[i]), lane[part]);
        lane[part] = mul_add(low_half(pairs), low_half(other[i]), lane[part]);
      }
    }
  }
};

#if HWY_TARGET <= HWY_AVX3
/// sum + odd * odd + even * even, each step rounded: AVX512-BF16, which this version of Highway does not know and the
/// compiler is not told of, so that one instruction set serves CPUs with and without it.
HWY_INLINE Lanes multiply_pairs(Lanes sum, PairVector a, PairVector b) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum.v.raw) : "v"(a.raw), "v"(b.raw));
  return sum;
}

/// bf16 by the dot-product instruction; as an adder it multiplies one of a pair by 1, the other by 0. It takes
/// subnormals as 0 and an infinity beside a 0 as NaN: copies hold no subnormals, and infinities stop the run.
struct DottedRows : ShiftedRows {
  template <int kVectors>
  static HWY_INLINE void add(const Element* row, Lanes (&sum)[kVectors]) {
    const PairVector low = hn::Set(hn::ScalableTag<Bf16Pair>(), 0x00003F80u);   // (1, 0)
    const PairVector high = hn::Set(hn::ScalableTag<Bf16Pair>(), 0x3F800000u);  // (0, 1)
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; i += 2) {
      const PairVector pairs = load_pairs(row + i / 2 * kLanes);
      sum[i] = multiply_pairs(sum[i], pairs, low);
      sum[i + 1] = multiply_pairs(sum[i + 1], pairs, high);
    }
  }

  template <int kRegisters>
  static HWY_INLINE void multiply(const Element* row, const Register (&other)[kRegisters], Lanes (&lane)[kSixteen]) {
    lane[0] = lanes(0.0f);
    SPIKELOOM_UNROLL
    for (int i = 0; i < kRegisters; ++i) lane[0] = multiply_pairs(lane[0], load_pairs(row + i * kLanes), other[i]);
  }
};
#endif

/// Rounds to the nearest bf16, ties to even; tiny values become 0. A NaN of the kind that arithmetic makes stays one.
HWY_INLINE PairVector rounded_bits(Lanes a) {
  const hn::ScalableTag<Bf16Pair> words;
  const PairVector bits = hn::BitCast(words, flush_tiny(a).v);
  const PairVector odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1u));
  return hn::Add(hn::Add(bits, hn::Set(words, 0x7FFFu)), odd);
}
HWY_INLINE PairVector pair_of(Lanes low, Lanes high) {
  return hn::Or(hn::ShiftRight<16>(rounded_bits(low)),
                hn::And(rounded_bits(high), hn::Set(hn::ScalableTag<Bf16Pair>(), 0xFFFF0000u)));
}

/// Writes a row of sums as bf16.
template <int kVectors>
HWY_INLINE void store_pairs(const Lanes (&row)[kVectors], Bf16Pair* to) {
  SPIKELOOM_UNROLL
  for (int block = 0; block < kVectors; block += 2 * kSixteen) {
    SPIKELOOM_UNROLL
    for (int part = 0; part < kSixteen; ++part) {
      hn::Store(pair_of(row[block + part], row[block + kSixteen + part]), hn::ScalableTag<Bf16Pair>(),
                to + (block / 2 + part) * kLanes);
    }
  }
}

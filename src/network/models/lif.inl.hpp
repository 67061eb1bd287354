// Leaky integrate-and-fire: state, step and adjoint, each said once.
//
//   u[t] = carry[t-1] + k I[t]                                 s[t] = u[t] > theta
//   carry[t] = spiked_slope u[t] + spiked_offset  if s[t]      what the reset leaves, decayed
//            = decay u[t]                         else
//
// The resets differ only in the two constants of the spiked branch (network/neuron_constants.hpp): to zero (0, 0), by
// subtraction (alpha, -alpha theta), subtraction after the decay (alpha, -theta), none (alpha, 0).
//
// Generic over the number: a SIMD register of neurons in the kernels, float and double in the references. Included
// inside a namespace that offers mul_add(a, b, c) = a b + c, select(mask, yes, no), flush_tiny(a) (tiny values become
// 0) and comparisons for it, once per instruction set: hence no include guard.

struct Lif {
  template <class Number>
  struct Constants {
    Number decay, gain, threshold, spiked_slope, spiked_offset;
  };

  template <class Number>
  static Number integrate(const Constants<Number>& c, Number carry, Number input) {
    return mul_add(c.gain, input, carry);
  }

  template <class Number>
  static auto fires(const Constants<Number>& c, Number membrane) {
    return membrane > c.threshold;
  }

  template <class Number, class Mask>
  static Number carry(const Constants<Number>& c, Number membrane, Mask spiked) {
    return flush_tiny(select(spiked, mul_add(c.spiked_slope, membrane, c.spiked_offset), c.decay * membrane));
  }

  /// delta[t] = dLoss/du[t] with the reset held constant; `through_spike` is h(u) dLoss/ds, `later` is delta[t+1].
  template <class Number, class Mask>
  static Number adjoint(const Constants<Number>& c, Mask spiked, Number through_spike, Number later) {
    return flush_tiny(mul_add(select(spiked, c.spiked_slope, c.decay), later, through_spike));
  }

  /// d carry / d s, which times h(u) joins the factor of delta[t+1] when the gradient goes through the reset too.
  template <class Number>
  static Number reset_jump(const Constants<Number>& c, Number membrane) {
    return mul_add(c.spiked_slope - c.decay, membrane, c.spiked_offset);
  }

  /// The same as `adjoint` with the gradient through the reset; `jump` is h(u) reset_jump(u).
  template <class Number, class Mask>
  static Number adjoint_through_reset(const Constants<Number>& c, Mask spiked, Number jump, Number through_spike,
                                      Number later) {
    return flush_tiny(mul_add(select(spiked, c.spiked_slope, c.decay) + jump, later, through_spike));
  }
};

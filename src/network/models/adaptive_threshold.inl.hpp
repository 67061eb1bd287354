// LIF whose threshold rises with its own spikes (ALIF; Bellec et al. 2018, Yin et al. 2021). Interface and conventions
// as in lif.inl.hpp.
//
//   u[t] = c[t-1] + k I[t]         v[t] = u[t] - adaptation b[t]       s[t] = v[t] > theta
//   b[t+1] = second_decay b[t] + spike_drive s[t]
//   c[t]: see membrane.inl.hpp, less spiked_adaptation b[t] if s[t]
//
// The threshold is theta + adaptation b; a reset by subtraction takes all of it. spike_drive is 1 - second_decay, or 1.

struct AdaptiveThreshold {
  static constexpr int kStates = 2;  // the membrane, b
  static constexpr int kFirstDriven = 1;

  template <class Number>
  struct Constants : AdaptingMembrane<Number> {};
  template <class AnyConstants, class Visitor>
  static void visit(AnyConstants& c, Visitor visitor) {
    visit_adapting(c, visitor);
  }

  template <class Number>
  static Number integrate(const Constants<Number>& c, Number input, Number (&state)[kStates]) {
    state[0] = mul_add(c.gain, input, state[0]);
    return state[0] - c.adaptation * state[1];
  }

  template <class Number, class Mask>
  static void carry(const Constants<Number>& c, Mask spiked, Number (&state)[kStates]) {
    state[0] = handed_on_membrane(c, spiked, state[0]) - only(spiked, c.spiked_adaptation * state[1]);
    state[1] = flush_tiny(mul_add(c.second_decay, state[1], only(spiked, c.spike_drive)));
  }

  /// The reset is always held constant: of u and b, on which it depends, lists keep v alone.
  template <class Number>
  static void drive(const Constants<Number>& c, Number v, bool, Number (&driven)[kStates]) {
    driven[0] = v - v;
    driven[1] = c.spike_drive;
  }

  template <class Number, class Mask>
  static Number adjoint(const Constants<Number>& c, Mask spiked, Number gradient, Number (&later)[kStates]) {
    const Number to_b = c.adaptation * gradient + only(spiked, c.spiked_adaptation * later[0]);
    later[0] = membrane_adjoint(c, spiked, gradient, later[0]);
    later[1] = flush_tiny(c.second_decay * later[1] - to_b);
    return c.gain * later[0];
  }

  template <class Number, class Mask>
  static void add_gradients(Mask spiked, Number input, const Number (&state)[kStates], Number gradient,
                            const Number (&later)[kStates], const Number (&now)[kStates], Constants<Number>& sum) {
    add_membrane_gradients(spiked, state[0], gradient, later[0], sum);
    sum.gain = mul_add(now[0], input, sum.gain);
    sum.second_decay = mul_add(later[1], state[1], sum.second_decay);
    sum.adaptation = sum.adaptation - gradient * state[1];
    sum.spiked_adaptation = sum.spiked_adaptation - only(spiked, later[0] * state[1]);
    sum.spike_drive = sum.spike_drive + only(spiked, later[1]);
  }
};

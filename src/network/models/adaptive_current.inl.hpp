// LIF with an adaptation current that its membrane and its spikes drive: adLIF (Bittar and Garner 2022) and SE-adLIF
// (Baronig et al. 2024). Interface and conventions as in lif.inl.hpp.
//
//   u[t] = c[t-1] + k (I[t] - w[t])        s[t] = u[t] > theta        c[t]: see membrane.inl.hpp
//   w[t+1] = second_decay w[t] + spiked_adaptation u[t] + spike_drive  if s[t]
//          = second_decay w[t] + adaptation u[t]                       else
//
// adLIF: adaptation = spiked_adaptation = a, spike_drive = b. SE-adLIF couples to the membrane after its reset and
// scales by (1 - second_decay) q. `held_drive` is what a spike adds to w while the reset is held constant.

struct AdaptiveCurrent {
  static constexpr int kStates = 2;  // the membrane, w
  static constexpr int kFirstDriven = 1;

  template <class Number>
  struct Constants : AdaptingMembrane<Number> {
    Number held_drive;
  };
  template <class AnyConstants, class Visitor>
  static void visit(AnyConstants& c, Visitor visitor) {
    visit_adapting(c, visitor);
    visitor(NeuronConstant::held_drive, c.held_drive);
  }

  template <class Number>
  static Number integrate(const Constants<Number>& c, Number input, Number (&state)[kStates]) {
    return state[0] = mul_add(c.gain, input - state[1], state[0]);
  }

  template <class Number, class Mask>
  static void carry(const Constants<Number>& c, Mask spiked, Number (&state)[kStates]) {
    const Number driven =
        select(spiked, mul_add(c.spiked_adaptation, state[0], c.spike_drive), c.adaptation * state[0]);
    state[0] = handed_on_membrane(c, spiked, state[0]);
    state[1] = flush_tiny(mul_add(c.second_decay, state[1], driven));
  }

  template <class Number>
  static void drive(const Constants<Number>& c, Number v, bool through_reset, Number (&driven)[kStates]) {
    driven[0] = membrane_drive(c, v);
    driven[1] = through_reset ? mul_add(c.spiked_adaptation - c.adaptation, v, c.spike_drive) : c.held_drive;
  }

  template <class Number, class Mask>
  static Number adjoint(const Constants<Number>& c, Mask spiked, Number gradient, Number (&later)[kStates]) {
    const Number with_w = mul_add(select(spiked, c.spiked_adaptation, c.adaptation), later[1], gradient);
    later[0] = membrane_adjoint(c, spiked, with_w, later[0]);
    const Number to_input = c.gain * later[0];
    later[1] = flush_tiny(c.second_decay * later[1] - to_input);
    return to_input;
  }

  template <class Number, class Mask>
  static void add_gradients(Mask spiked, Number input, const Number (&state)[kStates], Number gradient,
                            const Number (&later)[kStates], const Number (&now)[kStates], Constants<Number>& sum) {
    add_membrane_gradients(spiked, state[0], gradient, later[0], sum);
    sum.gain = mul_add(now[0], input - state[1], sum.gain);
    sum.second_decay = mul_add(later[1], state[1], sum.second_decay);
    const Number driven = later[1] * state[0], driven_by_spike = only(spiked, driven);
    sum.adaptation = sum.adaptation + (driven - driven_by_spike);
    sum.spiked_adaptation = sum.spiked_adaptation + driven_by_spike;
    sum.spike_drive = sum.spike_drive + only(spiked, later[1]);
  }
};

// LIF on a synaptic current that decays by itself ("current-based"). Interface and conventions as in lif.inl.hpp.
//
//   i[t] = d[t-1] + I[t]                                   d[t] = second_decay i[t]
//   u[t] = c[t-1] + k i[t]         s[t] = u[t] > theta     c[t]: see membrane.inl.hpp

struct CubaLif {
  static constexpr int kStates = 2;  // the membrane, the synaptic current
  static constexpr int kFirstDriven = 2;

  template <class Number>
  struct Constants : Membrane<Number> {
    Number second_decay;
  };
  template <class AnyConstants, class Visitor>
  static void visit(AnyConstants& c, Visitor visitor) {
    visit_membrane(c, visitor);
    visitor(NeuronConstant::second_decay, c.second_decay);
  }

  template <class Number>
  static Number integrate(const Constants<Number>& c, Number input, Number (&state)[kStates]) {
    state[1] = state[1] + input;
    return state[0] = mul_add(c.gain, state[1], state[0]);
  }

  template <class Number, class Mask>
  static void carry(const Constants<Number>& c, Mask spiked, Number (&state)[kStates]) {
    state[0] = handed_on_membrane(c, spiked, state[0]);
    state[1] = flush_tiny(c.second_decay * state[1]);
  }

  template <class Number>
  static void drive(const Constants<Number>& c, Number v, bool, Number (&driven)[kStates]) {
    driven[0] = membrane_drive(c, v);
    driven[1] = v - v;
  }

  template <class Number, class Mask>
  static Number adjoint(const Constants<Number>& c, Mask spiked, Number gradient, Number (&later)[kStates]) {
    later[0] = membrane_adjoint(c, spiked, gradient, later[0]);
    return later[1] = flush_tiny(mul_add(c.gain, later[0], c.second_decay * later[1]));
  }

  template <class Number, class Mask>
  static void add_gradients(Mask spiked, Number, const Number (&state)[kStates], Number gradient,
                            const Number (&later)[kStates], const Number (&now)[kStates], Constants<Number>& sum) {
    add_membrane_gradients(spiked, state[0], gradient, later[0], sum);
    sum.gain = mul_add(now[0], state[1], sum.gain);
    sum.second_decay = mul_add(later[1], state[1], sum.second_decay);
  }
};

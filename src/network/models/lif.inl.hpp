// Leaky integrate-and-fire: state, step and adjoint, each said once.
//
//   u[t] = c[t-1] + k I[t]         s[t] = u[t] > theta         c[t]: see membrane.inl.hpp
//
// With decay 1 it is plain integrate-and-fire.
//
// What every model offers, kStates being the numbers that it hands on from step to step:
//   visit       names its constants
//   integrate   what the step before handed on, and the input current, become the state; returns the potential that is
//               compared with the threshold
//   carry       the state becomes what it hands on
//   drive       d(handed on) / ds for a spike at the potential v; states below kFirstDriven are driven by the reset
//               alone. Without `through_reset` the reset is held constant, and only the others count
//   adjoint     dLoss/d(handed on) becomes that of the step before; `gradient` is dLoss/d(potential); returns dLoss/dI
//   add_gradients  the step's part of dLoss/d(constant), for constants that are learned: `state` and `input` are the
//               step's, `later` is dLoss/d(handed on) before `adjoint` and `now` after it
//
// Generic over the number: a SIMD register of neurons in the kernels, float and double in the references. Included
// inside a namespace that offers mul_add(a, b, c) = a b + c, select(mask, yes, no), only(mask, a) = a or 0,
// flush_tiny(a) (tiny values become 0) and comparisons for it, once per instruction set: hence no include guard.

struct Lif {
  static constexpr int kStates = 1;  // the membrane
  static constexpr int kFirstDriven = 1;

  template <class Number>
  struct Constants : Membrane<Number> {};
  template <class AnyConstants, class Visitor>
  static void visit(AnyConstants& c, Visitor visitor) {
    visit_membrane(c, visitor);
  }

  template <class Number>
  static Number integrate(const Constants<Number>& c, Number input, Number (&state)[kStates]) {
    return state[0] = mul_add(c.gain, input, state[0]);
  }

  template <class Number, class Mask>
  static void carry(const Constants<Number>& c, Mask spiked, Number (&state)[kStates]) {
    state[0] = handed_on_membrane(c, spiked, state[0]);
  }

  template <class Number>
  static void drive(const Constants<Number>& c, Number v, bool, Number (&driven)[kStates]) {
    driven[0] = membrane_drive(c, v);
  }

  template <class Number, class Mask>
  static Number adjoint(const Constants<Number>& c, Mask spiked, Number gradient, Number (&later)[kStates]) {
    later[0] = membrane_adjoint(c, spiked, gradient, later[0]);
    return c.gain * later[0];
  }

  template <class Number, class Mask>
  static void add_gradients(Mask spiked, Number input, const Number (&state)[kStates], Number gradient,
                            const Number (&later)[kStates], const Number (&now)[kStates], Constants<Number>& sum) {
    add_membrane_gradients(spiked, state[0], gradient, later[0], sum);
    sum.gain = mul_add(now[0], input, sum.gain);
  }
};

// Leaky integrator: a membrane that never spikes. u[t] = carry[t-1] + k I[t], carry[t] = decay u[t]. With decay 0 it is
// a linear layer. Included inside a namespace, once per instruction set, like lif.inl.hpp.

struct LeakyIntegrator {
  template <class Number>
  struct Constants {
    Number decay, gain;
  };

  template <class Number>
  static Number integrate(const Constants<Number>& c, Number carry, Number input) {
    return mul_add(c.gain, input, carry);
  }

  template <class Number>
  static Number carry(const Constants<Number>& c, Number membrane) {
    return flush_tiny(c.decay * membrane);
  }

  /// delta[t] from dLoss/du[t] and delta[t+1].
  template <class Number>
  static Number adjoint(const Constants<Number>& c, Number from_loss, Number later) {
    return flush_tiny(mul_add(c.decay, later, from_loss));
  }
};

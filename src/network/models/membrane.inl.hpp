// What the membranes of all spiking models have in common: decay and reset. Included before the models, as they are.
//
//   c[t] = spiked_slope u[t] + spiked_offset  if s[t]      what the reset leaves, decayed
//        = decay u[t]                         else
//
// The resets differ only in the two constants of the spiked branch (network/neuron_constants.cpp): to zero (0, 0), by
// subtraction (alpha, -alpha theta), subtraction after the decay (alpha, -theta), none (alpha, 0).

template <class Number>
struct Membrane {
  Number decay, gain, threshold, spiked_slope, spiked_offset;
};

template <class AnyMembrane, class Visitor>
void visit_membrane(AnyMembrane& c, Visitor& visitor) {
  visitor(NeuronConstant::decay, c.decay);
  visitor(NeuronConstant::gain, c.gain);
  visitor(NeuronConstant::threshold, c.threshold);
  visitor(NeuronConstant::spiked_slope, c.spiked_slope);
  visitor(NeuronConstant::spiked_offset, c.spiked_offset);
}

/// A membrane beside a state that adapts: the constants of both models of adaptation, each with its own meaning.
template <class Number>
struct AdaptingMembrane : Membrane<Number> {
  Number second_decay, adaptation, spiked_adaptation, spike_drive;
};

template <class AnyMembrane, class Visitor>
void visit_adapting(AnyMembrane& c, Visitor& visitor) {
  visit_membrane(c, visitor);
  visitor(NeuronConstant::second_decay, c.second_decay);
  visitor(NeuronConstant::adaptation, c.adaptation);
  visitor(NeuronConstant::spiked_adaptation, c.spiked_adaptation);
  visitor(NeuronConstant::spike_drive, c.spike_drive);
}

template <class Number, class Mask>
Number handed_on_membrane(const Membrane<Number>& c, Mask spiked, Number u) {
  return flush_tiny(select(spiked, mul_add(c.spiked_slope, u, c.spiked_offset), c.decay * u));
}

/// d(handed on) / ds of a spike at u.
template <class Number>
Number membrane_drive(const Membrane<Number>& c, Number u) {
  return mul_add(c.spiked_slope - c.decay, u, c.spiked_offset);
}

/// dLoss/du from dLoss/d(handed on).
template <class Number, class Mask>
Number membrane_adjoint(const Membrane<Number>& c, Mask spiked, Number gradient, Number later) {
  return flush_tiny(mul_add(select(spiked, c.spiked_slope, c.decay), later, gradient));
}

/// Of all constants but the gain.
template <class Number, class Mask>
void add_membrane_gradients(Mask spiked, Number u, Number gradient, Number later, Membrane<Number>& sum) {
  const Number handed = later * u, after_spike = only(spiked, handed);
  sum.decay = sum.decay + (handed - after_spike);
  sum.spiked_slope = sum.spiked_slope + after_spike;
  sum.spiked_offset = sum.spiked_offset + only(spiked, later);
  sum.threshold = sum.threshold - gradient;
}

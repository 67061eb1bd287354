// The list of models.
#include <spikeloom/error.hpp>
#include "kernels/kernels.hpp"

namespace spikeloom::kernels {

extern const SpikingKernels kLif, kCubaLif, kAdaptiveThreshold, kAdaptiveCurrent;

const SpikingKernels& spiking_kernels(NeuronKind neuron) {
  switch (neuron) {
    case NeuronKind::lif:
    case NeuronKind::integrate_and_fire:
      return kLif;
    case NeuronKind::cuba_lif:
      return kCubaLif;
    case NeuronKind::alif:
      return kAdaptiveThreshold;
    case NeuronKind::adlif:
    case NeuronKind::se_adlif:
      return kAdaptiveCurrent;
    case NeuronKind::leaky_integrator:
    case NeuronKind::linear:
      break;
  }
  throw InternalError("these neurons do not spike");
}

}  // namespace spikeloom::kernels

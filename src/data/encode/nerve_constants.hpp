// Constants of hair cell (Meddis 1986, 1988), auditory nerve fibres and bushy cell, as the encoder of the Spiking
// Heidelberg Digits has them.
#pragma once

#include "data/encode/inner_ear_kernel.hpp"

namespace spikeloom {

inline constexpr float kDt = 1.0F / kEarRate;  // s

// Hair cell; rates in 1/s, A and B in units of the membrane's velocity. The pool's size M is 1.
inline constexpr float kHairY = 5.05F;    // replenishment
inline constexpr float kHairG = 2000.0F;  // largest permeability
inline constexpr float kHairL = 2500.0F;  // loss from the cleft
inline constexpr float kHairR = 6580.0F;  // return from the cleft
inline constexpr float kHairX = 66.3F;    // reprocessing
inline constexpr float kHairA = 5.0F;
inline constexpr float kHairB = 300.0F;
inline constexpr float kHairH = 50'000.0F;  // firing rate per transmitter in the cleft

inline constexpr float kFibres = 40.0F;      // per channel
inline constexpr int kRefractorySteps = 24;  // 1 ms, of fibres and bushy cell alike

inline constexpr float kMembraneDecay = 0.959189457F;  // exp(-dt / 1 ms)
inline constexpr float kSynapseDecay = 0.920044415F;   // exp(-dt / 0.5 ms)
inline constexpr float kFibreWeight = 13'000.0F / kFibres;

/// Transmitter in pool, cleft and store in silence.
struct HairCellRest {
  float pool;
  float cleft;
  float store;
};

constexpr HairCellRest hair_cell_rest() {
  const double open = double{kHairG} * kHairA / (double{kHairA} + kHairB);
  const double cleft = kHairY * open / (double{kHairL} * open + kHairY * (double{kHairL} + kHairR));
  return {static_cast<float>(cleft * (double{kHairL} + kHairR) / open), static_cast<float>(cleft),
          static_cast<float>(cleft * kHairR / kHairX)};
}

}  // namespace spikeloom

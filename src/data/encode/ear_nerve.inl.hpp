// Hair cells, auditory nerve fibres and bushy cells of N channels, compiled per instruction set.
#if defined(SPIKELOOM_EAR_NERVE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SPIKELOOM_EAR_NERVE_INL
#undef SPIKELOOM_EAR_NERVE_INL
#else
#define SPIKELOOM_EAR_NERVE_INL
#endif

#include <hwy/highway.h>

#include "core/random.hpp"
#include "data/encode/inner_ear_kernel.hpp"
#include "data/encode/nerve_constants.hpp"

HWY_BEFORE_NAMESPACE();
namespace spikeloom {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Standard exponential random numbers, a sequence of its own for each lane, so that a channel's draws do not depend on the vector's width.
class ExponentialDraws {
 public:
  static constexpr int kRoom = 256;       // per lane
  static constexpr int kAtATime = 4 * 4;  // four Philox blocks: whole vectors on every instruction set

  template <class D>
  ExponentialDraws(D d, std::array<std::uint32_t, 2> key, std::uint32_t channel) : key_(key), channel_(channel) {
    for (std::size_t lane = 0; lane < hn::Lanes(d); ++lane) {
      used[lane] = static_cast<std::int32_t>(lane) * kRoom + kRoom;
      block_[lane] = 0;
    }
  }

  /// Makes sure that each lane has at least `needed` numbers left.
  template <class D>
  void provide(D d, int needed) {
    for (std::size_t lane = 0; lane < hn::Lanes(d); ++lane) {
      float* buffer = numbers + lane * kRoom;
      const int taken = used[lane] - static_cast<int>(lane) * kRoom;
      if (kRoom - taken >= needed) continue;
      const int fresh = taken / kAtATime * kAtATime;
      for (int i = fresh; i < kRoom; ++i) buffer[i - fresh] = buffer[i];
      for (int i = kRoom - fresh; i < kRoom; i += kAtATime) draw(d, lane, buffer + i);
      used[lane] -= fresh;
    }
  }

  HWY_ALIGN float numbers[16 * kRoom];
  HWY_ALIGN std::int32_t used[16];  // index into `numbers` of each lane's next

 private:
  template <class D>
  void draw(D d, std::size_t lane, float* to) {
    HWY_ALIGN std::uint32_t bits[kAtATime];
    for (int i = 0; i < kAtATime; i += 4) {
      const auto block = philox4x32({block_[lane]++, channel_ + static_cast<std::uint32_t>(lane), 0, 0}, key_);
      for (int j = 0; j < 4; ++j) bits[i + j] = block[j];
    }
    const hn::RebindToUnsigned<D> du;
    for (std::size_t i = 0; i < kAtATime; i += hn::Lanes(d)) hn::StoreU(minus_log(d, hn::Load(du, bits + i)), d, to + i);
  }

  /// -ln(u), u = (top 23 bits + 1/2) / 2^23. With u = 2^e m, m within sqrt(2) of 1: ln m = 2 artanh((m - 1) / (m + 1)), five terms of its series.
  template <class D, class VU, class V = hn::Vec<D>>
  static HWY_INLINE V minus_log(D d, VU bits) {
    const hn::RebindToSigned<D> di;
    const V scaled = hn::Add(hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<9>(bits))), hn::Set(d, 0.5F));
    const auto raw = hn::BitCast(di, scaled);
    // Subtracting the pattern of sqrt(1/2) before taking the exponent puts m between sqrt(1/2) and sqrt(2).
    const auto exponent = hn::ShiftRight<23>(hn::Sub(raw, hn::Set(di, 0x3F3504F3)));
    const V m = hn::BitCast(d, hn::Sub(raw, hn::ShiftLeft<23>(exponent)));
    const V one = hn::Set(d, 1.0F);
    const V s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
    const V x = hn::Mul(s, s);
    V series = hn::Set(d, 1.0F / 9.0F);
    series = hn::Add(hn::Mul(series, x), hn::Set(d, 1.0F / 7.0F));
    series = hn::Add(hn::Mul(series, x), hn::Set(d, 1.0F / 5.0F));
    series = hn::Add(hn::Mul(series, x), hn::Set(d, 1.0F / 3.0F));
    series = hn::Add(hn::Mul(series, x), one);
    const V log_m = hn::Mul(hn::Mul(hn::Set(d, 2.0F), s), series);
    const V log_2 = hn::Mul(hn::ConvertTo(d, hn::Sub(hn::Set(di, 23), exponent)), hn::Set(d, 0.693147181F));
    return hn::Sub(log_2, log_m);
  }

  std::array<std::uint32_t, 2> key_;
  std::uint32_t channel_;
  std::uint32_t block_[16];
};

/// State of N channels. The fibres' firing is exact: 40 independent fibres that each fire in a step with probability p, unless they fired within the last
/// refractory period, are one process in which each ready fibre has the hazard -ln(1 - p) per step; the next firing comes when an exponential
/// random number is used up by the ready fibres' hazard. One number per firing instead of 40 per step.
class Nerve {
 public:
  template <class D>
  Nerve(D d, std::array<std::uint32_t, 2> key, std::uint32_t channel) : draws_(d, key, channel), channel_(channel) {
    const HairCellRest rest = hair_cell_rest();
    draws_.provide(d, 1);
    for (std::size_t lane = 0; lane < hn::Lanes(d); ++lane) {
      pool_[lane] = rest.pool;
      cleft_[lane] = rest.cleft;
      store_[lane] = rest.store;
      ready_[lane] = kFibres;
      until_next_[lane] = draws_.numbers[draws_.used[lane]++];
      membrane_[lane] = synapse_[lane] = refractory_[lane] = 0.0F;
    }
    for (float& count : fired_) count = 0.0F;
  }

  /// `count` steps from `first`, a multiple of the refractory period; velocity is [step][lane]. Returns the number of events written.
  template <class D, class V = hn::Vec<D>>
  std::size_t advance(D d, const float* HWY_RESTRICT velocity, int first, int count, std::uint32_t* HWY_RESTRICT events) {
    const hn::RebindToSigned<D> di;
    const std::size_t lanes = hn::Lanes(d);
    const V zero = hn::Zero(d);
    const V one = hn::Set(d, 1.0F);
    // A fibre fires at most once per refractory period.
    draws_.provide(d, static_cast<int>(kFibres) * (count / kRefractorySteps + 1));
    V pool = hn::Load(d, pool_), cleft = hn::Load(d, cleft_), store = hn::Load(d, store_);
    V ready = hn::Load(d, ready_), until_next = hn::Load(d, until_next_);
    V membrane = hn::Load(d, membrane_), synapse = hn::Load(d, synapse_), refractory = hn::Load(d, refractory_);
    auto next = hn::Load(di, draws_.used);
    std::size_t emitted = 0;

    for (int t = 0; t < count; ++t) {
      // Hair cell (Meddis 1986): transmitter moves from the pool to the cleft, and back by way of the reprocessing store.
      const V drive = hn::Add(hn::Load(d, velocity + t * lanes), hn::Set(d, kHairA));
      const V open = hn::IfThenElseZero(
          hn::Gt(drive, zero), hn::Div(hn::Mul(hn::Set(d, kHairG * kDt), drive), hn::Add(drive, hn::Set(d, kHairB))));
      const V refill = hn::Mul(hn::Set(d, kHairY * kDt), hn::Max(hn::Sub(one, pool), zero));
      const V ejected = hn::Mul(open, pool);
      const V lost = hn::Mul(hn::Set(d, (kHairL + kHairR) * kDt), cleft);
      const V regained = hn::Mul(hn::Set(d, kHairR * kDt), cleft);
      const V reprocessed = hn::Mul(hn::Set(d, kHairX * kDt), store);
      pool = hn::Max(hn::Add(pool, hn::Add(hn::Sub(refill, ejected), reprocessed)), zero);
      cleft = hn::Max(hn::Add(cleft, hn::Sub(ejected, lost)), zero);
      store = hn::Max(hn::Add(store, hn::Sub(regained, reprocessed)), zero);

      // Fibres: -ln(1 - p) by its series. Speech at the model's loudness stays below p = 0.03; 0.5 is out of reach of the transmitter.
      const V p = hn::Min(hn::Mul(cleft, hn::Set(d, kHairH * kDt)), hn::Set(d, 0.5F));
      V hazard = hn::Add(hn::Mul(p, hn::Set(d, 0.25F)), hn::Set(d, 1.0F / 3.0F));
      hazard = hn::Add(hn::Mul(hazard, p), hn::Set(d, 0.5F));
      hazard = hn::Mul(p, hn::Add(hn::Mul(hazard, p), one));
      float* HWY_RESTRICT slot = fired_ + static_cast<std::size_t>(t % kRefractorySteps) * lanes;
      ready = hn::Add(ready, hn::Load(d, slot));
      until_next = hn::Sub(until_next, hn::Mul(ready, hazard));
      V firing = zero;
      auto due = hn::Lt(until_next, zero);
      while (!hn::AllFalse(d, due)) {
        // What is left of the step goes on with one fibre less.
        const V rest = hn::Sub(hn::Div(until_next, ready), until_next);
        const V drawn = hn::GatherIndex(d, draws_.numbers, next);
        until_next = hn::IfThenElse(due, hn::Sub(drawn, rest), until_next);
        firing = hn::Add(firing, hn::IfThenElseZero(due, one));
        ready = hn::Sub(ready, hn::IfThenElseZero(due, one));
        next = hn::Add(next, hn::IfThenElseZero(hn::RebindMask(di, due), hn::Set(di, 1)));
        due = hn::Lt(until_next, zero);
      }
      hn::Store(firing, d, slot);

      // Bushy cell: spike when the membrane is at threshold, then rest for a refractory period.
      const auto spike = hn::And(hn::Ge(membrane, one), hn::Le(refractory, zero));
      refractory = hn::IfThenElse(spike, hn::Set(d, static_cast<float>(kRefractorySteps)), refractory);
      membrane = hn::IfThenZeroElse(spike, hn::Mul(membrane, hn::Set(d, kMembraneDecay)));
      synapse = hn::Add(hn::Mul(synapse, hn::Set(d, kSynapseDecay)), firing);
      membrane = hn::IfThenElse(hn::Le(refractory, zero), hn::Add(membrane, hn::Mul(synapse, hn::Set(d, kFibreWeight * kDt))), membrane);
      refractory = hn::Sub(refractory, one);
      if (!hn::AllFalse(d, spike)) {
        HWY_ALIGN float flags[16];
        hn::Store(hn::IfThenElseZero(spike, one), d, flags);
        for (std::size_t lane = 0; lane < lanes; ++lane)
          if (flags[lane] != 0.0F)
            events[emitted++] = static_cast<std::uint32_t>(first + t) << kEarChannelBits | (channel_ + static_cast<std::uint32_t>(lane));
      }
    }

    hn::Store(pool, d, pool_);
    hn::Store(cleft, d, cleft_);
    hn::Store(store, d, store_);
    hn::Store(ready, d, ready_);
    hn::Store(until_next, d, until_next_);
    hn::Store(membrane, d, membrane_);
    hn::Store(synapse, d, synapse_);
    hn::Store(refractory, d, refractory_);
    hn::Store(next, di, draws_.used);
    return emitted;
  }

 private:
  ExponentialDraws draws_;
  std::uint32_t channel_;
  HWY_ALIGN float pool_[16];   // q, c and w of the hair cell
  HWY_ALIGN float cleft_[16];
  HWY_ALIGN float store_[16];
  HWY_ALIGN float ready_[16];       // fibres that are not refractory
  HWY_ALIGN float until_next_[16];  // hazard left until the next firing
  HWY_ALIGN float fired_[kRefractorySteps * 16];
  HWY_ALIGN float membrane_[16];
  HWY_ALIGN float synapse_[16];
  HWY_ALIGN float refractory_[16];  // steps
};

}  // namespace HWY_NAMESPACE
}  // namespace spikeloom
HWY_AFTER_NAMESPACE();

#endif  // include guard per target

// Hair cells, auditory nerve fibres and bushy cells of N channels, compiled per instruction set.
#if defined(SPIKELOOM_EAR_NERVE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SPIKELOOM_EAR_NERVE_INL
#undef SPIKELOOM_EAR_NERVE_INL
#else
#define SPIKELOOM_EAR_NERVE_INL
#endif

#include <hwy/highway.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "data/encode/inner_ear_kernel.hpp"
#include "data/encode/nerve_constants.hpp"

HWY_BEFORE_NAMESPACE();
namespace spikeloom {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Random numbers of channel `channel`, blocks `first_block` .. + kEarDrawBlocks of Philox4x32-10 (core/random.hpp)
/// with the counter (block, channel, 0, 0), several blocks in the lanes of a vector: word w of block b of these goes to
/// bits[w * kEarDrawBlocks + b]. A test holds that they are philox4x32's.
template <class DU, class VU = hn::Vec<DU>>
void philox_blocks(DU du, std::array<std::uint32_t, 2> key, std::uint32_t channel, std::uint32_t first_block,
                   std::uint32_t* bits) {
  const hn::RepartitionToWide<DU> dw;
  const auto multiply_wide = [&](VU a, VU factor, VU& low) HWY_ATTR {
    const auto even = hn::MulEven(a, factor);
    const auto odd = hn::MulEven(hn::BitCast(du, hn::ShiftRight<32>(hn::BitCast(dw, a))), factor);
    low = hn::OddEven(hn::BitCast(du, hn::ShiftLeft<32>(odd)), hn::BitCast(du, even));
    return hn::OddEven(hn::BitCast(du, odd), hn::BitCast(du, hn::ShiftRight<32>(even)));
  };
  const VU factor0 = hn::Set(du, 0xD2511F53U);
  const VU factor2 = hn::Set(du, 0xCD9E8D57U);
  for (std::size_t block = 0; block < kEarDrawBlocks; block += hn::Lanes(du)) {
    VU c0 = hn::Iota(du, first_block + static_cast<std::uint32_t>(block));
    VU c1 = hn::Set(du, channel);
    VU c2 = hn::Zero(du);
    VU c3 = hn::Zero(du);
    std::uint32_t key0 = key[0], key1 = key[1];
    for (int round = 0; round < 10; ++round) {
      VU low0, low2;
      const VU high0 = multiply_wide(c0, factor0, low0);
      const VU high2 = multiply_wide(c2, factor2, low2);
      c0 = hn::Xor(high2, hn::Xor(c1, hn::Set(du, key0)));
      c2 = hn::Xor(high0, hn::Xor(c3, hn::Set(du, key1)));
      c1 = low2;
      c3 = low0;
      key0 += 0x9E3779B9U;
      key1 += 0xBB67AE85U;
    }
    hn::StoreU(c0, du, bits + block);
    hn::StoreU(c1, du, bits + block + kEarDrawBlocks);
    hn::StoreU(c2, du, bits + block + 2 * kEarDrawBlocks);
    hn::StoreU(c3, du, bits + block + 3 * kEarDrawBlocks);
  }
}

/// -ln(u), u = (top 23 bits + 1/2) / 2^23. With u = 2^e m, m within sqrt(2) of 1: ln m = 2 artanh((m - 1) / (m + 1)),
/// five terms of its series.
template <class D, class VU, class V = hn::Vec<D>>
HWY_INLINE V minus_log(D d, VU bits) {
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

/// kEarDraws standard exponential random numbers.
template <class D>
void draw_exponentials(D d, std::array<std::uint32_t, 2> key, std::uint32_t channel, std::uint32_t first_block,
                       float* to) {
  const hn::RebindToUnsigned<D> du;
  HWY_ALIGN std::uint32_t bits[kEarDraws];
  philox_blocks(du, key, channel, first_block, bits);
  for (std::size_t i = 0; i < kEarDraws; i += hn::Lanes(d)) hn::StoreU(minus_log(d, hn::Load(du, bits + i)), d, to + i);
}

/// Standard exponential random numbers, a sequence of its own for each lane, so that a channel's draws do not depend on
/// the vector's width.
class ExponentialDraws {
 public:
  static constexpr int kRoom = 256;  // per lane

  template <class D>
  ExponentialDraws(D d, std::array<std::uint32_t, 2> key, std::uint32_t channel) : key_(key), channel_(channel) {
    for (std::size_t lane = 0; lane < hn::Lanes(d); ++lane) {
      used[lane] = static_cast<std::int32_t>(lane) * kRoom + kRoom;
      block_[lane] = 0;
    }
  }

  /// Makes sure that each lane has at least `needed` numbers left, at most kRoom - kEarDraws.
  template <class D>
  void provide(D d, int needed) {
    constexpr int kFresh = static_cast<int>(kEarDraws);
    for (std::size_t lane = 0; lane < hn::Lanes(d); ++lane) {
      float* buffer = numbers + lane * kRoom;
      const int taken = used[lane] - static_cast<int>(lane) * kRoom;
      if (kRoom - taken >= needed) continue;
      const int fresh = taken / kFresh * kFresh;
      for (int i = fresh; i < kRoom; ++i) buffer[i - fresh] = buffer[i];
      for (int i = kRoom - fresh; i < kRoom; i += kFresh) {
        draw_exponentials(d, key_, channel_ + static_cast<std::uint32_t>(lane), block_[lane], buffer + i);
        block_[lane] += static_cast<std::uint32_t>(kEarDrawBlocks);
      }
      used[lane] -= fresh;
    }
  }

  HWY_ALIGN float numbers[16 * kRoom];
  HWY_ALIGN std::int32_t used[16];  // index into `numbers` of each lane's next

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint32_t channel_;
  std::uint32_t block_[16];
};

/// Hair cells (Meddis 1986): transmitter moves from the pool to the cleft, and back by way of the reprocessing store.
template <class V>
struct HairCells {
  V pool;
  V cleft;
  V store;

  /// One step; returns each fibre's probability of firing in it.
  template <class D>
  HWY_INLINE V step(D d, V velocity) {
    const V zero = hn::Zero(d);
    const V drive = hn::Add(velocity, hn::Set(d, kHairA));
    const V open = hn::IfThenElseZero(
        hn::Gt(drive, zero), hn::Div(hn::Mul(hn::Set(d, kHairG * kDt), drive), hn::Add(drive, hn::Set(d, kHairB))));
    const V refill = hn::Mul(hn::Set(d, kHairY * kDt), hn::Max(hn::Sub(hn::Set(d, 1.0F), pool), zero));
    const V ejected = hn::Mul(open, pool);
    const V lost = hn::Mul(hn::Set(d, (kHairL + kHairR) * kDt), cleft);
    const V regained = hn::Mul(hn::Set(d, kHairR * kDt), cleft);
    const V reprocessed = hn::Mul(hn::Set(d, kHairX * kDt), store);
    pool = hn::Max(hn::Add(pool, hn::Add(hn::Sub(refill, ejected), reprocessed)), zero);
    cleft = hn::Max(hn::Add(cleft, hn::Sub(ejected, lost)), zero);
    store = hn::Max(hn::Add(store, hn::Sub(regained, reprocessed)), zero);
    // Speech at the model's loudness stays below 0.03; 0.5 keeps the series in Fibres valid and is out of reach of the
    // transmitter.
    return hn::Min(hn::Mul(cleft, hn::Set(d, kHairH * kDt)), hn::Set(d, 0.5F));
  }
};

/// Nerve fibres. 40 independent fibres that each fire in a step with probability p, unless they fired within the last
/// refractory period, are one process in which every ready fibre has the hazard -ln(1 - p) per step: the next firing
/// comes when the ready fibres have used up an exponential random number. This takes one random number per firing
/// instead of 40 per step.
template <class V, class VI>
struct Fibres {
  V ready;       // fibres that are not refractory
  V until_next;  // hazard left until the next firing
  VI next;       // index of the next random number

  /// One step; returns how many fibres fire. `slot` holds how many fired a refractory period ago, and then how many
  /// fire now.
  template <class D>
  HWY_INLINE V step(D d, V p, const float* numbers, float* slot) {
    V hazard = hn::Add(hn::Mul(p, hn::Set(d, 0.25F)), hn::Set(d, 1.0F / 3.0F));  // the series of -ln(1 - p)
    hazard = hn::Add(hn::Mul(hazard, p), hn::Set(d, 0.5F));
    hazard = hn::Mul(p, hn::Add(hn::Mul(hazard, p), hn::Set(d, 1.0F)));
    ready = hn::Add(ready, hn::Load(d, slot));
    until_next = hn::Sub(until_next, hn::Mul(ready, hazard));
    // In most steps one of the lanes fires, in few a lane fires twice: the first firing is taken without a branch that
    // nobody can predict.
    V firing = fire(d, numbers);
    while (HWY_UNLIKELY(!hn::AllFalse(d, hn::Lt(until_next, hn::Zero(d))))) firing = hn::Add(firing, fire(d, numbers));
    hn::Store(firing, d, slot);
    return firing;
  }

 private:
  /// One firing in each lane that is due. The hazard that was left in the step at that moment goes on with one fibre
  /// less: times (n - 1) / n. 1 / n comes from a geometric series about n = 40, which errs by a thousandth where a
  /// fifth of the fibres is refractory, and only in what is left of one step.
  template <class D>
  HWY_INLINE V fire(D d, const float* numbers) {
    const hn::RebindToSigned<D> di;
    const V one = hn::Set(d, 1.0F);
    const auto due = hn::Lt(until_next, hn::Zero(d));
    const V busy = hn::Sub(one, hn::Mul(ready, hn::Set(d, 1.0F / kFibres)));
    V inverse = hn::Add(one, hn::Mul(busy, hn::Add(one, hn::Mul(busy, hn::Add(one, busy)))));
    inverse = hn::Mul(inverse, hn::Set(d, 1.0F / kFibres));
    const V drawn = hn::Add(hn::GatherIndex(d, numbers, next), hn::Sub(until_next, hn::Mul(until_next, inverse)));
    const V count = hn::IfThenElseZero(due, one);
    until_next = hn::IfThenElse(due, drawn, until_next);
    ready = hn::Sub(ready, count);
    next = hn::Add(next, hn::IfThenElseZero(hn::RebindMask(di, due), hn::Set(di, 1)));
    return count;
  }
};

/// Bushy cells: leaky integrate-and-fire, driven by exponential synapses, with an absolute refractory period.
template <class V>
struct BushyCells {
  V membrane;
  V synapse;
  V refractory;  // steps left

  /// One step; returns who spikes in it: whose membrane reached the threshold in the step before.
  template <class D>
  HWY_INLINE auto step(D d, V firing) {
    const V zero = hn::Zero(d);
    const V one = hn::Set(d, 1.0F);
    const auto spike = hn::And(hn::Ge(membrane, one), hn::Le(refractory, zero));
    refractory = hn::IfThenElse(spike, hn::Set(d, static_cast<float>(kRefractorySteps)), refractory);
    membrane = hn::IfThenZeroElse(spike, hn::Mul(membrane, hn::Set(d, kMembraneDecay)));
    synapse = hn::Add(hn::Mul(synapse, hn::Set(d, kSynapseDecay)), firing);
    const V input = hn::Mul(synapse, hn::Set(d, kFibreWeight * kDt));
    membrane = hn::Add(membrane, hn::IfThenElseZero(hn::Le(refractory, zero), input));
    refractory = hn::Sub(refractory, one);
    return spike;
  }
};

/// N neighbouring channels from hair cell to bushy cell.
template <class D>
class Nerve {
  using V = hn::Vec<D>;
  using VI = hn::Vec<hn::RebindToSigned<D>>;

 public:
  Nerve(std::array<std::uint32_t, 2> key, std::uint32_t channel) : draws_(D(), key, channel), channel_(channel) {
    const HairCellRest rest = hair_cell_rest();
    draws_.provide(D(), 1);
    for (std::size_t lane = 0; lane < hn::Lanes(D()); ++lane) {
      pool_[lane] = rest.pool;
      cleft_[lane] = rest.cleft;
      store_[lane] = rest.store;
      ready_[lane] = kFibres;
      until_next_[lane] = draws_.numbers[draws_.used[lane]++];
      membrane_[lane] = synapse_[lane] = refractory_[lane] = 0.0F;
    }
    for (float& count : fired_) count = 0.0F;
  }

  /// What `advance` keeps in registers.
  struct State {
    HairCells<V> hair;
    Fibres<V, VI> fibres;
    BushyCells<V> bushy;
  };

  HWY_INLINE State load(D d, int steps) {
    // A fibre fires at most once per refractory period.
    draws_.provide(d, static_cast<int>(kFibres) * (steps / kRefractorySteps + 1));
    return {{hn::Load(d, pool_), hn::Load(d, cleft_), hn::Load(d, store_)},
            {hn::Load(d, ready_), hn::Load(d, until_next_), hn::Load(hn::RebindToSigned<D>(), draws_.used)},
            {hn::Load(d, membrane_), hn::Load(d, synapse_), hn::Load(d, refractory_)}};
  }

  HWY_INLINE void save(D d, const State& state) {
    hn::Store(state.hair.pool, d, pool_);
    hn::Store(state.hair.cleft, d, cleft_);
    hn::Store(state.hair.store, d, store_);
    hn::Store(state.fibres.ready, d, ready_);
    hn::Store(state.fibres.until_next, d, until_next_);
    hn::Store(state.fibres.next, hn::RebindToSigned<D>(), draws_.used);
    hn::Store(state.bushy.membrane, d, membrane_);
    hn::Store(state.bushy.synapse, d, synapse_);
    hn::Store(state.bushy.refractory, d, refractory_);
  }

  /// Step t of the chunk; the chunk starts at step `first` of the utterance, a multiple of the refractory period.
  /// Events are written to `events`, whose new end is returned.
  HWY_INLINE std::uint32_t* step(D d, State& state, V velocity, int first, int t, std::uint32_t* events) {
    float* slot = fired_ + static_cast<std::size_t>(t % kRefractorySteps) * hn::Lanes(d);
    const V firing = state.fibres.step(d, state.hair.step(d, velocity), draws_.numbers, slot);
    const auto spike = state.bushy.step(d, firing);
    if (HWY_LIKELY(hn::AllFalse(d, spike))) return events;
    HWY_ALIGN float flags[16];
    hn::Store(hn::IfThenElseZero(spike, hn::Set(d, 1.0F)), d, flags);
    for (std::size_t lane = 0; lane < hn::Lanes(d); ++lane)
      if (flags[lane] != 0.0F)
        *events++ =
            static_cast<std::uint32_t>(first + t) << kEarChannelBits | (channel_ + static_cast<std::uint32_t>(lane));
    return events;
  }

 private:
  ExponentialDraws draws_;
  std::uint32_t channel_;
  HWY_ALIGN float pool_[16];
  HWY_ALIGN float cleft_[16];
  HWY_ALIGN float store_[16];
  HWY_ALIGN float ready_[16];
  HWY_ALIGN float until_next_[16];
  HWY_ALIGN float fired_[kRefractorySteps * 16];  // of each step of the last refractory period
  HWY_ALIGN float membrane_[16];
  HWY_ALIGN float synapse_[16];
  HWY_ALIGN float refractory_[16];
};

/// A chunk of `count` steps of two nerves at once: their chains of dependent operations overlap. velocity is [step][2 N
/// lanes].
template <class D>
std::uint32_t* advance(D d, Nerve<D>& a, Nerve<D>& b, const float* HWY_RESTRICT velocity, int first, int count,
                       std::uint32_t* events) {
  const std::size_t lanes = hn::Lanes(d);
  auto state_a = a.load(d, count);
  auto state_b = b.load(d, count);
  for (int t = 0; t < count; ++t) {
    const float* row = velocity + static_cast<std::size_t>(t) * 2 * lanes;
    events = a.step(d, state_a, hn::Load(d, row), first, t, events);
    events = b.step(d, state_b, hn::Load(d, row + lanes), first, t, events);
  }
  a.save(d, state_a);
  b.save(d, state_b);
  return events;
}

}  // namespace HWY_NAMESPACE
}  // namespace spikeloom
HWY_AFTER_NAMESPACE();

#endif  // include guard per target

#include "train/gradient_sum.hpp"

#include <cmath>

#include <spikeloom/error.hpp>

namespace spikeloom {

GradientSum::GradientSum(Engine& engine) : engine_(engine) {
  for (const BlockId block : engine.blocks()) {
    if (!index_.emplace(block, sums_.size()).second) throw InternalError("two blocks of parameters have one name");
    sums_.emplace_back(engine.block_size(block));
  }
}

void GradientSum::begin_batch(double share, bool first) {
  share_ = static_cast<float>(share);
  first_ = first;
}

void GradientSum::apply(BlockId block, std::size_t first, float*, const float* gradient, std::size_t count) {
  float* sum = sums_[index_.at(block)].data() + first;
  if (first_) {
    for (std::size_t i = 0; i < count; ++i) sum[i] = share_ * gradient[i];
  } else {
    for (std::size_t i = 0; i < count; ++i) sum[i] += share_ * gradient[i];
  }
}

double GradientSum::squared_norm() const {
  std::vector<double> parts(sums_.size(), 0.0);
  engine_.team().for_each(sums_.size(), [&](std::size_t b, int) {
    for (const float value : sums_[b]) parts[b] += static_cast<double>(value) * value;
  });
  double total = 0.0;
  for (const double part : parts) total += part;
  return total;
}

/// Passes the sums on in place of the gradient that the engine has at hand.
class GradientSum::HandOver final : public ParameterUpdate {
 public:
  HandOver(GradientSum& from, ParameterUpdate& update, float scale) : from_(from), update_(update), scale_(scale) {}

  void apply(BlockId block, std::size_t first, float* values, const float*, std::size_t count) override {
    float* sum = from_.sums_[from_.index_.at(block)].data() + first;
    if (scale_ != 1.0F) {
      for (std::size_t i = 0; i < count; ++i) sum[i] *= scale_;
    }
    update_.apply(block, first, values, sum, count);
  }

 private:
  GradientSum& from_;
  ParameterUpdate& update_;
  float scale_;
};

void GradientSum::finish(ParameterUpdate& update, double gradient_clip) {
  float scale = 1.0F;
  if (gradient_clip > 0.0) {
    const double norm = std::sqrt(squared_norm());
    if (norm > gradient_clip) scale = static_cast<float>(gradient_clip / norm);
  }
  HandOver hand_over(*this, update, scale);
  engine_.update_parameters(hand_over);
}

}  // namespace spikeloom

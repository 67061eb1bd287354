#include "data/spike_batch.hpp"

#include <limits>

#include <spikeloom/error.hpp>

namespace spikeloom {

double SpikeBatch::activity() const {
  const double places = static_cast<double>(rows()) * neurons;
  return places > 0.0 ? static_cast<double>(events()) / places : 0.0;
}

void gather_batch(const SpikeDataset& data, std::span<const std::uint32_t> samples, SpikeBatch& batch) {
  batch.samples = static_cast<int>(samples.size());
  batch.steps = data.steps();
  batch.neurons = data.channels();
  batch.offsets.assign(1, 0);
  batch.offsets.reserve(batch.rows() + 1);
  batch.ids.clear();
  batch.labels.clear();
  for (const std::uint32_t sample : samples) {
    if (sample >= data.size()) throw InternalError("a batch names a sample that the data set lacks");
    const std::span<const std::uint32_t> ids = data.ids(sample);
    const std::size_t start = batch.ids.size();
    if (start + ids.size() > std::numeric_limits<std::uint32_t>::max()) {
      throw UserError("a batch of more than 2^32 spikes; make the batch smaller");
    }
    for (const std::uint32_t offset : data.offsets(sample).subspan(1)) {
      batch.offsets.push_back(static_cast<std::uint32_t>(start) + offset);
    }
    batch.ids.insert(batch.ids.end(), ids.begin(), ids.end());
    batch.labels.push_back(data.label(sample));
  }
}

void slice_steps(const SpikeBatch& batch, int first, int count, SpikeBatch& out) {
  out.samples = batch.samples;
  out.steps = count;
  out.neurons = batch.neurons;
  out.labels = batch.labels;
  out.offsets.assign(1, 0);
  out.ids.clear();
  for (std::size_t sample = 0; sample < static_cast<std::size_t>(batch.samples); ++sample) {
    const std::uint32_t* offsets = batch.offsets.data() + sample * batch.steps + first;
    const auto shift = static_cast<std::uint32_t>(out.ids.size()) - offsets[0];
    for (int step = 1; step <= count; ++step) out.offsets.push_back(offsets[step] + shift);
    out.ids.insert(out.ids.end(), batch.ids.begin() + offsets[0], batch.ids.begin() + offsets[count]);
  }
}

}  // namespace spikeloom

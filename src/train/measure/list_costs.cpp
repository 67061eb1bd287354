// What lists cost: merging the tiles', sorting events by input, handing gradients back, assembling a batch.
#include <algorithm>

#include "data/spike_batch.hpp"
#include "kernels/kernels.hpp"
#include "train/measure/parts.hpp"
#include "train/measure/tile_case.hpp"
#include "train/measure/timing.hpp"

namespace spikeloom::measure {
namespace {

/// cost = base x + slope z of two measurements; neither negative.
struct Line {
  double base = 0.0;
  double slope = 0.0;
};

Line line_through(double x1, double z1, double ns1, double x2, double z2, double ns2) {
  const double determinant = x1 * z2 - x2 * z1;
  Line line;
  line.base = std::max(0.0, (ns1 * z2 - ns2 * z1) / determinant);
  line.slope = std::max(0.0, (ns2 - line.base * x2) / z2);
  return line;
}

struct Merged {
  double cells, entries, ns;
};

Merged merge_ns(double deviation) {
  constexpr int kTiles = 16;
  TileCase tiles(64, kTiles, 256, 24, 16.0, deviation);
  tiles.forward_all();
  return {tiles.rows() * kTiles, tiles.entries(),
          best_ns([&] { merge_active(tiles.layer(), tiles.context(), tiles.layer().active); })};
}

void measure_merging(MachineFigures& figures) {
  const Merged quiet = merge_ns(0.4), busy = merge_ns(1.2);
  const Line line = line_through(quiet.cells, quiet.entries, quiet.ns, busy.cells, busy.entries, busy.ns);
  figures.merge_row_ns = line.base;
  figures.merge_entry_ns = line.slope;
}

void measure_distribution(MachineFigures& figures) {
  constexpr int kTiles = 16, kParts = 8;
  TileCase tiles(64, kTiles, 256, 24, 16.0, 0.52);
  tiles.forward_all();
  tiles.list_active();
  const std::size_t events = tiles.active();
  const std::size_t stride = (events + 15) / 16 * 16;
  AlignedBuffer<float> values(stride * kParts), sum(stride);
  figures.distribute_event_ns =
      best_ns([&] {
        const float* from = sum.data();
        for (int sample = 0; sample < tiles.context().samples; ++sample) {
          distribute_to_tiles(tiles.layer(), sample, kSteps, from, tiles.scratch());
          from += tiles.layer().active.offsets[(sample + 1) * kSteps] - tiles.layer().active.offsets[sample * kSteps];
        }
      }) /
      static_cast<double>(events);
  std::vector<const float*> parts;
  for (int part = 0; part < kParts; ++part) parts.push_back(values.data() + part * stride);
  figures.add_partial_ns =
      best_ns([&] { kernels::add_in_order(parts, events, sum.data()); }) / static_cast<double>(events * kParts);
}

struct Sorted {
  double inputs, events, ns;
};

Sorted transpose_ns(double events_per_step) {
  constexpr int kNeurons = 1024, kSamples = 40;
  const SpikeLists spikes = random_spikes(kSamples, kSteps, kNeurons, events_per_step, 2);
  const std::vector<SampleRange> ranges = ranges_of({0, kSamples}, 10);
  WorkerTeam alone(1);
  std::vector<TransposedEvents> out;
  const double ns = best_ns([&] { transpose_events(spikes.view(kNeurons), kSteps, ranges, alone, out); });
  return {static_cast<double>(kNeurons) * static_cast<double>(ranges.size()), static_cast<double>(spikes.ids.size()),
          ns};
}

void measure_sorting(MachineFigures& figures) {
  const Sorted few = transpose_ns(1.0), many = transpose_ns(40.0);
  const Line line = line_through(few.inputs, few.events, few.ns, many.inputs, many.events, many.ns);
  figures.transpose_input_ns = line.base;
  figures.transpose_event_ns = line.slope;
}

struct Gathered {
  double rows, events, ns;
};

Gathered gather_ns(int per_step) {
  constexpr int kNeurons = 1024, kSamples = 48;
  SpikeDataset data({.step_us = 1000, .steps = kSteps}, kNeurons);
  std::vector<std::uint32_t> order;
  for (std::uint32_t sample = 0; sample < kSamples; ++sample) {
    std::vector<Event> events;
    for (int step = 0; step < kSteps; ++step) {
      for (int i = 0; i < per_step; ++i)
        events.push_back({step * 1000, static_cast<std::uint32_t>(i * (kNeurons / per_step))});
    }
    data.add(events, 0, -1, "measured");
    order.push_back(sample);
  }
  SpikeBatch batch;
  const double ns = best_ns([&] { gather_batch(data, order, batch); });
  return {static_cast<double>(batch.rows()), static_cast<double>(batch.events()), ns};
}

void measure_gathering(MachineFigures& figures) {
  const Gathered few = gather_ns(1), many = gather_ns(64);
  const Line line = line_through(few.rows, few.events, few.ns, many.rows, many.events, many.ns);
  figures.gather_row_ns = line.base;
  figures.gather_event_ns = line.slope;
}

}  // namespace

void measure_lists(MachineFigures& figures) {
  measure_merging(figures);
  measure_distribution(figures);
  measure_sorting(figures);
  measure_gathering(figures);
}

}  // namespace spikeloom::measure

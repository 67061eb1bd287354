// Tiles and their workers.
#include <gtest/gtest.h>

#include "plan/plan.hpp"

namespace spikeloom {
namespace {

TEST(Plan, SharedTilesAreCoveredOnceAndEvenly) {
  for (const int tiles : {1, 2, 3, 8, 23}) {
    for (const int workers : {1, 2, 3, 5, 16, 64}) {
      SCOPED_TRACE(testing::Message() << tiles << " tiles, " << workers << " workers");
      LayerPlan layer;
      layer.tiles = tiles;
      layer.shares = share_tiles(tiles, workers, true);
      int tile = -1, next_part = 0, parts = 0;
      for (const TileShare& share : layer.shares) {
        if (share.tile != tile) {
          EXPECT_EQ(next_part, parts) << "tile " << tile << " is not covered";
          EXPECT_EQ(share.tile, ++tile);
          next_part = 0, parts = share.parts;
        }
        EXPECT_EQ(share.first, next_part);
        EXPECT_LT(share.first, share.last);
        EXPECT_EQ(share.parts, parts);
        next_part = share.last;
      }
      EXPECT_EQ(tile, tiles - 1);
      EXPECT_EQ(next_part, parts);
      for (const double count : tiles_per_worker(layer, workers))
        EXPECT_NEAR(count, static_cast<double>(tiles) / workers, 1e-12);
    }
  }
}

TEST(Plan, PartsOfATileCoverEverySampleOnce) {
  for (const int samples : {1, 2, 5, 48}) {
    int next = 0;
    for (const TileShare& share : share_tiles(1, 7, true)) {
      EXPECT_EQ(share.begin(samples), next);
      next = share.end(samples);
    }
    EXPECT_EQ(next, samples);
  }
}

TEST(Plan, WholeTilesDifferByOneAtMost) {
  LayerPlan layer;
  layer.tiles = 23;
  layer.shares = share_tiles(23, 4, false);
  ASSERT_EQ(layer.shares.size(), 23u);
  for (const TileShare& share : layer.shares) EXPECT_TRUE(share.whole());
  for (const double count : tiles_per_worker(layer, 4)) EXPECT_TRUE(count == 5.0 || count == 6.0) << count;
}

TEST(Plan, OnlyFeedForwardSpikingLayersSplitTiles) {
  NetworkSpec network;
  network.channels = 10;
  for (const char* name : {"feed-forward", "recurrent", "readout"}) {
    LayerSpec& layer = network.layers.emplace_back();
    layer.name = name;
    layer.size = 192;
  }
  network.layers[1].recurrent = true;
  network.layers[2].neuron = NeuronKind::leaky_integrator;
  const Plan plan = make_plan(network, EngineMode::sparse, 2);
  EXPECT_EQ(plan.layers[0].shares.size(), 4u);
  EXPECT_EQ(plan.layers[1].shares.size(), 3u);
  EXPECT_EQ(plan.layers[2].shares.size(), 3u);
}

}  // namespace
}  // namespace spikeloom

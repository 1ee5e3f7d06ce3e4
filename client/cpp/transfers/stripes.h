// How a matrix is split over the channels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gemmd::client {

// Bytes [offset, offset + length) of a matrix, on one channel.
struct Stripe {
  int channel = 0;
  uint64_t offset = 0;
  uint64_t length = 0;

  friend bool operator==(const Stripe&, const Stripe&) = default;
};

// At most `channels` stripes, in order, without gaps, of nearly equal length. All
// but the last consist of whole chunks. The first stripe is on `first_channel`, the
// next ones on the channels after it, in a circle. bytes, channels and chunk_bytes
// are at least 1.
std::vector<Stripe> PlanStripes(uint64_t bytes, int channels, uint64_t chunk_bytes,
                                int first_channel);

// 128 random bits in hexadecimal: the id of a split upload, or the name of a matrix
// kept for it.
std::string NewTransferId();

}  // namespace gemmd::client

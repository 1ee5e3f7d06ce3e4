// Sums along the lines of a matrix, for the host and the GPU alike.
#pragma once

#include <cmath>

#include "kernels/numeric/host_device.h"

namespace gemm {

// The weights along a line, by position. An element has the weight `value` + `low`, a pair of f64
// whose second is the rest of the first. Its magnitude has the weight `magnitude`.
struct Weights {
  const double* value;
  const double* low;
  const double* magnitude;
};

// Sums over the elements x of a line, with weights w (a pair) and v.
struct LineSums {
  double dot = 0;  // sum of w x; with `low`, as a pair
  double low = 0;
  double weighted = 0;    // sum of v |x|
  double magnitudes = 0;  // sum of |x|
  double squares = 0;     // sum of (v x)^2
};

// a * b + c: rounded once on the GPU, and twice on a host that may have no such instruction.
GEMM_HOST_DEVICE inline double MultiplyAdded(double a, double b, double c) {
#ifdef __CUDA_ARCH__
  return fma(a, b, c);
#else
  return a * b + c;
#endif
}

// A sum in f64.
struct PlainSum {
  double high = 0;

  GEMM_HOST_DEVICE void Add(double x, double weight, double /*low*/) {
    high = MultiplyAdded(x, weight, high);
  }
  GEMM_HOST_DEVICE void Join(double other, double /*low*/) { high += other; }
  GEMM_HOST_DEVICE double low() const { return 0; }
};

// A sum in pairs of f64: as in twice the precision (T. Dekker, "A floating-point technique for
// extending the available precision", Numer. Math. 18, 1971; Ogita, Rump and Oishi, "Accurate
// sum and dot product", SIAM J. Sci. Comput. 26, 2005). Right only where the compiler does not
// contract a multiplication and an addition: its files are compiled so.
struct PairSum {
  double high = 0;
  double rest = 0;

  GEMM_HOST_DEVICE void Add(double x, double weight, double low) {
    const double product = x * weight;
    rest += fma(x, weight, -product) + x * low;
    Join(product, 0);
  }
  GEMM_HOST_DEVICE void Join(double other, double low) {
    const double sum = high + other;
    const double part = sum - high;
    rest += ((high - (sum - part)) + (other - part)) + low;
    high = sum;
  }
  GEMM_HOST_DEVICE double low() const { return rest; }
};

// The sums of one line, while it is read.
template <class Sum>
struct LineAdder {
  Sum dot;
  double weighted = 0;
  double magnitudes = 0;
  double squares = 0;

  GEMM_HOST_DEVICE void Add(double x, double weight, double low, double magnitude) {
    dot.Add(x, weight, low);
    const double size = fabs(x);
    const double scaled = magnitude * size;
    weighted += scaled;
    magnitudes += size;
    squares = MultiplyAdded(scaled, scaled, squares);
  }
  GEMM_HOST_DEVICE void Join(const LineSums& other) {
    dot.Join(other.dot, other.low);
    weighted += other.weighted;
    magnitudes += other.magnitudes;
    squares += other.squares;
  }
  GEMM_HOST_DEVICE LineSums sums() const {
    return {dot.high, dot.low(), weighted, magnitudes, squares};
  }
};

// The root of the sum of squares. If squares leave the range of f64, the sum of magnitudes, which
// is larger.
GEMM_HOST_DEVICE inline double RootOfSquares(double squares, double magnitudes) {
  return squares > 1e-290 && squares < 1e290 ? sqrt(squares) : magnitudes;
}
GEMM_HOST_DEVICE inline double Norm(const LineSums& sums) {
  return RootOfSquares(sums.squares, sums.weighted);
}

}  // namespace gemm

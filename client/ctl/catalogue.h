// The server's kernels for people: families first, then one family, then one
// kernel.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "client/cpp/types.h"

namespace gemmd::ctl {

using Kernels = std::vector<client::KernelInfo>;

// Those that `asked` names: a family, a kernel, or a pattern with * and ? of
// kernels' names. Empty: all of them.
Kernels KernelsNamed(const Kernels& kernels, const std::string& asked);

// The types that the kernels take, in few words: A[*B][>RESULT][/ARITHMETIC],
// with commas between alternatives, equal factors, a result of A's type and
// usual arithmetic left unsaid. "f16,bf16>f32" multiplies f16 or bf16 into f32.
std::string TypesText(const Kernels& kernels);

// A line a family: how many kernels, how many of them run on a device of the
// server, which devices, what types. Lines have at most `width` places, here and
// below; 0: no bound.
void PrintFamilies(std::ostream& out, const Kernels& kernels, size_t width);

// A line a kernel. What all have in common stands above, why some run nowhere
// below.
void PrintKernels(std::ostream& out, const Kernels& kernels, size_t width);

// All that is known of one kernel.
void PrintKernel(std::ostream& out, const client::KernelInfo& kernel, size_t width);

}  // namespace gemmd::ctl

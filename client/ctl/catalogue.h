// Prints the server's kernels: all families, one family, or one kernel.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "gemmd/client/types.h"

namespace gemmd::ctl {

using Kernels = std::vector<client::KernelInfo>;

// The kernels that `asked` selects: a family, a kernel, or a pattern of kernel names
// with * and ?. Empty: all of them.
Kernels KernelsNamed(const Kernels& kernels, const std::string& asked);

// The types that the kernels take, in short: A[*B][>RESULT][/ARITHMETIC], with commas
// between alternatives. B equal to A, a result of A's type and the default arithmetic
// are left out. "f16,bf16>f32" multiplies f16 or bf16 into f32.
std::string TypesText(const Kernels& kernels);

// One line for each family: how many kernels, how many of them run on a device of
// the server, which devices, which types. Here and below, lines have at most `width`
// columns; 0: no bound.
void PrintFamilies(std::ostream& out, const Kernels& kernels, size_t width);

// One line for each kernel. What all have in common is printed above the lines.
// Below them is printed why some run on no device.
void PrintKernels(std::ostream& out, const Kernels& kernels, size_t width);

// Everything about one kernel.
void PrintKernel(std::ostream& out, const client::KernelInfo& kernel, size_t width);

}  // namespace gemmd::ctl

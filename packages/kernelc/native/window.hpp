// Copies of the elements of the last group of lanes: what kc_context's copy_in and copy_out point to.
#pragma once

#include "kernelc/context.h"

namespace kernelc {

decltype(kc_context::copy_in) copy_in();
decltype(kc_context::copy_out) copy_out();

}  // namespace kernelc

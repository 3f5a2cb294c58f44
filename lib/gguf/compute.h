/* SPDX-License-Identifier: MIT */
/* compute.h - tensors, graphs, and the backends that compute them
 *
 * For programs that compute with tensors of their own. This header includes
 * tensor.h (contexts and tensors), op.h (operations), graph.h (which tensors to
 * compute), backend.h (memory and devices), sched.h (one graph over several
 * backends), cpu.h and blas.h (the backends of this library), compare.h (two
 * backends side by side) and profile.h (time per operation). doc/tour.md is a
 * program of 60 lines. gguf.h has the rules that hold in every header.
 */
#ifndef GGUF_COMPUTE_H
#define GGUF_COMPUTE_H

#include <gguf/backend.h>
#include <gguf/blas.h>
#include <gguf/compare.h>
#include <gguf/cpu.h>
#include <gguf/graph.h>
#include <gguf/op.h>
#include <gguf/profile.h>
#include <gguf/sched.h>
#include <gguf/tensor.h>

#endif

/* SPDX-License-Identifier: MIT */
/* compute.h - tensors, graphs, and the backends that compute them
 *
 * For programs that compute with tensors of their own. This header includes
 * context.h and tensor.h (arenas and tensors), op.h (operations), graph.h (the
 * tensors to compute), gradient.h (their gradients), buffer.h and galloc.h
 * (their memory), device.h and backend.h (devices and computing), sched.h (one
 * graph on several backends), cpu.h and blas.h (the backends of this library),
 * compare.h (two backends side by side) and profile.h (time per operation).
 * doc/tour.md is a program of 60 lines. gguf.h has the rules that hold in every
 * header.
 */
#ifndef GGUF_COMPUTE_H
#define GGUF_COMPUTE_H

#include <gguf/backend.h>
#include <gguf/blas.h>
#include <gguf/buffer.h>
#include <gguf/compare.h>
#include <gguf/context.h>
#include <gguf/cpu.h>
#include <gguf/device.h>
#include <gguf/galloc.h>
#include <gguf/gradient.h>
#include <gguf/graph.h>
#include <gguf/op.h>
#include <gguf/profile.h>
#include <gguf/sched.h>
#include <gguf/tensor.h>

#endif

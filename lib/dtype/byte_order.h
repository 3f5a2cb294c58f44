/* SPDX-License-Identifier: MIT */
/* byte_order.h - the byte order of tensor data
 *
 * In a big-endian file the numbers in tensor data are big-endian too. A number
 * is what the reference decoder reads from a block at once, as 16, 32 or 64
 * bits, whatever the block declares: the fifth bits of Q5_0 are declared as
 * four bytes and read as one word; of each eight bytes of IQ2_XXS, declared as
 * four words, four are read as bytes and four as one word. What it reads byte
 * by byte, or masks in every byte alike (the scales of Q3_K), stays as it is.
 * So a file in either order gives the same weights to a program that reads it
 * in the order of its machine, which is what big-endian machines do.
 *
 * Checked against ggml (commit d99724f): its decoders, compiled for s390x and
 * with their tables of grids in that machine's order, give the same floats
 * from swapped blocks of every type that they know as they give on x86-64 from
 * the blocks themselves. (As it is, ggml reads those tables byte by byte, so
 * that IQ1_S to IQ3_S are not read right on such machines whatever the file
 * has.) Types of forks: ik_llama.cpp (commit 8337e4c), by the same rule.
 */
#ifndef GG_DTYPE_BYTE_ORDER_H
#define GG_DTYPE_BYTE_ORDER_H

#include "dtype/dtype_int.h"

#include <stdbool.h>
#include <stddef.h>

/* type is GG_DT_... in all of these; row_size: bytes of a row of the tensor,
 * header included. */

/* Is it known where the numbers of this type are? It is for all types in
 * list.h except those with interleaved rows (ids from 202 on). */
bool gg_byte_order_is_known(int type);

/* Must data of a file of that order be swapped to become a tensor in memory?
 * There plain numbers are in the machine's order, so that C can read them, and
 * blocks are as in a little-endian file, so that each type has one decoder. */
bool gg_byte_order_differs(int type, bool big_endian);

/* The last byte of a tensor, off or before it, where no block and no row
 * header would be cut in two. */
uint64_t gg_byte_order_floor(int type, uint64_t row_size, uint64_t off);

/* Reverse the bytes of each number in size bytes at p, in place. p is byte off
 * of a tensor; both ends are where nothing is cut. Any alignment; any
 * thread. Twice gives back what was there. */
void gg_byte_order_swap(int type, uint64_t row_size, uint64_t off, uint8_t *p,
                        size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/* byte_order.h - the byte order of tensor data
 *
 * In a big-endian file the numbers in tensor data are big-endian, too. A number
 * is a unit of 16, 32 or 64 bits that the reference decoder reads at once, even
 * if the block declares it differently. The fifth bits of Q5_0 are declared as
 * four bytes and read as one word. Each eight bytes of IQ2_XXS are declared as
 * four words; four of them are read as bytes and four as one word. Bytes that
 * are read one by one, or masked all alike (the scales of Q3_K), keep their
 * order. So a big-endian machine that reads a big-endian file gets the same
 * weights as a little-endian machine that reads a little-endian one.
 *
 * Checked against ggml (commit d99724f). Its decoders were compiled for s390x,
 * with their tables of grids in that machine's order, and gave the same floats
 * from swapped blocks of every type that they know as on x86-64 from the blocks
 * themselves. (Unchanged, ggml reads those tables byte by byte, so it decodes
 * IQ1_S to IQ3_S wrongly on such machines.) Types of forks: ik_llama.cpp
 * (commit 8337e4c), by the same rule.
 */
#ifndef GG_DTYPE_BYTE_ORDER_H
#define GG_DTYPE_BYTE_ORDER_H

#include "dtype/dtype_int.h"

#include <stdbool.h>
#include <stddef.h>

/* In all functions, type is GG_DT_... and row_size is the bytes of a row of the
 * tensor with its header. */

/* Is the place of the numbers in this type known? It is for all types of list.h
 * except those with interleaved rows (ids from 202 on). */
bool gg_byte_order_is_known(int type);

/* Must data of a file with this byte order be swapped to become a tensor in
 * memory? In memory, plain numbers have the machine's order, so that C can read
 * them, and blocks are little-endian, so that each type has one decoder. */
bool gg_byte_order_differs(int type, bool big_endian);

/* Largest offset in a tensor, at most off, that does not cut a block or the
 * header of a row. */
uint64_t gg_byte_order_floor(int type, uint64_t row_size, uint64_t off);

/* Reverse the bytes of each number in size bytes at p, in place. p is byte off
 * of a tensor, at any alignment; neither end cuts a block or header. Swapping
 * twice restores the data. Any thread may call this. */
void gg_byte_order_swap(int type, uint64_t row_size, uint64_t off, uint8_t *p,
                        size_t size);

#endif

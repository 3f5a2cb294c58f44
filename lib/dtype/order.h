/* order.h - the byte order of tensor data
 *
 * In a big-endian file the numbers in tensor data are big-endian too. What
 * counts as a number is what the decoder of the reference takes out of a block
 * at once, as 16, 32 or 64 bits, whatever the block declares: the fifth bits
 * of Q5_0 are declared as four bytes and read as one word; of each eight bytes
 * of IQ2_XXS, declared as four words, four are read as bytes and four as one
 * word. What it reads byte by byte, or masks in every byte alike (the scales
 * of Q3_K), stays as it is. So a file in either order gives the same weights
 * to a program that reads it in the order of its machine, which is what
 * big-endian machines do.
 *
 * Checked against ggml (commit d99724f): its decoders, compiled for s390x and
 * with their tables of grids in that machine's order, give the same floats
 * from swapped blocks of every type that they know as they give on x86-64 from
 * the blocks themselves. (As it is, ggml reads those tables byte by byte, so
 * that IQ1_S to IQ3_S are not read right on such machines whatever the file
 * has.) Types of forks: ik_llama.cpp (commit 8337e4c), by the same rule.
 */
#ifndef GG_DTYPE_ORDER_H
#define GG_DTYPE_ORDER_H

#include "dtype/dtype.h"

#include <stdbool.h>
#include <stddef.h>

/* type is GG_DT_... in all of these; row_size: bytes of a row of the tensor,
 * header included. */

/* Is it known where the numbers of this type are? Of all in list.h, it is, but
 * for those whose rows are interleaved (ids from 202 on). */
bool gg_order_known(int type);

/* Does data of a file of that order have to be swapped before it is a tensor's
 * in memory? There plain numbers are in the machine's order, so that C reads
 * them as what they are, and blocks are those of a little-endian file, so that
 * there is one decoder of each. */
bool gg_order_differs(int type, bool big_endian);

/* The last byte of a tensor, off or before it, where no block and no row
 * header would be cut in two. */
uint64_t gg_order_floor(int type, uint64_t row_size, uint64_t off);

/* Reverse the bytes of each number in size bytes at p, in place. p is byte off
 * of a tensor; both ends are where nothing is cut. Any alignment; any
 * thread. Twice gives back what was there. */
void gg_order_swap(int type, uint64_t row_size, uint64_t off, uint8_t *p,
                   size_t size);

#endif

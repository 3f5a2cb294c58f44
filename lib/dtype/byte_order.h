/* SPDX-License-Identifier: MIT */
/* byte_order.h - the byte order of tensor data
 *
 * In a big-endian file, numbers in tensor data are big-endian, too. A number
 * is 16, 32 or 64 bits that the reference decoder reads at once, whatever the
 * block declares: it reads the fifth bits of Q5_0, declared as four bytes, as
 * one word; and of each eight bytes of IQ2_XXS, declared as four words, it
 * reads four as bytes and four as one word. Bytes that it reads one by one, or
 * masks all alike (the scales of Q3_K), are not swapped. So a program that
 * reads a file in its machine's byte order gets the same weights from a file
 * in either order, as programs on big-endian machines do.
 *
 * Checked against ggml (commit d99724f): its decoders, compiled for s390x and
 * with their tables of grids in that machine's order, give the same floats
 * from swapped blocks of every type that they know as on x86-64 from the
 * blocks themselves. (Unchanged, ggml reads those tables byte by byte, so that
 * IQ1_S to IQ3_S are wrong on such machines, whatever the file's order.) Types
 * of forks follow the same rule: ik_llama.cpp (commit 8337e4c).
 */
#ifndef GG_DTYPE_BYTE_ORDER_H
#define GG_DTYPE_BYTE_ORDER_H

#include "dtype/dtype_int.h"

#include <stdbool.h>
#include <stddef.h>

/* type is GG_DT_... in all of these functions. row_size: bytes of a row of the
 * tensor, with its header. */

/* Are the places of this type's numbers known? They are for all types in
 * list.h except those with interleaved rows (ids from 202 on). */
bool gg_byte_order_is_known(int type);

/* Must data of a file in that order be swapped to become a tensor in memory?
 * In memory plain numbers are in the machine's order, so that C can read them,
 * and blocks are as in a little-endian file, so that each type has one
 * decoder. */
bool gg_byte_order_differs(int type, bool big_endian);

/* The last byte of a tensor, at or before off, that does not cut a block or a
 * row header in two. */
uint64_t gg_byte_order_floor(int type, uint64_t row_size, uint64_t off);

/* Reverse the bytes of each number in size bytes at p, in place. p is byte off
 * of a tensor. Neither end may cut a block or a row header. A second call
 * restores the bytes. Any alignment; any thread. */
void gg_byte_order_swap(int type, uint64_t row_size, uint64_t off, uint8_t *p,
                        size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/* interleave.h - types of ik_llama.cpp that store several rows together
 *
 * The rows of an interleaved type are stored in groups of 4, 8 or 16. A group
 * is the row headers of its rows, then for each position one group block: the
 * bits of one block of each row, permuted. Every byte of a group block belongs
 * to one row. Groups do not cross the matrices of a tensor.
 *
 * These functions copy rows out of a group, as rows of a plain type, and back
 * into a group. They read and write the byte order of little-endian files.
 *
 *     plain      the type of the rows apart. It has the same numbers in the
 *                same bits, with three exceptions: Q8_K_R8 and Q8_K_R16 are
 *                read as Q8_0, which repeats their scale, and have no way back;
 *                IQ1_S_R4 and IQ1_M_R4 have rows of their own, with the header
 *                and the blocks of one row.
 */
#ifndef GG_DTYPE_INTERLEAVE_H
#define GG_DTYPE_INTERLEAVE_H

#include "dtype/dtype_int.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Number of rows in a group of type GG_DT_...: 1 for other types. */
unsigned gg_interleave_rows(int type);

/* Type of the rows apart; type itself for types that are not interleaved. */
int gg_interleave_plain(int type);

/* Interleaved type whose groups can be made of rows of a plain type, bit for
 * bit; -1: none. */
int gg_interleave_of(int plain);

/* Can any rows of the plain type be put into groups of the interleaved type,
 * without a change of value? */
bool gg_interleave_has_put(int type);

/* Elements of a block of a type apart: a multiple of both types' blocks. */
uint32_t gg_interleave_unit(int type);

/* Copy a part of row k out of a group, as the header and the blocks of a row of
 * the plain type.
 *
 * group   first byte of the group
 * first   first element of the part, a multiple of gg_interleave_unit()
 * n       elements, a multiple of gg_interleave_unit()
 * row     receives the plain type's row header and n elements
 *
 * The sum in a header of Q8_KV is that of the part. Any thread. */
void gg_interleave_take(int type, const void *group, unsigned k,
                        uint64_t first, uint64_t n, void *row);

/* Copy whole rows of the plain type into a group.
 *
 * rows    gg_interleave_rows() rows of ne0 elements, one after another
 * group   receives the bytes of the group
 *
 * gg_interleave_has_put() must be true, or the type's own encoder made the rows
 * (Q8_K_R8 and Q8_K_R16: eight blocks of Q8_0 have one scale). Any thread. */
void gg_interleave_put(int type, void *group, uint64_t ne0, const void *rows);

#endif

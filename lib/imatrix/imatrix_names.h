/* SPDX-License-Identifier: MIT */
/* imatrix_names.h - names in importance files of the GGUF form */
#ifndef GG_IMATRIX_IMATRIX_NAMES_H
#define GG_IMATRIX_IMATRIX_NAMES_H

/* Keys of libgguf, which other programs ignore. */
#define GG_IMATRIX_PRECISION   "libgguf.imatrix.precision"
#define GG_IMATRIX_SENS_NAMES  "libgguf.imatrix.sensitivity.names"
#define GG_IMATRIX_SENS_VALUES "libgguf.imatrix.sensitivity.values"
#define GG_IMATRIX_SENS_INPUTS "libgguf.imatrix.sensitivity.inputs"
#define GG_IMATRIX_SENS_TOKENS "libgguf.imatrix.sensitivity.tokens"

#define GG_IMATRIX_SUMS   ".in_sum2"
#define GG_IMATRIX_COUNTS ".counts"
/* Size of a tensor name with its suffix and NUL, at most. */
enum { GG_IMATRIX_NAME = 256 };

#endif

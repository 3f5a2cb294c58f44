/* SPDX-License-Identifier: MIT */
/* dtype_int.h - dense numbers of data types, for tables indexed by type */
#ifndef GG_DTYPE_DTYPE_INT_H
#define GG_DTYPE_DTYPE_INT_H

#include "dtype/list.h"
#include "gguf/dtype.h"

/* GG_DT_... of the id in a file; -1 if the id is unknown or removed. */
int gg_dtype_index(uint32_t id);

/* Description of the type GG_DT_... Not NULL. */
const struct gguf_dtype_info *gg_dtype_by_index(int index);

#endif

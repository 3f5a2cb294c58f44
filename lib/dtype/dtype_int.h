/* SPDX-License-Identifier: MIT */
/* dtype_int.h - dense numbering of the tensor types, for tables indexed by type
 * */
#ifndef GG_DTYPE_DTYPE_INT_H
#define GG_DTYPE_DTYPE_INT_H

#include "dtype/list.h"
#include "gguf/dtype.h"

/* GG_DT_... of a file's id, or -1 if the id is unknown or removed. */
int gg_dtype_index(uint32_t id);

/* Never NULL; index is GG_DT_... */
const struct gguf_dtype_info *gg_dtype_by_index(int index);

#endif

/* SPDX-License-Identifier: MIT */
/* cache_type.h - types that keys and values are kept in, as options name them
 * */
#ifndef TOOLS_COMMON_CACHE_TYPE_H
#define TOOLS_COMMON_CACHE_TYPE_H

#include "tools/common/opt.h"

extern const struct opt_word cache_type_words[]; /* GGUF_DTYPE_... */

#endif

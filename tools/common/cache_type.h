/* SPDX-License-Identifier: MIT */
/* cache_type.h - names of types for the key/value cache */
#ifndef TOOLS_COMMON_CACHE_TYPE_H
#define TOOLS_COMMON_CACHE_TYPE_H

#include "tools/common/opt.h"

extern const struct opt_word cache_type_words[]; /* values: GGUF_DTYPE_... */

#endif

/* name.h - what the names of tensors say */
#ifndef GG_FILE_NAME_H
#define GG_FILE_NAME_H

#include "gguf/file.h"

/* Cut "FIRSTN." off *name, as gguf_name_layer() cuts "blk.N.": N, or -1 and
 * *name stays. */
int64_t gg_name_cut(struct gguf_str *name, const char *first);

#endif

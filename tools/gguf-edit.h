/* gguf-edit.h - what the parts of gguf-edit share */
#ifndef TOOLS_GGUF_EDIT_H
#define TOOLS_GGUF_EDIT_H

#include "tools/common/text.h"

#include <gguf/file.h>

#include <stdbool.h>

/* A value as it stands in a file after its type. Zeroed is empty. */
struct value {
    uint32_t type;
    uint32_t base;  /* of the innermost elements; type if that is not an
                     * array */
    unsigned depth; /* levels of arrays */
    struct text bytes;
};

/* The argument of --set: "TYPE:text", or text of the type of present (NULL:
 * there is none), or of one that fits key and text. false: why says what is
 * wrong, escaped; it is zeroed before, or holds a message already. */
bool value_parse(struct value *v, const char *key, const char *arg,
                 const struct gguf_kv *present, struct text *why);

/* The string s. */
void value_set_str(struct value *v, struct gguf_str s);

void value_fini(struct value *v);

#endif

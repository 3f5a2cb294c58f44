/* gguf-edit.h - what the parts of gguf-edit share */
#ifndef TOOLS_GGUF_EDIT_H
#define TOOLS_GGUF_EDIT_H

#include "tools/common/text.h"

#include <gguf/file.h>

#include <stdbool.h>

/* A value as it stands in a file behind its type. Zeroed is empty. */
struct value {
    uint32_t type;
    uint32_t base;  /* of the innermost elements; type if that is no array */
    unsigned depth; /* levels of arrays */
    struct text bytes;
    bool not_utf8;      /* a string of it is not UTF-8 */
};

/* The argument of --set: "TYPE:text", or text of the type of present (NULL:
 * there is none), or of one that fits key and text. false: why says in what
 * way it is wrong, escaped; why is zeroed or holds a message already. */
bool value_parse(struct value *v, const char *key, const char *arg,
                 const struct gguf_kv *present, struct text *why);

/* The string s. */
void value_set_str(struct value *v, struct gguf_str s);

void value_fini(struct value *v);

/* Is s the text z? */
bool str_is(struct gguf_str s, const char *z);

/* What of after would break, that before did not, for programs that read the
 * file: a message for each, about the file called name; with force they are
 * warnings. limits: what the file was opened with. Returns whether the edit
 * may be done. */
bool guard_check(const char *name, const struct gguf_file *file,
                 const struct gguf_limits *limits,
                 const struct gguf_meta *before,
                 const struct gguf_meta *after, bool force);

/* Errors that verify.h finds in the file with the metadata after, and not in
 * the file as it is: report is called for each. */
void verify_new_errors(const char *name, const struct gguf_file *file,
                       const struct gguf_limits *limits,
                       const struct gguf_meta *after,
                       void (*report)(void *user, const char *message),
                       void *user);

#endif

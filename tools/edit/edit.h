/* SPDX-License-Identifier: MIT */
/* edit.h - what the parts of gguf-edit share */
#ifndef TOOLS_EDIT_EDIT_H
#define TOOLS_EDIT_EDIT_H

#include "tools/common/opt.h"
#include "tools/common/text.h"

#include <gguf/edit.h>

#include <stdbool.h>

/* A change, in the order of the command line. */
enum what { SET, SET_FILE, RENAME, DELETE, TEMPLATE, SPECIAL };
struct op {
    enum what what;
    char *key;       /* from malloc; arg is part of it */
    const char *arg; /* after the '='; NULL for DELETE */
};

struct edit_options {
    struct opt_list changes; /* with enum what */
    struct op *op;           /* what they say, n_ops of them */
    size_t n_ops;
    char *joined; /* words of the command line, with what they begin with */
    const char *output;
    enum gguf_edit_mode mode;
    enum gguf_edit_byte_order order;
    struct gguf_limits limits;
    bool dry_run, force, quiet, recover;
};

/* *o has its defaults. Returns how many files there are: argv[1] and so on. */
int edit_parse(struct edit_options *o, int argc, char **argv);
void edit_options_fini(struct edit_options *o);

/* --------------------------------------------------------------- files --- */

/* A file that is written anew, or in place. */
struct edit_file {
    char *path;
    char *output; /* NULL: the file itself */
    bool keys;    /* changes of keys are its own; else it is another shard of
                   * their set, of which the byte order may change */
};

struct edit_files {
    struct edit_file *file;
    size_t n;
};

/* What the n arguments mean, each file once: files, patterns of them, and split
 * models by any shard, folder or prefix. Of a split model the first shard has
 * the keys; the others come before it, where they are written, too. false: a
 * message was printed, and some are missing. edit_files_fini in any case. */
bool edit_files_find(struct edit_files *f, const struct edit_options *o,
                     char **arg, int n);
void edit_files_fini(struct edit_files *f);

/* -------------------------------------------------------------- values --- */

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

/* SPDX-License-Identifier: MIT */
/* edit.h - declarations that the parts of gguf-edit share */
#ifndef TOOLS_EDIT_EDIT_H
#define TOOLS_EDIT_EDIT_H

#include "tools/common/opt.h"
#include "tools/common/text.h"

#include <gguf/edit.h>

#include <stdbool.h>

/* A change. Changes are kept in the order of the command line. */
enum op_kind { SET, SET_FILE, RENAME, DELETE, TEMPLATE, SPECIAL };
struct op {
    enum op_kind kind;
    char *key;       /* owned; its memory also holds arg */
    const char *arg; /* text after the '='; NULL for DELETE */
};

struct edit_options {
    struct opt_list changes; /* arguments with their enum op_kind */
    struct op *op;           /* changes, parsed: n_ops of them */
    size_t n_ops;
    char *joined; /* memory of arguments that were joined */
    const char *output;
    enum gguf_edit_mode mode;
    enum gguf_edit_byte_order order;
    struct gguf_limits limits;
    bool dry_run, force, quiet, recover;
};

/* Parse the command line into o, which has its defaults. Returns the number of
 * files, which are argv[1] and so on. */
int edit_parse(struct edit_options *o, int argc, char **argv);
void edit_options_fini(struct edit_options *o);

/* --------------------------------------------------------------- files --- */

/* A file to edit. */
struct edit_file {
    char *path;
    char *output; /* path of the output; NULL: the file itself */
    /* changes of keys apply to this file; false for another shard, where only
     * the byte order may change */
    bool keys;
};

struct edit_files {
    struct edit_file *file;
    size_t n;
};

/* Find the files that the n arguments mean, each file once: files, patterns,
 * and split models by any shard, folder or prefix. The keys of a split model
 * are in the first shard, which comes after the others. Returns false after
 * messages, with some files missing. Call edit_files_fini() in any case. */
bool edit_files_find(struct edit_files *f, const struct edit_options *o,
                     char **arg, int n);
void edit_files_fini(struct edit_files *f);

/* -------------------------------------------------------------- values --- */

/* An encoded value, as it follows its type in a file. Zeroed: empty. */
struct value {
    uint32_t type;
    /* type of the innermost elements; type itself if not an array */
    uint32_t base;
    unsigned depth; /* levels of nested arrays */
    struct text bytes;
};

/* Parse the argument of --set: "TYPE:text", or text of the type of present, or
 * if that is NULL of a type that fits key and text. Returns false with a
 * message, escaped, in why, which must be zeroed or hold a message before. */
bool value_parse(struct value *v, const char *key, const char *arg,
                 const struct gguf_kv *present, struct text *why);

/* Set a value to the string s. */
void value_set_str(struct value *v, struct gguf_str s);

void value_fini(struct value *v);

#endif

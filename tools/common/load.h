/* SPDX-License-Identifier: MIT */
/* load.h - opening the model that an argument names */
#ifndef TOOLS_LOAD_H
#define TOOLS_LOAD_H

#include <gguf/file.h>

#include <stdbool.h>

/* A model that is open. Zeroed: none. */
struct load {
    const char *path;       /* path as given; must outlive the struct */
    struct gguf_file *file; /* NULL: nothing is open */
    bool whole;             /* file has all shards of its set */
};

/* Open path, a file, shard, folder or prefix. with_set: open all shards of its
 * set. If the set is broken but path itself is sound, a warning is printed and
 * only path is opened; a shard that cannot be read is an error. params may be
 * NULL. Returns false after a message. */
bool load_open(struct load *l, const char *path, bool with_set,
               const struct gguf_file_params *params);
/* Open path as load_open() does, but report a failure in err instead of
 * printing it. */
bool load_try(struct load *l, const char *path, bool with_set,
              const struct gguf_file_params *params, struct gguf_error *err);
void load_close(struct load *l);

/* Split models that were opened whole. A later argument that names a shard of
 * one means the same model; a pattern of the shell gives all shards. Zeroed:
 * none. */
struct load_seen {
    const char **path;
    size_t n, room;
};
/* Is path a shard of a model in seen? */
bool load_is_duplicate(const struct load_seen *seen, const char *path);
/* Add the model of l if it is a split model that was opened whole. */
void load_remember(struct load_seen *seen, const struct load *l);
void load_seen_fini(struct load_seen *seen);

/* Raise the limit of open files to the hard limit, since a model may have many
 * shards. Call it before the first load_open(). */
void load_raise_limits(void);

#endif

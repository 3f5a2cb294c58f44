/* SPDX-License-Identifier: MIT */
/* load.h - open what a tool was given: file, shard, folder or prefix */
#ifndef TOOLS_LOAD_H
#define TOOLS_LOAD_H

#include <gguf/file.h>

#include <stdbool.h>

/* Zeroed is empty. */
struct load {
    const char *path;       /* path as given; kept */
    struct gguf_file *file; /* NULL: nothing is open */
    bool whole;             /* file has all shards of its set, if it has one */
};

/* Open path with the shards that belong to it. If something is wrong with the
 * set (a shard that cannot be read is not) but path by itself is sound, warn
 * and open it alone. false: a message was printed. params may be NULL. */
bool load_open(struct load *l, const char *path, bool with_set,
               const struct gguf_file_params *params);
/* The same, but for the message: it is in err. */
bool load_try(struct load *l, const char *path, bool with_set,
              const struct gguf_file_params *params, struct gguf_error *err);
void load_close(struct load *l);

/* The sets that were opened whole so far: whoever names a shard of one after
 * that, or a pattern of the shell that matches all of them, means the set.
 * Zeroed is empty. */
struct load_seen {
    const char **path;
    size_t n, room;
};
/* Is path a shard of one of them? */
bool load_is_duplicate(const struct load_seen *seen, const char *path);
/* Take l's, if it is one. */
void load_remember(struct load_seen *seen, const struct load *l);
void load_seen_fini(struct load_seen *seen);

/* Files of many shards need many descriptors: take all that the system gives.
 * Before the first load_open. */
void load_raise_limits(void);

#endif

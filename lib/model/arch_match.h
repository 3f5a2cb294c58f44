/* SPDX-License-Identifier: MIT */
/* arch_match.h - how well a file fits an architecture other than its own */
#ifndef GG_MODEL_ARCH_MATCH_H
#define GG_MODEL_ARCH_MATCH_H

#include "gguf/recognize.h"
#include "data/source.h"
#include "model/arch.h"

/* Number of differences whose names are kept. Further ones are counted. */
enum { GG_ARCH_DIFFERENCES = 48 };

/* Differences between a file and an architecture. Tensors of several layers
 * that differ in the number of the layer are one difference. */
struct gg_arch_match {
    const struct gg_arch *arch;
    size_t n; /* number of differences */
    struct {
        uint8_t kind; /* enum gguf_arch_difference_kind */
        bool prevents;
        struct gguf_str name; /* name in the file, or literal */
        char literal[64];     /* name of a missing key or tensor */
        char message[200];
    } item[GG_ARCH_DIFFERENCES]; /* the first of them */
};

/* Compare a file with the row arch.
 *
 * src      File or set of shards, with its keys.
 * prefix   General.architecture of the file.
 *
 * GGUF_E_NOMEM. */
enum gguf_status
gg_arch_match_row(struct gg_arch_match *m, const struct gg_source *src,
                  const struct gg_arch *arch, struct gguf_str prefix,
                  const struct gguf_allocator *a, struct gguf_error *err);

/* Number of columns with which a row does what neither keys nor tensors of a
 * file show. */
unsigned gg_arch_count_departures(const struct gg_arch *arch);

/* Most architectures that a search keeps. */
enum { GG_ARCH_NEAREST = 64 };

/* Architectures with the fewest differences, in the order of
 * gguf_arch_find_nearest(). */
struct gg_arch_nearest {
    const struct gg_arch *arch[GG_ARCH_NEAREST];
    size_t n;             /* number of architectures */
    size_t n_differences; /* number of differences of each */
};

/* Find the nearest rows. GGUF_E_NOMEM, GGUF_E_UNSUPPORTED: prefix has bytes
 * that keys cannot begin with. */
enum gguf_status gg_arch_find_nearest(struct gg_arch_nearest *out,
                                      const struct gg_source *src,
                                      struct gguf_str prefix,
                                      const struct gguf_allocator *a,
                                      struct gguf_error *err);

/* Describe the nearest architectures in words that follow a message: "; nearest
 * is 'llama', with no difference ...". "": no architecture is found. Returns
 * out. */
const char *gg_arch_nearest_text(char *out, size_t size,
                                 const struct gg_source *src,
                                 struct gguf_str prefix,
                                 const struct gguf_allocator *a);

#endif

/* SPDX-License-Identifier: MIT */
/* split_layout.h - restore the layout of a file that was split
 *
 * Shards and merged files have the layout of a gguf_writer: tensors in the
 * order of their list, each padded with zeros to the alignment. If a file has
 * another layout, its first shard gets keys with which merging restores the
 * file byte for byte. Other programs ignore them:
 *
 *   libgguf.split.offsets  arr[u64]  offset of each tensor
 *   libgguf.split.size     u64       bytes after the end of the header
 *   libgguf.split.gaps     arr[u8]   bytes outside tensors, one after another;
 *                                    left out if all are zero
 *
 * If a whole file has keys of these names, or of split.no, split.count or
 * split.tensors.count, they get the prefix "libgguf." and keep their place:
 * libgguf.split.no, libgguf.libgguf.split.size and so on. Merging removes one
 * such prefix from these keys.
 */
#ifndef GG_FILE_SPLIT_LAYOUT_H
#define GG_FILE_SPLIT_LAYOUT_H

#include "file/layout.h"
#include "file/shard_set.h"
#include "file/writer_int.h"

/* Largest number of bytes outside tensors. It bounds the metadata of shards and
 * the size of merged files. */
#define GG_SPLIT_MAX_GAPS (UINT64_C(64) << 20)

/* Copy the metadata of the whole file f to the empty list m, and add the keys
 * if they are needed. GGUF_E_LIMIT: more than GG_SPLIT_MAX_GAPS bytes outside
 * tensors. GGUF_E_INVALID: a key is too long with its prefix. GGUF_E_NOMEM. */
enum gguf_status gg_file_split_layout_save(struct gguf_meta *m,
                                           const struct gguf_file *f,
                                           struct gguf_error *err);

/* Remove the keys from m, and the keys of a whole file that got a prefix. */
void gg_file_split_layout_forget(struct gguf_meta *m);

/* Layout of a file to restore. All members 0: the layout of a writer. */
struct gg_file_split_layout {
    const struct gguf_allocator *allocator; /* allocator of the lists */
    uint64_t *off;   /* offset of each tensor; NULL: no layout */
    uint64_t n;      /* number of offsets */
    uint64_t size;   /* bytes after the end of the header */
    uint8_t *gaps;   /* bytes outside tensors; NULL: all zero */
    uint64_t n_gaps; /* number of bytes at gaps */

    /* Places of the tensors by offset. Set by gg_file_split_layout_fit(). */
    struct gg_file_place *places;
};

/* Read the keys of the first shard into l, and copy its other metadata, without
 * the keys of a shard, to the empty list m. Free l with
 * gg_file_split_layout_fini(), after a failure, too. GGUF_E_NOMEM. */
enum gguf_status gg_file_split_layout_take(struct gg_file_split_layout *l,
                                           struct gguf_meta *m,
                                           const struct gguf_file *first,
                                           const struct gguf_allocator *a,
                                           struct gguf_error *err);
void gg_file_split_layout_fini(struct gg_file_split_layout *l);

/* Set the offsets of the tensors of w, which has all of them. *fits becomes
 * false, and w does not change, if l is empty or was made for other metadata or
 * tensors. GGUF_E_NOMEM. */
enum gguf_status gg_file_split_layout_fit(struct gg_file_split_layout *l,
                                          struct gguf_writer *w, bool *fits,
                                          struct gguf_error *err);

/* Bytes of the file. Only if the layout fits. */
uint64_t gg_file_split_layout_size(const struct gg_file_split_layout *l,
                                   const struct gguf_writer *w);

/* Append the bytes outside tensors that come before tensor k in order of
 * offset, or after the last tensor if k = n, to o. *gap counts the bytes that
 * were appended so far. */
enum gguf_status gg_file_split_layout_gap(const struct gg_file_split_layout *l,
                                          const struct gguf_writer *w,
                                          size_t k, struct gg_outfile *o,
                                          uint64_t *gap,
                                          struct gguf_error *err);

#endif

/* SPDX-License-Identifier: MIT */
/* split_layout.h - the layout of a file that was split, for merging
 *
 * Shards and what is merged from them are laid out as a gguf_writer does:
 * tensors in the order of their list, zeros up to the alignment after each.
 * A file with another layout gets keys in its first shard with which merging
 * restores it byte for byte; other programs ignore them:
 *
 *   libgguf.split.offsets  arr[u64]  the offset of each tensor
 *   libgguf.split.size     u64       bytes from the end of the header on
 *   libgguf.split.gaps     arr[u8]   bytes that are in no tensor, one after
 *                                    another; left out if all are zero
 *
 * Keys that a whole file has of its own under these names, or under split.no,
 * split.count, split.tensors.count, stay in their place with "libgguf." before
 * them: as libgguf.split.no, libgguf.libgguf.split.size and so on. Merging
 * takes one "libgguf." off each name of this family.
 */
#ifndef GG_FILE_SPLIT_LAYOUT_H
#define GG_FILE_SPLIT_LAYOUT_H

#include "file/layout.h"
#include "file/shard_set.h"
#include "file/writer_int.h"

/* No more bytes than this may belong to no tensor, so that neither metadata nor
 * a merged file becomes large without reason. */
#define GG_SPLIT_MAX_GAPS (UINT64_C(64) << 20)

/* Put the metadata of the whole file f into m, which is empty, and the keys.
 * GGUF_E_LIMIT: GG_SPLIT_MAX_GAPS; GGUF_E_INVALID (a key that is too long with
 * "libgguf." before it); GGUF_E_NOMEM. */
enum gguf_status gg_file_split_layout_save(struct gguf_meta *m,
                                           const struct gguf_file *f,
                                           struct gguf_error *err);

/* Take the keys out of m without looking at them, and those of a whole file
 * that splitting renamed. */
void gg_file_split_layout_forget(struct gguf_meta *m);

/* A file that is to be what it was; all zero: laid out as usual. */
struct gg_file_split_layout {
    const struct gguf_allocator *allocator;
    uint64_t *off; /* per tensor, or NULL */
    uint64_t n, size;
    uint8_t *gaps; /* n_gaps of them, or NULL: zeros */
    uint64_t n_gaps;
    struct gg_file_place
        *places; /* per tensor, from gg_file_split_layout_fit on */
};

/* Take the keys of the first shard into l and its other metadata, less the
 * split keys, into m, which is empty. To be given to gg_file_split_layout_fini
 * in any case. GGUF_E_NOMEM. */
enum gguf_status gg_file_split_layout_take(struct gg_file_split_layout *l,
                                           struct gguf_meta *m,
                                           const struct gguf_file *first,
                                           const struct gguf_allocator *a,
                                           struct gguf_error *err);
void gg_file_split_layout_fini(struct gg_file_split_layout *l);

/* Give the tensors of w, all of which are there, their offsets. *fits is false
 * and w as it was if l is empty, or belongs to other metadata or tensors than
 * w has. GGUF_E_NOMEM. */
enum gguf_status gg_file_split_layout_fit(struct gg_file_split_layout *l,
                                          struct gguf_writer *w, bool *fits,
                                          struct gguf_error *err);

/* Bytes of the file, once it fits. */
uint64_t gg_file_split_layout_size(const struct gg_file_split_layout *l,
                                   const struct gguf_writer *w);

/* Bytes that are in no tensor before the k-th tensor by offset, or for k = n
 * after the last: they go to o. *gap counts those that went before. */
enum gguf_status gg_file_split_layout_gap(const struct gg_file_split_layout *l,
                                          const struct gguf_writer *w,
                                          size_t k, struct gg_outfile *o,
                                          uint64_t *gap,
                                          struct gguf_error *err);

#endif

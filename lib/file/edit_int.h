/* SPDX-License-Identifier: MIT */
/* edit_int.h - state of an edit, and its change of the byte order */
#ifndef GG_FILE_EDIT_INT_H
#define GG_FILE_EDIT_INT_H

#include "file/file_int.h"
#include "file/writer_int.h"
#include "gguf/edit.h"

struct gg_edit {
    const struct gguf_file *file;   /* file to edit */
    struct gguf_edit_params p;      /* how to edit */
    const struct gguf_allocator *a; /* allocator of the edit */
    char *target;                   /* path of the result, links resolved; from
                                     * malloc() */
    bool replaces;                  /* target is the file itself */
    int lock;                       /* descriptor of the file, open for writing
                                     * and locked; -1: none */
    struct gguf_meta *meta;         /* copy of the new metadata */
    struct gguf_writer *w;          /* encodes the header */
    bool relayout;                  /* the alignment changes: data moves */
    bool swaps;                     /* the byte order changes */
};

/* Report progress. GGUF_E_CANCELLED: the callback returned true. */
enum gguf_status gg_edit_report_progress(const struct gg_edit *e,
                                         uint64_t done, uint64_t total,
                                         struct gguf_error *err);

/* Check that the byte order of all data can be changed. GGUF_E_UNSUPPORTED: the
 * message names the tensor that prevents it. */
enum gguf_status gg_edit_check_order(const struct gg_edit *e,
                                     struct gguf_error *err);

/* Append everything after the header to o, with the numbers of tensors in the
 * other byte order. */
enum gguf_status gg_edit_swap_rest(const struct gg_edit *e,
                                   struct gg_outfile *o,
                                   struct gguf_error *err);

/* Write tensor i in the other byte order to e->w, which has begun it. */
enum gguf_status gg_edit_swap_tensor(const struct gg_edit *e, size_t i,
                                     struct gguf_error *err);

#endif

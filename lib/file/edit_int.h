/* SPDX-License-Identifier: MIT */
/* edit_int.h - an edit that is going on */
#ifndef GG_FILE_EDIT_INT_H
#define GG_FILE_EDIT_INT_H

#include "file/file_int.h"
#include "file/writer_int.h"
#include "gguf/edit.h"

struct gg_edit {
    const struct gguf_file *file;
    struct gguf_edit_params p;
    const struct gguf_allocator *a;
    char *target;           /* resolved, from malloc: what is written */
    bool replaces;          /* target is the file itself */
    int lock;               /* it, open for writing and locked; or -1 */
    struct gguf_meta *meta; /* own copy */
    struct gguf_writer *w;  /* encodes the header; the data keeps its place
                             * unless the alignment changes */
    bool relayout;
    bool swaps; /* the byte order changes */
};

/* Report progress; GGUF_E_CANCELLED. */
enum gguf_status gg_edit_report_progress(const struct gg_edit *e,
                                         uint64_t done, uint64_t total,
                                         struct gguf_error *err);

/* edit_byte_order.c: can the data's byte order be changed? GGUF_E_UNSUPPORTED
 * names the tensor that prevents it. */
enum gguf_status gg_edit_check_order(const struct gg_edit *e,
                                     struct gguf_error *err);

/* Everything after the header, with the numbers of the tensors the other way
 * round, to the end of o. */
enum gguf_status gg_edit_swap_rest(const struct gg_edit *e,
                                   struct gg_outfile *o,
                                   struct gguf_error *err);

/* Tensor i the other way round, as e->w's next data. */
enum gguf_status gg_edit_swap_tensor(const struct gg_edit *e, size_t i,
                                     struct gguf_error *err);

#endif
